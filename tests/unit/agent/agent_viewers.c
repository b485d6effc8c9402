/* SPDX-License-Identifier: Apache-2.0
 *
 * Who sees what of the tenants over HTTP: each its own rows, an operator all, and everybody
 * what the configuration shows to everybody.
 */
#include "tests/unit/agent/agent_tenants.h"

/* What two tenants with a session each, who sees all, and nobody may see of them. */
static void a_tenant_sees_itself_alone(void **state)
{
	static const char *const shown[] = {"/v1/sessions", "/v1/gpus", "/v1/agent"};
	struct client a, b;
	const char *body;

	(void)state;
	assert_true(open_as(&a, "token-a", "space-a/pod-a", 0));
	assert_true(open_as(&b, "token-b", "space-b/pod-b", 0));
	client_say(a.commands, "T", 1); /* 1 MiB used, 5 launches */
	assert_true(http_metric_becomes(&agent, "vcuda_agent_launches_total", 5));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(http_get(&agent, shown[i], &body), 401);
		assert_memory_equal(body, "this agent has several tenants", 30);
		assert_ptr_equal(strchr(body, '\n') + 1, body + strlen(body));
		assert_int_equal(http_get_as(&agent, shown[i], "token-x", &body), 401);
		assert_memory_equal(body, "the token is nobody's", 21);
	}
	assert_int_equal(http_get_as(&agent, "/metrics", "token-x", &body), 401);
	assert_int_equal(http_get_as(&agent, "/healthz", "token-x", &body), 200);

	assert_int_equal(http_get_as(&agent, "/v1/sessions", "token-a", &body), 200);
	assert_non_null(strstr(body, "space-a/pod-a"));
	assert_null(strstr(body, "space-b"));
	assert_null(strstr(body, "\"session\""));
	assert_int_equal(http_get_as(&agent, "/v1/gpus", "token-b", &body), 200);
	assert_non_null(strstr(body, "\"memory_used_bytes\":\t0,"));
	assert_non_null(strstr(body, "\"memory_free_bytes\":\t67108864"));
	assert_null(strstr(body, "foreign"));
	assert_int_equal(http_get_as(&agent, "/v1/gpus", "token-a", &body), 200);
	assert_non_null(strstr(body, "\"memory_used_bytes\":\t1048576,"));
	assert_int_equal(http_get_as(&agent, "/v1/agent", "token-a", &body), 200);
	assert_non_null(strstr(body, "\"sessions\":\t1,"));
	assert_non_null(strstr(body, "\"max_sessions\":\t3,"));
	assert_int_equal(http_get_as(&agent, "/v1/sessions", "token-all", &body), 200);
	assert_non_null(strstr(body, "space-a/pod-a"));
	assert_non_null(strstr(body, "space-b/pod-b"));

	assert_int_equal(http_get(&agent, "/metrics", &body), 200);
	assert_null(strstr(body, "{tenant=\""));
	assert_null(strstr(body, "pod="));
	assert_int_equal(http_get_as(&agent, "/metrics", "token-a", &body), 200);
	assert_non_null(strstr(body, "vcuda_agent_tenant_launches_total{tenant=\"a\"} 5\n"));
	assert_non_null(strstr(body, "namespace=\"space-a\",pod=\"pod-a\""));
	assert_null(strstr(body, "tenant=\"b\""));
	assert_null(strstr(body, "pod-b"));
	assert_int_equal(http_get_as(&agent, "/metrics", "token-all", &body), 200);
	assert_non_null(strstr(body, "tenant=\"a\"") ? strstr(body, "tenant=\"b\"") : NULL);
	client_close(&a);
	client_close(&b);
	assert_true(all_gone());
}

/* http.tenant_metrics; and one tenant alone is asked nothing. */
static void tenants_may_be_shown_to_everybody(void **state)
{
	struct agent other;
	struct client client;
	const char *body;

	(void)state;
	agent_start(&other, "/toy/ready",
		(const char *[]){
			"--token-file", path, "--set", "http.tenant_metrics=true", NULL});
	assert_int_equal(http_get(&other, "/metrics", &body), 200);
	assert_non_null(strstr(body, "vcuda_agent_tenant_sessions{tenant=\"a\"} 0"));
	assert_int_equal(http_get(&other, "/v1/sessions", &body), 401);
	agent_stop(&other);
	agent_start(&other, "/toy/ready", (const char *[]){"--set", "token=alone", NULL});
	assert_true(client_open(&other, &client, "space/one", "alone"));
	assert_int_equal(http_get(&other, "/v1/sessions", &body), 200);
	assert_non_null(strstr(body, "space/one"));
	client_close(&client);
	agent_stop(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tenant_sees_itself_alone),
		cmocka_unit_test(tenants_may_be_shown_to_everybody),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
