// SPDX-License-Identifier: Apache-2.0
/*
 * Tensor maps and the copies that take them: boxes inside of a tensor and over its edges, rows
 * whose units change places, boxes stored and added, one fetched for a whole cluster, columns of
 * pixels as a convolution wants them.
 */
#include "driver.h"

extern "C" const unsigned char module_tensor[];

static ENTRY(cuModuleLoadData);
static ENTRY(cuModuleGetFunction);
static ENTRY(cuModuleUnload);
static ENTRY(cuLaunchKernel);
static ENTRY(cuTensorMapEncodeTiled);
static ENTRY(cuTensorMapEncodeIm2col);

enum { WIDTH = 100, HEIGHT = 50, PITCH = 128, SIDE = 32, BOX = SIDE * SIDE };

static CUmodule module;
static unsigned *tensor, *box;
static unsigned host[HEIGHT * PITCH], got[2 * BOX];

static CUresult encode(CUtensorMap *map, CUtensorMapSwizzle swizzle)
{
	cuuint64_t size[] = {WIDTH, HEIGHT}, pitch[] = {PITCH * sizeof(unsigned)};
	cuuint32_t side[] = {SIDE, SIDE}, step[] = {1, 1};

	return p_cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, tensor, size,
		pitch, side, step, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static void launch(const char *name, unsigned blocks, void **args)
{
	CUfunction function;

	DRIVER(p_cuModuleGetFunction(&function, module, name));
	DRIVER(p_cuLaunchKernel(function, blocks, 1, 1, 64, 1, 1, 0, NULL, args, NULL));
}

static void reset()
{
	for (unsigned i = 0; i < HEIGHT * PITCH; i++)
		host[i] = i + 1;
	CUDA(cudaMemcpy(tensor, host, sizeof(host), cudaMemcpyHostToDevice));
}

static unsigned at(int x, int y)
{
	return x < 0 || y < 0 || x >= WIDTH || y >= HEIGHT ? 0 : host[y * PITCH + x];
}

static void fetch(CUtensorMapSwizzle swizzle, int x, int y, bool in_memory = false)
{
	/* Which bits of the number of a 16-byte unit in its row the row's number turns over. */
	static const int units[] = {0, 1, 3, 7};
	alignas(64) CUtensorMap map;
	CUtensorMap *there = NULL;
	void *args[] = {&map, &x, &y, &box};

	DRIVER(encode(&map, swizzle));
	if (in_memory) {
		CUDA(cudaMalloc(&there, sizeof(map)));
		CUDA(cudaMemcpy(there, &map, sizeof(map), cudaMemcpyHostToDevice));
		args[0] = &there;
	}
	launch(in_memory ? "fetch_from" : "fetch", 1, args);
	CUDA(cudaMemcpy(got, box, BOX * sizeof(*got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < BOX; i++) {
		int row = i / SIDE, unit = (i % SIDE / 4) ^ (row & units[swizzle]);

		CHECK_EQ_AT(i, got[i], at(x + 4 * unit + i % 4, y + row));
	}
	CUDA(cudaFree(there));
}

/* The first coordinate must be a multiple of 16 bytes (H200, 2026-11-24). */
static void off_units()
{
	alignas(64) CUtensorMap map;
	int x = 7, y = 11;
	void *args[] = {&map, &x, &y, &box};

	DRIVER(encode(&map, CU_TENSOR_MAP_SWIZZLE_NONE));
	launch("fetch", 1, args);
	CUDA_IS(cudaErrorIllegalInstruction, cudaDeviceSynchronize());
}

static void put(int x, int y, int add)
{
	alignas(64) CUtensorMap map;
	void *args[] = {&map, &x, &y, &add};
	static unsigned after[HEIGHT * PITCH];

	reset();
	DRIVER(encode(&map, CU_TENSOR_MAP_SWIZZLE_NONE));
	launch("put", 1, args);
	CUDA(cudaMemcpy(after, tensor, sizeof(after), cudaMemcpyDeviceToHost));
	for (int i = 0; i < HEIGHT * PITCH; i++) {
		int column = i % PITCH - x, row = i / PITCH - y;
		bool inside = i % PITCH < WIDTH && column >= 0 && row >= 0 && column < SIDE &&
			      row < SIDE;
		unsigned want = inside ? row * SIDE + column + (add ? host[i] : 0) : host[i];

		CHECK_EQ_AT(i, after[i], want);
	}
}

static void share()
{
	alignas(64) CUtensorMap map;
	void *args[] = {&map, &box};

	DRIVER(encode(&map, CU_TENSOR_MAP_SWIZZLE_NONE));
	launch("share", 2, args);
	CUDA(cudaMemcpy(got, box, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 2 * BOX; i++)
		CHECK_EQ_AT(i, got[i], at(i % SIDE, i % BOX / SIDE));
}

static CUresult encode_rank(unsigned rank)
{
	alignas(64) CUtensorMap map;
	cuuint64_t size[] = {4}, pitch[] = {16};
	cuuint32_t ones[] = {1};

	return p_cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, rank, tensor,
		size, pitch, ones, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

/* Two images of 6 by 5 pixels of 8 channels, and a filter of 3 by 3 whose base may lie one
 * pixel outside, as a convolution of the same size has it; every STEP-th place of it. */
enum { CHANNELS = 8, ACROSS = 6, DOWN = 5, IMAGES = 2, PIXELS = BOX / CHANNELS };

static CUresult encode_pixels(CUtensorMap *map, int lower, int upper, unsigned step)
{
	cuuint64_t size[] = {CHANNELS, ACROSS, DOWN, IMAGES};
	cuuint64_t pitch[] = {CHANNELS * 4, ACROSS * CHANNELS * 4, DOWN * ACROSS * CHANNELS * 4};
	int lowers[] = {lower, lower}, uppers[] = {upper, upper};
	cuuint32_t steps[] = {1, step, step, 1};

	return p_cuTensorMapEncodeIm2col(map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 4, tensor, size,
		pitch, lowers, uppers, CHANNELS, PIXELS, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static void columns(unsigned step, unsigned short dw, unsigned short dh)
{
	alignas(64) CUtensorMap map;
	int w = -1, h = -1;
	void *args[] = {&map, &w, &h, &dw, &dh, &box};
	int wide = (ACROSS + step - 1) / step, high = (DOWN + step - 1) / step;

	DRIVER(encode_pixels(&map, -1, -1, step));
	launch("fetch_column", 1, args);
	CUDA(cudaMemcpy(got, box, BOX * sizeof(*got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < BOX; i++) {
		int p = i / CHANNELS, n = p / (wide * high);
		int x = p % wide * (int)step - 1 + dw;
		int y = p / wide % high * (int)step - 1 + dh;
		bool inside = n < IMAGES && x >= 0 && x < ACROSS && y >= 0 && y < DOWN;

		CHECK_EQ_AT(i, got[i],
			inside ? host[((n * DOWN + y) * ACROSS + x) * CHANNELS + i % CHANNELS]
			       : 0);
	}
}

static void wrong_columns()
{
	alignas(64) CUtensorMap map;

	CHECK_EQ(encode_pixels(&map, -129, 0, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(encode_pixels(&map, 0, 128, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(encode_pixels(&map, 0, 0, 9), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(encode_pixels(&map, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(encode_rank(0), CUDA_ERROR_INVALID_VALUE);
}

/* Each in a process of its own, since a copy that is wrong ends its context. */
static const struct {
	const char *name;
	void (*run)();
} parts[] = {
	{"fetch inside", [] { fetch(CU_TENSOR_MAP_SWIZZLE_NONE, 8, 11); }},
	{"fetch by a map in memory",
		[] { fetch(CU_TENSOR_MAP_SWIZZLE_NONE, 8, 11, true); }},
	{"fetch at 0, 0", [] { fetch(CU_TENSOR_MAP_SWIZZLE_NONE, 0, 0); }},
	{"fetch over the first edges", [] { fetch(CU_TENSOR_MAP_SWIZZLE_NONE, -4, -9); }},
	{"fetch over the last edges", [] { fetch(CU_TENSOR_MAP_SWIZZLE_NONE, 92, 40); }},
	{"fetch off units", off_units},
	{"fetch swizzled", [] { fetch(CU_TENSOR_MAP_SWIZZLE_128B, 0, 3); }},
	{"store", [] { put(32, 5, 0); }},
	{"add", [] { put(80, 30, 1); }},
	{"share", share},
	{"a column at the filter's base", [] { columns(1, 0, 0); }},
	{"a column inside of the filter", [] { columns(1, 2, 1); }},
	{"a column with strides", [] { columns(2, 1, 2); }},
	{"columns that cannot be", wrong_columns},
};

int main(int argc, char **argv)
{
	bool old = device_attribute(cudaDevAttrComputeCapabilityMajor) < 9;
	alignas(64) CUtensorMap map;
	CUresult status;
	int wrong = 0;

	CUDA(cudaMalloc(&tensor, sizeof(host)));
	CUDA(cudaMalloc(&box, sizeof(got)));
	status = encode(&map, CU_TENSOR_MAP_SWIZZLE_NONE);
	if (!status)
		status = p_cuModuleLoadData(&module, module_tensor);
	if (status && old)
		SKIP("this device has no tensor maps");
	DRIVER(status);
	for (const auto &part : parts) {
		int ended;

		if (argc > 1 && !strcmp(argv[1], part.name)) {
			reset();
			part.run();
			return 0;
		}
		ended = argc > 1 ? 0 : wait_exit(start_self(part.name));
		if (ended)
			printf("%s: exit status %d\n", part.name, ended);
		wrong += ended != 0;
	}
	CHECK_EQ(wrong, 0);
	DRIVER(p_cuModuleUnload(module));
	CUDA(cudaFree(box));
	CUDA(cudaFree(tensor));
	return 0;
}
