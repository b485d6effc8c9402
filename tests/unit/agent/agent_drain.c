/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent that is asked to end: what runs goes on, for a time, and nothing new begins.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/agent/client.h"

static struct agent agent;

static void drain_waits_for_sessions(void **state)
{
	struct client running, late;
	const char *body;

	(void)state;
	agent_start(&agent, "/toy/ready", NULL);
	assert_true(client_open(&agent, &running, NULL, NULL));
	agent_signal(&agent, SIGTERM);
	assert_true(http_metric_becomes(&agent, "vcuda_agent_draining", 1));
	assert_int_equal(http_get(&agent, "/readyz", &body), 503);
	assert_string_equal(body, "[-] draining: the agent is ending\n");
	assert_int_equal(http_get(&agent, "/healthz", &body), 200);
	assert_false(client_open(&agent, &late, NULL, NULL));
	assert_int_equal(late.welcome.status, 802);
	assert_non_null(strstr(late.welcome.text, "draining"));
	client_echo(&running, "still here");
	client_close(&running);
	agent_end(&agent, 0);
	agent_clean(&agent);
}

/* A worker that was told to stop before it was ready is READY all the same, and that is no
 * fault. */
static void drain_knows_workers_that_start(void **state)
{
	struct client running;
	char *log;

	(void)state;
	agent_start(&agent, "/toy/slow", NULL);
	/* The one that takes its worker's place starts for 300 ms. */
	assert_true(client_open(&agent, &running, NULL, NULL));
	agent_signal(&agent, SIGTERM);
	client_close(&running);
	agent_end(&agent, 0);
	log = agent_log(&agent);
	assert_null(strstr(log, "worker.fault"));
	free(log);
	agent_clean(&agent);
}

static void drain_has_an_end(void **state)
{
	struct client deaf;
	char *log;

	(void)state;
	agent_start(&agent, "/toy/ready", (const char *[]){"--drain", "1", NULL});
	assert_true(client_open(&agent, &deaf, NULL, NULL));
	client_echo(&deaf, "x");
	client_say(deaf.commands, "S", 1); /* hears no STOP any more */
	agent_signal(&agent, SIGTERM);
	agent_end(&agent, 0);
	/* The session had its time, and was stopped then. */
	log = agent_log(&agent);
	assert_non_null(strstr(log, "drain.stop"));
	free(log);
	assert_true(client_ended(&deaf));
	client_close(&deaf);
	agent_clean(&agent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drain_waits_for_sessions),
		cmocka_unit_test(drain_knows_workers_that_start),
		cmocka_unit_test(drain_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
