/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker without a GPU, for tests of supervisor and front: it speaks handoff.h and echoes
 * what comes over the commands.  The driver's path says what it does before that: /toy/ready,
 * /toy/fail, /toy/crash, /toy/slow (ready after 300 ms).  Single bytes of the commands are
 * orders:
 *
 *     L  ask for 64 MiB more; the grant comes back as text    E  say ENDED and exit
 *     K  die of SIGABRT                                       S  hear nothing any more
 *     W  STATS of the wrong size                              T  say STATS
 *     H  share memory; the status comes back as text           Q  its quota of handles as text
 *     M  tell what GPU time it used, more often than its socket holds answers; then read them
 * until one gives it TIMESHARE_QUANTUM_NS more than it told last: that number as text
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "gpu-agent/agent.h"
#include "gpu-agent/front/ledger/timeshare.h"
#include "gpu-agent/tally.h"

#define TOY_MEMORY (64ull << 30)
#define TOY_CONTEXT (16ull << 20)
#define TOY_TIMES 2000

static int handoff_socket;
static uint64_t quotas[QUOTAS]; /* of SESSION */
static struct tally *tally;
static uint32_t slot;

static void say(struct handoff *h)
{
	h->version = HANDOFF_VERSION;
	if (send(handoff_socket, h, sizeof(*h), MSG_NOSIGNAL) < 0)
		_exit(1);
}

static void get_ready(const struct agent_config *config)
{
	struct handoff h = {.what = HANDOFF_READY, .device_count = 1, .driver_version = 13000};

	/* What it must never see: not even who has a token. */
	for (size_t i = 0; i < sizeof(config->tokens); i++)
		if (((const char *)&config->tokens)[i] ||
			((const char *)&config->http_tokens)[i])
			abort();
	if (!strcmp(config->driver_path, "/toy/crash"))
		abort();
	if (!strcmp(config->driver_path, "/toy/slow"))
		usleep(300000);
	if (!strcmp(config->driver_path, "/toy/fail")) {
		h.what = HANDOFF_FAILED;
		snprintf(h.text, sizeof(h.text), "the toy has no driver");
		say(&h);
		exit(1);
	}
	snprintf(h.text, sizeof(h.text), "toy driver");
	snprintf(h.devices[0].name, sizeof(h.devices[0].name), "Toy GPU");
	memset(h.devices[0].uuid, 7, sizeof(h.devices[0].uuid));
	h.devices[0].total_memory = TOY_MEMORY;
	h.devices[0].context_memory = TOY_CONTEXT;
	h.devices[0].free_memory = TOY_MEMORY;
	say(&h);
}

static void take_tally(const struct handoff *h, int fd)
{
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	slot = h->device;
	close(fd);
	if (tally == MAP_FAILED || slot >= TALLY_SLOTS)
		exit(1);
}

/* Waits for SESSION; exits on STOP and on the front's end. */
static void wait_session(int fds[2])
{
	char space[CMSG_SPACE(2 * sizeof(int))] __attribute__((aligned(8)));
	struct handoff h;
	struct iovec iov = {.iov_base = &h, .iov_len = sizeof(h)};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space)};
	ssize_t n = recvmsg(handoff_socket, &m, MSG_CMSG_CLOEXEC);

	if (n == (ssize_t)sizeof(h) && h.what == HANDOFF_TALLY) {
		take_tally(&h, *(int *)(void *)CMSG_DATA(CMSG_FIRSTHDR(&m)));
		wait_session(fds);
		return;
	}
	if (n == (ssize_t)sizeof(h) && h.what == HANDOFF_COMING) {
		wait_session(fds);
		return;
	}
	if (n != (ssize_t)sizeof(h) || h.what != HANDOFF_SESSION)
		exit(0);
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&m)), 2 * sizeof(int));
	memcpy(quotas, h.quotas, sizeof(quotas));
}

/* The next datagram; the front's end is ours. */
static void hear(struct handoff *h)
{
	if (recv(handoff_socket, h, sizeof(*h), 0) != (ssize_t)sizeof(*h))
		exit(0);
}

/* Another front; what was asked of the one before it is asked again. */
static void adopted(uint64_t number, const struct handoff *asked, int fd)
{
	struct handoff h = {.what = HANDOFF_AGAIN, .bytes = number};

	say(&h);
	if (asked && descriptors_send(handoff_socket, asked, sizeof(*asked), &fd, fd >= 0, 0))
		exit(1);
}

static void hear_answer(struct handoff *h, const struct handoff *asked, int fd)
{
	for (;;) {
		hear(h);
		if (h->what == HANDOFF_ADOPTED)
			adopted(h->bytes, asked, fd);
		else if (h->what != HANDOFF_OTHERS)
			return;
	}
}

static void ask_lease(int out)
{
	struct handoff h, ask = {.what = HANDOFF_LEASE, .bytes = 64u << 20};
	char text[32];
	int n;

	say(&ask);
	hear_answer(&h, &ask, -1);
	if (h.what != HANDOFF_GRANT)
		exit(1);
	n = snprintf(text, sizeof(text), "%llu\n", (unsigned long long)h.bytes);
	if (send(out, text, (size_t)n, MSG_NOSIGNAL) < 0)
		exit(0);
}

static void ask_drained(int out)
{
	struct handoff h, ask = {.what = HANDOFF_DRAIN, .device = 5};

	say(&ask);
	hear_answer(&h, &ask, -1);
	if (h.what != HANDOFF_DRAINED || h.device != 5 || send(out, "5\n", 2, MSG_NOSIGNAL) < 0)
		exit(1);
}

/* Its session is over, and it has memory to give back, which takes a while. */
static _Noreturn void end_slowly(int out)
{
	struct handoff h = {.what = HANDOFF_ENDED, .text = "asked to, slowly"};
	char text[32];
	int n = snprintf(text, sizeof(text), "%d\n", getpid());

	say(&h);
	if (send(out, text, (size_t)n, MSG_NOSIGNAL) > 0)
		nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
	exit(0);
}

static void share(int out)
{
	struct handoff h,
		ask = {.version = HANDOFF_VERSION, .what = HANDOFF_SHARE, .bytes = 2u << 20};
	int fd = memfd_create("toy", MFD_CLOEXEC), n;
	char text[32];

	if (fd < 0 || descriptors_send(handoff_socket, &ask, sizeof(ask), &fd, 1, 0))
		exit(1);
	hear_answer(&h, &ask, fd);
	close(fd);
	n = snprintf(text, sizeof(text), "%u\n", h.status);
	if (h.what != HANDOFF_SHARED || send(out, text, (size_t)n, MSG_NOSIGNAL) < 0)
		exit(0);
}

static void tell_quota(int out)
{
	char text[32];
	int n = snprintf(
		text, sizeof(text), "%llu\n", (unsigned long long)quotas[QUOTA_HANDLES]);

	if (send(out, text, (size_t)n, MSG_NOSIGNAL) < 0)
		exit(0);
}

static void tell_time(int out)
{
	struct handoff h, time = {.what = HANDOFF_TIME, .status = 1, .device_count = 1};
	char text[32];
	int n;

	while (time.devices[0].gpu_ns < TOY_TIMES) {
		time.devices[0].gpu_ns++;
		say(&time);
	}
	do
		hear_answer(&h, NULL, -1);
	while (h.what != HANDOFF_MORE ||
		h.devices[0].gpu_ns < TOY_TIMES + TIMESHARE_QUANTUM_NS);
	n = snprintf(text, sizeof(text), "%llu\n",
		(unsigned long long)(h.devices[0].gpu_ns - TOY_TIMES));
	if (send(out, text, (size_t)n, MSG_NOSIGNAL) < 0)
		exit(0);
}

static void obey(char order, int out)
{
	struct handoff h = {.what = HANDOFF_STATS};

	switch (order) {
	case 'L': ask_lease(out); break;
	case 'I': ask_drained(out); break;
	case 'D': end_slowly(out);
	case 'H': share(out); break;
	case 'Q': tell_quota(out); break;
	case 'M': tell_time(out); break;
	case 'E':
		h.what = HANDOFF_ENDED;
		snprintf(h.text, sizeof(h.text), "asked to");
		say(&h);
		exit(0);
	case 'K': abort();
	case 'S':
		for (;;)
			pause();
	case 'W': send(handoff_socket, &h, 8, MSG_NOSIGNAL); break;
	case 'T':
		h.device_count = 1;
		h.launches = 5;
		h.frames_received = 9;
		h.devices[0].used = 1u << 20;
		h.quotas[QUOTA_HANDLES] = 7;
		h.quotas_refused[QUOTA_HANDLES] = 2;
		if (tally)
			atomic_store(&tally->used[QUOTA_HANDLES][slot], 7);
		say(&h);
		break;
	default:
		if (send(out, &order, 1, MSG_NOSIGNAL) < 0)
			exit(0);
	}
}

int worker_main(const struct agent_config *config, int handoff_fd)
{
	int fds[2] = {-1, -1};

	handoff_socket = handoff_fd;
	get_ready(config);
	wait_session(fds);
	for (;;) {
		struct pollfd p[2] = {{.fd = fds[0], .events = POLLIN},
			{.fd = handoff_socket, .events = POLLIN}};
		char orders[256];
		ssize_t n;

		struct handoff h;

		if (poll(p, 2, -1) < 0)
			return 0;
		if (p[1].revents) {
			hear(&h);
			if (h.what == HANDOFF_ADOPTED)
				adopted(h.bytes, NULL, -1);
			else if (h.what != HANDOFF_OTHERS && h.what != HANDOFF_STRIPE)
				return 0;
			continue;
		}
		n = recv(fds[0], orders, sizeof(orders), MSG_DONTWAIT);
		if (n <= 0)
			return 0;
		for (ssize_t i = 0; i < n; i++)
			obey(orders[i], fds[1]);
	}
}
