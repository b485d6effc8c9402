/* SPDX-License-Identifier: Apache-2.0
 *
 * The yardstick for copies: one TCP stream on loopback, sent and received in chunks of the size
 * that vcuda uses, sender and receiver on the cores given.  Prints GB/s (median of several).
 *
 *     rawtcp [SEND_CORES RECEIVE_CORES [MEGABYTES]]     cores: 0-7 or 0,2
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/wait.h"
#include "protocol/wire/frame.h"

static void pin(const char *text)
{
	cpu_set_t set;
	char *end;

	CPU_ZERO(&set);
	while (*text) {
		long from = strtol(text, &end, 10), to = from;

		if (*end == '-')
			to = strtol(end + 1, &end, 10);
		for (long c = from; c <= to && c < CPU_SETSIZE; c++)
			CPU_SET((size_t)c, &set);
		text = *end == ',' ? end + 1 : end;
		if (end == text && *end)
			break;
	}
	if (sched_setaffinity(0, sizeof(set), &set))
		perror("rawtcp: sched_setaffinity");
}

static int all(int fd, char *bytes, size_t n, int sending)
{
	while (n) {
		size_t want = n < FRAME_CHUNK ? n : FRAME_CHUNK;
		ssize_t got = sending ? send(fd, bytes, want, 0) : recv(fd, bytes, want, 0);

		if (got <= 0)
			return -1;
		bytes += got;
		n -= (size_t)got;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	enum { ROUNDS = 11 };
	size_t n = (size_t)(argc > 3 ? atoi(argv[3]) : 64) << 20;
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, buffer = 4 << 20;
	char *bytes = malloc(n), ok;
	double rates[ROUNDS];
	pid_t child;

	if (!bytes || listener < 0 || bind(listener, (void *)&a, sizeof(a)) ||
		listen(listener, 1) || getsockname(listener, (void *)&a, &length)) {
		perror("rawtcp");
		return 1;
	}
	memset(bytes, 7, n);
	child = fork();
	if (!child) {
		int fd = accept(listener, NULL, NULL);

		if (argc > 2)
			pin(argv[2]);
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
		for (int i = 0; i < ROUNDS; i++)
			if (all(fd, bytes, n, 0) || send(fd, "k", 1, 0) != 1)
				_exit(1);
		_exit(0);
	}
	if (argc > 1)
		pin(argv[1]);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	if (connect(fd, (void *)&a, sizeof(a))) {
		perror("rawtcp: connect");
		return 1;
	}
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = wait_now();

		if (all(fd, bytes, n, 1) || recv(fd, &ok, 1, 0) != 1)
			return 1;
		rates[i] = (double)n / (double)(wait_now() - start);
	}
	waitpid(child, NULL, 0);
	qsort(rates, ROUNDS, sizeof(rates[0]), compare);
	printf("{\"raw_tcp_gbps\": %.3f}\n", rates[ROUNDS / 2]);
	return 0;
}
