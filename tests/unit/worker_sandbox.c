/* SPDX-License-Identifier: Apache-2.0
 *
 * A sandbox of which a rule cannot be made is none: the worker ends before it serves anybody,
 * and says for which file; and what is not there needs no rule.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu-agent/sandbox/sandbox.h"

static struct agent_config config;

/* In a process of its own, with so many descriptors left; what sandbox_files says. */
static int with_descriptors(int left, char text[256])
{
	int status, out[2];
	pid_t pid;

	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (!pid) {
		int next = dup(out[1]);
		struct rlimit l = {(rlim_t)(next + left), (rlim_t)(next + left)};
		struct error error = {0};
		int ret;

		close(next);
		setrlimit(RLIMIT_NOFILE, &l);
		ret = sandbox_files(&config, &error);
		(void)!write(out[1], error.text, strlen(error.text) + 1);
		/* Whatever it said: what was not restricted can still be read. */
		_exit(ret && !error.code		? 77
			: !ret				? 0
			: access("/etc/hostname", R_OK) ? 2
							: 1);
	}
	close(out[1]);
	memset(text, 0, 256);
	assert_true(read(out[0], text, 255) >= 0);
	close(out[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_rule_without_a_descriptor_is_an_error(void **state)
{
	char text[256];
	int failed = 0, left;

	(void)state;
	if (with_descriptors(200, text) == 77)
		skip(); /* no Landlock here */
	assert_int_equal(with_descriptors(200, text), 0);
	assert_string_equal(text, "");
	/* One less each time, down to where not even the ruleset can be had. */
	for (left = 60; left > 1; left--) {
		int status = with_descriptors(left, text);

		if (!status)
			continue;
		assert_int_equal(status, 1);
		assert_non_null(strstr(text, "sandbox: a rule for /"));
		assert_non_null(strstr(text, "Too many open files"));
		failed++;
	}
	assert_true(failed > 5);
}

static void what_is_not_there_needs_no_rule(void **state)
{
	char text[256];

	(void)state;
	snprintf(config.library_path, sizeof(config.library_path),
		"/nowhere/at/all:/etc/hostname/below");
	snprintf(config.cache_dir, sizeof(config.cache_dir), "/proc/nowhere");
	if (with_descriptors(200, text) == 77)
		skip();
	assert_int_equal(with_descriptors(200, text), 0);
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_without_a_descriptor_is_an_error),
		cmocka_unit_test(what_is_not_there_needs_no_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
