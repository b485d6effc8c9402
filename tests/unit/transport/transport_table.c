/* SPDX-License-Identifier: Apache-2.0
 *
 * What holds for every row of the table: the test is the agent's supervisor, front and worker
 * in one thread, and the sidecar in another, and knows of a transport no more than its address.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
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

#include "common/descriptors.h"
#include "common/unix_socket.h"
#include "common/wait.h"
#include "transport/dial.h"
#include "transport/socket_link.h"
#include "transport/transport.h"

#define PATIENCE_NS 10000000000ull
#define STRIPES 2

static char folder[32], path[48];

/* --- an agent ----------------------------------------------------------------------------- */

struct agent {
	struct transport_listening listening;
	pthread_t thread;
	unsigned wanted; /* connections of a link */
	unsigned count, stripes;
	int fds[TRANSPORT_FDS + STRIPES];
	struct transport_peer peer;
	const char *wrong; /* NULL: all went well */
};

static const char *hear(int fd, struct session_hello *hello)
{
	size_t got = 0;

	while (got < sizeof(*hello)) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n = stream_read(fd, (char *)hello + got, sizeof(*hello) - got);

		if (n == -EAGAIN && poll(&p, 1, 5000) == 1)
			continue;
		if (n <= 0)
			return "no HELLO";
		got += (size_t)n;
	}
	return NULL;
}

/* One connection of the listening descriptor AT. */
static const char *serve(struct agent *agent, unsigned at)
{
	const struct transport_listener *listener = &agent->listening.at[at];
	struct session_welcome welcome = {
		.magic = SESSION_MAGIC,
		.version = SESSION_VERSION,
		.features = SESSION_FEATURE_STRIPES,
		.secret = {1, 2, 3},
		.reply_port = agent->listening.taken.replies,
	};
	struct transport_peer peer;
	struct session_hello hello;
	int fd = transport_named(listener->transport)->accept(listener->fd, &peer);
	const char *wrong = fd < 0 ? "accept" : hear(fd, &hello);

	if (wrong)
		return wrong;
	if (hello.role > SESSION_STRIPE || !(listener->roles & TRANSPORT_ROLE(hello.role)))
		return "a role that is not served there";
	if (hello.role != SESSION_PROBE && hello.role != SESSION_COMMANDS &&
		hello.secret[1] != 2)
		return "not the secret";
	if (hello.role != SESSION_PROBE && (hello.role == SESSION_COMMANDS) != !agent->count)
		return "the first connection is for commands, and no other";
	if (agent->peer.text[0] && !transport_same(&peer, &agent->peer))
		return "one client is two peers";
	agent->peer = peer;
	if (hello.role == SESSION_STRIPE)
		welcome.stripe = (uint8_t)++agent->stripes;
	if (stream_write(fd, &welcome, sizeof(welcome)))
		return "WELCOME";
	if (hello.role == SESSION_PROBE)
		close(fd);
	else
		agent->fds[agent->count++] = fd;
	return NULL;
}

static void *agent_main(void *argument)
{
	struct agent *agent = argument;

	while (!agent->wrong && agent->count < agent->wanted + STRIPES) {
		struct pollfd p[TRANSPORT_LISTENERS];

		for (unsigned i = 0; i < agent->listening.count; i++)
			p[i] = (struct pollfd){
				.fd = agent->listening.at[i].fd, .events = POLLIN};
		if (poll(p, agent->listening.count, 5000) <= 0)
			agent->wrong = "nobody comes";
		for (unsigned i = 0; i < agent->listening.count && !agent->wrong; i++)
			if (p[i].revents)
				agent->wrong = serve(agent, i);
	}
	return NULL;
}

/* MORE: roles that it serves besides. */
static void agent_start(
	struct agent *agent, const char *address, unsigned connections, uint32_t more)
{
	struct error error;

	*agent = (struct agent){.wanted = connections};
	if (transport_listen(address, &agent->listening, &error))
		fail_msg("%s: %s", address, error.text);
	agent->listening.at[0].roles |= more;
	assert_int_equal(pthread_create(&agent->thread, NULL, agent_main, agent), 0);
}

static void agent_end(struct agent *agent)
{
	assert_int_equal(pthread_join(agent->thread, NULL), 0);
	if (agent->wrong)
		fail_msg("the agent: %s", agent->wrong);
}

/* --- every row ---------------------------------------------------------------------------- */

static void send_all(struct link *link, const char *text)
{
	struct iovec iov = {(char *)text, strlen(text)};

	assert_int_equal(link_send(link, &iov, 1), strlen(text));
}

static void receive_all(struct link *link, const char *text)
{
	char got[64] = "";

	assert_int_equal(link_receive_all(link, got, strlen(text)), 0);
	assert_string_equal(got, text);
}

/* Front to worker: what arrives at the other end of a pair is linked there. */
static struct link *handed_over(
	const struct transport *transport, const int *fds, unsigned count)
{
	int pair[2], got[TRANSPORT_FDS];
	struct link *link = NULL;
	struct error error;
	char message[8];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(transport->handoff(pair[0], "session", 8, fds, count), 0);
	for (unsigned i = 0; i < count; i++)
		close(fds[i]);
	assert_int_equal(
		descriptors_receive(pair[1], message, sizeof(message), got, TRANSPORT_FDS, 0),
		8);
	assert_string_equal(message, "session");
	assert_true(count == TRANSPORT_FDS || got[count] < 0);
	assert_int_equal(transport->link(got, count, TRANSPORT_AGENT, &link, &error), 0);
	close(pair[0]);
	close(pair[1]);
	return link;
}

/* One session with two stripes. */
static void session(const char *listen, const char *scheme)
{
	struct session_hello hello = {.features = SESSION_FEATURE_STRIPES};
	struct session_welcome welcome;
	struct link *link, *agents_link, *stripe, *agents_stripe;
	const struct transport *transport = transport_named(scheme);
	const struct transport_peer nobody = {0};
	struct error error;
	struct agent agent;
	char address[80];

	agent_start(&agent, listen, transport->connections, 0);
	if (agent.listening.taken.commands)
		snprintf(address, sizeof(address), "%s://127.0.0.1:%u", scheme,
			agent.listening.taken.commands);
	else
		snprintf(address, sizeof(address), "%s", listen);
	hello.role = SESSION_PROBE;
	assert_int_equal(transport_dial(address, &hello, &welcome, wait_now() + PATIENCE_NS,
				 &link, &error),
		0);
	assert_null(link);
	hello.role = 0;
	if (transport_dial(address, &hello, &welcome, wait_now() + PATIENCE_NS, &link, &error))
		fail_msg("%s: %s", address, error.text);
	assert_ptr_equal(link->place.transport, transport);
	memcpy(hello.secret, welcome.secret, sizeof(hello.secret));
	for (unsigned i = 0; i < STRIPES; i++) {
		unsigned number = 0;

		assert_int_equal(transport->open_stripe(&link->place, &hello,
					 wait_now() + PATIENCE_NS, &number, &stripe, &error),
			0);
		assert_int_equal(number, i + 1);
		if (i + 1 < STRIPES)
			link_close(stripe);
	}
	agent_end(&agent);
	assert_int_equal(agent.count, transport->connections + STRIPES);
	assert_true(agent.peer.text[0]);
	assert_false(transport_same(&agent.peer, &nobody));

	agents_link = handed_over(transport, agent.fds, transport->connections);
	send_all(link, "commands");
	receive_all(agents_link, "commands");
	send_all(agents_link, "replies");
	receive_all(link, "replies");
	agents_stripe = handed_over(transport, &agent.fds[agent.count - 1], 1);
	send_all(stripe, "a payload");
	receive_all(agents_stripe, "a payload");

	link_shut(stripe);
	assert_int_equal(link_receive_all(agents_stripe, address, 1), -ECONNRESET);
	link_close(stripe);
	link_close(agents_stripe);
	link_close(link);
	assert_int_equal(link_receive(agents_link, address, 1), 0);
	link_close(agents_link);
	close(agent.fds[agent.count - 2]);
	transport_unlisten(&agent.listening);
}

static void test_native(void **state)
{
	(void)state;
	session("127.0.0.1", "native");
	session("native://127.0.0.1", "native");
}

static void test_unix(void **state)
{
	(void)state;
	session(path, "unix");
	assert_int_equal(access(path + strlen("unix://"), F_OK), -1);
}

/* A transport that the table does not have: any number of connections a link. */
#define CONNECTIONS 5

static unsigned linked;

static int five_connect(struct dial *dial, enum session_role role)
{
	(void)role;
	dial->place.transport = dial->transport;
	return unix_connect(path + strlen("unix://"), SOCK_STREAM | SOCK_NONBLOCK, dial->error);
}

static int five_link(const int *fds, unsigned count, enum transport_end end, struct link **link,
	struct error *error)
{
	int outer[2] = {fds[0], fds[count - 1]};

	linked = count;
	for (unsigned i = 1; i + 1 < count; i++)
		close(fds[i]);
	return stream_link(outer, 2, end, link, error);
}

static void test_any_number_of_connections(void **state)
{
	const struct transport five = {.name = "five",
		.connections = CONNECTIONS,
		.link = five_link,
		.handoff = stream_handoff};
	struct error error = {0};
	struct dial dial = {
		.connect = five_connect, .transport = &five, .address = path, .error = &error};
	struct session_hello hello = {.features = SESSION_FEATURE_STRIPES};
	struct session_welcome welcome;
	struct link *link, *agents_link;
	struct agent agent;

	(void)state;
	/* Its further connections are REPLIES, which unix:// itself never asks for. */
	agent_start(&agent, path, CONNECTIONS - STRIPES, TRANSPORT_ROLE(SESSION_REPLIES));
	dial.deadline = wait_now() + PATIENCE_NS;
	if (dial_session(&dial, &hello, &welcome, &link))
		fail_msg("%s", error.text);
	agent_end(&agent);
	assert_int_equal(linked, CONNECTIONS);
	linked = 0;
	agents_link = handed_over(&five, agent.fds, CONNECTIONS);
	assert_int_equal(linked, CONNECTIONS);
	send_all(link, "commands");
	receive_all(agents_link, "commands");
	link_close(link);
	link_close(agents_link);
	transport_unlisten(&agent.listening);
}

/* --- addresses ---------------------------------------------------------------------------- */

static void test_rows(void **state)
{
	static const char *const names[] = {"native", "unix", "loop"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct transport *row = transport_named(names[i]);

		assert_non_null(row);
		assert_string_equal(row->name, names[i]);
		assert_in_range(row->connections, 1, TRANSPORT_FDS);
		assert_true(row->dial && row->link && row->describe);
		assert_true(!row->listen == !row->accept && !row->listen == !row->handoff);
		assert_in_range(strlen(row->name), 1, TRANSPORT_NAME - 1);
	}
	assert_null(transport_named("fault"));
	assert_null(transport_named(""));
}

static void test_descriptions(void **state)
{
	const struct {
		const char *address, *host;
		uint16_t port;
	} good[] = {
		{"gpu7", "gpu7", 9},
		{"native://[::1]:7", "::1", 7},
		{"unix:///run/a.sock", "127.0.0.1", 9},
		{"fault+unix:///run/a.sock?delay=1ms", "127.0.0.1", 9},
		{"fault+native://gpu7:1?delay=1ms", "gpu7", 1},
	};
	static const char *const bad[] = {"unix://", "unix://run/a", "unix:///a?mode=8",
		"unix:///a?mode=1777", "unix:///a?mod=7", "native://h:0", "rdma://x", "h:"};
	struct transport_description description;
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (transport_describe(good[i].address, 9, &description, &error))
			fail_msg("%s: %s", good[i].address, error.text);
		assert_string_equal(description.host, good[i].host);
		assert_int_equal(description.port, good[i].port);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (transport_describe(bad[i], 9, &description, &error) != -EINVAL)
			fail_msg("%s is taken for an address", bad[i]);
}

static void test_several_addresses(void **state)
{
	struct transport_listening listening = {0};
	char several[sizeof(path) + 40];
	struct error error;

	(void)state;
	snprintf(several, sizeof(several), " 127.0.0.1 , %s ", path);
	assert_int_equal(transport_listen(several, &listening, &error), 0);
	assert_int_equal(listening.count, 3);
	assert_string_equal(listening.at[2].transport, "unix");
	assert_true(listening.taken.commands && listening.taken.replies);
	transport_unlisten(&listening);

	/* All of them or none. */
	snprintf(several, sizeof(several), "%s, loop://x", path);
	assert_int_equal(transport_listen(several, &listening, &error), -EOPNOTSUPP);
	assert_int_equal(listening.count, 0);
	assert_int_equal(access(path + strlen("unix://"), F_OK), -1);
}

static void test_addresses_are_checked_without_listening(void **state)
{
	static const char *const bad[] = {"127.0.0.1:9998", "tcp://127.0.0.1",
		"unix://relative", "unix:///a/b?mode=rw", "127.0.0.1, loop://x", "a/b",
		"[::1]:9998", "[::1"};
	static const char *const good[] = {
		"", "127.0.0.1", "::", "[::1]", "gpu-3.example", "native://127.0.0.1"};
	struct transport_listening listening;
	char several[sizeof(path) + 40];
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (!transport_check_listen(bad[i], &error))
			fail_msg("%s is taken for an address to listen on", bad[i]);
		assert_true(transport_listen(bad[i], &listening, &error) < 0);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (transport_check_listen(good[i], &error))
			fail_msg("%s: %s", good[i], error.text);
	snprintf(several, sizeof(several), " 127.0.0.1 , %s ", path);
	assert_int_equal(transport_check_listen(several, &error), 0);
	assert_int_equal(access(path + strlen("unix://"), F_OK), -1);
}

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/table-XXXXXX");
	snprintf(path, sizeof(path), "unix://%s/s", mkdtemp(folder));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_descriptions),
		cmocka_unit_test(test_several_addresses),
		cmocka_unit_test(test_addresses_are_checked_without_listening),
		cmocka_unit_test(test_native),
		cmocka_unit_test(test_unix),
		cmocka_unit_test(test_any_number_of_connections),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
