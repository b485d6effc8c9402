/* SPDX-License-Identifier: Apache-2.0
 *
 * How an agent starts: with a token or without, with a driver that fails, crashes or is slow,
 * and with flags that are wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/agent/client.h"

static struct agent agent;

/* --- who gets in -------------------------------------------------------------------------- */

static void start_without_token(const char *folder)
{
	setenv("XDG_STATE_HOME", folder, 1);
	agent_start(&agent, "/toy/ready", (const char *[]){"--set", "token=", NULL});
	unsetenv("XDG_STATE_HOME");
}

static void without_a_token_one_is_made_and_asked_for(void **state)
{
	char folder[] = "/tmp/agent-state-XXXXXX", path[64], token[64] = "", again[64] = "";
	struct client c;
	struct stat st;
	char *log;
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/vcuda/token", folder);
	start_without_token(folder);
	assert_false(client_open(&agent, &c, NULL, NULL));
	assert_int_equal(c.welcome.status, 800);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	file = fopen(path, "r");
	assert_int_equal(fscanf(file, "%63s", token), 1);
	fclose(file);
	assert_int_equal(strlen(token), 48);
	assert_true(client_open(&agent, &c, NULL, token));
	client_close(&c);
	log = agent_log(&agent);
	assert_non_null(strstr(log, path));
	assert_null(strstr(log, token));
	free(log);
	agent_stop(&agent);

	start_without_token(folder); /* clients go on with the token that they have */
	file = fopen(path, "r");
	assert_int_equal(fscanf(file, "%63s", again), 1);
	fclose(file);
	assert_string_equal(token, again);
	agent_stop(&agent);

	chmod(path, 0644); /* somebody else may know it */
	{
		char command[128], said[1024];

		setenv("XDG_STATE_HOME", folder, 1);
		snprintf(command, sizeof(command), "--address 127.0.0.1 --ports 0,0,0");
		assert_int_equal(agent_run(command, said, sizeof(said)), 1);
		unsetenv("XDG_STATE_HOME");
		assert_non_null(strstr(said, "this user's alone"));
		assert_int_equal(client_count(said, "\n"), 1);
	}
	unlink(path);
	snprintf(path, sizeof(path), "%s/vcuda", folder);
	rmdir(path);
	rmdir(folder);
}

static void insecure_is_said_aloud(void **state)
{
	char said[1024];
	const char *body;
	struct client c;
	char *log;

	(void)state;
	agent_start(&agent, "/toy/ready", (const char *[]){"--insecure", NULL});
	assert_true(client_open(&agent, &c, NULL, NULL));
	client_close(&c);
	log = agent_log(&agent);
	assert_non_null(strstr(log, "level=warn part=gpu-agent"));
	assert_non_null(strstr(log, "event=agent.insecure"));
	free(log);
	assert_int_equal(http_metric(&agent, "vcuda_agent_insecure"), 1);
	assert_int_equal(http_get(&agent, "/readyz?verbose", &body), 200);
	assert_non_null(strstr(body, "[!] token: none is asked for"));
	agent_stop(&agent);
	agent_start(&agent, "/toy/ready", (const char *[]){"--set", "token=x", NULL});
	assert_int_equal(http_metric(&agent, "vcuda_agent_insecure"), 0);
	assert_int_equal(http_get(&agent, "/readyz?verbose", &body), 200);
	assert_non_null(strstr(body, "[+] token\n"));
	agent_stop(&agent);
	/* The seeds' command line knows no token, and neither do its clients. */
	agent_start(&agent, "/toy/ready", (const char *[]){"-n", "native", NULL});
	assert_true(client_open(&agent, &c, NULL, NULL));
	client_close(&c);
	agent_stop(&agent);
	assert_int_equal(agent_run("--insecure --set token=x", said, sizeof(said)), 1);
	assert_non_null(
		strstr(said, "insecure: everybody is to be served, and there is a token"));
}

/* --- does not start ----------------------------------------------------------------------- */

static void failing_driver_says_why_once(void **state)
{
	struct client c;
	const char *body;
	char *log;

	(void)state;
	agent_start(&agent, "/toy/fail", NULL);
	assert_false(agent.ready);
	assert_string_equal(agent.text, "the toy has no driver");
	assert_false(client_open(&agent, &c, NULL, NULL));
	assert_int_equal(c.welcome.status, 802);
	assert_string_equal(c.welcome.text, "the toy has no driver");
	assert_int_equal(http_get(&agent, "/readyz", &body), 503);
	assert_string_equal(body, "[-] gpu: the toy has no driver\n");
	assert_int_equal(http_get(&agent, "/healthz", &body), 200);
	usleep(1500000); /* tries again after 250 and 500 ms, and is silent about it */
	assert_true(http_metric(&agent, "vcuda_agent_worker_starts_total") >= 2);
	assert_true(http_metric(&agent, "vcuda_agent_worker_starts_total") <= 5);
	log = agent_log(&agent);
	assert_int_equal(client_count(log, "event=worker.failed"), 1);
	free(log);
	agent_stop(&agent);
}

/* The toy has no sandbox at all. */
static void a_worker_without_the_sandbox_that_is_required_serves_nobody(void **state)
{
	struct client c;

	(void)state;
	agent_start(&agent, "/toy/ready", (const char *[]){"--sandbox", "required", NULL});
	assert_false(agent.ready);
	assert_non_null(strstr(agent.text, "sandbox: required, and a worker has only: "));
	assert_false(client_open(&agent, &c, NULL, NULL));
	assert_int_equal(c.welcome.status, 802);
	assert_non_null(strstr(c.welcome.text, "sandbox: required"));
	assert_int_equal(http_metric(&agent, "vcuda_agent_worker_isolation{mode=\"none\"}"), 1);
	agent_stop(&agent);
}

static void crash_at_the_start_is_told(void **state)
{
	(void)state;
	agent_start(&agent, "/toy/crash", NULL);
	assert_false(agent.ready);
	assert_string_equal(agent.text, "a worker was ended by signal 6 before it was ready");
	agent_stop(&agent);
}

static void clients_wait_for_a_slow_start(void **state)
{
	struct client a, b;

	(void)state;
	agent_start(&agent, "/toy/slow", NULL);
	assert_true(client_open(&agent, &a, NULL, NULL));
	assert_true(client_open(&agent, &b, NULL, NULL));
	client_echo(&b, "worth it");
	client_close(&a);
	client_close(&b);
	agent_stop(&agent);

	agent_start(&agent, "/toy/slow", (const char *[]){"--start-timeout", "100ms", NULL});
	assert_true(client_open(&agent, &a, NULL, NULL));
	assert_false(client_open(&agent, &b, NULL, NULL));
	assert_int_equal(b.welcome.status, 802);
	assert_non_null(strstr(b.welcome.text, "start_timeout (100 ms)"));
	client_close(&a);
	agent_stop(&agent);
}

static void a_wrong_start_is_one_clear_line(void **state)
{
	char said[1024], flags[64];

	(void)state;
	agent_start(&agent, "/toy/ready", NULL);
	snprintf(flags, sizeof(flags), "--insecure --address 127.0.0.1 --ports 0,%u,0",
		agent.recv);
	assert_int_equal(agent_run(flags, said, sizeof(said)), 1);
	assert_non_null(strstr(said, "gpu-agent: ports.recv: port "));
	assert_int_equal(client_count(said, "\n"), 1);
	agent_stop(&agent);
	assert_int_equal(agent_run("--frobnicate", said, sizeof(said)), 2);
	assert_string_equal(
		said, "gpu-agent: unknown flag '--frobnicate' (--help lists the flags)\n");
	assert_int_equal(agent_run("--check-config --warm 3", said, sizeof(said)), 0);
	assert_int_equal(
		agent_run("--check-config --address 127.0.0.1:80", said, sizeof(said)), 1);
	assert_string_equal(said, "gpu-agent: listen: '127.0.0.1:80': an address to listen on "
				  "has no port here (keys: ports)\n");
	assert_int_equal(
		agent_run("--check-config --set http.address=ftp://a", said, sizeof(said)), 1);
	assert_int_equal(strncmp(said, "gpu-agent: http.address: ", 25), 0);
	assert_int_equal(agent_run("--role worker 4</dev/null", said, sizeof(said)), 2);
	assert_int_equal(client_count(said, "\n"), 1);
	assert_int_equal(agent_run("--version", said, sizeof(said)), 0);
	assert_int_equal(strncmp(said, "gpu-agent ", 10), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_token_one_is_made_and_asked_for),
		cmocka_unit_test(insecure_is_said_aloud),
		cmocka_unit_test(failing_driver_says_why_once),
		cmocka_unit_test(a_worker_without_the_sandbox_that_is_required_serves_nobody),
		cmocka_unit_test(crash_at_the_start_is_told),
		cmocka_unit_test(clients_wait_for_a_slow_start),
		cmocka_unit_test(a_wrong_start_is_one_clear_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
