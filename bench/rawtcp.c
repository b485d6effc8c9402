/* SPDX-License-Identifier: Apache-2.0
 *
 * The yardstick for copies: TCP on loopback, sent and received in chunks of the size that vcuda
 * uses, sender and receiver on the cores given, a thread at each end of each stream.  A copy is
 * over when each receiver has said that it has its share.
 *
 *     rawtcp [SEND RECEIVE [MEGABYTES [STREAMS]]]   GB/s of one size, median of several
 *     rawtcp --curve SEND RECEIVE STREAMS MOST      GB/s of 4 KiB … MOST bytes
 *     rawtcp --roundtrip SEND RECEIVE               µs of 32 bytes there and back
 *
 * SEND and RECEIVE are cores: 0-7 or 0,2.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/wait.h"
#include "protocol/wire/frame.h"

enum { STREAMS = 16, SAMPLES = 4096 };
#define LEAST_SHARE (128u * 1024) /* bytes: less is not cut for another stream */
#define POINT_NS 60000000ull	  /* at one size */

struct stream {
	int fd;
	pthread_t thread;
	char *bytes;
	size_t share;		  /* of this copy; 0: none */
	_Atomic uint32_t started; /* copies */
	_Atomic uint32_t ended;
};
static struct stream streams[STREAMS];

static _Noreturn void fail(const char *what)
{
	perror(what);
	_exit(1);
}

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

static void all(int fd, void *buffer, size_t n, int sending)
{
	char *bytes = buffer;

	while (n) {
		size_t want = n < FRAME_CHUNK ? n : FRAME_CHUNK;
		ssize_t got = sending ? send(fd, bytes, want, 0) : recv(fd, bytes, want, 0);

		if (got <= 0)
			fail("rawtcp: the connection");
		bytes += got;
		n -= (size_t)got;
	}
}

/* As the links of vcuda are (transport/socket_link.c). */
static void tune(int fd)
{
	int one = 1, buffer = 4 << 20;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)!setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
	(void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer));
}

/* Until *word is not VALUE (or, with UNTIL, until it is). */
static void spin(const _Atomic uint32_t *word, uint32_t value, bool until)
{
	for (unsigned n = 0;
		(atomic_load_explicit(word, memory_order_acquire) == value) != until; n++) {
		wait_relax();
		if (n > 10000)
			sched_yield();
	}
}

static void *receiver(void *argument)
{
	struct stream *s = argument;
	uint64_t n;

	for (;;) {
		ssize_t got = recv(s->fd, &n, sizeof(n), MSG_WAITALL);

		if (got != sizeof(n))
			return NULL;
		all(s->fd, s->bytes, n, 0);
		if (send(s->fd, "k", 1, MSG_NOSIGNAL) != 1)
			return NULL;
	}
}

static void *sender(void *argument)
{
	struct stream *s = argument;
	uint32_t seen = 0;
	char ok;

	for (;; seen++) {
		uint64_t n;

		spin(&s->started, seen, false);
		n = s->share;
		all(s->fd, &n, sizeof(n), 1);
		all(s->fd, s->bytes, n, 1);
		all(s->fd, &ok, 1, 0);
		atomic_store_explicit(&s->ended, seen + 1, memory_order_release);
	}
	return NULL;
}

static void copy(char *bytes, size_t n, unsigned most)
{
	unsigned used = (unsigned)(n / LEAST_SHARE);

	used = !used ? 1 : used > most ? most : used;
	for (unsigned i = 0; i < used; i++) {
		struct stream *s = &streams[i];

		s->share = n / used + (i < n % used);
		s->bytes = bytes;
		bytes += s->share;
		atomic_fetch_add_explicit(&s->started, 1, memory_order_release);
	}
	for (unsigned i = 0; i < used; i++)
		spin(&streams[i].ended,
			atomic_load_explicit(&streams[i].started, memory_order_relaxed), true);
}

/* The sizes of a curve: 4 KiB, 16 KiB … 64 MiB, 512 MiB, 1 GiB; as in line.cu. */
static size_t size_behind(size_t size)
{
	return size < 64u << 20 ? size * 4 : size == 64u << 20 ? size * 8 : size * 2;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double rate(char *bytes, size_t n, unsigned most)
{
	static double rates[SAMPLES];
	uint64_t begin = wait_now();
	unsigned count = 0;

	copy(bytes, n, most);
	while (count < SAMPLES && (count < 3 || wait_now() - begin < POINT_NS)) {
		uint64_t start = wait_now();

		copy(bytes, n, most);
		rates[count++] = (double)n / (double)(wait_now() - start);
	}
	qsort(rates, count, sizeof(rates[0]), compare);
	return rates[count / 2];
}

/* COUNT connections to a process on the cores RECEIVE, which does SERVE with each; then we are
 * on the cores SEND. */
static void connect_all(const char *send_cores, const char *receive_cores, unsigned count,
	size_t n, void *(*serve)(void *))
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	if (listener < 0 || bind(listener, (void *)&a, sizeof(a)) ||
		listen(listener, STREAMS) || getsockname(listener, (void *)&a, &length))
		fail("rawtcp: listen");
	if (!fork()) {
		pin(receive_cores);
		for (unsigned i = 0; i < count; i++) {
			streams[i].fd = accept(listener, NULL, NULL);
			streams[i].bytes = malloc(n);
			if (streams[i].fd < 0 || !streams[i].bytes)
				fail("rawtcp: accept");
			memset(streams[i].bytes, 1, n);
			tune(streams[i].fd);
			if (pthread_create(&streams[i].thread, NULL, serve, &streams[i]))
				fail("rawtcp: thread");
		}
		for (unsigned i = 0; i < count; i++)
			pthread_join(streams[i].thread, NULL);
		_exit(0);
	}
	pin(send_cores);
	for (unsigned i = 0; i < count; i++) {
		streams[i].fd = socket(AF_INET, SOCK_STREAM, 0);
		tune(streams[i].fd);
		if (connect(streams[i].fd, (void *)&a, sizeof(a)))
			fail("rawtcp: connect");
	}
}

static void *echo(void *argument)
{
	struct stream *s = argument;
	bool spins = s == &streams[1];
	char bytes[32];

	for (;;) {
		ssize_t got = recv(s->fd, bytes, sizeof(bytes), spins ? MSG_DONTWAIT : 0);

		if (got > 0)
			all(s->fd, bytes, (size_t)got, 1);
		else if (!got || !spins)
			return NULL;
	}
}

static double roundtrip(struct stream *s, int flags)
{
	enum { COUNT = 4000 };
	static double took[COUNT];
	char bytes[32] = "";

	for (int i = 0; i < COUNT; i++) {
		uint64_t start = wait_now();

		all(s->fd, bytes, sizeof(bytes), 1);
		while (recv(s->fd, bytes, sizeof(bytes), flags) <= 0)
			;
		took[i] = (double)(wait_now() - start) / 1000;
	}
	qsort(took, COUNT, sizeof(took[0]), compare);
	return took[COUNT / 2];
}

static void roundtrips(char **argv)
{
	connect_all(argv[2], argv[3], 2, 1, echo);
	printf("{\"roundtrip_us\": %.2f, ", roundtrip(&streams[0], 0));
	printf("\"spinning_roundtrip_us\": %.2f}\n", roundtrip(&streams[1], MSG_DONTWAIT));
}

int main(int argc, char **argv)
{
	bool curve = argc == 6 && !strcmp(argv[1], "--curve");
	const char *everywhere = "0-1023";
	size_t n = (size_t)(argc > 3 ? atoi(argv[3]) : 64) << 20;
	unsigned count = argc > 4 ? (unsigned)atoi(argv[4]) : 1;
	char *bytes;

	if (argc == 4 && !strcmp(argv[1], "--roundtrip")) {
		roundtrips(argv);
		return 0;
	}
	if (curve)
		n = strtoul(argv[5], NULL, 10);
	bytes = malloc(n);
	if (!bytes || !count || count > STREAMS)
		return 2;
	memset(bytes, 7, n);
	connect_all(argc > 1 ? argv[1 + curve] : everywhere,
		argc > 2 ? argv[2 + curve] : everywhere, count, n, receiver);
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&streams[i].thread, NULL, sender, &streams[i]))
			return 1;
	if (!curve) {
		printf("{\"raw_tcp_gbps\": %.3f}\n", rate(bytes, n, count));
		return 0;
	}
	for (size_t size = 4096; size <= n; size = size_behind(size))
		printf("%s\"%zu\": %.3f", size > 4096 ? ", " : "{", size,
			rate(bytes, size, count));
	printf("}\n");
	return 0;
}
