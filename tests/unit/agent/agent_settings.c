/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's configuration: what the file and the flags set, and that an error names the file,
 * the line, the key, and what it takes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu-agent/supervisor/settings/options.h"
#include "gpu-agent/supervisor/settings/settings.h"
#include "gpu-agent/supervisor/settings/token.h"

static char path[] = "/tmp/agent-settings-XXXXXX";
static struct agent_config config;
static struct error error;

static void put(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	assert_int_equal(fclose(file), 0);
}

static void read_good(const char *text)
{
	put(text);
	settings_defaults(&config);
	memset(&error, 0, sizeof(error));
	if (agent_settings_read(&config, path, &error))
		fail_msg("%s: %s", text, error.text);
}

/* The file is refused, at that line, with those words. */
static void read_bad(const char *text, int line, const char *words)
{
	char where[64];

	put(text);
	settings_defaults(&config);
	assert_true(agent_settings_read(&config, path, &error) < 0);
	snprintf(where, sizeof(where), "%s:%d: ", path, line);
	if (strncmp(error.text, where, strlen(where)) || !strstr(error.text, words))
		fail_msg("'%s' should begin with '%s' and say '%s'", error.text, where, words);
}

static void every_key_is_read(void **state)
{
	(void)state;
	read_good("# comment\n"
		  "listen: 127.0.0.1\n"
		  "ports: {send: 1, recv: 2, control: 3}\n"
		  "driver: /opt/libcuda.so\n"
		  "libraries:\n"
		  "  path: [/a, /b]\n"
		  "  cublas: /opt/cuda-12.9/lib64/libcublas.so.12\n"
		  "  cudnn: [/c, /d/libcudnn.so.9.1.0]\n"
		  "gpus: [0, 2-3]\n"
		  "token: s3cret\n"
		  "warm_workers: 3\n"
		  "max_sessions: 10\n"
		  "max_sessions_per_pod: 5\n"
		  "memory_limit: 8GiB\n"
		  "memory_reserve: 1G\n"
		  "lease_initial: 64Mi\n"
		  "start_timeout: 1500ms\n"
		  "drain_seconds: 7\n"
		  "cache_dir: /cache\n"
		  "cache_bytes: 1073741824\n"
		  "cache: {shared: all}\n"
		  "http:\n  address: ::1\n"
		  "worker_cpus:\n  - 0\n  - 2-3\n"
		  "launch_timeout_ms: 9\n"
		  "sandbox: off\n"
		  "log: warn\n"
		  "ready_file: /run/ready\n");
	assert_string_equal(config.address, "127.0.0.1");
	assert_int_equal(config.ports[LISTEN_SEND], 1);
	assert_int_equal(config.ports[LISTEN_RECV], 2);
	assert_int_equal(config.ports[LISTEN_CONTROL], 3);
	assert_int_equal(config.driver, DRIVER_FILE);
	assert_string_equal(config.driver_path, "/opt/libcuda.so");
	assert_string_equal(config.library_path, "/a:/b");
	assert_string_equal(
		config.libraries[LIBRARY_CUBLAS], "/opt/cuda-12.9/lib64/libcublas.so.12");
	assert_string_equal(config.libraries[LIBRARY_CUDNN], "/c:/d/libcudnn.so.9.1.0");
	assert_string_equal(config.libraries[LIBRARY_CUBLASLT], "");
	assert_int_equal(config.gpu_count, 3);
	assert_int_equal(config.gpus[0], 0);
	assert_int_equal(config.gpus[2], 3);
	assert_int_equal(config.tokens.count, 1);
	assert_string_equal(config.tokens.list[0].name, "default");
	assert_int_equal(token_find(&config.tokens, (char[256]){"s3cret"}), 0);
	assert_int_equal(config.warm_workers, 3);
	assert_int_equal(config.max_sessions, 10);
	assert_int_equal(config.max_sessions_per_pod, 5);
	assert_int_equal(config.memory_limit, 8ull << 30);
	assert_int_equal(config.memory_reserve, 1000000000);
	assert_int_equal(config.lease_initial, 64u << 20);
	assert_int_equal(config.start_timeout_ms, 1500);
	assert_int_equal(config.drain_ms, 7000);
	assert_string_equal(config.cache_dir, "/cache");
	assert_int_equal(config.cache_bytes, 1u << 30);
	assert_true(config.cache_shared);
	assert_string_equal(config.http_address, "::1");
	assert_true(config.pinned);
	assert_true(CPU_ISSET(0, &config.worker_cpus) && CPU_ISSET(3, &config.worker_cpus));
	assert_false(CPU_ISSET(1, &config.worker_cpus));
	assert_int_equal(config.launch_timeout_ms, 9);
	assert_true(config.sandbox_off);
	assert_int_equal(config.log_level, 1);
	assert_string_equal(config.ready_file, "/run/ready");
}

static void an_empty_file_means_defaults(void **state)
{
	struct agent_config same;

	(void)state;
	settings_defaults(&same);
	read_good("");
	assert_memory_equal(&config, &same, sizeof(config));
	read_good("library_path: /a:/b\n"); /* the old name */
	assert_string_equal(config.library_path, "/a:/b");
	read_good("# nothing\n");
	assert_memory_equal(&config, &same, sizeof(config));
	assert_int_equal(settings_complete(&config, "/usr/bin/gpu-agent", &error), 0);
	assert_string_equal(config.driver_path, "libcuda.so.1");
	assert_int_equal(config.warm_workers, 2);
}

static void errors_name_file_and_line(void **state)
{
	(void)state;
	read_bad("\nwarm: 3\n", 2, "unknown key 'warm'");
	read_bad("listen: a\nhttp:\n  adress: x\n", 3, "unknown key 'http.adress'");
	read_bad("ports:\n  recv: 70000\n", 2, "ports.recv: \"70000\" is not a port");
	read_bad("ports: [1, 2, 3]\n", 1, "unknown key 'ports'");
	read_bad("driver: amd\n", 1, "driver: \"amd\" is not nvidia, software or an absolute");
	read_bad("warm_workers: 0\n", 1, "a number from 1 to 64");
	read_bad("max_sessions: -1\n", 1, "a number from 1 to 4096");
	read_bad("max_sessions: 5x\n", 1, "\"5x\" is not a number");
	read_bad("memory_limit: 8Gx\n", 1, "is not bytes like 8GiB");
	read_bad("memory_limit: 99999999999999999999\n", 1, "is not bytes");
	read_bad("memory_limit: 18446744073709551615T\n", 1, "is not bytes");
	read_bad("start_timeout: soon\n", 1, "is not a time");
	read_bad("gpus: [0, 0]\n", 1, "is not all or a list");
	read_bad("gpus: [0, x]\n", 1, "is not all or a list");
	read_bad("worker_cpus: 3-1\n", 1, "is not all or a list");
	for (const char *const *wrong = (const char *const[]){"http://x", "tcp://host",
		     "tcp://host:99999", "tcp://:6379", "tcp://host:6379/0", "unix://r.sock",
		     "unix:///", "/run/redis.sock", NULL};
		*wrong; wrong++) {
		char text[64];

		snprintf(text, sizeof(text), "store: {registry: \"%s\"}\n", *wrong);
		read_bad(text, 1, "is not a Redis: unix:///PATH or tcp://HOST:PORT");
	}
	read_good("store: {registry: \"tcp://[::1]:6379\"}\n");
	read_good("store: {registry: \"unix:///run/redis.sock\"}\n");
	read_good("store: {registry: \"\"}\n");
	read_bad("log: loud\n", 1, "error, warn, info or debug");
	read_bad("warm_workers: [1]\n", 1, "not a list");
	read_bad("listen: a\nlisten: b\n", 2, "'listen' is given twice");
	read_bad(
		"libraries:\n  cublas: lib\n", 2, "libraries.cublas: \"lib\" is not a list of");
	read_bad("libraries:\n  path: [/a, b]\n", 2, "is not a list of absolute folders");
	read_bad("libraries:\n  path: /a/libcublas.so.12\n", 2, "absolute folders");
	read_bad("libraries:\n  cudnn: /a/libcublas.so.12\n", 2, "libcudnn.so.MAJOR");
	read_bad("libraries:\n  cublas: /a/libcublas.so\n", 2, "libcublas.so.MAJOR");
	read_bad("libraries:\n  cuart: /a\n", 2, "unknown key 'libraries.cuart'");
	read_bad("tenants:\n  a: {handles: 20, gpu_share: 0.5}\n  b: {gpu_share: 0.1}\n"
		 "  a: {gpu_share: 0.6}\n",
		4, "'tenants.a.gpu_share' is given twice");
	read_bad("tenants: {b: {handles: 20}, a: {handles: 20, modules: 2, handles: 30}}\n", 1,
		"'tenants.a.handles' is given twice");
	read_good("tenants: {b: {handles: 20}, a: {handles: 20, modules: 2, sessions: 3}}\n");
	read_bad("library_path: /a\nlibraries: {path: /b}\n", 2, "given twice");
	read_bad("- a\n", 1, "list");
	read_bad("listen: 'a\n", 2, "");
	read_bad("token_file: /nonexistent/token\n", 1, "/nonexistent/token: No such file");
}

static void a_bad_token_is_not_shown(void **state)
{
	char text[400] = "token: ";

	(void)state;
	memset(text + 7, 'x', 300);
	read_bad(text, 1, "token: \"(hidden)\" is not a text of at most 255 bytes");
	assert_null(strstr(error.text, "xxx"));
}

static enum options_do parse(const char *a, const char *b, const char *c, const char *d)
{
	char words[4][128];
	char *argv[6] = {(char[]){"gpu-agent"}};
	const char *given[4] = {a, b, c, d};
	int argc = 1;

	memset(&error, 0, sizeof(error));
	for (int i = 0; i < 4 && given[i]; i++) {
		snprintf(words[i], sizeof(words[i]), "%s", given[i]);
		argv[argc++] = words[i];
	}
	return agent_options_parse(argc, argv, &config, &error);
}

static void flags_win_over_the_file(void **state)
{
	(void)state;
	put("warm_workers: 3\nlisten: ::1\n");
	assert_int_equal(parse("--warm=5", "--config", path, NULL), OPTIONS_RUN);
	assert_int_equal(config.warm_workers, 5);
	assert_string_equal(config.address, "::1");
	assert_int_equal(parse("--ports", "7,8,9", "--check-config", NULL), OPTIONS_CHECK);
	assert_int_equal(config.ports[LISTEN_CONTROL], 9);
	assert_int_equal(parse("--set", "launch_timeout_ms=77", NULL, NULL), OPTIONS_RUN);
	assert_int_equal(config.launch_timeout_ms, 77);
	assert_int_equal(parse("-n", "native", "-r", "1234"), OPTIONS_RUN);
	assert_int_equal(config.ports[LISTEN_RECV], 1234);
}

static void bad_flags_say_so(void **state)
{
	(void)state;
	assert_int_equal(parse("--wram", "5", NULL, NULL), OPTIONS_USAGE);
	assert_non_null(strstr(error.text, "unknown flag '--wram'"));
	assert_int_equal(parse("stray", NULL, NULL, NULL), OPTIONS_USAGE);
	assert_non_null(strstr(error.text, "unknown argument 'stray'"));
	assert_int_equal(parse("--warm", NULL, NULL, NULL), OPTIONS_USAGE);
	assert_non_null(strstr(error.text, "--warm wants N"));
	assert_int_equal(parse("--ports", "1,2", NULL, NULL), OPTIONS_USAGE);
	assert_non_null(strstr(error.text, "--ports: ports: \"1,2\" is not SEND,RECV,CONTROL"));
	assert_int_equal(parse("-n", "rdma", NULL, NULL), OPTIONS_USAGE);
	assert_non_null(strstr(error.text, "'rdma' is no network: native, light"));
	assert_int_equal(parse("--config", "/nonexistent", NULL, NULL), OPTIONS_BAD);
	assert_non_null(strstr(error.text, "/nonexistent: No such file"));
}

static void the_same_port_twice_is_refused(void **state)
{
	(void)state;
	read_good("ports: {send: 5, recv: 5}\n");
	assert_true(settings_complete(&config, "gpu-agent", &error) < 0);
	assert_string_equal(error.text, "ports: 5 is given twice");
}

static void it_survives_the_memfd(void **state)
{
	struct agent_config copy;
	int fd;

	(void)state;
	read_good("token: abc\nwarm_workers: 9\n");
	fd = settings_to_fd(&config, &error);
	assert_true(fd >= 0);
	assert_int_equal(settings_from_fd(&copy, fd, &error), 0);
	assert_memory_equal(&copy, &config, sizeof(copy));
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_true(settings_from_fd(&copy, fd, &error) < 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_read),
		cmocka_unit_test(an_empty_file_means_defaults),
		cmocka_unit_test(errors_name_file_and_line),
		cmocka_unit_test(a_bad_token_is_not_shown),
		cmocka_unit_test(flags_win_over_the_file),
		cmocka_unit_test(bad_flags_say_so),
		cmocka_unit_test(the_same_port_twice_is_refused),
		cmocka_unit_test(it_survives_the_memfd),
	};
	int fd = mkstemp(path), ret;

	if (fd < 0)
		return 1;
	close(fd);
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return ret;
}
