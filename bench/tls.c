/* SPDX-License-Identifier: Apache-2.0
 *
 * What a link costs with and without TLS: one connection over 127.0.0.1, a thread at each end,
 * pieces as copies send them, then small frames.  GB/s of a core is bytes by that thread's own
 * processor time, the kernel's share included, so it does not depend on how many cores there
 * are.
 *
 *     tls [GIBIBYTES]     default 4
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "transport/socket_link.h"
#include "transport/tls/link.h"

struct end {
	struct link *link;
	size_t piece;
	uint64_t bytes;
	double cpu, wall;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *send_all(void *argument)
{
	struct end *end = argument;
	char *bytes = calloc(1, end->piece);
	double cpu = seconds(CLOCK_THREAD_CPUTIME_ID);

	for (uint64_t left = end->bytes; left;) {
		size_t n = left < end->piece ? (size_t)left : end->piece;
		struct iovec iov = {bytes, n};

		left -= n;
		while (iov.iov_len) {
			ssize_t sent = link_send(end->link, &iov, 1);
			struct pollfd fds[2];

			if (sent > 0) {
				iov.iov_base = (char *)iov.iov_base + sent;
				iov.iov_len -= (size_t)sent;
			} else if (sent == -EAGAIN) {
				link_fds(end->link, fds, 1);
				poll(fds + 1, 1, 1000);
			} else {
				die("send");
			}
		}
	}
	end->cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
	free(bytes);
	return NULL;
}

static void *receive_all(void *argument)
{
	struct end *end = argument;
	char *bytes = malloc(end->piece);
	double cpu = seconds(CLOCK_THREAD_CPUTIME_ID);

	for (uint64_t left = end->bytes; left;) {
		size_t n = left < end->piece ? (size_t)left : end->piece;

		if (link_receive_all(end->link, bytes, n))
			die("receive");
		left -= n;
	}
	end->cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
	free(bytes);
	return NULL;
}

static void connect_pair(int fds[2])
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || fds[0] < 0 || bind(listener, (void *)&address, size) ||
		listen(listener, 1) || getsockname(listener, (void *)&address, &size) ||
		connect(fds[0], (void *)&address, size) ||
		(fds[1] = accept(listener, NULL, NULL)) < 0)
		die("connect");
	close(listener);
}

static void measure(const char *name, bool tls, size_t piece, uint64_t bytes)
{
	struct tls_state client = {.send.secret = {1}, .receive.secret = {2}};
	struct tls_state agent = {.send = client.receive, .receive = client.send};
	struct end ends[2] = {
		{.piece = piece, .bytes = bytes}, {.piece = piece, .bytes = bytes}};
	pthread_t threads[2];
	double start, wall;
	int fds[2];

	connect_pair(fds);
	if (tls ? tls_link_open(&fds[0], &client, 1, TRANSPORT_CLIENT, &ends[0].link, NULL) ||
				tls_link_open(&fds[1], &agent, 1, TRANSPORT_AGENT,
					&ends[1].link, NULL)
		: stream_link(&fds[0], 1, TRANSPORT_CLIENT, &ends[0].link, NULL) ||
				stream_link(&fds[1], 1, TRANSPORT_AGENT, &ends[1].link, NULL))
		die("link");
	start = seconds(CLOCK_MONOTONIC);
	if (pthread_create(&threads[0], NULL, send_all, &ends[0]) ||
		pthread_create(&threads[1], NULL, receive_all, &ends[1]))
		die("threads");
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	wall = seconds(CLOCK_MONOTONIC) - start;
	printf("%-8s %7zu bytes a piece: %5.2f GB/s; GB/s of a core: sending %5.2f, receiving "
	       "%5.2f\n",
		name, piece, (double)bytes / wall / 1e9, (double)bytes / ends[0].cpu / 1e9,
		(double)bytes / ends[1].cpu / 1e9);
	for (int i = 0; i < 2; i++)
		link_close(ends[i].link);
}

int main(int argc, char **argv)
{
	uint64_t bytes = (uint64_t)(argc > 1 ? atof(argv[1]) : 4) << 30;

	for (int i = 0; i < 3; i++) {
		measure("native", false, 512 << 10, bytes);
		measure("tls", true, 512 << 10, bytes);
	}
	measure("native", false, 256, bytes / 64);
	measure("tls", true, 256, bytes / 64);
	return 0;
}
