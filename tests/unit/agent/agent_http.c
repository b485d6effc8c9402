/* SPDX-License-Identifier: Apache-2.0
 *
 * The control port: the pages, and that it answers nothing but GET and HEAD, keeps nothing
 * large, and cannot be held by one peer.
 */
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

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "tests/agent/client.h"

static struct agent agent;
static struct client client;

static int start(void **state)
{
	(void)state;
	agent_start(&agent, "/toy/ready", NULL);
	assert_true(client_open(&agent, &client, "<b>\"x\\\npod", NULL));
	client_say(client.commands, "T", 1);
	return http_metric_becomes(&agent, "vcuda_agent_launches_total", 5) ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	client_close(&client);
	agent_stop(&agent);
	return 0;
}

static void probes_say_ok(void **state)
{
	const char *body;

	(void)state;
	assert_int_equal(http_get(&agent, "/healthz", &body), 200);
	assert_string_equal(body, "ok\n");
	assert_int_equal(http_get(&agent, "/readyz", &body), 200);
	assert_string_equal(body, "ok\n");
	assert_int_equal(http_get(&agent, "/readyz?verbose", &body), 200);
	assert_memory_equal(body, "[+] gpu\n[+] draining\n[+] ledger\n[", 33);
	assert_non_null(strstr(body, "] lib"));
	assert_non_null(strstr(body, "\nok\n"));
}

static void json_has_the_documented_fields(void **state)
{
	static const char *const gpu_fields[] = {"index", "name", "uuid", "memory_total_bytes",
		"memory_reserved_bytes", "memory_foreign_bytes", "memory_context_bytes",
		"memory_leased_bytes", "memory_used_bytes", "memory_free_bytes"};
	static const char *const session_fields[] = {"session", "state", "pod", "program",
		"pid", "uid", "peer", "started", "worker_pid", "memory", "frames_received",
		"frames_sent", "bytes_received", "bytes_sent", "launches", "copies_in_bytes",
		"copies_out_bytes", "errors", "transport", "lanes", "peers",
		"peer_received_bytes", "peer_sent_bytes"};
	const char *body;
	cJSON *root, *one;

	(void)state;
	assert_int_equal(http_get(&agent, "/v1/gpus", &body), 200);
	root = cJSON_Parse(body);
	one = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "gpus"), 0);
	for (size_t i = 0; i < sizeof(gpu_fields) / sizeof(gpu_fields[0]); i++)
		assert_true(cJSON_HasObjectItem(one, gpu_fields[i]));
	assert_int_equal(cJSON_GetObjectItem(one, "memory_used_bytes")->valueint, 1 << 20);
	cJSON_Delete(root);

	assert_int_equal(http_get(&agent, "/v1/sessions", &body), 200);
	root = cJSON_Parse(body);
	one = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "sessions"), 0);
	for (size_t i = 0; i < sizeof(session_fields) / sizeof(session_fields[0]); i++)
		assert_true(cJSON_HasObjectItem(one, session_fields[i]));
	assert_string_equal(cJSON_GetObjectItem(one, "state")->valuestring, "running");
	assert_string_equal(cJSON_GetObjectItem(one, "pod")->valuestring, "<b>?x??pod");
	assert_int_equal(cJSON_GetObjectItem(one, "launches")->valueint, 5);
	cJSON_Delete(root);
}

/* Each line of /metrics is a comment or NAME{…} VALUE. */
static void metrics_are_well_formed(void **state)
{
	const char *body;
	char *copy, *line, *rest;
	int samples = 0;

	(void)state;
	assert_int_equal(http_get(&agent, "/metrics", &body), 200);
	copy = rest = strdup(body);
	while ((line = strsep(&rest, "\n"))) {
		char *value = strrchr(line, ' '), *end;

		if (!*line || line[0] == '#')
			continue;
		assert_true(
			!strncmp(line, "vcuda_agent_", 12) || !strncmp(line, "process_", 8));
		assert_non_null(value);
		strtod(value + 1, &end);
		assert_true(end > value + 1 && !*end);
		samples++;
	}
	free(copy);
	assert_true(samples > 40);
}

static void has(const char *body, const char *line)
{
	if (!strstr(body, line))
		fail_msg("/metrics has no '%s'", line);
}

static void metrics_tell_of_pods_waits_and_the_process(void **state)
{
	static const char gpu[] = "gpu=\"0\",UUID=\"GPU-07070707-0707-0707-0707-"
				  "070707070707\",modelName=\"Toy GPU\"";
	struct client a, b;
	char line[300];
	const char *body;

	(void)state;
	assert_true(client_open(&agent, &a, "space/one", NULL));
	assert_true(client_open(&agent, &b, "space/one", NULL));
	client_say(a.commands, "T", 1);
	client_say(b.commands, "T", 1);
	/* Each has used 1 MiB, and so has the client of the whole group. */
	assert_true(http_metric_becomes(&agent, "vcuda_agent_launches_total", 15));
	assert_int_equal(http_get(&agent, "/metrics", &body), 200);
	has(body, "\nvcuda_agent_pod_sessions{tenant=\"default\",namespace=\"space\",pod="
		  "\"one\"} "
		  "2\n");
	snprintf(line, sizeof(line),
		"\nvcuda_agent_pod_memory_used_bytes{%s,tenant=\"default\",namespace=\"space\","
		"pod=\"one\"} 2097152\n",
		gpu);
	has(body, line);
	has(body, "namespace=\"\",pod=\"<b>?x??pod\"} "); /* a host's name, made printable */
	has(body, "\n# TYPE vcuda_agent_session_wait_seconds histogram\n");
	has(body, "\nvcuda_agent_session_wait_seconds_bucket{le=\"+Inf\"} 3\n");
	has(body, "\nvcuda_agent_session_wait_seconds_count 3\n");
	has(body, "\nvcuda_agent_session_duration_seconds_bucket{le=\"0.1\"} 0\n");
	has(body, "driver=\"file\",release=\"\"} 1\n"); /* no path of the agent's machine */
	has(body, "\nprocess_resident_memory_bytes ");
	has(body, "\nprocess_cpu_seconds_total ");
	has(body, "\nprocess_open_fds ");
	assert_true(http_metric(&agent, "process_open_fds") > 5);
	assert_true(http_metric(&agent, "process_resident_memory_bytes") > 1u << 20);
	client_close(&a);
	client_close(&b);
	assert_true(http_metric_becomes(&agent, "vcuda_agent_sessions{state=\"running\"}", 1));
	assert_true(
		http_metric_becomes(&agent, "vcuda_agent_session_duration_seconds_count", 2));
	assert_int_equal(http_get(&agent, "/metrics", &body), 200);
	assert_null(strstr(body, "pod=\"one\"")); /* it is gone with its sessions */
}

/* What clients say comes as JSON, and the page's script makes text of it (tests/page). */
static void page_is_the_same_for_all_and_names_no_other_place(void **state)
{
	static const char *const files[] = {"/", "/page.css", "/page.js"};
	const char *body;

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		assert_int_equal(http_get(&agent, files[i], &body), 200);
		assert_true(strlen(body) > 500);
		assert_null(strstr(body, "?x??pod"));
		assert_null(strstr(body, "://"));
		assert_null(strstr(body, "innerHTML"));
	}
	assert_int_equal(http_get(&agent, "/", &body), 200);
	assert_non_null(strstr(body, "<script src=\"/page.js\" defer></script>"));
	assert_null(strstr(body, "<style"));
	assert_null(strstr(body, "style=\""));
	assert_int_equal(http_get(&agent, "/page.txt", &body), 404);
}

static int ask(const char *request, const char **body)
{
	return http_raw(&agent, request, strlen(request), body);
}

static void only_get_and_head(void **state)
{
	const char *body;

	(void)state;
	assert_int_equal(http_get(&agent, "/v2/nothing", &body), 404);
	assert_int_equal(
		ask("HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", &body),
		200);
	assert_string_equal(body, "");
	assert_int_equal(
		ask("DELETE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", &body), 405);
	assert_int_not_equal(ask("POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
				 "Content-Length: 4\r\n\r\nbody",
				     &body),
		200);
	assert_int_not_equal(ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
				 "Content-Length: 4\r\n\r\nbody",
				     &body),
		200);
	assert_int_not_equal(ask("\x01\x02\x03\r\n\r\n", &body), 200);
}

static void large_requests_are_refused(void **state)
{
	static char request[40000];
	const char *body;

	(void)state;
	strcpy(request, "GET / HTTP/1.1\r\nX: ");
	memset(request + strlen(request), 'a', 20000);
	strcat(request, "\r\n\r\n");
	assert_int_not_equal(http_raw(&agent, request, strlen(request), &body), 200);
	memset(request, 'a', sizeof(request));
	assert_int_not_equal(http_raw(&agent, request, sizeof(request), &body), 200);
}

/* 100 connections that say nothing; another address is served, sessions go on, and after the
 * deadline they are closed. */
static void idle_connections_are_bounded(void **state)
{
	struct timeval deadline = {.tv_sec = 8};
	const char *request = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	int fds[100], fd;
	char answer[64] = "";

	(void)state;
	for (int i = 0; i < 100; i++)
		fds[i] = client_connect("127.0.0.5", agent.control);
	fd = client_connect("127.0.0.6", agent.control);
	client_say(fd, request, strlen(request));
	assert_true(recv(fd, answer, sizeof(answer) - 1, 0) > 0);
	assert_int_equal(strncmp(answer, "HTTP/1.1 200", 12), 0);
	close(fd);
	client_echo(&client, "fine");
	for (int i = 0; i < 100; i++) {
		setsockopt(fds[i], SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
		assert_true(client_is_closed(fds[i]));
		close(fds[i]);
	}
}

/* 64 connections of two addresses that say nothing or half a request: whoever comes next is
 * served at once, and the port answers when they are gone. */
static void held_connections_wedge_nothing(void **state)
{
	const char *half = "GET /healthz HTTP/1.1\r\nHost: x\r\n", *body;
	int fds[128];

	(void)state;
	for (int i = 0; i < 128; i++) {
		fds[i] = client_connect(i % 2 ? "127.0.0.12" : "127.0.0.13", agent.control);
		if (i >= 64)
			client_say(fds[i], half, strlen(half));
	}
	for (int i = 0; i < 20; i++)
		assert_int_equal(http_get(&agent, "/healthz", &body), 200);
	client_echo(&client, "fine");
	for (int i = 0; i < 128; i++) {
		assert_true(client_is_closed(fds[i]));
		close(fds[i]);
	}
	for (int i = 0; i < 20; i++)
		assert_int_equal(http_get(&agent, "/readyz", &body), 200);
}

static void garbage_wedges_nothing(void **state)
{
	unsigned char bytes[1500];
	unsigned random = 3;
	const char *body;
	char from[16];

	(void)state;
	for (int i = 0; i < 600; i++) {
		int fd;

		for (size_t n = 0; n < sizeof(bytes); n++)
			bytes[n] =
				(unsigned char)((random = random * 1103515245 + 12345) >> 16);
		if (i % 2)
			memcpy(bytes, "GET /", 5);
		snprintf(from, sizeof(from), "127.0.1.%d", 1 + i % 200);
		fd = client_connect(from, agent.control);
		(void)!send(fd, bytes, 1 + random % sizeof(bytes), MSG_NOSIGNAL);
		if (i % 3 == 0)
			shutdown(fd, SHUT_WR);
		close(fd);
	}
	assert_int_equal(http_get(&agent, "/healthz", &body), 200);
	assert_int_equal(http_get(&agent, "/metrics", &body), 200);
	client_echo(&client, "fine");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes_say_ok),
		cmocka_unit_test(json_has_the_documented_fields),
		cmocka_unit_test(metrics_are_well_formed),
		cmocka_unit_test(metrics_tell_of_pods_waits_and_the_process),
		cmocka_unit_test(page_is_the_same_for_all_and_names_no_other_place),
		cmocka_unit_test(only_get_and_head),
		cmocka_unit_test(large_requests_are_refused),
		cmocka_unit_test(idle_connections_are_bounded),
		cmocka_unit_test(held_connections_wedge_nothing),
		cmocka_unit_test(garbage_wedges_nothing),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
