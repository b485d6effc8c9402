// SPDX-License-Identifier: Apache-2.0
/* Memory of the program's machine by cuMemCreate (HOST, HOST_NUMA): host and kernels use it at reserved addresses, at
 * several at once, copies and fills too; who may is told, processes share it by descriptor, and calls that are wrong. */
#include "driver.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

/* ENTRY as a member. */
#define MEMBER(name) decltype(&name) p_##name = driver_entry<decltype(&name)>(#name)

struct driver {
	MEMBER(cuMemGetAllocationGranularity);
	MEMBER(cuMemAddressReserve);
	MEMBER(cuMemAddressFree);
	MEMBER(cuMemCreate);
	MEMBER(cuMemRelease);
	MEMBER(cuMemMap);
	MEMBER(cuMemUnmap);
	MEMBER(cuMemSetAccess);
	MEMBER(cuMemGetAccess);
	MEMBER(cuMemRetainAllocationHandle);
	MEMBER(cuMemGetAllocationPropertiesFromHandle);
	MEMBER(cuMemExportToShareableHandle);
	MEMBER(cuMemImportFromShareableHandle);
	MEMBER(cuPointerGetAttribute);
	MEMBER(cuPointerGetAttributes);
	MEMBER(cuMemGetAddressRange);
	MEMBER(cuMemHostGetFlags);
	MEMBER(cuMemFreeHost);
	MEMBER(cuMemHostRegister);
	MEMBER(cuMemHostUnregister);
	MEMBER(cuMemsetD32);
	size_t granule = 0;

	driver()
	{
		CUmemAllocationProp prop = props(CU_MEM_LOCATION_TYPE_HOST_NUMA);

		DRIVER(p_cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
		CHECK(granule && granule % 65536 == 0);
	}
	static CUmemAllocationProp props(CUmemLocationType type, bool shared = false)
	{
		CUmemAllocationProp prop = {};

		prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
		prop.location.type = type;
		if (shared)
			prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
		return prop;
	}
	CUmemGenericAllocationHandle made(CUmemLocationType type, size_t bytes, bool shared = false)
	{
		CUmemAllocationProp prop = props(type, shared);
		CUmemGenericAllocationHandle memory = 0;

		DRIVER(p_cuMemCreate(&memory, bytes, &prop, 0));
		CHECK(memory != 0);
		return memory;
	}
	CUresult let(CUdeviceptr at, size_t bytes, CUmemLocationType who, CUmemAccess_flags flags)
	{
		CUmemAccessDesc access = {};

		access.location.type = who;
		access.flags = flags;
		return p_cuMemSetAccess(at, bytes, &access, 1);
	}
	unsigned long long may(CUdeviceptr at, CUmemLocationType who)
	{
		CUmemLocation location = {};
		unsigned long long flags = 77;

		location.type = who;
		DRIVER(p_cuMemGetAccess(&flags, &location, at));
		return flags;
	}
	/* By the device, then by the host, as NCCL does it. */
	CUdeviceptr mapped(CUmemGenericAllocationHandle memory, size_t bytes, CUmemLocationType host)
	{
		CUdeviceptr at;

		DRIVER(p_cuMemAddressReserve(&at, bytes, 0, 0, 0));
		DRIVER(p_cuMemMap(at, bytes, 0, memory, 0));
		DRIVER(let(at, bytes, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
		DRIVER(let(at, bytes, host, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
		return at;
	}
	void unmapped(CUdeviceptr at, size_t bytes)
	{
		DRIVER(p_cuMemUnmap(at, bytes));
		DRIVER(p_cuMemAddressFree(at, bytes));
	}
};

__global__ void add(int *p, size_t n, int more)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] += more;
}

__global__ void copy(int *to, const int *from, size_t n)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		to[i] = from[i];
}

/* Waits for the host's flag, answers with the next number. */
__global__ void answer(volatile int *flag, int turns)
{
	for (int i = 0; i < turns; i++) {
		while (flag[0] != i + 1)
			;
		flag[64] = i + 1;
		__threadfence_system();
	}
}

static void all_are(const int *p, size_t n, int first)
{
	for (size_t i = 0; i < n; i++)
		CHECK_EQ_AT((long long)i, p[i], (int)i + first);
}

/* The host writes, kernels add, copies of several forms go every way, fills. */
static void is_used_by_both(driver &d, CUmemLocationType type)
{
	const size_t bytes = d.granule, n = bytes / sizeof(int), width = 4096;
	CUmemGenericAllocationHandle memory = d.made(type, bytes);
	int *p = (int *)d.mapped(memory, bytes, type), *device;
	std::vector<int> back(n);
	cudaStream_t stream;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&device, bytes));
	for (size_t i = 0; i < n; i += 1000)
		CHECK_EQ_AT((long long)i, p[i], 0);
	for (int turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < n; i++)
			p[i] = (int)i + turn;
		CUDA(cudaMemcpyAsync(device, p, bytes, cudaMemcpyDefault, stream));
		CUDA(cudaMemcpyAsync(back.data(), device, bytes, cudaMemcpyDefault, stream));
		CUDA(cudaStreamSynchronize(stream));
		all_are(back.data(), n, turn);
		add<<<16, 128, 0, stream>>>(p, n, 1000);
		LAUNCHED();
		CUDA(cudaMemcpyAsync(device, p, bytes, cudaMemcpyHostToDevice, stream));
		add<<<16, 128, 0, stream>>>(p, n, -500);
		LAUNCHED();
		CUDA(cudaStreamSynchronize(stream));
		all_are(p, n, turn + 500);
		CUDA(cudaMemcpy(back.data(), device, bytes, cudaMemcpyDefault));
		all_are(back.data(), n, turn + 1000);
		CUDA(cudaMemcpyAsync(p, device, bytes, cudaMemcpyDeviceToHost, stream));
		CUDA(cudaStreamSynchronize(stream));
		all_are(p, n, turn + 1000);
		/* From the program's own memory, and to it. */
		CUDA(cudaMemcpy(p, back.data(), bytes / 2, cudaMemcpyDefault));
		CUDA(cudaMemcpy(back.data(), p, bytes, cudaMemcpyDefault));
		all_are(back.data(), n, turn + 1000);
		CUDA(cudaMemset(p, 0xff, bytes));
		for (size_t i = 0; i < n; i++)
			CHECK_EQ_AT((long long)i, p[i], -1);
		CUDA(cudaMemcpy2D(p + 16, width, device, width, width - 64, bytes / width, cudaMemcpyDefault));
		CHECK_EQ(p[16], turn + 1000);
		CHECK_EQ(p[15], -1);
		CHECK_EQ(p[16 + n - width / 4], (int)(n - width / 4) + turn + 1000);
	}
	CUDA(cudaFree(device));
	DRIVER(d.p_cuMemRelease(memory));
	d.unmapped((CUdeviceptr)p, bytes);
	CUDA(cudaStreamDestroy(stream));
}

/* One memory at two addresses: what came by the one is there by the other, in stream order and for the host, and
 * stays when the first one goes. */
static void has_several_addresses(driver &d)
{
	const size_t bytes = d.granule, n = bytes / sizeof(int);
	CUmemGenericAllocationHandle memory = d.made(CU_MEM_LOCATION_TYPE_HOST_NUMA, bytes);
	int *one = (int *)d.mapped(memory, bytes, CU_MEM_LOCATION_TYPE_HOST_NUMA);
	int *two = (int *)d.mapped(memory, bytes, CU_MEM_LOCATION_TYPE_HOST_NUMA);

	CHECK(one != two);
	for (size_t i = 0; i < n; i++)
		one[i] = (int)i;
	all_are(two, n, 0);
	for (int turn = 0; turn < 10; turn++) { /* each behind the other's */
		add<<<16, 128>>>(one, n, 1);
		add<<<16, 128>>>(two, n, 1);
		LAUNCHED();
	}
	CUDA(cudaDeviceSynchronize());
	all_are(one, n, 20);
	all_are(two, n, 20);
	two[0] = -7;
	two[n - 1] = 0; /* as the agent's memory began */
	add<<<16, 128>>>(one, n, 1);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize()); /* natively unmapping waits for nothing */
	DRIVER(d.p_cuMemUnmap((CUdeviceptr)one, bytes));
	CHECK_EQ(two[0], -6);
	CHECK_EQ(two[n - 1], 1);
	two[n - 1] = 0;
	add<<<16, 128>>>(two, n, 1);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(two[0], -5);
	CHECK_EQ(two[1], 23);
	CHECK_EQ(two[n - 1], 1);
	/* There again, with what came meanwhile. */
	two[2] = 1234;
	DRIVER(d.p_cuMemMap((CUdeviceptr)one, bytes, 0, memory, 0));
	DRIVER(d.let((CUdeviceptr)one, bytes, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	DRIVER(d.let((CUdeviceptr)one, bytes, CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	add<<<16, 128>>>(one, n, 1);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(two[2], 1235);
	DRIVER(d.p_cuMemRelease(memory));
	d.unmapped((CUdeviceptr)two, bytes);
	CHECK_EQ(one[2], 1235);
	d.unmapped((CUdeviceptr)one, bytes);
}

/* A reservation with two such memories side by side, of which a kernel is told the beginning. */
static void lies_side_by_side(driver &d)
{
	const size_t bytes = d.granule, n = 2 * bytes / sizeof(int);
	CUmemGenericAllocationHandle parts[2];
	std::vector<int> back(n);
	CUdeviceptr at;
	int *p, *device;

	DRIVER(d.p_cuMemAddressReserve(&at, 3 * bytes, 0, 0, 0));
	for (int i = 0; i < 2; i++) {
		parts[i] = d.made(i ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_HOST_NUMA, bytes);
		DRIVER(d.p_cuMemMap(at + i * bytes, bytes, 0, parts[i], 0));
	}
	DRIVER(d.let(at, 2 * bytes, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	DRIVER(d.let(at, 2 * bytes, CU_MEM_LOCATION_TYPE_HOST, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	CUDA(cudaMalloc(&device, 2 * bytes));
	p = (int *)at;
	for (size_t i = 0; i < n; i++)
		p[i] = (int)i;
	CUDA(cudaMemcpy(device, p, 2 * bytes, cudaMemcpyDefault));
	CUDA(cudaMemcpy(back.data(), device, 2 * bytes, cudaMemcpyDefault));
	all_are(back.data(), n, 0);
	add<<<16, 128>>>(p, n, 5);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	all_are(p, n, 5);
	CUDA(cudaMemcpy(device, p, 2 * bytes, cudaMemcpyDefault));
	CUDA(cudaMemcpy(back.data(), device, 2 * bytes, cudaMemcpyDefault));
	all_are(back.data(), n, 5);
	/* Nothing is mapped behind them. */
	CUDA_IS(cudaErrorInvalidValue, cudaMemcpy(device, p + n / 2, 2 * bytes, cudaMemcpyDefault));
	(void)cudaGetLastError();
	DRIVER(d.p_cuMemUnmap(at, 2 * bytes));
	for (int i = 0; i < 2; i++)
		DRIVER(d.p_cuMemRelease(parts[i]));
	DRIVER(d.p_cuMemAddressFree(at, 3 * bytes));
	CUDA(cudaFree(device));
}

/* While a kernel runs, in both directions; and where an address is in data alone. */
static void is_kept_in_step(driver &d)
{
	const size_t bytes = d.granule;
	CUmemGenericAllocationHandle memory = d.made(CU_MEM_LOCATION_TYPE_HOST_NUMA, bytes);
	volatile int *flag = (volatile int *)d.mapped(memory, bytes, CU_MEM_LOCATION_TYPE_HOST_NUMA);
	const int turns = 40;

	answer<<<1, 1>>>(flag, turns);
	LAUNCHED();
	for (int i = 0; i < turns; i++) {
		flag[0] = i + 1;
		while (flag[64] != i + 1)
			;
	}
	CUDA(cudaDeviceSynchronize());
	DRIVER(d.p_cuMemRelease(memory));
	d.unmapped((CUdeviceptr)flag, bytes);
}

/* By a graph's nodes, and as a word that a stream writes and waits for. */
static void is_used_in_streams(driver &d)
{
	ENTRY(cuStreamWriteValue32);
	ENTRY(cuStreamWaitValue32);
	const size_t bytes = d.granule, n = 1000;
	CUmemGenericAllocationHandle memory = d.made(CU_MEM_LOCATION_TYPE_HOST, bytes);
	int *p = (int *)d.mapped(memory, bytes, CU_MEM_LOCATION_TYPE_HOST), *device;
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;

	CUDA(cudaMalloc(&device, n * sizeof(int)));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMemcpyAsync(device, p, n * sizeof(int), cudaMemcpyDefault, stream));
	add<<<4, 128, 0, stream>>>(device, n, 10);
	add<<<4, 128, 0, stream>>>(p + n, n, 100);
	CUDA(cudaMemcpyAsync(p + 2 * n, device, n * sizeof(int), cudaMemcpyDefault, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int turn = 0; turn < 3; turn++) {
		for (size_t i = 0; i < n; i++)
			p[i] = p[n + i] = (int)i + turn;
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		all_are(p + n, n, turn + 100);
		all_are(p + 2 * n, n, turn + 10);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	p[0] = 0;
	DRIVER(p_cuStreamWaitValue32((CUstream)stream, (CUdeviceptr)p, 5, CU_STREAM_WAIT_VALUE_EQ));
	DRIVER(p_cuStreamWriteValue32((CUstream)stream, (CUdeviceptr)(p + 64), 6, 0));
	((volatile int *)p)[0] = 5;
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(p[64], 6);
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(device));
	DRIVER(d.p_cuMemRelease(memory));
	d.unmapped((CUdeviceptr)p, bytes);
}

/* The second device uses what lies among the first one's addresses, and the other way round. */
static void is_every_devices(driver &d)
{
	const size_t bytes = d.granule, n = bytes / sizeof(int);
	int count;

	CUDA(cudaGetDeviceCount(&count));
	if (count < 2)
		return;
	for (int turn = 0; turn < 2; turn++) {
		CUmemGenericAllocationHandle memory = d.made(CU_MEM_LOCATION_TYPE_HOST_NUMA, bytes);
		CUmemAccessDesc access[2] = {};
		CUdeviceptr at;
		int *p;

		CUDA(cudaSetDevice(turn));
		CUDA(cudaFree(0));
		DRIVER(d.p_cuMemAddressReserve(&at, bytes, 0, 0, 0));
		DRIVER(d.p_cuMemMap(at, bytes, 0, memory, 0));
		access[0].location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
		access[1].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		access[1].location.id = !turn;
		access[0].flags = access[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		DRIVER(d.p_cuMemSetAccess(at, bytes, access, 2));
		p = (int *)at;
		for (size_t i = 0; i < n; i++)
			p[i] = (int)i;
		CUDA(cudaSetDevice(!turn));
		CUDA(cudaFree(0));
		add<<<16, 128>>>(p, n, 3);
		LAUNCHED();
		CUDA(cudaDeviceSynchronize());
		all_are(p, n, 3);
		/* While it is used already. */
		access[1].location.id = turn;
		DRIVER(d.p_cuMemSetAccess(at, bytes, &access[1], 1));
		CUDA(cudaSetDevice(turn));
		add<<<16, 128>>>(p, n, 4);
		LAUNCHED();
		CUDA(cudaDeviceSynchronize());
		all_are(p, n, 7);
		DRIVER(d.p_cuMemRelease(memory));
		d.unmapped(at, bytes);
	}
	CUDA(cudaSetDevice(0));
}

static void says_what_it_is(driver &d)
{
	const size_t bytes = 2 * d.granule;
	CUmemGenericAllocationHandle memory = d.made(CU_MEM_LOCATION_TYPE_HOST_NUMA, bytes, true), again;
	CUdeviceptr at = d.mapped(memory, bytes, CU_MEM_LOCATION_TYPE_HOST_NUMA), inner = at + d.granule + 8, base, pointer;
	CUmemAllocationProp prop = {};
	unsigned type = 0, flags = 0;
	unsigned long long handles = 0;
	size_t size;
	int ordinal = -1;
	void *host = NULL;
	bool managed = true;
	CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_HOST_POINTER};
	void *data[] = {&type, &host};

	DRIVER(d.p_cuMemRetainAllocationHandle(&again, (void *)inner));
	CHECK(again == memory);
	DRIVER(d.p_cuMemRelease(again));
	DRIVER(d.p_cuMemGetAllocationPropertiesFromHandle(&prop, memory));
	CHECK_EQ((int)prop.location.type, (int)CU_MEM_LOCATION_TYPE_HOST_NUMA);
	CHECK_EQ(prop.location.id, 0);
	CHECK_EQ((int)prop.requestedHandleTypes, (int)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	DRIVER(d.p_cuMemGetAddressRange(&base, &size, inner));
	/* An H200's driver tells something else of two granules. */
	if (at > base || base > inner || inner >= base + size || base + size > at + bytes)
		printf("of %zu bytes at %llx, %llx is in %zu bytes at %llx\n", bytes, at, inner, size, base);
	CHECK(base <= inner);
	DRIVER(d.p_cuPointerGetAttributes(2, which, data, inner));
	CHECK_EQ(type, (unsigned)CU_MEMORYTYPE_HOST);
	CHECK((CUdeviceptr)host == inner);
	DRIVER(d.p_cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inner));
	CHECK(pointer == inner);
	DRIVER(d.p_cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inner));
	CHECK_EQ(ordinal, 0);
	DRIVER(d.p_cuPointerGetAttribute(&handles, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, inner));
	CHECK_EQ(handles, (unsigned long long)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	DRIVER(d.p_cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, inner));
	CHECK_EQ(flags, (unsigned)CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	DRIVER(d.p_cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, inner));
	CHECK(!managed);
	DRIVER(d.p_cuMemHostGetFlags(&flags, (void *)at));
	/* It is none that was allocated or registered. */
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemFreeHost((void *)at));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemHostUnregister((void *)at));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemHostRegister((void *)at, 4096, 0));
	CHECK_EQ(d.may(at, CU_MEM_LOCATION_TYPE_DEVICE), (unsigned long long)CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CHECK_EQ(d.may(at, CU_MEM_LOCATION_TYPE_HOST_NUMA), (unsigned long long)CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	DRIVER(d.let(at, bytes, CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_ACCESS_FLAGS_PROT_READ));
	CHECK_EQ(d.may(at, CU_MEM_LOCATION_TYPE_HOST_NUMA), (unsigned long long)CU_MEM_ACCESS_FLAGS_PROT_READ);
	DRIVER(d.p_cuMemRelease(memory));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemGetAllocationPropertiesFromHandle(&prop, 0));
	d.unmapped(at, bytes);
	CHECK(d.p_cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inner) == CUDA_ERROR_INVALID_VALUE);
}

/* Who was not let to it. */
static void wants_access(driver &d)
{
	const size_t bytes = d.granule;
	CUmemGenericAllocationHandle memory = d.made(CU_MEM_LOCATION_TYPE_HOST, bytes);
	std::vector<char> own(bytes);
	CUdeviceptr at;
	int *device;

	CUDA(cudaMalloc(&device, bytes));
	DRIVER(d.p_cuMemAddressReserve(&at, bytes, 0, 0, 0));
	DRIVER(d.p_cuMemMap(at, bytes, 0, memory, 0));
	CHECK_EQ(d.may(at, CU_MEM_LOCATION_TYPE_DEVICE), 0ull);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemsetD32(at, 1, bytes / 4));
	DRIVER(d.let(at, bytes, CU_MEM_LOCATION_TYPE_HOST, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	memset((void *)at, 3, bytes);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemsetD32(at, 1, bytes / 4));
	DRIVER(d.let(at, bytes, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READ));
	copy<<<16, 128>>>(device, (const int *)at, bytes / 4);
	LAUNCHED();
	CUDA(cudaMemcpy(own.data(), device, bytes, cudaMemcpyDefault));
	CHECK_EQ((int)own[bytes - 1], 3);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemsetD32(at, 1, bytes / 4));
	DRIVER(d.let(at, bytes, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	DRIVER(d.p_cuMemsetD32(at, 0x01020304, bytes / 4));
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(((int *)at)[bytes / 4 - 1], 0x01020304);
	/* Memory that was made for no node has an H200's driver let to one, too. */
	DRIVER(d.let(at, bytes, CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		d.let(at, bytes, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	DRIVER(d.p_cuMemRelease(memory));
	d.unmapped(at, bytes);
	CUDA(cudaFree(device));
}

static void wrong(driver &d)
{
	CUmemAllocationProp prop = d.props(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
	CUmemGenericAllocationHandle memory = 0;
	int fd = -1, pipes[2];
	CUdeviceptr at;

	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemCreate(&memory, d.granule, &prop, 0));
	prop = d.props(CU_MEM_LOCATION_TYPE_HOST, true);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemCreate(&memory, d.granule, &prop, 0));
	prop = d.props(CU_MEM_LOCATION_TYPE_HOST_NUMA);
	prop.location.id = 4711;
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemCreate(&memory, d.granule, &prop, 0));
	prop = d.props(CU_MEM_LOCATION_TYPE_HOST);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemCreate(&memory, d.granule + 4096, &prop, 0));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemCreate(&memory, d.granule, &prop, 1));
	memory = d.made(CU_MEM_LOCATION_TYPE_HOST, d.granule);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		d.p_cuMemExportToShareableHandle(&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	DRIVER(d.p_cuMemAddressReserve(&at, 2 * d.granule, 0, 0, 0));
	DRIVER_IS(CUDA_ERROR_NOT_SUPPORTED, d.p_cuMemMap(at, d.granule, d.granule, memory, 0));
	DRIVER(d.p_cuMemMap(at, d.granule, 0, memory, 0));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemMap(at, d.granule, 0, memory, 0));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemAddressFree(at, 2 * d.granule));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemUnmap(at, d.granule / 2));
	DRIVER(d.p_cuMemRelease(memory));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, d.p_cuMemRelease(memory));
	DRIVER(d.p_cuMemUnmap(at, d.granule));
	DRIVER(d.p_cuMemAddressFree(at, 2 * d.granule));
	CHECK(pipe(pipes) == 0);
	CHECK(d.p_cuMemImportFromShareableHandle(&memory, (void *)(uintptr_t)pipes[0],
		      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS);
	close(pipes[0]);
	close(pipes[1]);
}

/* ---- between processes ---- */

static void say(int socket)
{
	CHECK(write(socket, "x", 1) == 1);
}

static void hear(int socket)
{
	char said;

	CHECK(read(socket, &said, 1) == 1);
}

static void send_fd(int socket, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {}, byte = 'f';
	iovec data = {&byte, 1};
	msghdr message = {};

	message.msg_iov = &data;
	message.msg_iovlen = 1;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(int));
	CHECK(sendmsg(socket, &message, 0) == 1);
}

static int receive_fd(int socket)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	iovec data = {&byte, 1};
	msghdr message = {};
	int fd;

	message.msg_iov = &data;
	message.msg_iovlen = 1;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	CHECK(recvmsg(socket, &message, 0) == 1);
	CHECK(CMSG_FIRSTHDR(&message) != NULL);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fd;
}

static int child()
{
	CUDA(cudaFree(0));
	driver d;
	const size_t bytes = d.granule, n = bytes / sizeof(int);
	CUmemAllocationProp prop = {};
	CUmemGenericAllocationHandle memory;
	int fd = receive_fd(0), *p;

	DRIVER(d.p_cuMemImportFromShareableHandle(
		&memory, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	DRIVER(d.p_cuMemGetAllocationPropertiesFromHandle(&prop, memory));
	CHECK_EQ((int)prop.location.type, (int)CU_MEM_LOCATION_TYPE_HOST_NUMA);
	p = (int *)d.mapped(memory, bytes, CU_MEM_LOCATION_TYPE_HOST_NUMA);
	DRIVER(d.p_cuMemRelease(memory));
	all_are(p, n, 10);
	add<<<16, 128>>>(p, n, 100);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	say(0);
	hear(0);
	all_are(p, n, 1110);
	p[5] = -5;
	add<<<16, 128>>>(p, n, 1);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize()); /* natively unmapping does not wait for the kernel */
	d.unmapped((CUdeviceptr)p, bytes);
	say(0);
	return 0;
}

static void is_shared(driver &d)
{
	const size_t bytes = d.granule, n = bytes / sizeof(int);
	CUmemGenericAllocationHandle memory = d.made(CU_MEM_LOCATION_TYPE_HOST_NUMA, bytes, true);
	int *p = (int *)d.mapped(memory, bytes, CU_MEM_LOCATION_TYPE_HOST_NUMA), sockets[2], fd = -1, status;
	pid_t pid;

	for (size_t i = 0; i < n; i++)
		p[i] = (int)i;
	add<<<16, 128>>>(p, n, 10);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		dup2(sockets[1], 0);
		execl("/proc/self/exe", "host-memory-handles", "child", (char *)NULL);
		_exit(127);
	}
	close(sockets[1]);
	DRIVER(d.p_cuMemExportToShareableHandle(&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	send_fd(sockets[0], fd);
	close(fd);
	hear(sockets[0]);
	all_are(p, n, 110);
	add<<<16, 128>>>(p, n, 1000);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	say(sockets[0]);
	hear(sockets[0]);
	CHECK_EQ(p[4], 4 + 1111);
	CHECK_EQ(p[5], -4);
	add<<<16, 128>>>(p, n, 1);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(p[5], -3);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	close(sockets[0]);
	DRIVER(d.p_cuMemRelease(memory));
	d.unmapped((CUdeviceptr)p, bytes);
}

int main(int argc, char **)
{
	if (argc > 1)
		return child();
	CUDA(cudaFree(0));
	driver d;

	is_used_by_both(d, CU_MEM_LOCATION_TYPE_HOST);
	is_used_by_both(d, CU_MEM_LOCATION_TYPE_HOST_NUMA);
	has_several_addresses(d);
	lies_side_by_side(d);
	is_kept_in_step(d);
	is_used_in_streams(d);
	is_every_devices(d);
	says_what_it_is(d);
	wants_access(d);
	wrong(d);
	is_shared(d);
	puts("host memory by handle: mapped, used by both, shared");
	return 0;
}
