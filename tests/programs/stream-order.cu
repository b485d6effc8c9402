// SPDX-License-Identifier: Apache-2.0
/*
 * Random work on one stream, on two that wait for one another, or on two branches with memory of
 * their own, some of it captured and
 * launched several times: copies between device, pinned, pageable and mapped memory, fills,
 * kernels and host functions, whole and in part.  A model on the CPU does the same in the order
 * of the stream; every byte is compared.
 *
 *     stream-order [SEED [COUNT [INTS]]]     COUNT seeds from SEED on, buffers of INTS numbers
 */
#include "check.h"

#include <unistd.h>
#include <vector>

enum { DEVICE = 4, PINNED = 3, PAGEABLE = 2, HOST = PINNED + PAGEABLE + 1, MAPPED = HOST - 1 };
enum { ROW = 16, PART = 8 }; /* rows of two-dimensional copies, and what is copied of each */

enum kind {
	IN,
	OUT,
	KERNEL,
	FUNCTION,
	FILL,
	INSIDE,
	ACROSS,
	ON_MAPPED,
	ROWS_IN,
	ROWS_OUT,
	KINDS
};

struct work {
	enum kind kind;
	unsigned branch;
	unsigned device, other, host, from;
	int value;
	size_t at, n;
};

static uint32_t state;

static uint32_t below(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

__global__ void change(int *data, int value, size_t n)
{
	for (size_t i = threadIdx.x + blockIdx.x * blockDim.x; i < n;
		i += (size_t)blockDim.x * gridDim.x)
		data[i] = data[i] * 3 + value;
}

struct function {
	const int *from;
	int *to;
	int value;
	size_t n;
};

static void CUDART_CB call(void *argument)
{
	const function *f = (const function *)argument;

	if (f->value % 4 == 0)
		usleep(500); /* what comes behind it is issued meanwhile */
	for (size_t i = 0; i < f->n; i++)
		f->to[i] = f->from[i] * 5 + f->value;
}

class buffers {
public:
	/* REACHED: kernels get some of the host's memory, too. */
	buffers(size_t n, bool reached) : n(n)
	{
		for (int **p : {&device[0], &device[1], &device[2], &device[3]}) {
			CUDA(cudaMalloc(p, n * sizeof(int)));
			CUDA(cudaMemset(*p, 0, n * sizeof(int)));
		}
		for (unsigned h = 0; h < HOST; h++) {
			if (h < PINNED)
				CUDA(cudaMallocHost(&host[h], n * sizeof(int)));
			else if (h < MAPPED)
				host[h] = (int *)malloc(n * sizeof(int));
			else
				CUDA(cudaHostAlloc(&host[h], n * sizeof(int),
					reached ? cudaHostAllocMapped : cudaHostAllocDefault));
			host_model[h].resize(n);
			for (size_t i = 0; i < n; i++)
				host[h][i] = host_model[h][i] = (int)(h * 100 + i);
		}
		for (auto &model : device_model)
			model.assign(n, 0);
		if (reached)
			CUDA(cudaHostGetDevicePointer((void **)&mapped, host[MAPPED], 0));
		CUDA(cudaDeviceSynchronize());
	}
	~buffers()
	{
		for (int *p : device)
			CUDA(cudaFree(p));
		for (unsigned h = 0; h < HOST; h++)
			if (h >= PINNED && h < MAPPED)
				free(host[h]);
			else
				CUDA(cudaFreeHost(host[h]));
		for (function *f : functions)
			delete f;
	}

	work random_work() const
	{
		work w = {(enum kind)below(KINDS), 0, below(DEVICE), below(DEVICE),
			below(HOST), below(HOST), (int)below(1000), 0, n};

		if (w.kind == ON_MAPPED && !mapped)
			w.kind = IN;
		if (w.kind == ROWS_IN || w.kind == ROWS_OUT) {
			w.n = ROW * (1 + below((uint32_t)(n / ROW)));
		} else if (below(2)) {
			w.at = below((uint32_t)(n / 2));
			w.n = 1 + below((uint32_t)(n / 2) - 1);
		}
		return w;
	}

	/* Puts W on a branch: of device, pinned and pageable memory each has its own, and the mapped
	 * memory is the first one's. */
	static void to_branch(work &w)
	{
		static const unsigned hosts[2][3] = {{0, PINNED, MAPPED}, {1, 2, PINNED + 1}};

		w.branch = w.kind == ON_MAPPED ? 0 : below(2);
		w.device = 2 * w.branch + w.device % 2;
		w.other = 2 * w.branch + w.other % 2;
		w.host = hosts[w.branch][w.host % 3];
		w.from = hosts[w.branch][w.from % 3];
	}

	/* Memory of the same branch. */
	static unsigned not_pageable(unsigned host)
	{
		return host < PINNED || host == MAPPED ? host : host == PINNED ? 0 : 1;
	}

	/* Where NVIDIA's driver may read pageable memory early, the stream is waited for. */
	bool reads_early(const work &w) const
	{
		if (w.kind == ACROSS)
			return true;
		return (w.kind == IN || w.kind == ROWS_IN) && w.host >= PINNED &&
		       w.host < MAPPED;
	}

	void issue(const work &w, cudaStream_t stream)
	{
		int *d = device[w.device] + w.at, *h = host[w.host] + w.at;
		size_t bytes = w.n * sizeof(int), pitch = ROW * sizeof(int),
		       part = PART * sizeof(int);

		switch (w.kind) {
		case IN:
			CUDA(cudaMemcpyAsync(d, h, bytes, cudaMemcpyHostToDevice, stream));
			break;
		case OUT:
			CUDA(cudaMemcpyAsync(h, d, bytes, cudaMemcpyDeviceToHost, stream));
			break;
		case KERNEL: change<<<2, 64, 0, stream>>>(d, w.value, w.n); break;
		case ON_MAPPED:
			change<<<2, 64, 0, stream>>>(mapped + w.at, w.value, w.n);
			break;
		case FUNCTION:
			functions.push_back(
				new function{host[w.from] + w.at, h, w.value, w.n});
			CUDA(cudaLaunchHostFunc(stream, call, functions.back()));
			break;
		case FILL: CUDA(cudaMemsetAsync(d, w.value & 255, bytes, stream)); break;
		case INSIDE:
			if (w.device != w.other)
				CUDA(cudaMemcpyAsync(d, device[w.other] + w.at, bytes,
					cudaMemcpyDeviceToDevice, stream));
			break;
		case ACROSS:
			if (w.host != w.from)
				CUDA(cudaMemcpyAsync(h, host[w.from] + w.at, bytes,
					cudaMemcpyHostToHost, stream));
			break;
		case ROWS_IN:
			CUDA(cudaMemcpy2DAsync(d, pitch, h, pitch, part, w.n / ROW,
				cudaMemcpyHostToDevice, stream));
			break;
		case ROWS_OUT:
			CUDA(cudaMemcpy2DAsync(h, pitch, d, pitch, part, w.n / ROW,
				cudaMemcpyDeviceToHost, stream));
			break;
		case KINDS: break;
		}
		LAUNCHED();
	}

	void follow(const work &w)
	{
		std::vector<int> &d = device_model[w.device], &h = host_model[w.host];

		for (size_t i = w.at; i < w.at + w.n; i++) {
			bool in_part = i % ROW < PART;

			switch (w.kind) {
			case IN: d[i] = h[i]; break;
			case OUT: h[i] = d[i]; break;
			case KERNEL: d[i] = d[i] * 3 + w.value; break;
			case ON_MAPPED:
				host_model[MAPPED][i] = host_model[MAPPED][i] * 3 + w.value;
				break;
			case FUNCTION: h[i] = host_model[w.from][i] * 5 + w.value; break;
			case FILL: d[i] = 0x01010101 * (w.value & 255); break;
			case INSIDE: d[i] = device_model[w.other][i]; break;
			case ACROSS: h[i] = host_model[w.from][i]; break;
			case ROWS_IN: d[i] = in_part ? h[i] : d[i]; break;
			case ROWS_OUT: h[i] = in_part ? d[i] : h[i]; break;
			case KINDS: break;
			}
		}
	}

	void compare()
	{
		std::vector<int> got(n);

		CUDA(cudaDeviceSynchronize());
		for (unsigned h = 0; h < HOST; h++)
			for (size_t i = 0; i < n; i++)
				CHECK_EQ_AT(i, host[h][i], host_model[h][i]);
		for (unsigned d = 0; d < DEVICE; d++) {
			CUDA(cudaMemcpy(
				got.data(), device[d], n * sizeof(int), cudaMemcpyDefault));
			for (size_t i = 0; i < n; i++)
				CHECK_EQ_AT(i, got[i], device_model[d][i]);
		}
	}

private:
	size_t n;
	int *device[DEVICE], *host[HOST], *mapped = NULL;
	std::vector<int> device_model[DEVICE], host_model[HOST];
	std::vector<function *> functions;
};

struct streams {
	cudaStream_t branch[2];
	cudaEvent_t event;
};

/* BEFORE: the second branch begins behind the first one; else the first goes on behind both. */
static void join(const streams &on, bool before)
{
	CUDA(cudaEventRecord(on.event, on.branch[!before]));
	CUDA(cudaStreamWaitEvent(on.branch[before], on.event, 0));
}

/* NVIDIA's driver may read pageable memory before what comes before the node that copies from it:
 * in a graph, where nothing can be waited for, nothing but such nodes touches that memory then. */
static void without_early_reads(std::vector<work> &list)
{
	if (!getenv("VCUDA_TEST_NATIVE"))
		return;
	for (work &w : list)
		if (w.kind != IN && w.kind != ROWS_IN) {
			w.host = buffers::not_pageable(w.host);
			w.from = buffers::not_pageable(w.from);
		}
}

static void launch(buffers &all, std::vector<work> &list, const streams &on)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	without_early_reads(list);
	CUDA(cudaStreamBeginCapture(on.branch[0], cudaStreamCaptureModeThreadLocal));
	join(on, true);
	for (const work &w : list)
		all.issue(w, on.branch[w.branch]);
	join(on, false);
	CUDA(cudaStreamEndCapture(on.branch[0], &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (unsigned times = 1 + below(3); times > 0; times--) {
		CUDA(cudaGraphLaunch(exec, on.branch[0]));
		for (const work &w : list)
			all.follow(w);
	}
	if (below(2))
		all.compare();
	CUDA(cudaStreamSynchronize(on.branch[0]));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* ONE_BY_ONE: what is on the one stream waits for what came before it on the other. */
static void at_once(
	buffers &all, const std::vector<work> &list, const streams &on, bool one_by_one)
{
	unsigned last = 0;

	join(on, true);
	for (const work &w : list) {
		if (one_by_one && w.branch != last)
			join(on, w.branch);
		last = w.branch;
		if (all.reads_early(w))
			CUDA(cudaStreamSynchronize(on.branch[w.branch]));
		all.issue(w, on.branch[w.branch]);
		all.follow(w);
	}
	join(on, false);
	if (below(2))
		all.compare();
}

static void run(uint32_t seed, size_t n, int rounds)
{
	buffers all(n, seed % 2);
	streams on;

	state = seed;
	for (cudaStream_t &stream : on.branch)
		CUDA(cudaStreamCreateWithFlags(
			&stream, below(2) ? cudaStreamNonBlocking : cudaStreamDefault));
	CUDA(cudaEventCreateWithFlags(&on.event, cudaEventDisableTiming));
	for (int r = 0; r < rounds; r++) {
		std::vector<work> list(1 + below(12));
		bool two = below(2), graph = below(2), one_by_one = !two && !graph;

		for (work &w : list) {
			w = all.random_work();
			if (two)
				buffers::to_branch(w);
			else if (one_by_one)
				w.branch = below(2);
		}
		if (graph)
			launch(all, list, on);
		else
			at_once(all, list, on, one_by_one);
	}
	all.compare();
	CUDA(cudaEventDestroy(on.event));
	for (cudaStream_t stream : on.branch)
		CUDA(cudaStreamDestroy(stream));
}

int main(int argc, char **argv)
{
	uint32_t seed = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 1;
	unsigned count = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 12;
	size_t n = argc > 3 ? strtoul(argv[3], NULL, 0) : 0;

	for (uint32_t i = seed; i < seed + count; i++) {
		size_t size = n ? n : i % 6 ? 256 : 300000;

		printf("seed %u, %zu numbers\n", i, size);
		run(i, size, size > 4096 ? 5 : 20);
	}
	return 0;
}
