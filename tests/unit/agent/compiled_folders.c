/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders of compiled kernels: what a worker leaves is not believed.  The supervisor copies
 * plain files of the tenant's own and nothing that a link leads to, keeps no more than there is
 * room for, and forgets the tenants that were here longest ago.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu-agent/cache/compiled.h"

static char base[] = "/tmp/vcuda-compiled-XXXXXX";
static struct agent_config config;

static const char *in(const char *format, ...)
{
	static char path[4][4096];
	static unsigned turn;
	char *to = path[turn++ % 4];
	va_list list;

	va_start(list, format);
	vsnprintf(to, sizeof(path[0]), format, list);
	va_end(list);
	return to;
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static bool has(pid_t worker, const char *name, const char *text)
{
	char got[64] = "";
	FILE *file = fopen(in("%s/%d/%s", config.compiled, worker, name), "r");

	if (!file)
		return false;
	if (!fgets(got, sizeof(got), file))
		got[0] = 0;
	fclose(file);
	return !strcmp(got, text);
}

static void begin(pid_t worker, const char *tenant)
{
	assert_int_equal(mkdir(in("%s/%d", config.compiled, worker), 0700), 0);
	compiled_begin(&config, worker, tenant);
}

static int start(void **state)
{
	(void)state;
	if (!mkdtemp(base))
		return -1;
	config.driver = DRIVER_NVIDIA;
	snprintf(config.cache_dir, sizeof(config.cache_dir), "%s/modules", base);
	compiled_open(&config);
	return config.compiled[0] ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	compiled_close(&config);
	return access(config.compiled, F_OK) ? system(in("rm -rf %s", base)) : -1;
}

static void a_tenant_gets_its_own(void **state)
{
	(void)state;
	begin(1, "blue");
	assert_int_equal(mkdir(in("%s/1/3", config.compiled), 0700), 0);
	put(in("%s/1/3/kernel", config.compiled), "blue's");
	put(in("%s/1/index", config.compiled), "index");
	compiled_end(&config, 1, "blue");
	assert_int_equal(access(in("%s/1", config.compiled), F_OK), -1);
	begin(2, "blue");
	assert_true(has(2, "3/kernel", "blue's"));
	assert_true(has(2, "index", "index"));
	begin(3, "red");
	assert_false(has(3, "index", "index"));
	begin(4, "");
	assert_false(has(4, "index", "index"));
	compiled_end(&config, 2, "blue");
	compiled_end(&config, 3, "red");
	compiled_end(&config, 4, "");
}

static void links_are_not_followed(void **state)
{
	(void)state;
	put(in("%s/secret", base), "secret");
	begin(5, "links");
	put(in("%s/5/plain", config.compiled), "plain");
	assert_int_equal(symlink(in("%s/secret", base), in("%s/5/soft", config.compiled)), 0);
	assert_int_equal(link(in("%s/secret", base), in("%s/5/hard", config.compiled)), 0);
	assert_int_equal(symlink(base, in("%s/5/folder", config.compiled)), 0);
	assert_int_equal(mkfifo(in("%s/5/pipe", config.compiled), 0600), 0);
	compiled_end(&config, 5, "links");
	assert_int_equal(access(in("%s/secret", base), F_OK), 0);
	begin(6, "links");
	assert_true(has(6, "plain", "plain"));
	for (const char *const *name = (const char *[]){"soft", "hard", "folder", "pipe", NULL};
		*name; name++)
		assert_int_equal(access(in("%s/6/%s", config.compiled, *name), F_OK), -1);
	/* The worker's own folder as a link: nothing is written through it. */
	compiled_end(&config, 6, "");
	assert_int_equal(symlink(base, in("%s/7", config.compiled)), 0);
	compiled_begin(&config, 7, "links");
	assert_int_equal(access(in("%s/plain", base), F_OK), -1);
	compiled_end(&config, 7, "links");
	assert_int_equal(access(in("%s/secret", base), F_OK), 0);
	unlink(in("%s/7", config.compiled));
}

static void what_is_too_much_is_not_kept(void **state)
{
	int fd;

	(void)state;
	begin(8, "large");
	fd = open(in("%s/8/large", config.compiled), O_WRONLY | O_CREAT, 0600);
	assert_int_equal(ftruncate(fd, COMPILED_BYTES_MAX + 1), 0);
	close(fd);
	compiled_end(&config, 8, "large");
	begin(9, "large");
	assert_int_equal(access(in("%s/9/large", config.compiled), F_OK), -1);
	for (int i = 0; i <= COMPILED_FILES_MAX; i++)
		put(in("%s/9/%d", config.compiled, i), "");
	compiled_end(&config, 9, "large");
	begin(10, "large");
	assert_int_equal(access(in("%s/10/1", config.compiled), F_OK), -1);
	compiled_end(&config, 10, "large");
}

static void a_session_that_has_less_takes_nothing_away(void **state)
{
	(void)state;
	begin(11, "two");
	put(in("%s/11/a", config.compiled), "a");
	put(in("%s/11/b", config.compiled), "b");
	compiled_end(&config, 11, "two");
	assert_int_equal(mkdir(in("%s/12", config.compiled), 0700), 0);
	put(in("%s/12/c", config.compiled), "c");
	compiled_end(&config, 12, "two");
	begin(13, "two");
	assert_true(has(13, "b", "b"));
	compiled_end(&config, 13, "two");
}

static void tenants_have_an_end(void **state)
{
	char name[32];
	unsigned count = 0;
	struct dirent *entry;
	DIR *dir;

	(void)state;
	for (int i = 0; i < COMPILED_TENANTS + 8; i++) {
		snprintf(name, sizeof(name), "tenant-%d", i);
		begin(100 + i, name);
		put(in("%s/%d/kernel", config.compiled, 100 + i), name);
		compiled_end(&config, 100 + i, name);
	}
	dir = opendir(in("%s.compiled/kept", config.cache_dir));
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	assert_int_equal(count, COMPILED_TENANTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tenant_gets_its_own),
		cmocka_unit_test(links_are_not_followed),
		cmocka_unit_test(what_is_too_much_is_not_kept),
		cmocka_unit_test(a_session_that_has_less_takes_nothing_away),
		cmocka_unit_test(tenants_have_an_end),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
