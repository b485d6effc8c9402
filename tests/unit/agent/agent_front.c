/* SPDX-License-Identifier: Apache-2.0
 *
 * A live agent with the toy worker: who gets a session and who does not, what a hostile peer
 * can keep busy, and that whatever ends gives back what it had.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "protocol/wire/status.h"
#include "tests/agent/client.h"

#define MIB (1ull << 20)
#define CLOSED 9999

static struct agent agent;

static int start_plain(void **state)
{
	(void)state;
	agent_start(&agent, "/toy/ready", NULL);
	assert_true(agent.ready);
	return 0;
}

static int start_token(void **state)
{
	(void)state;
	agent_start(&agent, "/toy/ready",
		(const char *[]){
			"--set", "token=open sesame", "--set", "max_sessions_per_pod=2", NULL});
	return 0;
}

static int stop(void **state)
{
	(void)state;
	agent_stop(&agent);
	return 0;
}

static void session_reaches_its_worker(void **state)
{
	struct client a, b;

	(void)state;
	assert_true(client_open(&agent, &a, NULL, NULL));
	assert_true(client_open(&agent, &b, NULL, NULL));
	client_echo(&a, "hello");
	client_echo(&b, "world");
	assert_memory_not_equal(a.welcome.session, b.welcome.session, 16);
	assert_memory_not_equal(a.welcome.secret, b.welcome.secret, 16);
	client_close(&a);
	client_echo(&b, "still here");
	client_close(&b);
	assert_true(http_metric_becomes(&agent, "vcuda_agent_sessions{state=\"running\"}", 0));
}

/* The HELLO may come byte by byte; what follows it at once is the worker's. */
static void hello_in_pieces(void **state)
{
	struct session_hello hello;
	struct session_welcome welcome;
	int fd = client_connect("127.0.0.1", agent.recv);

	(void)state;
	client_hello(&hello, SESSION_PROBE);
	for (size_t i = 0; i < 20; i++) {
		client_say(fd, (char *)&hello + i, 1);
		usleep(2000);
	}
	client_say(fd, (char *)&hello + 20, sizeof(hello) - 20);
	assert_true(client_hear(fd, &welcome));
	assert_int_equal(welcome.status, 0);
	close(fd);
}

static void wrong_magic_is_closed(void **state)
{
	struct session_hello hello;

	(void)state;
	client_hello(&hello, SESSION_COMMANDS);
	hello.magic ^= 1;
	assert_int_equal(client_ask(agent.recv, &hello).status, CLOSED);
	memcpy(&hello, "GET / HTTP/1.1\r\n\r\n", 18);
	assert_int_equal(client_ask(agent.recv, &hello).status, CLOSED);
}

static void wrong_version_is_told_both(void **state)
{
	struct session_hello hello;
	struct session_welcome welcome;
	int fd = client_connect("127.0.0.1", agent.recv);
	char big[4096] = {0}, told[64];

	(void)state;
	snprintf(told, sizeof(told), "protocol 77, this agent %d", (int)SESSION_VERSION);
	client_hello(&hello, SESSION_COMMANDS);
	hello.version = 77;
	/* A later version's HELLO may be longer: the reason arrives all the same. */
	memcpy(big, &hello, sizeof(hello));
	client_say(fd, big, sizeof(big));
	assert_true(client_hear(fd, &welcome));
	assert_int_equal(welcome.status, 803);
	assert_non_null(strstr(welcome.text, told));
	close(fd);
}

static void role_must_fit_the_port(void **state)
{
	struct session_hello hello;
	struct session_welcome welcome;

	(void)state;
	client_hello(&hello, SESSION_COMMANDS);
	welcome = client_ask(agent.send, &hello);
	assert_int_equal(welcome.status, 1);
	assert_non_null(strstr(welcome.text, "role 1 is not served on this port"));
	client_hello(&hello, 9);
	assert_int_equal(client_ask(agent.recv, &hello).status, 1);
}

static void second_connection_needs_the_secret(void **state)
{
	struct session_hello hello;
	struct session_welcome welcome, mine;
	int fd = client_connect("127.0.0.1", agent.recv);

	(void)state;
	client_hello(&hello, SESSION_COMMANDS);
	client_say(fd, &hello, sizeof(hello));
	assert_true(client_hear(fd, &mine));
	assert_int_equal(mine.status, 0);
	hello.role = SESSION_REPLIES;
	memcpy(hello.session, mine.session, 16);
	memcpy(hello.secret, mine.secret, 16);
	hello.secret[15] ^= 1;
	welcome = client_ask(agent.send, &hello);
	assert_int_equal(welcome.status, 800);
	memset(hello.session, 0, 16); /* what a free place in the table looks like */
	memset(hello.secret, 0, 16);
	assert_int_equal(client_ask(agent.send, &hello).status, 800);
	/* The session still waits for the right one. */
	memcpy(hello.session, mine.session, 16);
	memcpy(hello.secret, mine.secret, 16);
	assert_int_equal(client_ask(agent.send, &hello).status, 0);
	/* And only once. */
	assert_int_equal(client_ask(agent.send, &hello).status, 800);
	close(fd);
}

/* A program ends while its stripes, or its second connection, are on their way: that is no
 * attempt on a secret, and no alarm. */
static void connection_that_comes_late_is_no_attempt(void **state)
{
	static const char secret[] = "vcuda_agent_handshakes_refused_total{reason=\"secret\"}";
	static const char late[] = "vcuda_agent_handshakes_refused_total{reason=\"late\"}";
	uint64_t before = http_metric(&agent, secret);
	struct session_hello hello;
	struct session_welcome welcome;
	struct client c;

	(void)state;
	client_hello(&hello, SESSION_COMMANDS);
	hello.features = SESSION_FEATURE_STRIPES;
	assert_true(client_open_as(&agent, &c, &hello));
	client_echo(&c, "short");
	client_close(&c);
	assert_true(http_metric_becomes(&agent, "vcuda_agent_sessions{state=\"running\"}", 0));
	hello.role = SESSION_STRIPE;
	memcpy(hello.session, c.welcome.session, 16);
	memcpy(hello.secret, c.welcome.secret, 16);
	welcome = client_ask(agent.recv, &hello);
	assert_int_equal(welcome.status, 800);
	assert_string_equal(welcome.text, "the session is over");
	assert_int_equal(http_metric(&agent, late), 1);
	/* The same for a client that went before its second connection. */
	client_hello(&hello, SESSION_COMMANDS);
	welcome = client_ask(agent.recv, &hello);
	assert_int_equal(welcome.status, 0);
	assert_true(http_metric_becomes(&agent, "vcuda_agent_sessions{state=\"joining\"}", 0));
	hello.role = SESSION_REPLIES;
	memcpy(hello.session, welcome.session, 16);
	memcpy(hello.secret, welcome.secret, 16);
	assert_int_equal(client_ask(agent.send, &hello).status, 800);
	assert_int_equal(http_metric(&agent, late), 2);
	assert_int_equal(http_metric(&agent, secret), before);
	hello.secret[3] ^= 1; /* and this is one */
	assert_int_equal(client_ask(agent.send, &hello).status, 800);
	assert_int_equal(http_metric(&agent, secret), before + 1);
}

static void client_that_goes_before_joining_leaves_nothing(void **state)
{
	struct session_hello hello;
	struct client c;

	(void)state;
	assert_true(http_metric_becomes(&agent, "vcuda_agent_workers{state=\"busy\"}", 0));
	assert_true(http_metric_becomes(&agent, LEASED, 0));
	client_hello(&hello, SESSION_COMMANDS);
	assert_int_equal(client_ask(agent.recv, &hello).status, 0);
	assert_true(http_metric_becomes(&agent, LEASED, 0));
	assert_true(http_metric_becomes(&agent, "vcuda_agent_sessions{state=\"joining\"}", 0));
	/* One worker is kept warm: that which was kept for it, or the other, started in its
	 * place. Clients that come and go leave no more of them, each with a context. */
	for (int i = 0; i < 5; i++)
		assert_int_equal(client_ask(agent.recv, &hello).status, 0);
	assert_true(http_metric_becomes(&agent, "vcuda_agent_sessions{state=\"joining\"}", 0));
	assert_true(http_metric_becomes(&agent, "vcuda_agent_workers{state=\"starting\"}", 0));
	assert_true(http_metric_becomes(&agent, "vcuda_agent_workers{state=\"ready\"}", 1));
	assert_true(client_open(&agent, &c, NULL, NULL));
	client_close(&c);
}

static void probe_starts_nothing(void **state)
{
	struct session_hello hello;
	struct session_welcome welcome;
	uint64_t starts;

	(void)state;
	/* The test before has a worker started in the place of the one it had. */
	assert_true(http_metric_becomes(&agent, "vcuda_agent_workers{state=\"busy\"}", 0));
	assert_true(http_metric_becomes(&agent, "vcuda_agent_workers{state=\"ready\"}", 1));
	starts = http_metric(&agent, "vcuda_agent_worker_starts_total");
	client_hello(&hello, SESSION_PROBE);
	welcome = client_ask(agent.recv, &hello);
	assert_int_equal(welcome.status, 0);
	assert_non_null(strstr(welcome.text, "ready: 1 GPU"));
	assert_int_equal(welcome.reply_port, agent.send);
	assert_int_equal(http_metric(&agent, "vcuda_agent_worker_starts_total"), starts);
	assert_int_equal(http_metric(&agent, "vcuda_agent_sessions{state=\"joining\"}"), 0);
}

/* A client that asked before another one began is told to ask again, if it wants to be. */
static void who_was_overtaken_is_told(void **state)
{
	struct session_hello hello;
	struct session_welcome welcome;
	struct client client;

	(void)state;
	client_hello(&hello, SESSION_PROBE);
	welcome = client_ask(agent.recv, &hello);
	assert_int_equal(welcome.sessions, 0);
	assert_true(client_open(&agent, &client, NULL, NULL));
	client_hello(&hello, SESSION_COMMANDS);
	hello.features |= SESSION_FEATURE_SEEN;
	memcpy(hello.seen, &welcome.sessions, sizeof(hello.seen));
	welcome = client_ask(agent.recv, &hello);
	assert_int_equal(welcome.status, STATUS_PENDING);
	assert_non_null(strstr(welcome.text, "another session has begun"));
	memcpy(hello.seen, &(uint32_t){1}, sizeof(hello.seen));
	assert_int_equal(client_ask(agent.recv, &hello).status, 0);
	client_close(&client);
	assert_true(http_metric_becomes(&agent, "vcuda_agent_sessions{state=\"running\"}", 0));
}

#define REFUSED(reason) "vcuda_agent_handshakes_refused_total{reason=\"" reason "\"}"

/* One address holds 16 half-open connections at most, the latest; another address is served
 * while they are held, and each of them goes when its time is over. */
static void half_open_flood(void **state)
{
	enum { FLOOD = 60, HELD = 16 };
	uint64_t timeouts = http_metric(&agent, REFUSED("timeout"));
	struct session_hello hello;
	struct session_welcome welcome;
	int fds[FLOOD], fd;

	(void)state;
	client_hello(&hello, SESSION_PROBE);
	for (int i = 0; i < FLOOD; i++) {
		fds[i] = client_connect("127.0.0.7", agent.recv);
		client_say(fds[i], &hello, 1);
	}
	/* The oldest had to go for the latest. */
	assert_true(http_metric_becomes(&agent, REFUSED("flood"), FLOOD - HELD));
	fd = client_connect("127.0.0.8", agent.recv);
	client_say(fd, &hello, sizeof(hello));
	assert_true(client_hear(fd, &welcome));
	assert_int_equal(welcome.status, 0);
	close(fd);
	for (int i = 0; i < FLOOD; i++) {
		assert_true(client_is_closed(fds[i]));
		close(fds[i]);
	}
	assert_true(http_metric_becomes(&agent, "vcuda_agent_handshakes_half_open", 0));
	assert_int_equal(http_metric(&agent, REFUSED("flood")), FLOOD - HELD);
	assert_int_equal(http_metric(&agent, REFUSED("timeout")), timeouts + HELD);
}

/* 400 half-open connections of 40 addresses, more than there are places: the oldest go, and who
 * says HELLO is served. */
static void half_open_connections_lock_nobody_out(void **state)
{
	static int fds[400];
	struct session_hello hello;
	char from[16];

	(void)state;
	client_hello(&hello, SESSION_PROBE);
	for (int i = 0; i < 400; i++) {
		snprintf(from, sizeof(from), "127.0.2.%d", 1 + i % 40);
		fds[i] = client_connect(from, agent.recv);
		client_say(fds[i], &hello, 1);
	}
	assert_true(http_metric_becomes(&agent, "vcuda_agent_handshakes_half_open", 256));
	for (int i = 0; i < 20; i++) {
		assert_int_equal(client_ask(agent.recv, &hello).status, 0);
	}
	for (int i = 0; i < 400; i++)
		close(fds[i]);
	assert_true(http_metric_becomes(&agent, "vcuda_agent_handshakes_half_open", 0));
}

static void lease_grows_and_comes_back(void **state)
{
	struct client a, b;
	char text[32] = "";

	(void)state;
	assert_true(http_metric_becomes(&agent, LEASED, 0));
	assert_true(client_open(&agent, &a, NULL, NULL));
	assert_int_equal(http_metric(&agent, LEASED), 256 * MIB);
	client_say(a.commands, "L", 1);
	assert_true(recv(a.replies, text, sizeof(text), 0) > 0);
	assert_int_equal(strtoull(text, NULL, 10), 512 * MIB);
	assert_true(client_open(&agent, &b, NULL, NULL));
	client_say(b.commands, "L", 1);
	assert_true(recv(b.replies, text, sizeof(text), 0) > 0);
	assert_int_equal(http_metric(&agent, LEASED), 1024 * MIB);
	client_close(&a);
	client_close(&b);
	assert_true(http_metric_becomes(&agent, LEASED, 0));
	assert_int_equal(http_metric(&agent, "vcuda_agent_ledger_bugs_total"), 0);
}

/* How much memory is free is asked when no program that has ended holds any. */
static void who_asks_waits_for_the_pods_programs_that_ended(void **state)
{
	struct client first, second;
	pid_t pid;

	(void)state;
	assert_true(client_open(&agent, &first, "x/one", NULL));
	assert_true(client_open(&agent, &second, "x/one", NULL));
	client_drained(&second);
	pid = client_end_slowly(&first);
	assert_true(pid > 0);
	/* The front hears of the end when it hears of anything after it. */
	client_drained(&second);
	assert_int_equal(kill(pid, 0), -1);
	client_close(&first);
	client_close(&second);
	assert_true(http_metric_becomes(&agent, LEASED, 0));
}

static void worker_that_dies_ends_one_session(void **state)
{
	struct client a, b;

	(void)state;
	assert_true(client_open(&agent, &a, NULL, NULL));
	assert_true(client_open(&agent, &b, NULL, NULL));
	client_say(a.commands, "K", 1);
	assert_true(client_ended(&a));
	client_echo(&b, "alive");
	assert_true(http_metric_becomes(&agent, LEASED, 256 * MIB));
	client_say(b.commands, "W", 1); /* a datagram of the wrong size: killed */
	assert_true(client_ended(&b));
	assert_true(http_metric_becomes(&agent, LEASED, 0));
	client_close(&a);
	client_close(&b);
	assert_true(client_open(&agent, &a, NULL, NULL));
	client_say(a.commands, "E", 1);
	assert_true(client_ended(&a));
	client_close(&a);
	assert_true(http_metric_becomes(&agent, LEASED, 0));
	assert_int_equal(http_metric(&agent, "vcuda_agent_worker_faults_total"), 1);
	/* The hostile client may see its socket close before the signal reaches it. */
	assert_true(
		http_metric(&agent, "vcuda_agent_worker_exits_total{reason=\"signal\"}") >= 1);
}

static void wrong_token_is_refused(void **state)
{
	struct client c;
	struct session_hello hello;

	(void)state;
	assert_false(client_open(&agent, &c, NULL, "open sesam"));
	assert_int_equal(c.welcome.status, 800);
	assert_non_null(strstr(c.welcome.text, "token"));
	assert_false(client_open(&agent, &c, NULL, "open sesame!"));
	assert_false(client_open(&agent, &c, NULL, NULL));
	client_hello(&hello, SESSION_PROBE);
	assert_int_equal(client_ask(agent.recv, &hello).status, 800);
	memset(hello.token, 'x', sizeof(hello.token)); /* without a NUL */
	assert_int_equal(client_ask(agent.recv, &hello).status, 800);
	assert_true(client_open(&agent, &c, NULL, "open sesame"));
	client_echo(&c, "in");
	client_close(&c);
	assert_int_equal(
		http_metric(&agent, "vcuda_agent_handshakes_refused_total{reason=\"token\"}"),
		5);
}

static void quota_of_a_pod(void **state)
{
	struct client a, b, c, other;

	(void)state;
	assert_true(http_metric_becomes(&agent, "vcuda_agent_sessions{state=\"running\"}", 0));
	assert_true(client_open(&agent, &a, "n/p", "open sesame"));
	assert_true(client_open(&agent, &b, "n/p", "open sesame"));
	assert_false(client_open(&agent, &c, "n/p", "open sesame"));
	assert_int_equal(c.welcome.status, 800);
	assert_non_null(strstr(c.welcome.text, "max_sessions_per_pod"));
	assert_true(client_open(&agent, &other, "n/q", "open sesame"));
	client_close(&a);
	client_close(&b);
	client_close(&other);
}

static void many_at_once(void **state)
{
	static struct client clients[64];
	int fds[64];
	struct session_hello hello;

	(void)state;
	client_hello(&hello, SESSION_COMMANDS);
	for (int i = 0; i < 64; i++) {
		fds[i] = client_connect("127.0.0.1", agent.recv);
		client_say(fds[i], &hello, sizeof(hello));
	}
	for (int i = 0; i < 64; i++) {
		struct session_hello second;
		struct session_welcome welcome;

		assert_true(client_hear(fds[i], &welcome));
		assert_int_equal(welcome.status, 0);
		client_hello(&second, SESSION_REPLIES);
		memcpy(second.session, welcome.session, 16);
		memcpy(second.secret, welcome.secret, 16);
		clients[i].commands = fds[i];
		clients[i].replies = client_connect("127.0.0.1", agent.send);
		client_say(clients[i].replies, &second, sizeof(second));
		assert_true(client_hear(clients[i].replies, &welcome));
		assert_int_equal(welcome.status, 0);
	}
	for (int i = 0; i < 64; i++)
		client_echo(&clients[i], "ping");
	for (int i = 0; i < 64; i++)
		client_close(&clients[i]);
	assert_true(http_metric_becomes(&agent, LEASED, 0));
	assert_int_equal(http_metric(&agent, "vcuda_agent_ledger_bugs_total"), 0);
}

int main(void)
{
	const struct CMUnitTest plain[] = {
		cmocka_unit_test(session_reaches_its_worker),
		cmocka_unit_test(hello_in_pieces),
		cmocka_unit_test(wrong_magic_is_closed),
		cmocka_unit_test(wrong_version_is_told_both),
		cmocka_unit_test(role_must_fit_the_port),
		cmocka_unit_test(second_connection_needs_the_secret),
		cmocka_unit_test(connection_that_comes_late_is_no_attempt),
		cmocka_unit_test(client_that_goes_before_joining_leaves_nothing),
		cmocka_unit_test(probe_starts_nothing),
		cmocka_unit_test(who_was_overtaken_is_told),
		cmocka_unit_test(half_open_flood),
		cmocka_unit_test(half_open_connections_lock_nobody_out),
		cmocka_unit_test(lease_grows_and_comes_back),
		cmocka_unit_test(who_asks_waits_for_the_pods_programs_that_ended),
		cmocka_unit_test(worker_that_dies_ends_one_session),
		cmocka_unit_test(many_at_once),
	};
	const struct CMUnitTest token[] = {
		cmocka_unit_test(wrong_token_is_refused),
		cmocka_unit_test(quota_of_a_pod),
	};
	int ret = cmocka_run_group_tests(plain, start_plain, stop);

	return ret + cmocka_run_group_tests(token, start_token, stop);
}
