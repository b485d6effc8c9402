// SPDX-License-Identifier: Apache-2.0
/* Managed memory and the rest of a process: system calls read and write it, threads touch one page
 * at once, the program has a handler for SIGSEGV of its own, forks, and host functions use it. */
#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

__global__ void add(int *data, int n, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] += value;
}

static int *numbers(int n, int from)
{
	int *data;

	CUDA(cudaMallocManaged(&data, n * sizeof(int)));
	for (int i = 0; i < n; i++)
		data[i] = from + i;
	add<<<(n + 255) / 256, 256>>>(data, n, 1000);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	return data;
}

/* The pages are the device's when the call comes to them, on either side. */
static void file_calls()
{
	const int n = 100000, bytes = n * sizeof(int);
	int *from = numbers(n, 0), *to = numbers(n, 7);
	FILE *file = tmpfile();
	int fd = fileno(file);

	CHECK_EQ(write(fd, from, bytes), bytes);
	CHECK_EQ(pread(fd, to, bytes, 0), bytes);
	add<<<(n + 255) / 256, 256>>>(to, n, 1);
	CUDA(cudaDeviceSynchronize());
	struct iovec two[2] = {{to, 4000}, {to + 1000, (size_t)bytes - 4000}};
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK_EQ(writev(fd, two, 2), bytes);
	add<<<(n + 255) / 256, 256>>>(from, n, 5);
	CUDA(cudaDeviceSynchronize());
	rewind(file);
	CHECK_EQ(fread(from, sizeof(int), n, file), (size_t)n);
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, from[i], 1001 + i);
	fclose(file);
	CUDA(cudaFree(from));
	CUDA(cudaFree(to));
}

/* Names and what is told of files, in pages that are the device's. */
static void name_calls()
{
	struct pages {
		char name[4096], told[4096], text[4096];
	} *p = (struct pages *)numbers(sizeof(struct pages) / sizeof(int), 0);
	struct stat *told = (struct stat *)p->told;
	const char name[] = "/proc/self/exe";
	int fd;

	for (int call = 0; call < 6; call++) {
		CUDA(cudaMemset(p, 0, sizeof(*p)));
		CUDA(cudaMemcpy(p->name, name, sizeof(name), cudaMemcpyHostToDevice));
		add<<<1, 256>>>((int *)p, 1, 0);
		CUDA(cudaDeviceSynchronize());
		switch (call) {
		case 0:
			fd = open(p->name, O_RDONLY);
			CHECK(fd >= 0);
			CHECK_EQ(fstat(fd, told), 0);
			CHECK(S_ISREG(told->st_mode));
			close(fd);
			break;
		case 1:
			CHECK_EQ(stat(p->name, told), 0);
			CHECK(S_ISREG(told->st_mode));
			break;
		case 2:
			CHECK_EQ(lstat(p->name, told), 0);
			CHECK(S_ISLNK(told->st_mode));
			break;
		case 3: CHECK(getcwd(p->text, sizeof(p->text)) == p->text); break;
		case 4: CHECK(readlink(p->name, p->text, sizeof(p->text)) > 0); break;
		case 5:
			fd = openat(AT_FDCWD, p->name, O_RDONLY);
			CHECK(fd >= 0);
			close(fd);
			break;
		}
	}
	CUDA(cudaFree(p));
}

static void socket_calls()
{
	const int n = 2000, bytes = n * sizeof(int);
	int *from = numbers(n, 0), *to = numbers(n, 7), pair[2];
	struct iovec out = {from, (size_t)bytes}, in = {to, (size_t)bytes};
	struct msghdr sent = {}, received = {};

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	sent.msg_iov = &out;
	received.msg_iov = &in;
	sent.msg_iovlen = received.msg_iovlen = 1;
	CHECK_EQ(sendmsg(pair[0], &sent, 0), bytes);
	CHECK_EQ(recvmsg(pair[1], &received, MSG_WAITALL), bytes);
	CHECK_EQ(send(pair[1], to, 4, 0), 4);
	CHECK_EQ(recv(pair[0], from + 1, 4, MSG_WAITALL), 4);
	CHECK_EQ(from[1], 1000);
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, to[i], 1000 + i);
	close(pair[0]);
	close(pair[1]);
	CUDA(cudaFree(from));
	CUDA(cudaFree(to));
}

static pthread_barrier_t start;

struct share {
	int *data, n, first;
	long sum;
};

static void *sum_up(void *argument)
{
	share *s = (share *)argument;

	pthread_barrier_wait(&start);
	for (int i = 0; i < s->n; i++)
		s->sum += s->data[i];
	for (int i = s->first; i < s->n; i += 8)
		s->data[i]++;
	return NULL;
}

/* Eight threads read all of it at once, and each writes to every eighth number. */
static void threads()
{
	const int n = 30000;
	int *data = numbers(n, 0);
	share shares[8];
	pthread_t ids[8];

	pthread_barrier_init(&start, NULL, 8);
	for (int t = 0; t < 8; t++) {
		shares[t] = {data, n / 8 * 8, t, 0};
		pthread_create(&ids[t], NULL, sum_up, &shares[t]);
	}
	for (int t = 0; t < 8; t++)
		pthread_join(ids[t], NULL);
	add<<<(n + 255) / 256, 256>>>(data, n, 1);
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < n / 8 * 8; i++)
		CHECK_EQ_AT(i, data[i], 1002 + i);
	CUDA(cudaFree(data));
}

static sigjmp_buf back;
static volatile int caught;
static void *volatile caught_at;

static void on_fault(int, siginfo_t *info, void *)
{
	caught++;
	caught_at = info->si_addr;
	siglongjmp(back, 1);
}

/* A wild pointer is the program's handler's, with the address; managed memory is not. */
static void wild(int *data, int want)
{
	char *volatile nowhere = (char *)0x1230;

	caught = 0;
	if (!sigsetjmp(back, 1))
		*nowhere = 1;
	CHECK_EQ(caught, want);
	if (want)
		CHECK(caught_at == nowhere);
	add<<<1, 1>>>(data, 1, 1);
	CUDA(cudaDeviceSynchronize());
	data[1] = data[0];
	CHECK_EQ(caught, want);
}

static void handler()
{
	struct sigaction mine = {}, was = {};
	int *data;

	mine.sa_sigaction = on_fault;
	mine.sa_flags = SA_SIGINFO;
	CHECK_EQ(sigaction(SIGSEGV, NULL, &was), 0);
	CHECK(was.sa_sigaction == on_fault); /* set before there was managed memory */
	data = numbers(10, 0);
	wild(data, 1);
	CHECK_EQ(sigaction(SIGSEGV, &mine, &was), 0);
	CHECK(was.sa_sigaction == on_fault);
	wild(data, 1);
	wild(data, 1);
	CUDA(cudaFree(data));
}

/* The parent's goes on as it was; the child does without. */
static void forked()
{
	int *data = numbers(5000, 0);
	pid_t child = fork();

	if (!child)
		_exit(5);
	CHECK_EQ(wait_exit(child), 5);
	for (int i = 0; i < 5000; i++)
		CHECK_EQ_AT(i, data[i], 1000 + i);
	add<<<20, 256>>>(data, 5000, 1);
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(data[4999], 5999 + 1);
	CUDA(cudaFree(data));
}

static void CUDART_CB doubled(void *argument)
{
	int *data = (int *)argument;

	for (int i = 0; i < 5000; i++)
		data[i] *= 2;
}

/* A host function sees what its stream did, and what comes behind it sees what it did. */
static void host_functions()
{
	int *data = numbers(5000, 0);
	cudaStream_t stream;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int round = 0; round < 3; round++) {
		add<<<20, 256, 0, stream>>>(data, 5000, 1);
		CUDA(cudaLaunchHostFunc(stream, doubled, data));
	}
	add<<<20, 256, 0, stream>>>(data, 5000, 3);
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < 5000; i++)
		CHECK_EQ_AT(i, data[i], 8 * (1000 + i) + 14 + 3);
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(data));
}

int main()
{
	struct sigaction mine = {};

	mine.sa_sigaction = on_fault;
	mine.sa_flags = SA_SIGINFO;
	sigaction(SIGSEGV, &mine, NULL);
	if (!device_attribute(cudaDevAttrManagedMemory))
		SKIP("no managed memory");
	handler();
	file_calls();
	name_calls();
	socket_calls();
	threads();
	forked();
	host_functions();
	return 0;
}
