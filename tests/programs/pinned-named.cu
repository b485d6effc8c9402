// SPDX-License-Identifier: Apache-2.0
/*
 * A kernel finds the address of pinned memory not among its parameters, but in memory of the
 * device, in a constant, in managed memory or in other pinned memory: it reads and writes there
 * all the same, whether the memory has the flag Mapped or not.
 */
#include "driver.h"

#include <cstdlib>
#include <cstring>

#include <cstdint>

enum { COUNT = 1000, TABLE = 7 };

struct job {
	char name[12]; /* the addresses behind it are aligned, and not at the struct's begin */
	int count;
	const int *from;
	int *to;
};

struct node {
	node *next;
	int value, seen;
};

__constant__ job constant_job;
__device__ int *table[TABLE];

__device__ void work(const job *j)
{
	for (int i = (int)threadIdx.x; i < j->count; i += (int)blockDim.x)
		j->to[i] = 2 * j->from[i] + 1;
}

__global__ void by_struct(const job *j)
{
	work(j);
}

__global__ void by_constant()
{
	work(&constant_job);
}

__global__ void by_table(int value)
{
	table[threadIdx.x][0] += value;
}

__global__ void by_list(node *first)
{
	for (node *n = first; n; n = n->next)
		n->seen = n->value + 1;
}

static job pinned_job(unsigned flags)
{
	job j = {"a job", COUNT, NULL, NULL};
	int *from;

	CUDA(cudaHostAlloc((void **)&from, COUNT * sizeof(int), flags));
	CUDA(cudaHostAlloc((void **)&j.to, COUNT * sizeof(int), flags));
	for (int i = 0; i < COUNT; i++)
		from[i] = 3 * i;
	memset(j.to, 0, COUNT * sizeof(int));
	j.from = from;
	return j;
}

static void check_job(job *j)
{
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ_AT(i, j->to[i], 6 * i + 1);
	CUDA(cudaFreeHost((void *)j->from));
	CUDA(cudaFreeHost(j->to));
}

/* In device memory, behind an address that is no multiple of 8 in the program's. */
static void structs(unsigned flags)
{
	char *unaligned = (char *)malloc(sizeof(job) + 1) + 1;
	job j = pinned_job(flags), *there;

	memcpy(unaligned, &j, sizeof(j));
	CUDA(cudaMalloc(&there, sizeof(j)));
	CUDA(cudaMemcpy(there, unaligned, sizeof(j), cudaMemcpyHostToDevice));
	by_struct<<<1, 64>>>(there);
	LAUNCHED();
	check_job(&j);
	CUDA(cudaFree(there));
	free(unaligned - 1);
}

static void constants(unsigned flags)
{
	job j = pinned_job(flags);

	CUDA(cudaMemcpyToSymbol(constant_job, &j, sizeof(j)));
	by_constant<<<1, 64>>>();
	LAUNCHED();
	check_job(&j);
}

/* The table is pinned memory itself, and is copied by a stream. */
static void tables(unsigned flags)
{
	int *entries[TABLE], **list;
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMallocHost(&list, sizeof(entries)));
	for (int i = 0; i < TABLE; i++) {
		CUDA(cudaHostAlloc((void **)&entries[i], sizeof(int), flags));
		*entries[i] = i;
		list[i] = entries[i];
	}
	CUDA(cudaMemcpyToSymbolAsync(
		table, list, sizeof(entries), 0, cudaMemcpyHostToDevice, stream));
	by_table<<<1, TABLE, 0, stream>>>(10);
	by_table<<<1, TABLE, 0, stream>>>(100);
	LAUNCHED();
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < TABLE; i++) {
		CHECK_EQ_AT(i, *entries[i], i + 110);
		CUDA(cudaFreeHost(entries[i]));
	}
	CUDA(cudaFreeHost(list));
	CUDA(cudaStreamDestroy(stream));
}

/* Rows that are apart, in both memories. */
static void rows(unsigned flags)
{
	int *entries[TABLE];
	struct row {
		int number, unused;
		int *entry;
		char rest[48];
	} host[TABLE] = {};
	char *there;
	void *symbol;

	for (int i = 0; i < TABLE; i++) {
		CUDA(cudaHostAlloc((void **)&entries[i], sizeof(int), flags));
		*entries[i] = i;
		host[i].entry = entries[i];
	}
	CUDA(cudaMalloc(&there, TABLE * 8));
	CUDA(cudaGetSymbolAddress(&symbol, table));
	CUDA(cudaMemcpy2D(there, 8, &host[0].entry, sizeof(row), 8, TABLE, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(symbol, there, TABLE * 8, cudaMemcpyDeviceToDevice));
	by_table<<<1, TABLE>>>(1000);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < TABLE; i++) {
		CHECK_EQ_AT(i, *entries[i], i + 1000);
		CUDA(cudaFreeHost(entries[i]));
	}
	CUDA(cudaFree(there));
}

static void managed(unsigned flags)
{
	job j = pinned_job(flags), *there;

	CUDA(cudaMallocManaged(&there, sizeof(j)));
	*there = j;
	by_struct<<<1, 64>>>(there);
	LAUNCHED();
	check_job(&j);
	CUDA(cudaFree(there));
}

/* Only the first node is a parameter; a launch later there is one more. */
static void lists(unsigned flags)
{
	node *nodes[TABLE];

	for (int i = 0; i < TABLE; i++) {
		CUDA(cudaHostAlloc((void **)&nodes[i], sizeof(node), flags));
		*nodes[i] = (node){NULL, 10 * i, 0};
	}
	for (int i = 0; i < TABLE - 2; i++)
		nodes[i]->next = nodes[i + 1];
	by_list<<<1, 1>>>(nodes[0]);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < TABLE; i++)
		CHECK_EQ_AT(i, nodes[i]->seen, i < TABLE - 1 ? 10 * i + 1 : 0);
	nodes[TABLE - 2]->next = nodes[TABLE - 1];
	by_list<<<1, 1>>>(nodes[0]);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(nodes[TABLE - 1]->seen, 10 * (TABLE - 1) + 1);
	for (node *n : nodes)
		CUDA(cudaFreeHost(n));
}

/* The copy is a graph's node, and reads the program's memory at the launch. */
static void graphs(unsigned flags)
{
	cudaGraph_t graph;
	cudaGraphExec_t executable;
	cudaStream_t stream;
	job j, *there, host = {};

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc(&there, sizeof(j)));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMemcpyAsync(there, &host, sizeof(j), cudaMemcpyHostToDevice, stream));
	by_struct<<<1, 64, 0, stream>>>(there);
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiateWithFlags(&executable, graph, 0));
	j = pinned_job(flags);
	host = j;
	CUDA(cudaGraphLaunch(executable, stream));
	check_job(&j);
	CUDA(cudaGraphExecDestroy(executable));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(there));
	CUDA(cudaStreamDestroy(stream));
}

static void registered(unsigned flags)
{
	size_t bytes = (COUNT * sizeof(int) + 4095) / 4096 * 4096;
	int *memory = (int *)aligned_alloc(4096, 2 * bytes);
	job j = {"a job", COUNT, memory, (int *)((char *)memory + bytes)}, *there;

	for (int i = 0; i < COUNT; i++)
		memory[i] = 3 * i;
	CUDA(cudaHostRegister(memory, 2 * bytes, flags));
	CUDA(cudaMalloc(&there, sizeof(j)));
	CUDA(cudaMemcpy(there, &j, sizeof(j), cudaMemcpyHostToDevice));
	by_struct<<<1, 64>>>(there);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ_AT(i, j.to[i], 6 * i + 1);
	CUDA(cudaHostUnregister(memory));
	CUDA(cudaFree(there));
	free(memory);
}

int main()
{
	for (unsigned flags : {cudaHostAllocDefault, cudaHostAllocMapped}) {
		structs(flags);
		constants(flags);
		tables(flags);
		rows(flags);
		managed(flags);
		lists(flags);
		graphs(flags);
		registered(flags == cudaHostAllocMapped ? cudaHostRegisterMapped
							: cudaHostRegisterDefault);
	}
	printf("kernels find pinned memory wherever its address is\n");
	return 0;
}
