// SPDX-License-Identifier: Apache-2.0
/*
 * Kernels that launch kernels (dynamic parallelism): the order in one stream, between streams
 * and behind the grid, launches of launches, copies and fills from kernels, arguments; and that
 * the host sees all of it when it has waited for the first one.
 */
#include "driver.h"

extern "C" const unsigned char module_nested[];

static ENTRY(cuModuleLoadData);
static ENTRY(cuModuleGetFunction);
static ENTRY(cuModuleUnload);
static ENTRY(cuLaunchKernel);

enum { WORDS = 4096 };

static CUmodule module;
static unsigned *device;
static unsigned host[WORDS];

struct many {
	char head;
	double values[20];
	short tail;
};

static void launch(const char *name, unsigned blocks, unsigned threads, void **args)
{
	CUfunction function;

	CUDA(cudaMemset(device, 0, sizeof(host)));
	DRIVER(p_cuModuleGetFunction(&function, module, name));
	DRIVER(p_cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, NULL, args, NULL));
	CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
}

static void order()
{
	void *args[] = {&device};

	launch("in_order", 16, 32, args);
	for (unsigned i = 0; i < 16 * 64; i++)
		CHECK_EQ_AT(i, host[i], i / 64 + 7 + (i % 64 >= 32 ? 100 : 0));
	launch("each_thread", 4, 64, args);
	for (unsigned i = 0; i < 256; i++)
		CHECK_EQ_AT(i, host[i], 3 * i + 1);
	launch("in_streams", 1, 1, args);
	for (unsigned i = 0; i < 32; i++)
		CHECK_EQ_AT(i, host[i], 11);
}

static void depth()
{
	unsigned n = 64, level = 0, left = 99, *total = device + 100;
	void *args[] = {&device, &n, &level}, *tail[] = {&device, &total};
	void *rounds[] = {&device, &left};

	launch("halve", 1, 1, args);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ_AT(i, host[i], 6);
	launch("with_tail", 1, 1, tail);
	CHECK_EQ(host[100], 32 * 5 + 32 * 2);
	launch("again", 1, 1, rounds);
	CHECK_EQ(host[0], 100);
}

static void copies()
{
	void *args[] = {&device};

	launch("copies", 1, 1, args);
	for (unsigned i = 0; i < 64; i++)
		CHECK_EQ_AT(i, host[i], i < 16 ? 0x11111112 : 10);
	for (unsigned i = 0; i < 16; i++)
		CHECK_EQ_AT(i, host[64 + i], i % 4 >= 2 ? 0 : i < 8 ? 0x11111112 : 10);
}

static void arguments()
{
	struct many many = {};
	void *args[] = {&device, &many};

	many.head = 1;
	many.tail = 300;
	for (int i = 0; i < 20; i++)
		many.values[i] = 10.0 * i;
	launch("arguments", 1, 1, args);
	for (unsigned i = 0; i < 20; i++)
		CHECK_EQ_AT(i, host[i], 1 + 10 * (19 - i) + 300 + 1000);
}

static void questions()
{
	void *args[] = {&device};

	launch("questions", 1, 1, args);
	CHECK_EQ(host[0], 0);
	CHECK_EQ(host[1], 0);
	CHECK_EQ(host[2], 0);
	CHECK_EQ(host[3], device_attribute(cudaDevAttrMaxThreadsPerBlock));
	CHECK_EQ(host[4], 0);
	CHECK_EQ(host[5], 1024);
	CHECK_EQ(host[6], 0);
	CHECK_EQ(host[7], 77);
	CHECK_EQ(host[8], 0);
	CHECK_EQ(host[9], 0);
}

int main()
{
	CUDA(cudaMalloc(&device, sizeof(host)));
	DRIVER(p_cuModuleLoadData(&module, module_nested));
	order();
	depth();
	copies();
	arguments();
	questions();
	DRIVER(p_cuModuleUnload(module));
	CUDA(cudaFree(device));
	return 0;
}
