/* SPDX-License-Identifier: Apache-2.0
 *
 * Two ends of a light link in one process, over UDP on 127.0.0.1: bytes arrive whole and in
 * order in both directions at once and on each stripe, and an end of either side is seen.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "common/wait.h"
#include "transport/light/flow.h"
#include "transport/light/light.h"
#include "transport/light/pump.h"

#define PATIENCE_NS 30000000000ull

/* The errno of this thread's next sendmsg, once; 0: it is the kernel's. */
static __thread int refused;

/* In libc's place, or the sanitizer's, which sees by it what a socket orders. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t (*next)(int, const struct msghdr *, int) =
		(ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");

	if (refused) {
		errno = refused;
		refused = 0;
		return -1;
	}
	return next(fd, message, flags);
}

struct ends {
	struct link *client, *agent;
	struct sockaddr_in at[2]; /* of the client's socket, of the agent's */
	int tcp[2][2];
};

static int udp_at(struct sockaddr_in *at)
{
	socklen_t size = sizeof(*at);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*at = (struct sockaddr_in){.sin_family = AF_INET};
	at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)at, sizeof(*at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)at, &size), 0);
	return fd;
}

static void ends_open(struct ends *e)
{
	struct pump_wish wish[2];
	struct error error;
	int udp[2];

	memset(wish, 0, sizeof(wish));
	for (int i = 0; i < 2; i++) {
		udp[i] = udp_at(&e->at[i]);
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, e->tcp[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			connect(udp[i], (struct sockaddr *)&e->at[1 - i], sizeof(e->at[i])), 0);
		wish[i].end = i ? TRANSPORT_AGENT : TRANSPORT_CLIENT;
		wish[i].tcp[0] = e->tcp[0][i];
		wish[i].tcp[1] = e->tcp[1][i];
		wish[i].udp = udp[i];
		memset(wish[i].key.bytes, 7, sizeof(wish[i].key.bytes));
	}
	if (pump_open(&wish[1], &e->agent, &error))
		fail_msg("%s", error.text);
	if (pump_open(&wish[0], &e->client, &error))
		fail_msg("%s", error.text);
}

static void ends_close(struct ends *e)
{
	link_close(e->client);
	link_close(e->agent);
}

/* --- a direction: numbers that are counted up --------------------------------------------- */

struct way {
	struct link *from, *to;
	uint64_t bytes, bad;
	pthread_t sender, receiver;
	_Atomic bool stop;
};

static void *send_main(void *argument)
{
	struct way *way = argument;
	uint64_t words[4096];

	for (uint64_t at = 0; at < way->bytes; at += sizeof(words)) {
		struct iovec iov = {words, sizeof(words)};

		for (size_t i = 0; i < sizeof(words) / 8; i++)
			words[i] = at / 8 + i;
		if (link_send_all(way->from, &iov, 1, &way->stop, NULL))
			break;
	}
	return NULL;
}

static void *receive_main(void *argument)
{
	struct way *way = argument;
	uint64_t words[4096];

	way->bad = UINT64_MAX;
	for (uint64_t at = 0; at < way->bytes; at += sizeof(words)) {
		if (link_receive_all(way->to, words, sizeof(words)))
			return NULL;
		for (size_t i = 0; i < sizeof(words) / 8; i++)
			if (words[i] != at / 8 + i)
				return NULL;
	}
	way->bad = 0;
	return NULL;
}

static void way_start(struct way *way, struct link *from, struct link *to, uint64_t bytes)
{
	*way = (struct way){.from = from, .to = to, .bytes = bytes};
	assert_int_equal(pthread_create(&way->sender, NULL, send_main, way), 0);
	assert_int_equal(pthread_create(&way->receiver, NULL, receive_main, way), 0);
}

static void way_right(struct way *way)
{
	pthread_join(way->receiver, NULL);
	way->stop = true;
	pthread_join(way->sender, NULL);
	assert_int_equal(way->bad, 0);
}

static uint64_t size_of(const char *name, uint64_t usual)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) << 20 : usual;
}

static void test_bytes_arrive_whole_both_ways(void **state)
{
	uint64_t bytes = size_of("LIGHT_MIB", 64 << 20), began;
	struct way there, back;
	struct ends e;

	(void)state;
	ends_open(&e);
	began = wait_now();
	way_start(&there, e.client, e.agent, bytes);
	way_right(&there);
	print_message(
		"%.0f MB/s to the agent\n", (double)bytes * 1e3 / (double)(wait_now() - began));
	way_start(&there, e.client, e.agent, bytes / 4);
	way_start(&back, e.agent, e.client, bytes / 4);
	way_right(&there);
	way_right(&back);
	ends_close(&e);
}

static void test_stripes_are_streams_of_their_own(void **state)
{
	struct link *there[SESSION_STRIPES + 1], *back[SESSION_STRIPES + 1];
	struct way ways[2 * SESSION_STRIPES + 2];
	struct link *again;
	struct error error;
	struct ends e;

	(void)state;
	ends_open(&e);
	there[0] = e.client;
	back[0] = e.agent;
	for (unsigned i = 1; i <= SESSION_STRIPES; i++) {
		assert_int_equal(light_stripe(light_number(e.client), i, &there[i], &error), 0);
		assert_int_equal(light_stripe(light_number(e.agent), i, &back[i], &error), 0);
	}
	assert_int_not_equal(light_stripe(light_number(e.agent), 99, &again, &error), 0);
	assert_int_equal(light_stripe(light_number(e.client), 1, &again, &error), 0);
	link_close(again); /* a second time: it leads nowhere */
	for (unsigned i = 0; i <= SESSION_STRIPES; i++) {
		if (i == 1)
			continue;
		way_start(&ways[2 * i], there[i], back[i], 4 << 20);
		way_start(&ways[2 * i + 1], back[i], there[i], 4 << 20);
	}
	for (unsigned i = 0; i <= SESSION_STRIPES; i++)
		if (i != 1) {
			way_right(&ways[2 * i]);
			way_right(&ways[2 * i + 1]);
		}
	for (unsigned i = 2; i <= SESSION_STRIPES; i++) {
		link_close(there[i]);
		link_close(back[i]);
	}
	link_close(there[1]);
	link_close(back[1]);
	ends_close(&e);
}

static bool ends_within(struct link *link, uint64_t ns)
{
	uint64_t until = wait_now() + ns;
	char byte;

	while (wait_now() < until) {
		struct pollfd fds[2];
		ssize_t got = link_receive(link, &byte, 1);

		if (got != -EAGAIN)
			return got <= 0;
		link_fds(link, fds, 0);
		poll(fds, 1, 100);
	}
	return false;
}

static void test_what_was_sent_last_arrives_before_the_end(void **state)
{
	char text[6] = "";
	struct iovec iov = {(void *)(uintptr_t)"last", 5};
	struct ends e;

	(void)state;
	ends_open(&e);
	assert_int_equal(link_send(e.agent, &iov, 1), 5);
	link_close(e.agent);
	assert_int_equal(link_receive_all(e.client, text, 5), 0);
	assert_string_equal(text, "last");
	assert_true(ends_within(e.client, 5000000000ull));
	link_close(e.client);
}

static void test_a_killed_peer_is_noticed(void **state)
{
	struct ends e;

	(void)state;
	ends_open(&e);
	/* What the kernel does for a process that is killed. */
	shutdown(e.tcp[1][1], SHUT_RDWR);
	assert_true(ends_within(e.client, 5000000000ull));
	ends_close(&e);
}

static void test_a_kernel_short_of_memory_loses_no_bytes(void **state)
{
	static const int short_of_memory[] = {ENOBUFS, ENOMEM};
	struct flow flow = {0};
	char text[8] = {0};
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(flow_open(&flow, pair[0]), 0);
	for (int i = 0; i < 2; i++) {
		assert_true(flow_take(&flow, (const unsigned char *)"bytes", 5));
		refused = short_of_memory[i];
		assert_int_equal(flow_drain(&flow), 0);
		assert_int_equal(flow_drain(&flow), 5);
		assert_int_equal(recv(pair[1], text, sizeof(text), MSG_DONTWAIT), 5);
		assert_string_equal(text, "bytes");
	}
	/* Who does not read any more gets nothing, and keeps nobody waiting. */
	close(pair[1]);
	assert_true(flow_take(&flow, (const unsigned char *)"bytes", 5));
	assert_int_equal(flow_drain(&flow), 5);
	flow_close(&flow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes_arrive_whole_both_ways),
		cmocka_unit_test(test_stripes_are_streams_of_their_own),
		cmocka_unit_test(test_what_was_sent_last_arrives_before_the_end),
		cmocka_unit_test(test_a_killed_peer_is_noticed),
		cmocka_unit_test(test_a_kernel_short_of_memory_loses_no_bytes),
	};

	alarm(120);
	return cmocka_run_group_tests_name("transport_light", tests, NULL, NULL);
}
