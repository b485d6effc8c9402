/* SPDX-License-Identifier: Apache-2.0
 *
 * Tenants: the budget of a token holds whatever its clients say, what they say takes from
 * nobody else, and a token file that is written again is taken up.
 */
#include "gpu-agent/front/ledger/timeshare.h"
#include "tests/unit/agent/agent_tenants.h"

#define MIB (1ull << 20)

/* Leaving the limit out, and other names: 64 MiB are 64 MiB. */
static void budget_holds_whatever_is_said(void **state)
{
	struct client a, b, c, other;

	(void)state;
	assert_true(open_as(&a, "token-b", "x/limited", 64 * MIB));
	assert_true(open_as(&b, "token-b", "x/limited", 0));
	assert_true(open_as(&c, "token-b", "x/made-up", 0));
	assert_true(open_as(&other, "token-c", "x/limited", 0));
	assert_int_equal(client_lease(&b), 64 * MIB);
	assert_int_equal(client_lease(&b), 64 * MIB);
	assert_int_equal(client_lease(&a), 0);
	assert_int_equal(client_lease(&c), 0);
	client_close(&b);
	/* It waits for what the one that goes gives back. */
	assert_int_equal(client_lease(&c), 64 * MIB);
	assert_true(client_lease(&other) >= 64 * MIB);
	client_close(&a);
	client_close(&c);
	client_close(&other);
	assert_true(all_gone());
	assert_int_equal(http_metric(&agent, "vcuda_agent_ledger_bugs_total"), 0);
}

/* Another's name with a limit of 1 MiB, of the same tenant and of another one. */
static void what_is_said_takes_from_nobody_else(void **state)
{
	struct client victim, stranger, other;

	(void)state;
	assert_true(open_as(&victim, "token-a", "x/victim", 128 * MIB));
	assert_true(open_as(&stranger, "token-a", "x/victim", 1 * MIB));
	assert_true(open_as(&other, "token-b", "x/victim", 1 * MIB));
	assert_int_equal(client_lease(&stranger), 0); /* its own is lowered */
	assert_int_equal(client_lease(&victim), 64 * MIB);
	assert_int_equal(client_lease(&victim), 128 * MIB);
	client_close(&victim);
	client_close(&stranger);
	client_close(&other);
	assert_true(all_gone());
}

static void sessions_of_a_tenant_are_counted_by_its_token(void **state)
{
	struct client mine[3], more, other[4];
	struct session_hello hello;
	struct session_welcome probed;
	char pod[32];

	(void)state;
	for (int i = 0; i < 3; i++) {
		snprintf(pod, sizeof(pod), "made/up-%d", i);
		assert_true(open_as(&mine[i], "token-a", pod, 0));
	}
	assert_false(open_as(&more, "token-a", "made/up-3", 0));
	assert_int_equal(more.welcome.status, 800);
	assert_non_null(strstr(more.welcome.text, "3 sessions of 'a' are running"));
	/* A probe is answered all the same: the pod of a session that runs stays ready. */
	say(&hello, "token-a", "made/up-0", 0);
	hello.role = SESSION_PROBE;
	probed = client_ask(agent.recv, &hello);
	assert_int_equal(probed.status, 0);
	assert_non_null(strstr(probed.text, "no more are allowed"));
	assert_int_equal(probed.free_memory, 0);
	hello.gpu_count = 2; /* what can never be served is still refused */
	assert_int_equal(client_ask(agent.recv, &hello).status, 800);
	/* Without a number: no more than are left for the others. */
	for (int i = 0; i < 4; i++)
		assert_true(open_as(&other[i], "token-c", "c/c", 0));
	assert_true(open_as(&more, "token-c", "c/c", 0));
	client_close(&more);
	for (int i = 0; i < 3; i++)
		client_close(&mine[i]);
	for (int i = 0; i < 4; i++)
		client_close(&other[i]);
	assert_true(all_gone());
}

static void a_share_is_left_for_other_tenants(void **state)
{
	struct client c[6], more, other;

	(void)state;
	for (int i = 0; i < 6; i++)
		assert_true(open_as(&c[i], "token-c", "c/c", 0));
	assert_false(open_as(&more, "token-c", "c/c", 0));
	assert_int_equal(more.welcome.status, 800);
	assert_non_null(strstr(more.welcome.text, "for other tenants"));
	assert_true(open_as(&other, "token-b", "b/b", 0));
	client_close(&other);
	for (int i = 0; i < 6; i++)
		client_close(&c[i]);
	assert_true(all_gone());
}

/* Names for shared memory: who takes all that he gets leaves some for whoever comes next, of
 * another address and of another tenant. */
static void shares_are_left_for_others(void **state)
{
	struct client greedy[5], other, stranger;
	unsigned had = 0;

	(void)state;
	client_source = "127.0.0.31";
	for (int i = 0; i < 5; i++) {
		assert_true(open_as(&greedy[i], "token-c", "c/c", 0));
		for (int n = 0; n < 256 && !client_share(&greedy[i]); n++)
			had++;
	}
	assert_int_equal(had, 1024); /* half of them */
	assert_int_equal(client_share(&greedy[0]), 2);
	client_source = "127.0.0.32";
	assert_true(open_as(&other, "token-c", "c/c", 0));
	client_source = "127.0.0.31";
	assert_true(open_as(&stranger, "token-b", "c/c", 0));
	for (int n = 0; n < 200; n++) {
		assert_int_equal(client_share(&other), 0);
		assert_int_equal(client_share(&stranger), 0);
	}
	client_source = "127.0.0.1";
	for (int i = 0; i < 5; i++)
		client_close(&greedy[i]);
	client_close(&other);
	client_close(&stranger);
	assert_true(all_gone());
}

/* The second connection of somebody who has another token is nobody's. */
static void session_is_joined_by_its_tenant_alone(void **state)
{
	struct session_hello hello;
	struct session_welcome welcome;
	int fd = client_connect("127.0.0.1", agent.recv);

	(void)state;
	say(&hello, "token-a", "x/pod", 0);
	client_say(fd, &hello, sizeof(hello));
	assert_true(client_hear(fd, &welcome));
	assert_int_equal(welcome.status, 0);
	hello.role = SESSION_REPLIES;
	memcpy(hello.session, welcome.session, 16);
	memcpy(hello.secret, welcome.secret, 16);
	strcpy(hello.token, "token-b");
	assert_int_equal(client_ask(agent.send, &hello).status, 800);
	strcpy(hello.token, "token-a");
	assert_int_equal(client_ask(agent.send, &hello).status, 0);
	close(fd);
	assert_true(all_gone());
}

/* What the configuration says reaches the tenant's workers, and what they say of it is shown.
 */
static void quotas_reach_the_worker(void **state)
{
	struct session_hello hello;
	struct session_welcome welcome;
	struct client a, b, rest;
	const char *body;

	(void)state;
	say(&hello, "token-b", "b/b", 0);
	hello.features = SESSION_FEATURE_STRIPES;
	assert_true(open_as(&a, "token-a", "a/a", 0));
	assert_true(client_open_as(&agent, &b, &hello));
	assert_int_equal(client_quota(&a), 0);
	assert_int_equal(client_quota(&b), 100);
	client_say(b.commands, "T", 1);
	for (double end = now_seconds() + 5; now_seconds() < end; usleep(10000)) {
		assert_int_equal(http_get_as(&agent, "/metrics", "token-b", &body), 200);
		if (strstr(body, "quota_refused_total{tenant=\"b\",quota=\"handles\"} 2\n"))
			break;
	}
	assert_non_null(
		strstr(body, "quota_refused_total{tenant=\"b\",quota=\"handles\"} 2\n"));
	assert_non_null(strstr(body, "tenant_quota{tenant=\"b\",quota=\"inflight_bytes\"} "
				     "37748736\n"));
	assert_non_null(strstr(body, "tenant_quota_used{tenant=\"b\",quota=\"handles\"} 7\n"));
	assert_non_null(strstr(
		body, "tenant_quota_used{tenant=\"b\",quota=\"inflight_bytes\"} 16777216\n"));
	assert_null(strstr(body, "tenant_quota{tenant=\"a\""));
	assert_int_equal(http_get_as(&agent, "/v1/sessions", "token-b", &body), 200);
	assert_non_null(strstr(body, "\"used\":\t7,"));
	assert_non_null(strstr(body, "\"limit\":\t100,"));
	/* 16 MiB of its link's, 8 of each stripe's. */
	hello.role = SESSION_STRIPE;
	memcpy(hello.session, b.welcome.session, 16);
	memcpy(hello.secret, b.welcome.secret, 16);
	assert_int_equal(client_ask(agent.recv, &hello).status, 0);
	assert_int_equal(client_ask(agent.recv, &hello).status, 0);
	welcome = client_ask(agent.recv, &hello);
	assert_int_equal(welcome.status, 800);
	assert_string_equal(
		welcome.text, "inflight_bytes of 'b' has no room for another stripe");
	/* The rest is another session's, and then there is none. */
	assert_true(open_as(&rest, "token-b", "b/b", 0));
	say(&hello, "token-b", "b/b", 0);
	welcome = client_ask(agent.recv, &hello);
	assert_int_equal(welcome.status, 800);
	assert_string_equal(
		welcome.text, "inflight_bytes of 'b' are used up by its 2 sessions");
	client_close(&rest);
	client_close(&a);
	client_close(&b);
	assert_true(all_gone());
}

/* Its worker tells more often than it reads: what it is not told at once comes later. */
static void a_share_is_told_to_who_reads_late(void **state)
{
	struct client c;

	(void)state;
	assert_true(open_as(&c, "token-c", "c/c", 0));
	assert_int_equal(client_time(&c), TIMESHARE_QUANTUM_NS);
	client_echo(&c, "it goes on");
	client_close(&c);
	assert_true(all_gone());
}

/* A probe's answer says how many sessions there are: its tenant's. */
static void a_probe_counts_its_tenants_sessions(void **state)
{
	struct session_hello hello;
	struct client a, b;

	(void)state;
	assert_true(open_as(&a, "token-a", "a/a", 0));
	assert_true(open_as(&b, "token-b", "b/b", 0));
	say(&hello, "token-b", "b/b", 0);
	hello.role = SESSION_PROBE;
	assert_int_equal(client_ask(agent.recv, &hello).sessions, 1);
	strcpy(hello.token, "token-c");
	assert_int_equal(client_ask(agent.recv, &hello).sessions, 0);
	client_close(&a);
	client_close(&b);
	assert_true(all_gone());
}

static bool opens(const char *token)
{
	struct session_hello hello;

	client_hello(&hello, SESSION_PROBE);
	strcpy(hello.token, token);
	return !client_ask(agent.recv, &hello).status;
}

static bool becomes(const char *token, bool good)
{
	for (double end = now_seconds() + 5; now_seconds() < end; usleep(10000))
		if (opens(token) == good)
			return true;
	return false;
}

static void a_file_written_again_is_taken_up(void **state)
{
	struct client running, late;
	const char *body;
	char *log = NULL;

	(void)state;
	assert_true(open_as(&running, "token-a", "a/a", 0));
	assert_true(opens("token-b"));
	assert_false(opens("token-d"));
	put("token-d d\ntoken-e a 64MiB 1\n");
	agent_signal(&agent, SIGHUP);
	assert_true(becomes("token-d", true));
	assert_false(opens("token-a"));
	assert_false(opens("token-b"));
	/* Who runs goes on, and counts for the tenant of that name. */
	client_echo(&running, "still here");
	assert_false(open_as(&late, "token-e", "a/b", 0));
	assert_non_null(strstr(late.welcome.text, "1 sessions of 'a'"));
	client_close(&running);
	assert_true(all_gone());
	/* A bad one changes nothing, and is told; a front that is started again knows it too.
	 */
	put("token-d d\ntoken-d d\n");
	agent_signal(&agent, SIGHUP);
	for (double end = now_seconds() + 5; now_seconds() < end; usleep(10000)) {
		free(log);
		log = agent_log(&agent);
		if (strstr(log, "event=tokens.bad"))
			break;
	}
	assert_non_null(strstr(log, "another line's too; the tokens of before stay good"));
	free(log);
	assert_true(opens("token-d"));
	/* The same holds for who sees all. */
	write_to(http_path, "token-all operator 1GiB\ntoken-new\n");
	agent_signal(&agent, SIGHUP);
	for (double end = now_seconds() + 5; now_seconds() < end; usleep(10000)) {
		log = agent_log(&agent);
		if (strstr(log, "'operator' has limits, as a tenant has"))
			break;
		free(log);
		log = NULL;
	}
	assert_non_null(log);
	free(log);
	assert_int_equal(http_get_as(&agent, "/v1/agent", "token-all", &body), 200);
	write_to(http_path, "token-new\n");
	agent_signal(&agent, SIGHUP);
	for (double end = now_seconds() + 5; now_seconds() < end; usleep(10000))
		if (http_get_as(&agent, "/v1/agent", "token-new", &body) == 200)
			break;
	assert_int_equal(http_get_as(&agent, "/v1/agent", "token-new", &body), 200);
	assert_int_equal(http_get_as(&agent, "/v1/agent", "token-all", &body), 401);
	/* Without a signal it takes a moment. */
	put("token-f f\n");
	for (double end = now_seconds() + 9; now_seconds() < end && !opens("token-f");)
		usleep(50000);
	assert_true(opens("token-f"));
	assert_false(opens("token-d"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(budget_holds_whatever_is_said),
		cmocka_unit_test(what_is_said_takes_from_nobody_else),
		cmocka_unit_test(sessions_of_a_tenant_are_counted_by_its_token),
		cmocka_unit_test(a_share_is_left_for_other_tenants),
		cmocka_unit_test(shares_are_left_for_others),
		cmocka_unit_test(session_is_joined_by_its_tenant_alone),
		cmocka_unit_test(quotas_reach_the_worker),
		cmocka_unit_test(a_share_is_told_to_who_reads_late),
		cmocka_unit_test(a_probe_counts_its_tenants_sessions),
		cmocka_unit_test(a_file_written_again_is_taken_up),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
