/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent with three tenants, for the tests of them: a has 128 MiB and three sessions, b 64
 * MiB and quotas, c half of the GPUs' time; an operator sees all of them.
 */
#ifndef VCUDA_TESTS_UNIT_AGENT_TENANTS_H
#define VCUDA_TESTS_UNIT_AGENT_TENANTS_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/agent/client.h"

static struct agent agent;
static char path[] = "/tmp/agent-tenants-XXXXXX", http_path[64], http_flag[96];

static inline void write_to(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static inline void put(const char *text)
{
	write_to(path, text);
}

static inline int start(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	snprintf(http_path, sizeof(http_path), "%s.http", path);
	put("token-a a 128MiB 3\n"
	    "token-b b 64MiB\n"
	    "token-c c\n");
	write_to(http_path, "token-all operator\n");
	snprintf(http_flag, sizeof(http_flag), "http.token_file=%s", http_path);
	agent_start(&agent, "/toy/ready",
		(const char *[]){"--token-file", path, "--set", "max_sessions=12", "--set",
			http_flag, "--set", "tenants.b.handles=100", "--set",
			"tenants.b.inflight_bytes=36MiB", "--set", "tenants.c.gpu_share=0.5",
			NULL});
	return 0;
}

static inline int stop(void **state)
{
	(void)state;
	agent_stop(&agent);
	unlink(path);
	unlink(http_path);
	return 0;
}

static inline bool all_gone(void)
{
	return http_metric_becomes(&agent, "vcuda_agent_sessions{state=\"running\"}", 0) &&
	       http_metric_becomes(&agent, "vcuda_agent_sessions{state=\"ending\"}", 0);
}

static inline void say(
	struct session_hello *hello, const char *token, const char *pod, uint64_t limit)
{
	client_hello(hello, SESSION_COMMANDS);
	strcpy(hello->token, token);
	strcpy(hello->pod, pod);
	strcpy(hello->pod_uid, pod);
	hello->vram_limit = limit;
}

static inline bool open_as(
	struct client *client, const char *token, const char *pod, uint64_t limit)
{
	struct session_hello hello;

	say(&hello, token, pod, limit);
	return client_open_as(&agent, client, &hello);
}

#endif
