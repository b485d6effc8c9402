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
#include <sys/stat.h>
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

static void make(const char *path)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fclose(file);
}

#define OUTSIDE 20
#define INSIDE 2000 /* many times what is followed */

/* A process of its own under the sandbox reads what the links lead to, and nothing beside it.
 */
static void behind_links(void)
{
	struct error error = {0};
	char path[64];

	if (sandbox_files(&config, &error))
		_exit(error.code ? 3 : 77);
	for (int i = 0; i < OUTSIDE; i++) {
		snprintf(path, sizeof(path), "at%d/libout%d.so.1", i, i);
		if (access(path, R_OK) || close(open(path, O_RDONLY)))
			_exit(1);
	}
	_exit(open("secret", O_RDONLY) >= 0 ? 2 : 0);
}

/* Links in a folder of libraries: the few that lead out of it are followed, however many stay.
 */
static void links_that_stay_are_not_counted(void **state)
{
	char folder[] = "/tmp/vcuda-links-XXXXXX", path[64], target[64];
	int status, here = open(".", O_RDONLY | O_DIRECTORY);
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(mkdir("lib", 0700), 0);
	make("secret");
	make("lib/libin.so.1");
	for (int i = 0; i < INSIDE; i++) {
		snprintf(path, sizeof(path), "lib/libin%d.so", i);
		assert_int_equal(symlink("libin.so.1", path), 0);
	}
	for (int i = 0; i < OUTSIDE; i++) {
		snprintf(path, sizeof(path), "at%d", i);
		assert_int_equal(mkdir(path, 0700), 0);
		snprintf(path, sizeof(path), "at%d/libout%d.so.1", i, i);
		make(path);
		snprintf(target, sizeof(target), "../at%d/libout%d.so.1", i, i);
		snprintf(path, sizeof(path), "lib/libout%d.so", i);
		assert_int_equal(symlink(target, path), 0);
	}
	snprintf(config.library_path, sizeof(config.library_path), "%s/lib", folder);
	config.cache_dir[0] = 0;
	pid = fork();
	if (!pid)
		behind_links();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(fchdir(here), 0);
	close(here);
	snprintf(path, sizeof(path), "rm -rf %s", folder);
	assert_int_equal(system(path), 0);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_without_a_descriptor_is_an_error),
		cmocka_unit_test(what_is_not_there_needs_no_rule),
		cmocka_unit_test(links_that_stay_are_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
