// SPDX-License-Identifier: Apache-2.0
/* Solves a sparse system by conjugate gradients in one cooperative launch: the whole method in
 * a kernel that synchronizes its grid, on managed memory that is prefetched; and again step by
 * step, as a captured graph that is launched until the residual is small. */
#include "check.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <math.h>

namespace cg = cooperative_groups;

constexpr int N = 2000, THREADS = 128, MOST = 400;

struct system_of { /* -1, 2.5, -1 */
	float *x, *r, *p, *q;
	double *sums; /* r·r, p·q, the new r·r */
	int *turns;
};

__device__ float times_matrix(const float *v, int i)
{
	return 2.5f * v[i] - (i ? v[i - 1] : 0.0f) - (i < N - 1 ? v[i + 1] : 0.0f);
}

__device__ void add_dot(double *to, double mine)
{
	cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
	double sum = cg::reduce(warp, mine, cg::plus<double>());

	if (!warp.thread_rank())
		atomicAdd(to, sum);
}

__global__ void solve(system_of s, float small)
{
	cg::grid_group grid = cg::this_grid();
	int first = (int)grid.thread_rank(), step = (int)grid.size();

	for (int turn = 0; turn < MOST; turn++) {
		double dot = 0;

		if (s.sums[0] < small * small)
			break;
		for (int i = first; i < N; i += step) {
			s.q[i] = times_matrix(s.p, i);
			dot += (double)s.p[i] * s.q[i];
		}
		add_dot(&s.sums[1], dot);
		grid.sync();
		float alpha = (float)(s.sums[0] / s.sums[1]);
		dot = 0;
		for (int i = first; i < N; i += step) {
			s.x[i] += alpha * s.p[i];
			s.r[i] -= alpha * s.q[i];
			dot += (double)s.r[i] * s.r[i];
		}
		add_dot(&s.sums[2], dot);
		grid.sync();
		float beta = (float)(s.sums[2] / s.sums[0]);
		for (int i = first; i < N; i += step)
			s.p[i] = s.r[i] + beta * s.p[i];
		grid.sync();
		if (!first) {
			s.sums[0] = s.sums[2];
			s.sums[1] = s.sums[2] = 0;
			*s.turns = turn + 1;
		}
		grid.sync();
	}
}

__global__ void product_step(system_of s)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		s.q[i] = times_matrix(s.p, i);
	add_dot(&s.sums[1], i < N ? (double)s.p[i] * s.q[i] : 0.0);
}

__global__ void update_step(system_of s)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float alpha = (float)(s.sums[0] / s.sums[1]);

	if (i < N) {
		s.x[i] += alpha * s.p[i];
		s.r[i] -= alpha * s.q[i];
	}
	add_dot(&s.sums[2], i < N ? (double)s.r[i] * s.r[i] : 0.0);
}

__global__ void turn_step(system_of s)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		s.p[i] = s.r[i] + (float)(s.sums[2] / s.sums[0]) * s.p[i];
}

__global__ void sums_step(system_of s)
{
	s.sums[0] = s.sums[2];
	s.sums[1] = s.sums[2] = 0;
	++*s.turns;
}

static void begin(const system_of &s)
{
	double dot = 0;

	for (int i = 0; i < N; i++) {
		s.x[i] = 0;
		s.r[i] = s.p[i] = (float)(i % 7) - 3;
		dot += (double)s.r[i] * s.r[i];
	}
	s.sums[0] = dot;
	s.sums[1] = s.sums[2] = 0;
	*s.turns = 0;
}

static void check(const system_of &s, const char *how)
{
	CHECK(*s.turns > 3 && *s.turns < MOST);
	for (int i = 0; i < N; i++) {
		double left =
			2.5 * s.x[i] - (i ? s.x[i - 1] : 0.0) - (i < N - 1 ? s.x[i + 1] : 0.0);

		if (!(fabs(left - ((i % 7) - 3)) < 1e-3))
			FAIL("%s: row %d gives %g, not %d", how, i, left, i % 7 - 3);
	}
}

int main()
{
	const int blocks = (N + THREADS - 1) / THREADS;
	float small = 1e-4f;
	system_of s;
	void *arguments[] = {&s, &small};
	int each = 0, at_once;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	if (!device_attribute(cudaDevAttrManagedMemory) ||
		!device_attribute(cudaDevAttrCooperativeLaunch))
		SKIP("no managed memory, or no cooperative launches");
	CUDA(cudaMallocManaged(&s.x, N * sizeof(float)));
	CUDA(cudaMallocManaged(&s.r, N * sizeof(float)));
	CUDA(cudaMallocManaged(&s.p, N * sizeof(float)));
	CUDA(cudaMallocManaged(&s.q, N * sizeof(float)));
	CUDA(cudaMallocManaged(&s.sums, 3 * sizeof(double)));
	CUDA(cudaMallocManaged(&s.turns, sizeof(int)));
	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, solve, THREADS, 0));
	at_once = each * device_attribute(cudaDevAttrMultiProcessorCount);
	CHECK(at_once > 0);
	begin(s);
	CUDA(cudaLaunchCooperativeKernel(solve, dim3(at_once < blocks ? at_once : blocks),
		dim3(THREADS), arguments, 0, 0));
	CUDA(cudaDeviceSynchronize());
	check(s, "one launch");

	begin(s);
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	product_step<<<blocks, THREADS, 0, stream>>>(s);
	update_step<<<blocks, THREADS, 0, stream>>>(s);
	turn_step<<<blocks, THREADS, 0, stream>>>(s);
	sums_step<<<1, 1, 0, stream>>>(s);
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	while (s.sums[0] >= small * small && *s.turns < MOST) {
		for (int k = 0; k < 4; k++)
			CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
	}
	check(s, "a graph");
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
