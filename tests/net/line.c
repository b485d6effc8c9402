/* SPDX-License-Identifier: Apache-2.0
 *
 * line NAMESPACE-A NAMESPACE-B RATE DELAY-US LOSS DOUBLE LATE
 *
 * A long line between two network namespaces: a TUN device `line` in each, and packets carried
 * from one to the other at RATE bits a second after DELAY, with chances of LOSS, of being sent
 * DOUBLE and of coming LATE (by a quarter of DELAY, so behind others).  What does not fit into
 * 50 ms of the line is dropped, as routers do.  Kernels without netem have no other way.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define HELD 65536 /* packets on their way, each direction */
#define MTU_MOST 9216
#define QUEUE_NS 50000000ull
#define READS_A_TURN 256

struct packet {
	uint64_t due;
	uint32_t n;
	unsigned char *bytes;
};

struct way {
	int from, to;
	uint64_t free_at; /* when the line has sent all that it was given */
	uint32_t head, tail;
	struct packet held[HELD];
};

static double rate, loss, twice, late;
static uint64_t delay;
static uint32_t seed = 1;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool chance(double of)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed < of * 4294967296.0;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int tun_in(const char *name)
{
	struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
	char path[256];
	int space, fd;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	space = open(path, O_RDONLY | O_CLOEXEC);
	if (space < 0 || setns(space, CLONE_NEWNET))
		fail(path);
	close(space);
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	strcpy(request.ifr_name, "line");
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request))
		fail("/dev/net/tun");
	return fd;
}

/* In the order in which they are due. */
static void hold(struct way *way, const unsigned char *bytes, uint32_t n, uint64_t due)
{
	uint32_t at = way->tail;
	struct packet packet = {due, n, malloc(n)};

	if (!packet.bytes || way->tail - way->head == HELD) {
		free(packet.bytes);
		return;
	}
	memcpy(packet.bytes, bytes, n);
	for (way->tail++; at != way->head && way->held[(at - 1) % HELD].due > due; at--)
		way->held[at % HELD] = way->held[(at - 1) % HELD];
	way->held[at % HELD] = packet;
}

static void take(struct way *way)
{
	unsigned char bytes[MTU_MOST];

	for (int i = 0; i < READS_A_TURN; i++) {
		ssize_t n = read(way->from, bytes, sizeof(bytes));
		uint64_t t = now(), start;

		if (n <= 0)
			return;
		start = way->free_at > t ? way->free_at : t;
		if (start - t > QUEUE_NS)
			continue;
		way->free_at = start + (uint64_t)((double)n * 8e9 / rate);
		if (chance(loss))
			continue;
		hold(way, bytes, (uint32_t)n,
			way->free_at + delay + (chance(late) ? delay / 4 : 0));
		if (chance(twice))
			hold(way, bytes, (uint32_t)n, way->free_at + delay + delay / 8);
	}
}

static void give(struct way *way)
{
	uint64_t t = now();

	while (way->head != way->tail && way->held[way->head % HELD].due <= t) {
		struct packet *packet = &way->held[way->head++ % HELD];

		/* A reader that is slow loses it. */
		(void)!write(way->to, packet->bytes, packet->n);
		free(packet->bytes);
	}
}

static uint64_t next(const struct way *way)
{
	return way->head == way->tail ? UINT64_MAX : way->held[way->head % HELD].due;
}

int main(int argc, char **argv)
{
	static struct way there, back;
	int a, b;

	if (argc != 8) {
		fprintf(stderr,
			"line NAMESPACE-A NAMESPACE-B RATE DELAY-US LOSS DOUBLE LATE\n");
		return 2;
	}
	rate = strtod(argv[3], NULL);
	delay = strtoull(argv[4], NULL, 10) * 1000;
	loss = strtod(argv[5], NULL);
	twice = strtod(argv[6], NULL);
	late = strtod(argv[7], NULL);
	a = tun_in(argv[1]);
	b = tun_in(argv[2]);
	prctl(PR_SET_TIMERSLACK, 1000);
	prctl(PR_SET_PDEATHSIG, 9);
	there.from = back.to = a;
	there.to = back.from = b;
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct pollfd fds[2] = {
			{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
		uint64_t t = now(),
			 due = next(&there) < next(&back) ? next(&there) : next(&back),
			 ns = due <= t		     ? 0
			      : due - t < 1000000000 ? due - t
						     : 999999999;

		ppoll(fds, 2, &(struct timespec){.tv_nsec = (long)ns}, NULL);
		take(&there);
		take(&back);
		give(&there);
		give(&back);
	}
}
