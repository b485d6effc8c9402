// SPDX-License-Identifier: Apache-2.0
/* Pinned memory of a pool that processes share: a child gets the pool's descriptor over a Unix socket, and what one
 * side's host or kernels wrote the other side's host and kernels read. */
#include "driver.h"

#include <fcntl.h>
#include <sys/socket.h>

enum { COUNT = 300000, SMALL = 16 };

struct gift {
	cudaMemPoolPtrExportData large, small, elsewhere; /* the last is another pool's */
};

__global__ void add(int *data, int n, int by)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		data[i] += by;
}

static void adds(int *data, int n, int by)
{
	add<<<32, 128>>>(data, n, by);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
}

static void expect(const int *data, int n, int by)
{
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, data[i], i + by);
}

static void send_gift(int socket, const struct gift *gift, int fd)
{
	union {
		cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {};
	iovec data = {(void *)gift, sizeof(*gift)};
	msghdr message = {};
	cmsghdr *header;

	message.msg_iov = &data;
	message.msg_iovlen = 1;
	message.msg_control = control.bytes;
	message.msg_controllen = sizeof(control.bytes);
	header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	CHECK(sendmsg(socket, &message, 0) == (ssize_t)sizeof(*gift));
}

static int receive_gift(int socket, struct gift *gift)
{
	char control[CMSG_SPACE(sizeof(int))];
	iovec data = {gift, sizeof(*gift)};
	msghdr message = {};
	int fd;

	message.msg_iov = &data;
	message.msg_iovlen = 1;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	CHECK(recvmsg(socket, &message, 0) == (ssize_t)sizeof(*gift));
	CHECK(CMSG_FIRSTHDR(&message) != NULL);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
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

/* Kernels of this process, too, may use what the pool has. */
static void access_given(cudaMemPool_t pool)
{
	cudaMemAccessDesc access = {};

	access.location.type = cudaMemLocationTypeDevice;
	access.flags = cudaMemAccessFlagsProtReadWrite;
	CUDA(cudaMemPoolSetAccess(pool, &access, 1));
}

static int child()
{
	cudaMemPool_t pool;
	struct gift gift;
	int *large, *small, fd, *device;
	void *none;

	CUDA(cudaFree(0));
	CUDA(cudaMalloc(&device, COUNT * sizeof(int)));
	fd = receive_gift(0, &gift);
	CUDA(cudaMemPoolImportFromShareableHandle(&pool, (void *)(uintptr_t)fd,
		cudaMemHandleTypePosixFileDescriptor, 0));
	close(fd);
	access_given(pool);
	CUDA_IS(cudaErrorInvalidValue, cudaMemPoolImportPointer(&none, pool, &gift.elsewhere));
	CUDA_IS(cudaErrorInvalidValue, cudaMallocFromPoolAsync(&none, 64, pool, 0));
	(void)cudaGetLastError();
	CUDA(cudaMemPoolImportPointer((void **)&large, pool, &gift.large));
	CUDA(cudaMemPoolImportPointer((void **)&small, pool, &gift.small));
	expect(large, COUNT, 0);
	expect(small, SMALL, 0);
	adds(large, COUNT, 100);
	adds(small, SMALL, 7);
	expect(large, COUNT, 100);
	say(0);
	hear(0);
	/* Its host wrote to the one, a kernel of its to the other. */
	expect(large, COUNT, 5);
	adds(small, SMALL, 1);
	expect(small, SMALL, 7 + 30 + 1);
	CUDA(cudaMemcpy(device, large, COUNT * sizeof(int), cudaMemcpyDefault));
	adds(device, COUNT, 1);
	CUDA(cudaMemcpy(large, device, COUNT * sizeof(int), cudaMemcpyDefault));
	CUDA(cudaFreeAsync(large, 0));
	CUDA(cudaFreeAsync(small, 0));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemPoolDestroy(pool));
	say(0);
	return 0;
}

static cudaMemPool_t pool_made()
{
	cudaMemPoolProps props = {};
	cudaMemPool_t pool = NULL;
	cudaError_t error;

	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
	props.location.type = cudaMemLocationTypeHostNuma;
	error = cudaMemPoolCreate(&pool, &props);
	if (error == cudaErrorNotSupported)
		SKIP("no pools of pinned memory that processes share");
	CUDA(error);
	access_given(pool);
	return pool;
}

static int *filled(cudaMemPool_t pool, int n)
{
	void *p;

	CUDA(cudaMallocFromPoolAsync(&p, n * sizeof(int), pool, 0));
	CUDA(cudaStreamSynchronize(0));
	for (int i = 0; i < n; i++)
		((int *)p)[i] = i;
	return (int *)p;
}

static void parent(int socket, cudaMemPool_t pool, cudaMemPool_t second)
{
	int *large, *small, *elsewhere, *again, fd, unused;
	struct gift gift = {};

	for (int i = 0; i < 20; i++) { /* the file has holes, and fills them */
		void *p;

		CUDA(cudaMallocFromPoolAsync(&p, (i + 1) * 100000, pool, 0));
		CUDA(cudaFreeAsync(p, 0));
		if (i % 2)
			CUDA(cudaStreamSynchronize(0));
	}
	large = filled(pool, COUNT);
	small = filled(pool, SMALL);
	elsewhere = filled(second, SMALL);
	CUDA_IS(cudaErrorInvalidValue, cudaMemPoolExportPointer(&gift.large, large));
	(void)cudaGetLastError();
	CUDA(cudaMemPoolExportToShareableHandle(
		&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
	CUDA(cudaMemPoolExportToShareableHandle(
		&unused, second, cudaMemHandleTypePosixFileDescriptor, 0));
	close(unused);
	CUDA(cudaMemPoolExportPointer(&gift.large, large));
	CUDA(cudaMemPoolExportPointer(&gift.small, small));
	CUDA(cudaMemPoolExportPointer(&gift.elsewhere, elsewhere));
	send_gift(socket, &gift, fd);
	close(fd);
	hear(socket);
	expect(large, COUNT, 100);
	expect(small, SMALL, 7);
	for (int i = 0; i < COUNT; i++)
		large[i] = i + 5;
	adds(small, SMALL, 30);
	say(socket);
	hear(socket);
	expect(large, COUNT, 6);
	expect(small, SMALL, 38);
	CUDA(cudaFreeAsync(large, 0));
	CUDA(cudaFreeAsync(small, 0));
	again = filled(pool, COUNT);
	adds(again, COUNT, 2);
	expect(again, COUNT, 2);
	CUDA(cudaMemPoolDestroy(pool));
	expect(again, COUNT, 2);
	CUDA(cudaFree(again));
	CUDA(cudaFreeAsync(elsewhere, 0));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemPoolDestroy(second));
}

static int descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* What a pool has of the system goes with it. */
static void closes(void)
{
	const int before = descriptors();

	for (int i = 0; i < 40; i++) {
		cudaMemPool_t pool = pool_made();
		int fd, *p = filled(pool, SMALL);

		CUDA(cudaMemPoolExportToShareableHandle(
			&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
		close(fd);
		CUDA(cudaMemPoolDestroy(pool));
		CUDA(cudaFreeAsync(p, 0));
		CUDA(cudaDeviceSynchronize());
	}
	CHECK(descriptors() < before + 20);
}

int main(int argc, char **argv)
{
	const char *const command[] = {argv[0], "--child", NULL};
	posix_spawn_file_actions_t actions;
	cudaMemPool_t pool, second;
	int ends[2], status;
	pid_t pid;

	if (argc > 1)
		return child();
	CUDA(cudaFree(0));
	pool = pool_made();
	second = pool_made();
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
	posix_spawn_file_actions_addclose(&actions, ends[0]);
	CHECK(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, (char **)command, environ) ==
		0);
	close(ends[1]);
	parent(ends[0], pool, second);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	closes();
	return 0;
}
