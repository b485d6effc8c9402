/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses, listening, the loop transport, and links that break by a plan.  (native's
 * handshake is met by hand-made agents in tests/peer/agent_violations.py.)
 */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/wait.h"
#include "protocol/wire/frame.h"
#include "transport/fault.h"
#include "transport/loopback.h"
#include "transport/socket_link.h"
#include "transport/tcp.h"
#include "transport/transport.h"

static void test_hosts(void **state)
{
	const struct {
		const char *text, *host;
		uint16_t port;
	} good[] = {
		{"gpu7", "gpu7", 9998},
		{"gpu7:1", "gpu7", 1},
		{"10.0.0.1:65535", "10.0.0.1", 65535},
		{"[::1]:7", "::1", 7},
		{"[fe80::2]", "fe80::2", 9998},
		{"fe80::2", "fe80::2", 9998},
	};
	const char *const bad[] = {"", ":1", "h:", "h:0", "h:65536", "h:-1", "h:1x", "h: 1",
		"[::1", "[]:1", "[::1]x", "a/b:1", "h:+1", "h:99999999999999999999"};
	struct error error;
	char host[256];
	uint16_t port;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(tcp_parse_host(good[i].text, 9998, host, &port, &error), 0);
		assert_string_equal(host, good[i].host);
		assert_int_equal(port, good[i].port);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(tcp_parse_host(bad[i], 9998, host, &port, &error), -EINVAL);
		assert_non_null(strstr(error.text, bad[i]));
	}
}

static void test_names(void **state)
{
	struct error error;

	(void)state;
	assert_string_equal(transport_find("host:1", &error)->name, "native");
	assert_string_equal(transport_find("native://host", &error)->name, "native");
	assert_string_equal(transport_find("loop://x", &error)->name, "loop");
	assert_string_equal(transport_find("fault+native://x", &error)->name, "fault");
	assert_null(transport_find("rdma://x", &error));
	assert_non_null(strstr(error.text, "known: native"));
}

static void test_busy_port(void **state)
{
	struct error error;
	uint16_t bound, again;
	int fd = tcp_listen("127.0.0.1", 0, &bound, &error);

	(void)state;
	assert_true(fd >= 0);
	assert_true(bound);
	assert_int_equal(tcp_listen("127.0.0.1", bound, &again, &error), -EADDRINUSE);
	assert_non_null(strstr(error.text, "another program listens there"));
	close(fd);
	fd = tcp_listen("", 0, &bound, &error);
	assert_true(fd >= 0);
	close(fd);
}

/* A port whose queue of connections is full swallows more of them, as a network policy does. */
static void test_silent_address(void **state)
{
	struct session_hello hello = {.role = SESSION_PROBE};
	struct session_welcome welcome;
	struct sockaddr_in address = {.sin_family = AF_INET};
	struct link *link = NULL;
	struct error error;
	uint16_t bound;
	int fd = tcp_listen("127.0.0.1", 0, &bound, &error), queued[4];
	uint64_t start;
	char name[32];

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(listen(fd, 0), 0);
	address.sin_port = htons(bound);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 4; i++) {
		queued[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(queued[i], (struct sockaddr *)&address, sizeof(address));
	}
	snprintf(name, sizeof(name), "127.0.0.1:%u", bound);

	start = wait_now();
	assert_int_equal(
		transport_dial(name, &hello, &welcome, start + 300000000, &link, &error),
		-ETIMEDOUT);
	assert_true(wait_now() >= start + 300000000);
	assert_non_null(strstr(error.text, "no answer"));

	/* However much time there is, here more than the test has, others of a list get some of
	 * it: it comes back. */
	assert_int_equal(transport_dial(name, &hello, &welcome, wait_now() + 3600000000000,
				 &link, &error),
		-ETIMEDOUT);
	assert_null(link);
	for (int i = 0; i < 4; i++)
		close(queued[i]);
	close(fd);
}

static void test_plans(void **state)
{
	struct fault_plan plan;
	struct error error;

	(void)state;
	assert_int_equal(fault_parse("delay=200us&cut-after=3&truncate=40", &plan, &error), 0);
	assert_int_equal(plan.delay, 200000);
	assert_int_equal(plan.cut_after, 3);
	assert_int_equal(plan.truncate, 40);
	assert_int_equal(plan.stall_after, FAULT_NONE);
	assert_int_equal(fault_parse("delay=3", &plan, &error), -EINVAL);
	assert_int_equal(fault_parse("cut-after", &plan, &error), -EINVAL);
	assert_int_equal(fault_parse("cut-after=3ms", &plan, &error), -EINVAL);
	assert_int_equal(fault_parse("rate=125000000", &plan, &error), 0);
	assert_int_equal(plan.rate, 125000000);
	assert_int_equal(fault_parse("rate=0", &plan, &error), -EINVAL);
	assert_non_null(strstr(error.text, "'rate=0'"));
	assert_int_equal(fault_parse("explode=1", &plan, &error), -EINVAL);
	assert_non_null(strstr(error.text, "'explode=1'"));
}

/* --- through loop:// --- */

static int agent_fds[2];

static int front(void *argument, const struct session_hello *hello,
	struct session_welcome *welcome, const int fds[2])
{
	(void)hello;
	if (argument) {
		welcome->status = 800;
		strcpy(welcome->text, argument);
		return 0;
	}
	memcpy(agent_fds, fds, sizeof(agent_fds));
	return 0;
}

static struct link *dial(const char *address, struct link **agent)
{
	struct session_hello hello = {.version = SESSION_VERSION};
	struct session_welcome welcome;
	struct link *link = NULL;
	struct error error;

	assert_int_equal(loopback_serve("t", front, NULL), 0);
	if (transport_dial(address, &hello, &welcome, wait_now() + 1000000000, &link, &error))
		fail_msg("%s", error.text);
	loopback_forget("t");
	assert_int_equal(stream_link(agent_fds, 2, TRANSPORT_AGENT, agent, &error), 0);
	return link;
}

static struct iovec frame_of(unsigned char *buffer, uint32_t n)
{
	struct frame_header header = {.length = n, .magic = FRAME_MAGIC};

	memcpy(buffer, &header, sizeof(header));
	memset(buffer + sizeof(header), 'x', n);
	return (struct iovec){buffer, sizeof(header) + n};
}

static ssize_t send_frame(struct link *link, uint32_t n)
{
	unsigned char buffer[4096];
	struct iovec iov = frame_of(buffer, n);

	return link_send(link, &iov, 1);
}

static size_t drain(struct link *link)
{
	unsigned char buffer[4096];
	size_t total = 0;
	ssize_t n;

	while ((n = link_receive(link, buffer, sizeof(buffer))) > 0)
		total += (size_t)n;
	return total;
}

static void test_loop(void **state)
{
	struct session_hello hello = {.role = SESSION_PROBE};
	struct session_welcome welcome;
	struct link *agent, *link = dial("loop://t", &agent);
	struct error error;
	struct pollfd fds[2];

	(void)state;
	assert_int_equal(send_frame(link, 10), 42);
	link_fds(agent, fds, 0);
	assert_int_equal(poll(fds, 1, 1000), 1);
	assert_int_equal(drain(agent), 42);
	assert_int_equal(send_frame(agent, 5), 37);
	assert_int_equal(drain(link), 37);
	link_close(agent);
	assert_int_equal(link_receive(link, &hello, 1), 0);
	assert_int_equal(send_frame(link, 1), -EPIPE);
	link_close(link);

	assert_int_equal(transport_dial("loop://nobody", &hello, &welcome, 0, &link, &error),
		-ECONNREFUSED);
	assert_int_equal(loopback_serve("no", front, (void *)"go away"), 0);
	assert_int_equal(
		transport_dial("loop://no", &hello, &welcome, 0, &link, &error), -ECONNREFUSED);
	assert_int_equal(welcome.status, 800);
	assert_non_null(strstr(error.text, "go away"));
	assert_int_equal(loopback_serve("no", front, NULL), -EEXIST);
	loopback_forget("no");
}

static void test_cut(void **state)
{
	struct link *agent, *link = dial("fault+loop://t?cut-after=3&truncate=4", &agent);
	char byte;

	(void)state;
	assert_int_equal(send_frame(link, 10), 42);
	assert_int_equal(send_frame(link, 0), 32);
	assert_int_equal(send_frame(link, 10), 38);
	assert_int_equal(send_frame(link, 10), -ECONNRESET);
	assert_int_equal(link_receive(link, &byte, 1), -ECONNRESET);
	assert_int_equal(link_wake_at(link), 0);
	assert_int_equal(drain(agent), 42 + 32 + 38);
	link_close(link);
	link_close(agent);
}

static void test_cut_in_bytes(void **state)
{
	struct link *agent, *link = dial("fault+loop://t?cut-after-bytes=50", &agent);

	(void)state;
	assert_int_equal(send_frame(link, 10), 42);
	assert_int_equal(send_frame(link, 10), 8);
	assert_int_equal(send_frame(link, 10), -ECONNRESET);
	assert_int_equal(drain(agent), 50);
	link_close(link);
	link_close(agent);
}

static void test_stall(void **state)
{
	struct link *agent, *link = dial("fault+loop://t?stall-after=1", &agent);
	struct pollfd fds[2];
	char byte;

	(void)state;
	assert_int_equal(send_frame(link, 10), 42);
	assert_int_equal(send_frame(link, 10), -EAGAIN);
	assert_int_equal(send_frame(agent, 1), 33);
	assert_int_equal(link_receive(link, &byte, 1), -EAGAIN);
	link_fds(link, fds, 1);
	assert_int_equal(fds[0].fd, -1);
	assert_int_equal(drain(agent), 42);
	link_close(link);
	link_close(agent);
}

static void test_delay(void **state)
{
	struct link *agent, *link = dial("fault+loop://t?delay=20ms", &agent);
	uint64_t start = wait_now();
	char byte;

	(void)state;
	assert_int_equal(send_frame(agent, 10), 42);
	assert_int_equal(link_receive(link, &byte, 1), -EAGAIN);
	assert_true(link_wake_at(link) >= start + 20000000);
	assert_true(link_wake_at(link) <= wait_now() + 20000000);
	while (wait_now() < link_wake_at(link))
		usleep(1000);
	assert_int_equal(drain(link), 42);
	assert_true(wait_now() - start >= 20000000);
	link_close(agent);
	assert_int_equal(link_receive(link, &byte, 1), 0);
	link_close(link);
}

/* Never more than RATE allows for the time since START, and what a wire may make up for. */
static void assert_within(uint64_t rate, uint64_t start, size_t bytes)
{
	uint64_t ns = wait_now() - start + 30000000;

	assert_true((double)bytes <= (double)ns * (double)rate / 1e9 + 1);
}

/* Sends with ONE and OTHER, in turn where both are had, N bytes to AGENT. */
static void send_slowly(struct link *one, struct link *other, struct link *agent, size_t n)
{
	unsigned char bytes[20000];
	uint64_t start = wait_now();
	size_t sent = 0;
	bool full = false;

	memset(bytes, 0, sizeof(bytes));
	while (sent < n) {
		struct iovec iov = {bytes, n - sent < sizeof(bytes) ? n - sent : sizeof(bytes)};
		ssize_t ret = link_send(one, &iov, 1);
		struct pollfd fds[2];

		assert_true(ret > 0 || ret == -EAGAIN);
		sent += ret > 0 ? (size_t)ret : 0;
		assert_within(1000000, start, sent);
		drain(agent);
		if (ret < 0) {
			full = true;
			link_fds(one, fds, 1);
			assert_int_equal(fds[1].events, 0);
			assert_true(link_wake_at(one) < wait_now() + 1000000000);
			while (wait_now() < link_wake_at(one))
				usleep(1000);
			link_fds(one, fds, 0); /* who has nothing to send is not woken */
			assert_int_equal(link_wake_at(one), UINT64_MAX);
		}
		if (other) {
			struct link *swap = one;

			one = other;
			other = swap;
		}
	}
	assert_true(full);
}

static void test_rate(void **state)
{
	const char *address = "fault+loop://t?rate=1000000";
	struct link *agent, *second_agent, *link = dial(address, &agent);
	struct link *second = dial(address, &second_agent);
	uint64_t start;
	size_t got = 0;

	(void)state;
	send_slowly(link, NULL, agent, 100000);
	send_slowly(link, second, agent, 100000);

	start = wait_now();
	for (size_t sent = 0; got < 100000;) {
		unsigned char bytes[4096] = {0};
		struct iovec iov = {bytes, sizeof(bytes)};
		ssize_t n = sent < 100000 ? link_send(agent, &iov, 1) : 0;

		sent += n > 0 ? (size_t)n : 0;
		n = link_receive(link, bytes, sizeof(bytes));
		assert_true(n > 0 || n == -EAGAIN);
		got += n > 0 ? (size_t)n : 0;
		assert_within(1000000, start, got);
	}
	link_close(second);
	link_close(second_agent);
	link_close(link);
	link_close(agent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_busy_port),
		cmocka_unit_test(test_silent_address),
		cmocka_unit_test(test_plans),
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_cut_in_bytes),
		cmocka_unit_test(test_stall),
		cmocka_unit_test(test_delay),
		cmocka_unit_test(test_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
