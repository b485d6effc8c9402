// SPDX-License-Identifier: Apache-2.0
/* Memory shared by file descriptors: cuMemCreate's and a pool's, whose descriptors a child gets over
 * a Unix socket; both sides write and read, and each lets go by itself. */
#include "driver.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <vector>

enum { COUNT = 1000 };

struct gift {
	size_t bytes; /* of the named memory */
	cudaMemPoolPtrExportData pointer, elsewhere; /* the other is another pool's */
};

__global__ void add(int *data, int by)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < COUNT)
		data[i] += by;
}

static void expect(const int *device, int by)
{
	std::vector<int> host(COUNT);

	CUDA(cudaMemcpy(host.data(), device, COUNT * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ_AT(i, host[i], i + by);
}

static void send_gift(int socket, const struct gift *gift, const int fds[2])
{
	union {
		cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {};
	iovec data = {(void *)gift, sizeof(*gift)};
	msghdr message = {};

	message.msg_iov = &data;
	message.msg_iovlen = 1;
	message.msg_control = control.bytes;
	message.msg_controllen = sizeof(control.bytes);
	cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(header), fds, 2 * sizeof(int));
	CHECK(sendmsg(socket, &message, 0) == (ssize_t)sizeof(*gift));
}

static void receive_gift(int socket, struct gift *gift, int fds[2])
{
	char control[CMSG_SPACE(2 * sizeof(int))];
	iovec data = {gift, sizeof(*gift)};
	msghdr message = {};

	message.msg_iov = &data;
	message.msg_iovlen = 1;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	CHECK(recvmsg(socket, &message, 0) == (ssize_t)sizeof(*gift));
	CHECK(CMSG_FIRSTHDR(&message) != NULL);
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), 2 * sizeof(int));
}

/* At an address of its own, readable and writable. */
static CUdeviceptr mapped(CUmemGenericAllocationHandle memory, size_t bytes)
{
	CUmemAccessDesc access = {};
	CUdeviceptr at;

	ENTRY(cuMemAddressReserve);
	ENTRY(cuMemMap);
	ENTRY(cuMemSetAccess);
	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	DRIVER(p_cuMemAddressReserve(&at, bytes, 0, 0, 0));
	DRIVER(p_cuMemMap(at, bytes, 0, memory, 0));
	DRIVER(p_cuMemSetAccess(at, bytes, &access, 1));
	return at;
}

static void unmapped(CUdeviceptr at, size_t bytes)
{
	ENTRY(cuMemAddressFree);
	ENTRY(cuMemUnmap);
	DRIVER(p_cuMemUnmap(at, bytes));
	DRIVER(p_cuMemAddressFree(at, bytes));
}

static void say(int socket)
{
	CHECK(write(socket, "x", 1) == 1);
}

static void hear(int socket)
{
	char said;

	CHECK(read(socket, &said, 1) == 1);
}

static int child()
{
	CUmemGenericAllocationHandle memory;
	cudaMemPool_t pool;
	struct gift gift;
	int *named, *pooled, fds[2];

	ENTRY(cuMemImportFromShareableHandle);
	ENTRY(cuMemRelease);
	CUDA(cudaFree(0));
	receive_gift(0, &gift, fds);
	DRIVER(p_cuMemImportFromShareableHandle(&memory, (void *)(uintptr_t)fds[0],
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	named = (int *)mapped(memory, gift.bytes);
	DRIVER(p_cuMemRelease(memory)); /* the mapping keeps it */
	expect(named, 0);
	add<<<(COUNT + 255) / 256, 256>>>(named, 100);
	LAUNCHED();

	CUDA(cudaMemPoolImportFromShareableHandle(&pool, (void *)(uintptr_t)fds[1],
		cudaMemHandleTypePosixFileDescriptor, 0));
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemPoolImportPointer((void **)&pooled, pool, &gift.elsewhere));
	(void)cudaGetLastError();
	CUDA(cudaMemPoolImportPointer((void **)&pooled, pool, &gift.pointer));
	/* Another's is not to be trimmed, and not each descriptor is a pool's. */
	CUDA_IS(cudaErrorInvalidValue, cudaMemPoolTrimTo(pool, 0));
	int nothing = open("/dev/null", O_RDONLY);
	cudaMemPool_t none;
	CUDA_IS(cudaErrorUnknown,
		cudaMemPoolImportFromShareableHandle(&none, (void *)(uintptr_t)nothing,
			cudaMemHandleTypePosixFileDescriptor, 0));
	close(nothing);
	(void)cudaGetLastError();
	close(fds[0]);
	close(fds[1]);
	expect(pooled, 0);
	add<<<(COUNT + 255) / 256, 256>>>(pooled, 200);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	say(0);
	hear(0);
	expect(named, 101);
	expect(pooled, 201);
	unmapped((CUdeviceptr)named, gift.bytes);
	CUDA(cudaFreeAsync(pooled, 0));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemPoolDestroy(pool));
	say(0);
	return 0;
}

static void parent(int socket)
{
	CUmemGenericAllocationHandle memory;
	CUmemAllocationProp prop = {};
	cudaMemPoolProps props = {};
	struct gift gift = {};
	int *named, *pooled, *other, *elsewhere, fds[2], unused;
	std::vector<int> host(COUNT);
	cudaMemPool_t pool, second;
	size_t granule;

	ENTRY(cuMemCreate);
	ENTRY(cuMemExportToShareableHandle);
	ENTRY(cuMemGetAllocationGranularity);
	ENTRY(cuMemRelease);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	DRIVER(p_cuMemGetAllocationGranularity(
		&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	gift.bytes = granule;
	DRIVER(p_cuMemCreate(&memory, granule, &prop, 0));
	DRIVER(p_cuMemExportToShareableHandle(
		&fds[0], memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	named = (int *)mapped(memory, granule);
	for (int i = 0; i < COUNT; i++)
		host[i] = i;
	CUDA(cudaMemcpy(named, host.data(), COUNT * sizeof(int), cudaMemcpyHostToDevice));

	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
	props.location.type = cudaMemLocationTypeDevice;
	CUDA(cudaMemPoolCreate(&pool, &props));
	CUDA(cudaMallocFromPoolAsync((void **)&other, 4096, pool, 0));
	CUDA(cudaMallocFromPoolAsync((void **)&pooled, COUNT * sizeof(int), pool, 0));
	CUDA(cudaMemcpyAsync(
		pooled, host.data(), COUNT * sizeof(int), cudaMemcpyHostToDevice, 0));
	CUDA(cudaStreamSynchronize(0));
	/* No memory of a pool that nobody else was given. */
	CUDA_IS(cudaErrorInvalidValue, cudaMemPoolExportPointer(&gift.pointer, pooled));
	(void)cudaGetLastError();
	CUDA(cudaMemPoolExportToShareableHandle(
		&fds[1], pool, cudaMemHandleTypePosixFileDescriptor, 0));
	CUDA(cudaMemPoolExportPointer(&gift.pointer, pooled));
	CUDA(cudaMemPoolCreate(&second, &props));
	CUDA(cudaMallocFromPoolAsync((void **)&elsewhere, 4096, second, 0));
	CUDA(cudaMemPoolExportToShareableHandle(
		&unused, second, cudaMemHandleTypePosixFileDescriptor, 0));
	CUDA(cudaMemPoolExportPointer(&gift.elsewhere, elsewhere));
	close(unused);
	CUDA(cudaDeviceSynchronize());

	send_gift(socket, &gift, fds);
	close(fds[0]);
	close(fds[1]);
	hear(socket);
	expect(named, 100);
	expect(pooled, 200);
	add<<<(COUNT + 255) / 256, 256>>>(named, 1);
	add<<<(COUNT + 255) / 256, 256>>>(pooled, 1);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	say(socket);
	hear(socket);
	expect(named, 101);
	unmapped((CUdeviceptr)named, granule);
	DRIVER(p_cuMemRelease(memory));
	CUDA(cudaFreeAsync(pooled, 0));
	CUDA(cudaFreeAsync(other, 0));
	CUDA(cudaFreeAsync(elsewhere, 0));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemPoolDestroy(pool));
	CUDA(cudaMemPoolDestroy(second));

	/* Memory that was not made for it is not shared. */
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	DRIVER(p_cuMemCreate(&memory, granule, &prop, 0));
	CHECK(p_cuMemExportToShareableHandle(&fds[0], memory,
		      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != CUDA_SUCCESS);
	DRIVER(p_cuMemRelease(memory));
}

int main(int argc, char **argv)
{
	const char *const command[] = {argv[0], "--child", NULL};
	posix_spawn_file_actions_t actions;
	int ends[2], status;
	pid_t pid;

	if (argc > 1)
		return child();
	CUDA(cudaFree(0));
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
	posix_spawn_file_actions_addclose(&actions, ends[0]);
	CHECK(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, (char **)command, environ) ==
		0);
	close(ends[1]);
	parent(ends[0]);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	return 0;
}
