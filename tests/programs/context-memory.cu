// SPDX-License-Identifier: Apache-2.0
/*
 * What a context of the program's own holds is its own: it outlives the primary context's reset
 * and release, and goes with its own context; any context of the device may use and free it.
 * Pinned memory too, and what is registered.
 */
#include "driver.h"

#include <stdlib.h>

static const char add_ptx[] = ".version 6.4\n"
			      ".target sm_70\n"
			      ".address_size 64\n"
			      ".visible .entry add(.param .u64 data, .param .u32 value)\n"
			      "{\n"
			      "	.reg .u32 %r<4>;\n"
			      "	.reg .u64 %d<3>;\n"
			      "	ld.param.u64 %d0, [data];\n"
			      "	ld.param.u32 %r0, [value];\n"
			      "	mov.u32 %r1, %tid.x;\n"
			      "	mul.wide.u32 %d1, %r1, 4;\n"
			      "	add.u64 %d2, %d0, %d1;\n"
			      "	ld.global.u32 %r2, [%d2];\n"
			      "	add.u32 %r3, %r2, %r0;\n"
			      "	st.global.u32 [%d2], %r3;\n"
			      "	ret;\n"
			      "}\n";

enum { WORDS = 64, LARGE = 4 << 20 };

static CUdevice device;

static CUcontext create()
{
	CUcontext context = NULL;

#if CUDA_VERSION >= 13000
	DRIVER(cuCtxCreate(&context, NULL, 0, device));
#else
	DRIVER(cuCtxCreate(&context, 0, device));
#endif
	return context;
}

/* Everything that a program makes in the context that is current. */
struct belongings {
	CUdeviceptr small, large;
	CUstream stream;
	CUevent event;
	CUmodule module;
	CUfunction add;
	CUarray array;
};

static void acquire(struct belongings *b, unsigned value)
{
	CUDA_ARRAY_DESCRIPTOR shape = {};
	unsigned words[WORDS];

	DRIVER(cuMemAlloc(&b->small, WORDS * 4));
	DRIVER(cuMemAlloc(&b->large, LARGE));
	DRIVER(cuMemsetD32(b->small, value, WORDS));
	DRIVER(cuMemsetD32(b->large, value, LARGE / 4));
	DRIVER(cuStreamCreate(&b->stream, CU_STREAM_NON_BLOCKING));
	DRIVER(cuEventCreate(&b->event, CU_EVENT_DEFAULT));
	DRIVER(cuModuleLoadData(&b->module, add_ptx));
	DRIVER(cuModuleGetFunction(&b->add, b->module, "add"));
	shape.Width = WORDS;
	shape.Format = CU_AD_FORMAT_UNSIGNED_INT32;
	shape.NumChannels = 1;
	DRIVER(cuArrayCreate(&b->array, &shape));
	for (unsigned i = 0; i < WORDS; i++)
		words[i] = value + i;
	DRIVER(cuMemcpyHtoA(b->array, 0, words, sizeof(words)));
	DRIVER(cuCtxSynchronize());
}

static void check_words(CUdeviceptr from, unsigned value)
{
	unsigned words[WORDS];

	DRIVER(cuMemcpyDtoH(words, from, sizeof(words)));
	for (int i = 0; i < WORDS; i++)
		CHECK_EQ_AT(i, words[i], value);
}

static void check_works(const struct belongings *b, unsigned value)
{
	CUdeviceptr both[] = {b->small, b->large + LARGE - WORDS * 4};
	unsigned words[WORDS], one = 1;

	for (CUdeviceptr data : both) {
		void *parameters[] = {&data, &one};

		DRIVER(cuLaunchKernel(
			b->add, 1, 1, 1, WORDS, 1, 1, 0, b->stream, parameters, NULL));
		DRIVER(cuEventRecord(b->event, b->stream));
		DRIVER(cuEventSynchronize(b->event));
		check_words(data, value + 1);
	}
	DRIVER(cuMemsetD32(b->small, value, WORDS));
	DRIVER(cuMemsetD32(b->large, value, LARGE / 4));
	DRIVER(cuMemcpyAtoH(words, b->array, 0, sizeof(words)));
	for (int i = 0; i < WORDS; i++)
		CHECK_EQ_AT(i, words[i], value + (unsigned)i);
	DRIVER(cuCtxSynchronize());
}

static void check_gone(CUdeviceptr address)
{
	unsigned type;

	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
}

enum how { RESET_BY_RUNTIME, RESET, RELEASE };

/* The primary context goes, and takes what is its own. */
static void primary_goes(enum how how)
{
	struct belongings own, of_primary;
	CUcontext context = create(), primary;

	acquire(&own, 100);
	DRIVER(cuCtxPopCurrent(NULL));
	if (how == RESET_BY_RUNTIME) {
		CUDA(cudaSetDevice(0));
		CUDA(cudaFree(0));
	} else {
		DRIVER(cuDevicePrimaryCtxRetain(&primary, device));
		DRIVER(cuCtxPushCurrent(primary));
	}
	acquire(&of_primary, 200);
	check_works(&of_primary, 200);
	if (how == RESET_BY_RUNTIME)
		CUDA(cudaDeviceReset());
	else if (how == RESET)
		DRIVER(cuDevicePrimaryCtxReset(device));
	else
		DRIVER(cuDevicePrimaryCtxRelease(device));
	DRIVER(cuCtxSetCurrent(context));
	check_gone(of_primary.small);
	check_gone(of_primary.large);
	check_works(&own, 100);
	check_works(&own, 100);
	DRIVER(cuCtxDestroy(context));
	if (how == RESET)
		DRIVER(cuDevicePrimaryCtxRelease(device));
}

/* One of two contexts goes: the other one has what it had. */
static void one_goes()
{
	struct belongings a, b;
	CUcontext first = create(), second;

	acquire(&a, 10);
	second = create();
	acquire(&b, 20);
	DRIVER(cuCtxDestroy(second));
	DRIVER(cuCtxSetCurrent(first));
	check_gone(b.small);
	check_gone(b.large);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, cuMemFree(b.small));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, cuMemFree(b.large));
	check_works(&a, 10);
	second = create();
	acquire(&b, 30);
	check_works(&b, 30);
	DRIVER(cuCtxSetCurrent(first));
	check_works(&a, 10);
	DRIVER(cuCtxDestroy(first));
	DRIVER(cuCtxSetCurrent(second));
	check_works(&b, 30);
	DRIVER(cuCtxDestroy(second));
}

static CUcontext owner(CUdeviceptr address)
{
	CUcontext context = NULL;

	DRIVER(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, address));
	return context;
}

/* Memory is told to be its context's, and used and freed from any. */
static void across()
{
	CUcontext first = create(), second = create();
	struct belongings a, b;

	DRIVER(cuCtxSetCurrent(first));
	acquire(&a, 1);
	DRIVER(cuCtxSetCurrent(second));
	acquire(&b, 2);
	CHECK(owner(a.small) == first && owner(a.large) == first);
	CHECK(owner(b.small) == second && owner(b.large) == second);
	check_words(a.small, 1);
	check_words(a.large, 1);
	DRIVER(cuMemcpyDtoD(b.large, a.large, LARGE));
	check_words(b.large, 1);
	DRIVER(cuMemFree(a.small));
	DRIVER(cuMemFree(a.large));
	check_gone(a.small);
	check_gone(a.large);
	DRIVER(cuCtxDestroy(first));
	check_words(b.large, 1);
	DRIVER(cuCtxDestroy(second));
}

/* A context that goes gives its memory back, however often. */
static void nothing_leaks()
{
	size_t before = 0, after, total;
	CUcontext primary, own;
	CUdeviceptr memory;

	DRIVER(cuDevicePrimaryCtxRetain(&primary, device));
	DRIVER(cuCtxSetCurrent(primary));
	for (int i = 0; i < 7; i++) {
		own = create();
		if (i)
			DRIVER(cuMemAlloc(&memory, before / 4));
		for (int k = 0; k < 8; k++)
			DRIVER(cuMemAlloc(&memory, 100000));
		DRIVER(cuMemFree(memory));
		DRIVER(cuCtxDestroy(own));
		DRIVER(cuCtxSetCurrent(primary));
		/* The first one may leave something of the driver's behind. */
		if (!i)
			DRIVER(cuMemGetInfo(&before, &total));
	}
	DRIVER(cuMemGetInfo(&after, &total));
	CHECK(after + before / 8 >= before);
	DRIVER(cuDevicePrimaryCtxRelease(device));
	DRIVER(cuCtxSetCurrent(NULL));
}

/* Pinned memory of each size and kind, and registered memory; a copy and a kernel use it. */
struct pinned {
	unsigned *small, *large, *mapped, *registered;
};

static void pin(struct pinned *p, const struct belongings *b, unsigned *pageable)
{
	CUdeviceptr address;
	unsigned one = 1;
	void *parameters[] = {&address, &one};

	DRIVER(cuMemAllocHost((void **)&p->small, WORDS * 4));
	DRIVER(cuMemHostAlloc((void **)&p->large, LARGE, CU_MEMHOSTALLOC_PORTABLE));
	DRIVER(cuMemHostAlloc((void **)&p->mapped, WORDS * 4, CU_MEMHOSTALLOC_DEVICEMAP));
	DRIVER(cuMemHostRegister(pageable, WORDS * 4, 0));
	p->registered = pageable;
	for (int i = 0; i < WORDS; i++)
		p->small[i] = p->mapped[i] = 5;
	DRIVER(cuMemcpyDtoHAsync(p->large, b->large, LARGE, b->stream));
	DRIVER(cuMemcpyHtoDAsync(b->small, p->small, WORDS * 4, b->stream));
	DRIVER(cuMemHostGetDevicePointer(&address, p->mapped, 0));
	DRIVER(cuLaunchKernel(b->add, 1, 1, 1, WORDS, 1, 1, 0, b->stream, parameters, NULL));
}

static void check_unpinned(const struct pinned *p)
{
	for (void *memory : {p->small, p->large, p->mapped}) {
		check_gone((CUdeviceptr)memory);
		DRIVER_IS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(memory));
	}
	check_gone((CUdeviceptr)p->registered);
	DRIVER_IS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(p->registered));
}

static void check_pinned(const struct pinned *p)
{
	for (int i = 0; i < WORDS; i++)
		CHECK_EQ_AT(i, p->mapped[i], 6u);
	DRIVER(cuMemFreeHost(p->small));
	DRIVER(cuMemFreeHost(p->large));
	DRIVER(cuMemFreeHost(p->mapped));
	DRIVER(cuMemHostUnregister(p->registered));
}

/* Nothing is awaited before the context goes; the other one keeps its own. */
static void pinned_goes(enum how how)
{
	unsigned *pageable = (unsigned *)calloc(2 * WORDS, 4);
	struct pinned kept, lost;
	struct belongings a, b;
	CUcontext own = create(), primary;

	acquire(&a, 1);
	pin(&kept, &a, pageable);
	DRIVER(cuDevicePrimaryCtxRetain(&primary, device));
	DRIVER(cuCtxSetCurrent(primary));
	acquire(&b, 2);
	pin(&lost, &b, pageable + WORDS);
	if (how == RELEASE)
		DRIVER(cuDevicePrimaryCtxRelease(device));
	else
		DRIVER(cuDevicePrimaryCtxReset(device));
	DRIVER(cuCtxSetCurrent(own));
	check_unpinned(&lost);
	DRIVER(cuCtxSynchronize());
	check_pinned(&kept);
	pin(&kept, &a, pageable);
	if (how == RESET)
		DRIVER(cuDevicePrimaryCtxRelease(device));
	DRIVER(cuDevicePrimaryCtxRetain(&primary, device));
	DRIVER(cuCtxDestroy(own));
	DRIVER(cuCtxSetCurrent(primary));
	check_unpinned(&kept);
	DRIVER(cuDevicePrimaryCtxRelease(device));
	DRIVER(cuCtxSetCurrent(NULL));
	free(pageable);
}

int main()
{
	DRIVER(cuInit(0));
	DRIVER(cuDeviceGet(&device, 0));
	one_goes();
	across();
	nothing_leaks();
	pinned_goes(RELEASE);
	pinned_goes(RESET);
	primary_goes(RELEASE);
	primary_goes(RESET);
	primary_goes(RESET_BY_RUNTIME);
	printf("each context has its own\n");
	return 0;
}
