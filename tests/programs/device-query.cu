// SPDX-License-Identifier: Apache-2.0
/* What the runtime says of its devices: plausible, and the same by every way of asking. */
#include "check.h"

static void one_device(int device)
{
	cudaDeviceProp p;
	int value;
	char bus[32];

	memset(&p, 0xa5, sizeof(p));
	CUDA(cudaGetDeviceProperties(&p, device));
	printf("%d: %s, compute capability %d.%d, %d SMs, %zu MiB\n", device, p.name, p.major,
		p.minor, p.multiProcessorCount, p.totalGlobalMem >> 20);
	CHECK(strnlen(p.name, sizeof(p.name)) > 0 && strnlen(p.name, sizeof(p.name)) < 256);

	const struct {
		cudaDeviceAttr attribute;
		long long property;
		const char *name;
	} same[] = {
#define SAME(attribute, member) {cudaDevAttr##attribute, (long long)p.member, #member}
		SAME(ComputeCapabilityMajor, major),
		SAME(ComputeCapabilityMinor, minor),
		SAME(WarpSize, warpSize),
		SAME(MultiProcessorCount, multiProcessorCount),
		SAME(MaxThreadsPerBlock, maxThreadsPerBlock),
		SAME(MaxBlockDimX, maxThreadsDim[0]),
		SAME(MaxBlockDimY, maxThreadsDim[1]),
		SAME(MaxBlockDimZ, maxThreadsDim[2]),
		SAME(MaxGridDimX, maxGridSize[0]),
		SAME(MaxGridDimY, maxGridSize[1]),
		SAME(MaxGridDimZ, maxGridSize[2]),
		SAME(MaxSharedMemoryPerBlock, sharedMemPerBlock),
		SAME(MaxSharedMemoryPerBlockOptin, sharedMemPerBlockOptin),
		SAME(MaxSharedMemoryPerMultiprocessor, sharedMemPerMultiprocessor),
		SAME(ReservedSharedMemoryPerBlock, reservedSharedMemPerBlock),
		SAME(MaxRegistersPerBlock, regsPerBlock),
		SAME(MaxThreadsPerMultiProcessor, maxThreadsPerMultiProcessor),
		SAME(MaxBlocksPerMultiprocessor, maxBlocksPerMultiProcessor),
		SAME(TotalConstantMemory, totalConstMem),
		SAME(L2CacheSize, l2CacheSize),
		SAME(MemoryPoolsSupported, memoryPoolsSupported),
		SAME(UnifiedAddressing, unifiedAddressing),
		SAME(AsyncEngineCount, asyncEngineCount),
		SAME(ConcurrentKernels, concurrentKernels),
		SAME(GlobalMemoryBusWidth, memoryBusWidth),
		SAME(PciBusId, pciBusID),
		SAME(PciDeviceId, pciDeviceID),
		SAME(PciDomainId, pciDomainID),
		SAME(ManagedMemory, managedMemory),
		SAME(GPUDirectRDMAFlushWritesOptions, gpuDirectRDMAFlushWritesOptions),
		SAME(Integrated, integrated),
		SAME(EccEnabled, ECCEnabled),
		SAME(MaxPitch, memPitch),
		SAME(TextureAlignment, textureAlignment),
#undef SAME
	};
	for (const auto &each : same) {
		CUDA(cudaDeviceGetAttribute(&value, each.attribute, device));
		if (value != each.property)
			FAIL("%s: the attribute is %d, the property %lld", each.name, value,
				each.property);
	}

	CHECK_EQ(p.warpSize, 32);
	CHECK_EQ(p.maxThreadsPerBlock, 1024);
	CHECK_EQ(p.maxGridSize[0], 0x7fffffff);
	CHECK_EQ(p.maxGridSize[1], 65535);
	CHECK_EQ(p.totalConstMem, 65536u);
	CHECK_EQ(p.unifiedAddressing, 1);
	CHECK(p.major >= 5 && p.multiProcessorCount >= 1);
	CHECK(p.sharedMemPerBlock >= 48 << 10);
	CHECK(p.maxThreadsPerMultiProcessor >= 1024);
	CHECK(p.totalGlobalMem >= 64 << 20);
#if CUDART_VERSION < 13000
	CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, device));
	CHECK_EQ(value, p.clockRate);
	CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrComputeMode, device));
	CHECK_EQ(value, p.computeMode);
#endif
	int bits = 0;
	for (char byte : p.uuid.bytes)
		bits |= byte;
	CHECK(bits != 0);

	CUDA(cudaDeviceGetPCIBusId(bus, sizeof(bus), device));
	unsigned domain, number, slot;
	CHECK(sscanf(bus, "%x:%x:%x.0", &domain, &number, &slot) == 3);
	CHECK_EQ((int)domain, p.pciDomainID);
	CHECK_EQ((int)number, p.pciBusID);
	CHECK_EQ((int)slot, p.pciDeviceID);
	CUDA(cudaDeviceGetByPCIBusId(&value, bus));
	CHECK_EQ(value, device);
}

/* The attribute says whether there is the call. */
static void flush()
{
	int options;
	cudaError_t status = cudaDeviceFlushGPUDirectRDMAWrites(
		cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
		cudaFlushGPUDirectRDMAWritesToOwner);

	CUDA(cudaDeviceGetAttribute(&options, cudaDevAttrGPUDirectRDMAFlushWritesOptions, 0));
	CHECK_EQ((options & cudaFlushGPUDirectRDMAWritesOptionHost) != 0, status == cudaSuccess);
	(void)cudaGetLastError();
}

static void memory()
{
	size_t free, free_then, total, total_then, limit;
	void *block;

	CUDA(cudaMemGetInfo(&free, &total));
	CHECK(free > 0 && free <= total);
	CUDA(cudaMalloc(&block, 32 << 20));
	CUDA(cudaMemGetInfo(&free_then, &total_then));
	CHECK_EQ(total_then, total);
	CHECK(free_then <= total - (32 << 20));
	CUDA(cudaFree(block));

	CUDA(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
	CHECK(limit >= 512);
	CUDA(cudaDeviceSetLimit(cudaLimitStackSize, 8192));
	CUDA(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
	CHECK_EQ(limit, 8192u);
	CUDA(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
	CHECK(limit >= 65536);
}

static void pointers()
{
	cudaPointerAttributes a;
	int *device, *pinned, on_stack;

	CUDA(cudaMalloc(&device, 4096));
	CUDA(cudaMallocHost(&pinned, 4096));
	CUDA(cudaPointerGetAttributes(&a, device + 5));
	CHECK_EQ((int)a.type, (int)cudaMemoryTypeDevice);
	CHECK(a.devicePointer == device + 5 && a.device == 0);
	CUDA(cudaPointerGetAttributes(&a, pinned + 5));
	CHECK_EQ((int)a.type, (int)cudaMemoryTypeHost);
	CHECK(a.hostPointer == pinned + 5);
	CUDA(cudaPointerGetAttributes(&a, &on_stack));
	CHECK_EQ((int)a.type, (int)cudaMemoryTypeUnregistered);
	CUDA(cudaFree(device));
	CUDA(cudaFreeHost(pinned));
}

int main()
{
	int count = 0, runtime = 0, driver = 0, current = -1;
	unsigned flags;

	CUDA(cudaGetDeviceCount(&count));
	CHECK(count >= 1);
	CUDA(cudaRuntimeGetVersion(&runtime));
	CUDA(cudaDriverGetVersion(&driver));
	CHECK_EQ(runtime / 1000, CUDART_VERSION / 1000);
	CHECK(driver >= CUDART_VERSION / 1000 * 1000);
	for (int i = 0; i < count; i++)
		one_device(i);
	CUDA(cudaGetDevice(&current));
	CHECK_EQ(current, 0);
	CUDA(cudaGetDeviceFlags(&flags)); /* of a context that is not there yet */
	CHECK(flags & cudaDeviceMapHost);
	CUDA(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
	CUDA(cudaGetDeviceFlags(&flags));
	CHECK(flags & cudaDeviceScheduleBlockingSync);
	/* As programs of before CUDA 3.2 must. */
	CUDA(cudaSetDeviceFlags(cudaDeviceScheduleYield | cudaDeviceMapHost));
	CUDA(cudaGetDeviceFlags(&flags));
	CHECK(flags & cudaDeviceScheduleYield);
	CUDA_IS(cudaErrorInvalidValue, cudaSetDeviceFlags(1u << 30));
	(void)cudaGetLastError();
	flush();
	memory();
	pointers();
	printf("what is said of the devices agrees\n");
	return 0;
}
