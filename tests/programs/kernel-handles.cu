// SPDX-License-Identifier: Apache-2.0
/*
 * Kernels of libraries: loaded from a file that goes afterwards, their attributes for one device,
 * their parameters, and occupancy with shared memory that depends on the block.
 */
#include "driver.h"

static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			   ".visible .entry put(.param .u64 to, .param .align 8 .b8 pair[16], "
			   ".param .u16 half, .param .u32 value)\n"
			   "{\n"
			   "	.reg .u64 %rd<3>;\n"
			   "	.reg .u32 %r<2>;\n"
			   "	ld.param.u64 %rd1, [to];\n"
			   "	cvta.to.global.u64 %rd2, %rd1;\n"
			   "	ld.param.u32 %r1, [value];\n"
			   "	st.global.u32 [%rd2], %r1;\n"
			   "	ret;\n"
			   "}\n";

static ENTRY(cuLibraryLoadFromFile);
static ENTRY(cuLibraryUnload);
static ENTRY(cuLibraryGetKernel);
static ENTRY(cuKernelGetAttribute);
static ENTRY(cuKernelSetAttribute);
static ENTRY(cuKernelGetFunction);
static ENTRY(cuKernelGetParamInfo);
static ENTRY(cuFuncGetAttribute);
static ENTRY(cuLaunchKernel);

static CUlibrary from_file()
{
	char path[] = "/tmp/kernel-handles-XXXXXX";
	int file = mkstemp(path);
	CUlibrary library;

	CHECK(file >= 0);
	DRIVER_IS(CUDA_ERROR_FILE_NOT_FOUND,
		p_cuLibraryLoadFromFile(&library, "/no/such/file", NULL, NULL, 0, NULL, NULL, 0));
	CHECK(write(file, text, sizeof(text)) == (ssize_t)sizeof(text));
	close(file);
	DRIVER(p_cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
	unlink(path);
	return library;
}

static void attributes(CUkernel kernel)
{
	const CUfunction_attribute dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
	CUfunction function;
	int value;

	DRIVER(p_cuKernelGetAttribute(
		&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
	CHECK_EQ(value, 1024);
	DRIVER(p_cuKernelSetAttribute(dynamic, 60000, kernel, 0));
	DRIVER(p_cuKernelGetAttribute(&value, dynamic, kernel, 0));
	CHECK_EQ(value, 60000);
	DRIVER(p_cuKernelGetFunction(&function, kernel));
	DRIVER(p_cuFuncGetAttribute(&value, dynamic, function));
	CHECK_EQ(value, 60000);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		p_cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NUM_REGS, 8, kernel, 0));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuKernelSetAttribute(dynamic, -1, kernel, 0));
	DRIVER_IS(CUDA_ERROR_INVALID_DEVICE, p_cuKernelSetAttribute(dynamic, 1, kernel, 77));
	DRIVER_IS(CUDA_ERROR_INVALID_DEVICE, p_cuKernelGetAttribute(&value, dynamic, kernel, -1));
}

static void parameters(CUkernel kernel)
{
	const size_t want[][2] = {{0, 8}, {8, 16}, {24, 2}, {28, 4}};
	size_t offset, size;

	for (size_t i = 0; i < 4; i++) {
		DRIVER(p_cuKernelGetParamInfo(kernel, i, &offset, &size));
		CHECK_EQ_AT((long long)i, offset, want[i][0]);
		CHECK_EQ_AT((long long)i, size, want[i][1]);
	}
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuKernelGetParamInfo(kernel, 4, &offset, &size));
}

/* With more shared memory than a kernel has by itself, and launched by its own handle. */
static void launched(CUkernel kernel)
{
	unsigned *data, got = 0, value = 4711;
	unsigned short half = 1;
	double pair[2] = {};
	void *params[] = {&data, pair, &half, &value};

	CUDA(cudaMalloc(&data, sizeof(*data)));
	DRIVER(p_cuLaunchKernel(
		(CUfunction)kernel, 1, 1, 1, 32, 1, 1, 60000, NULL, params, NULL));
	CUDA(cudaMemcpy(&got, data, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK_EQ(got, value);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		p_cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 32, 1, 1, 60001, NULL, params, NULL));
	CUDA(cudaFree(data));
}

__global__ void shares(int *to)
{
	extern __shared__ int row[];

	row[threadIdx.x] = threadIdx.x;
	__syncthreads();
	to[threadIdx.x] = row[threadIdx.x ^ 1];
}

static size_t bytes_of(int threads)
{
	return (size_t)threads * 64;
}

/* The largest block whose shared memory fits; a limit on the block is kept. */
static void potential()
{
	int grid = 0, block = 0, blocks = 0;

	CUDA(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, shares, bytes_of));
	CHECK(block > 0 && block <= 1024 && block % 32 == 0);
	CHECK(bytes_of(block) <= 49152);
	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
		&blocks, shares, block, bytes_of(block)));
	CHECK(blocks > 0);
	CHECK_EQ(grid, blocks * device_attribute(cudaDevAttrMultiProcessorCount));
	CUDA(cudaOccupancyMaxPotentialBlockSizeVariableSMem(
		&grid, &block, shares, bytes_of, 100));
	CHECK(block > 0 && block <= 100);
}

int main()
{
	CUlibrary library;
	CUkernel kernel;

	CUDA(cudaFree(NULL));
	library = from_file();
	DRIVER(p_cuLibraryGetKernel(&kernel, library, "put"));
	attributes(kernel);
	parameters(kernel);
	launched(kernel);
	DRIVER(p_cuLibraryUnload(library));
	potential();
	printf("kernels have what was asked for\n");
	return 0;
}
