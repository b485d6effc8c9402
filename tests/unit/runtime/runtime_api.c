/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime front on the software GPU, without anything between: built once for each ABI,
 * with that ABI's headers, and linked with NVIDIA's libcudart by name, as a program is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ok(call) assert_int_equal((call), cudaSuccess)
#define is(call, error) assert_int_equal((call), error)

static int attribute(enum cudaDeviceAttr which)
{
	int value = -1;

	ok(cudaDeviceGetAttribute(&value, which, 0));
	return value;
}

static void properties_are_the_attributes(void **state)
{
	struct cudaDeviceProp p;
	int count, runtime;

	(void)state;
	ok(cudaGetDeviceCount(&count));
	assert_true(count >= 1);
	memset(&p, 0xa5, sizeof(p));
	ok(cudaGetDeviceProperties(&p, 0));
	assert_string_equal(p.name, "vcuda software GPU");
	assert_int_equal(p.major, attribute(cudaDevAttrComputeCapabilityMajor));
	assert_int_equal(p.minor, attribute(cudaDevAttrComputeCapabilityMinor));
	assert_int_equal(p.warpSize, 32);
	assert_int_equal(p.maxThreadsDim[2], attribute(cudaDevAttrMaxBlockDimZ));
	assert_int_equal(p.maxGridSize[1], attribute(cudaDevAttrMaxGridDimY));
	assert_int_equal(p.sharedMemPerBlock, attribute(cudaDevAttrMaxSharedMemoryPerBlock));
	assert_int_equal(
		p.sharedMemPerBlockOptin, attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
	assert_int_equal(p.multiProcessorCount, attribute(cudaDevAttrMultiProcessorCount));
	assert_int_equal(p.totalConstMem, attribute(cudaDevAttrTotalConstantMemory));
	assert_int_equal(p.memoryPoolsSupported, attribute(cudaDevAttrMemoryPoolsSupported));
	assert_int_equal(p.clusterLaunch, attribute(cudaDevAttrClusterLaunch));
	assert_int_equal(p.unifiedAddressing, 1);
	assert_true(p.totalGlobalMem >= (size_t)1 << 20);
#if CUDART_VERSION < 13000
	assert_int_equal(p.clockRate, attribute(cudaDevAttrClockRate));
	assert_int_equal(p.computeMode, attribute(cudaDevAttrComputeMode));
	assert_int_equal(sizeof(p), 1032);
#else
	assert_int_equal(p.gpuPciDeviceID, attribute(cudaDevAttrGpuPciDeviceId));
	assert_int_equal(sizeof(p), 1008);
#endif
	/* What the table does not name is zero, not left over. */
	for (size_t i = 0; i < sizeof(p.reserved) / sizeof(p.reserved[0]); i++)
		assert_int_equal(p.reserved[i], 0);
	is(cudaGetDeviceProperties(&p, count), cudaErrorInvalidDevice);
	is(cudaGetDeviceProperties(&p, -1), cudaErrorInvalidDevice);
	is(cudaGetDeviceProperties(NULL, 0), cudaErrorInvalidValue);
	ok(cudaRuntimeGetVersion(&runtime));
	assert_int_equal(runtime, CUDART_VERSION);
	(void)cudaGetLastError();
}

static void the_last_error_is_kept_until_asked_for(void **state)
{
	void *p;

	(void)state;
	is(cudaGetLastError(), cudaSuccess);
	is(cudaSetDevice(1000), cudaErrorInvalidDevice);
	ok(cudaFree(NULL)); /* a success does not clear it */
	is(cudaPeekAtLastError(), cudaErrorInvalidDevice);
	is(cudaPeekAtLastError(), cudaErrorInvalidDevice);
	is(cudaGetLastError(), cudaErrorInvalidDevice);
	is(cudaGetLastError(), cudaSuccess);
	is(cudaMalloc(&p, (size_t)1 << 60), cudaErrorMemoryAllocation);
	is(cudaGetLastError(), cudaErrorMemoryAllocation);
	ok(cudaMalloc(&p, 16)); /* and then it goes on */
	ok(cudaFree(p));
	is(cudaFree(p), cudaErrorInvalidValue);
	is(cudaFree((void *)(uintptr_t)0x1234), cudaErrorInvalidValue);
	(void)cudaGetLastError();
}

static void *other_thread(void *data)
{
	int device = -1;

	*(cudaError_t *)data = cudaGetLastError();
	if (cudaGetDevice(&device) || device)
		*(cudaError_t *)data = cudaErrorUnknown;
	return NULL;
}

static void the_last_error_is_the_threads_own(void **state)
{
	cudaError_t seen = cudaErrorUnknown;
	pthread_t thread;

	(void)state;
	is(cudaSetDevice(-1), cudaErrorInvalidDevice);
	assert_int_equal(pthread_create(&thread, NULL, other_thread, &seen), 0);
	pthread_join(thread, NULL);
	assert_int_equal(seen, cudaSuccess);
	is(cudaGetLastError(), cudaErrorInvalidDevice);
}

static void every_code_has_its_name_and_text(void **state)
{
	(void)state;
	assert_string_equal(cudaGetErrorName(cudaSuccess), "cudaSuccess");
	assert_string_equal(cudaGetErrorString(cudaSuccess), "no error");
	assert_string_equal(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
	assert_string_equal(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument");
	assert_string_equal(
		cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
	assert_string_equal(cudaGetErrorString(cudaErrorIllegalAddress),
		"an illegal memory access was encountered");
	assert_string_equal(cudaGetErrorName((cudaError_t)4711), "unrecognized error code");
	assert_string_equal(cudaGetErrorString((cudaError_t)4711), "unrecognized error code");
	/* The codes of the enum, found by their names, are all there: RUNTIME_ERRORS is counted
	 * in the header by the build. */
	size_t found = 0;

	for (int code = 0; code <= 10000; code++)
		found += strncmp(cudaGetErrorName((cudaError_t)code), "cuda", 4) == 0;
	assert_int_equal(found, RUNTIME_ERRORS);
}

static void sizes_of_zero_and_null_are_no_errors(void **state)
{
	void *p = (void *)8;
	size_t pitch;

	(void)state;
	ok(cudaMalloc(&p, 0));
	assert_null(p);
	ok(cudaFree(NULL));
	ok(cudaFreeHost(NULL));
	ok(cudaMemcpy(NULL, NULL, 0, cudaMemcpyHostToDevice));
	ok(cudaMemset(NULL, 0, 0));
	ok(cudaMallocPitch(&p, &pitch, 0, 10));
	is(cudaMalloc(NULL, 16), cudaErrorInvalidValue);
	is(cudaMemcpy(&p, &p, 1, (enum cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
	(void)cudaGetLastError();
}

static void what_a_pointer_is(void **state)
{
	struct cudaPointerAttributes a;
	void *device, *pinned;
	int local;

	(void)state;
	ok(cudaMalloc(&device, 4096));
	ok(cudaMallocHost(&pinned, 4096));
	ok(cudaPointerGetAttributes(&a, device));
	assert_int_equal(a.type, cudaMemoryTypeDevice);
	assert_int_equal(a.device, 0);
	assert_ptr_equal(a.devicePointer, device);
	ok(cudaPointerGetAttributes(&a, (char *)device + 100));
	assert_int_equal(a.type, cudaMemoryTypeDevice);
	ok(cudaPointerGetAttributes(&a, pinned));
	assert_int_equal(a.type, cudaMemoryTypeHost);
	assert_ptr_equal(a.hostPointer, pinned);
	ok(cudaPointerGetAttributes(&a, &local));
	assert_int_equal(a.type, cudaMemoryTypeUnregistered);
	assert_null(a.devicePointer);
	assert_ptr_equal(a.hostPointer, &local);
	ok(cudaFree(device));
	ok(cudaFreeHost(pinned));
}

/* A box of W x H x D bytes within pitched memory, against a plain reference. */
static void shaped_copies_and_fills_are_right(void **state)
{
	enum { W = 37, H = 5, D = 3, PITCH = 48, ROWS = 7 };
	static unsigned char out[D][ROWS][PITCH], back[D][ROWS][PITCH];
	struct cudaPitchedPtr box;
	struct cudaMemcpy3DParms copy = {0};
	struct cudaExtent extent = {W, ROWS, D};
	void *flat;

	(void)state;
	for (size_t i = 0; i < sizeof(out); i++)
		((unsigned char *)out)[i] = (unsigned char)(i * 7 + 1);
	ok(cudaMalloc3D(&box, extent));
	assert_true(box.pitch >= W && box.ysize == ROWS);
	ok(cudaMemset3D(box, 0xee, extent));

	copy.srcPtr = (struct cudaPitchedPtr){out, PITCH, PITCH, ROWS};
	copy.srcPos = (struct cudaPos){3, 1, 0};
	copy.dstPtr = box;
	copy.dstPos = (struct cudaPos){5, 2, 1};
	copy.extent = (struct cudaExtent){20, 4, 2};
	copy.kind = cudaMemcpyHostToDevice;
	ok(cudaMemcpy3D(&copy));

	copy = (struct cudaMemcpy3DParms){0};
	copy.srcPtr = box;
	copy.dstPtr = (struct cudaPitchedPtr){back, PITCH, PITCH, ROWS};
	copy.extent = extent;
	copy.kind = cudaMemcpyDefault;
	ok(cudaMemcpy3DAsync(&copy, 0));
	ok(cudaDeviceSynchronize());
	for (int z = 0; z < D; z++) {
		for (int y = 0; y < ROWS; y++) {
			for (int x = 0; x < W; x++) {
				bool in = z >= 1 && y >= 2 && y < 6 && x >= 5 && x < 25;

				assert_int_equal(
					back[z][y][x], in ? out[z - 1][y - 1][x - 2] : 0xee);
			}
		}
	}
	copy.extent.width = box.pitch + 1;
	is(cudaMemcpy3D(&copy), cudaErrorInvalidPitchValue);

	ok(cudaMalloc(&flat, sizeof(out)));
	ok(cudaMemset(flat, 0, sizeof(out)));
	ok(cudaMemcpy2D(flat, 64, out, PITCH, W, H, cudaMemcpyHostToDevice));
	ok(cudaMemset2D((char *)flat + 64, 64, 0x11, 3, 2));
	memset(back, 0, sizeof(back));
	ok(cudaMemcpy2D(back, PITCH, flat, 64, W, H, cudaMemcpyDeviceToHost));
	for (int y = 0; y < H; y++) {
		for (int x = 0; x < W; x++)
			assert_int_equal(back[0][y][x],
				(y == 1 || y == 2) && x < 3 ? 0x11 : out[0][y][x]);
	}
	is(cudaMemcpy2D(flat, W - 1, out, PITCH, W, H, cudaMemcpyHostToDevice),
		cudaErrorInvalidPitchValue);
	ok(cudaFree(flat));
	ok(cudaFree(box.ptr));
	(void)cudaGetLastError();
}

static void a_batch_is_copied_in_order(void **state)
{
	struct cudaMemcpyAttributes hint = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
	char text[16] = "0123456789abcde", back[16] = "";
	size_t sizes[3] = {16, 8, 16}, first = 0;
	cudaStream_t stream;
	char *device;
	cudaError_t error;

	(void)state;
	ok(cudaMalloc((void **)&device, 64));
	ok(cudaStreamCreate(&stream));
	{
		void *to[3] = {device, device + 2, back};
#if CUDART_VERSION < 13000
		void *from[3] = {text, text, device};
		size_t failed = 7;

		error = cudaMemcpyBatchAsync(
			to, from, sizes, 3, &hint, &first, 1, &failed, stream);
		assert_int_equal(failed, SIZE_MAX);
#else
		const void *from[3] = {text, text, device};

		error = cudaMemcpyBatchAsync(to, from, sizes, 3, &hint, &first, 1, stream);
#endif
	}
	ok(error);
	ok(cudaStreamSynchronize(stream));
	assert_memory_equal(back, "0101234567abcde", 16);
	ok(cudaStreamDestroy(stream));
	ok(cudaFree(device));
}

static void streams_and_events_keep_order(void **state)
{
	cudaStream_t stream;
	cudaEvent_t start, stop;
	unsigned flags;
	void *device, *pinned;
	float ms = -1;
	cudaError_t query;

	(void)state;
	ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ok(cudaStreamGetFlags(stream, &flags));
	assert_int_equal(flags, cudaStreamNonBlocking);
	ok(cudaEventCreate(&start));
	ok(cudaEventCreate(&stop));
	ok(cudaMalloc(&device, 1 << 20));
	ok(cudaHostAlloc(&pinned, 1 << 20, cudaHostAllocPortable));
	ok(cudaEventRecord(start, stream));
	ok(cudaMemsetAsync(device, 0x77, 1 << 20, stream));
	ok(cudaMemcpyAsync(pinned, device, 1 << 20, cudaMemcpyDeviceToHost, stream));
	ok(cudaEventRecord(stop, stream));
	query = cudaEventQuery(stop);
	assert_true(query == cudaSuccess || query == cudaErrorNotReady);
	(void)cudaGetLastError();
	ok(cudaEventSynchronize(stop));
	ok(cudaEventQuery(stop));
	ok(cudaStreamQuery(stream));
	ok(cudaEventElapsedTime(&ms, start, stop));
	assert_true(ms >= 0);
	assert_int_equal(((unsigned char *)pinned)[12345], 0x77);
	ok(cudaEventDestroy(start));
	ok(cudaEventDestroy(stop));
	ok(cudaStreamDestroy(stream));
	is(cudaStreamDestroy(NULL), cudaErrorInvalidResourceHandle);
	ok(cudaFree(device));
	ok(cudaFreeHost(pinned));
	(void)cudaGetLastError();
}

static void a_callback_gets_its_data(void *data)
{
	++*(int *)data;
}

static void CUDART_CB a_stream_callback(cudaStream_t stream, cudaError_t status, void *data)
{
	(void)stream;
	if (status == cudaSuccess)
		*(int *)data += 10;
}

static void host_functions_run(void **state)
{
	int calls = 0;

	(void)state;
	ok(cudaLaunchHostFunc(NULL, a_callback_gets_its_data, &calls));
	ok(cudaStreamAddCallback(NULL, a_stream_callback, &calls, 0));
	ok(cudaDeviceSynchronize());
	assert_int_equal(calls, 11);
}

static void after_a_reset_it_goes_on(void **state)
{
	void *p;
	int device = -1;

	(void)state;
	ok(cudaMalloc(&p, 100));
	ok(cudaDeviceReset());
	ok(cudaGetDevice(&device));
	assert_int_equal(device, 0);
	ok(cudaMalloc(&p, 100));
	ok(cudaMemset(p, 1, 100));
	ok(cudaFree(p));
	ok(cudaGetLastError());
}

static void the_driver_is_found_by_name(void **state)
{
	enum cudaDriverEntryPointQueryResult found;
	int (*version)(int *) = NULL;
	void *function = NULL;
	int number = 0;

	(void)state;
	ok(cudaGetDriverEntryPointByVersion("cuDriverGetVersion", &function, 12000, 0, &found));
	assert_int_equal(found, cudaDriverEntryPointSuccess);
	memcpy(&version, &function, sizeof(version));
	assert_int_equal(version(&number), 0);
	assert_true(number >= 12000);
	ok(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &function, 12000, 0, &found));
	assert_int_equal(found, cudaDriverEntryPointSymbolNotFound);
	assert_null(function);
}

static void not_served_says_so(void **state)
{
	void *p;

	(void)state;
	is(cudaMallocManaged(&p, 16, cudaMemAttachGlobal), cudaErrorNotSupported);
	is(cudaGetLastError(), cudaErrorNotSupported);
}

static void unknown_symbols_and_functions_are_refused(void **state)
{
	struct cudaFuncAttributes a;
	static int shadow;
	dim3 one = {1, 1, 1};
	void *p;

	(void)state;
	is(cudaGetSymbolAddress(&p, &shadow), cudaErrorInvalidSymbol);
	is(cudaMemcpyToSymbol(&shadow, &shadow, 4, 0, cudaMemcpyHostToDevice),
		cudaErrorInvalidSymbol);
	is(cudaFuncGetAttributes(&a, &shadow), cudaErrorInvalidResourceHandle);
	is(cudaLaunchKernel(&shadow, one, one, NULL, 0, 0), cudaErrorInvalidResourceHandle);
	(void)cudaGetLastError();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(properties_are_the_attributes),
		cmocka_unit_test(the_last_error_is_kept_until_asked_for),
		cmocka_unit_test(the_last_error_is_the_threads_own),
		cmocka_unit_test(every_code_has_its_name_and_text),
		cmocka_unit_test(sizes_of_zero_and_null_are_no_errors),
		cmocka_unit_test(what_a_pointer_is),
		cmocka_unit_test(shaped_copies_and_fills_are_right),
		cmocka_unit_test(a_batch_is_copied_in_order),
		cmocka_unit_test(streams_and_events_keep_order),
		cmocka_unit_test(host_functions_run),
		cmocka_unit_test(after_a_reset_it_goes_on),
		cmocka_unit_test(the_driver_is_found_by_name),
		cmocka_unit_test(not_served_says_so),
		cmocka_unit_test(unknown_symbols_and_functions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
