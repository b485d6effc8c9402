/* SPDX-License-Identifier: Apache-2.0
 *
 * Supervisor, front and worker: what each may see, and what happens when one of them is killed,
 * is silent, or is asked to end.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/agent/client.h"

static struct agent agent;

/* The children of the supervisor with that name, at most `room`. */
static int children(const char *name, pid_t *pids, int room)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(proc)) && count < room) {
		char path[300], comm[32];
		int pid = atoi(entry->d_name), parent;
		FILE *stat;

		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		stat = pid > 0 ? fopen(path, "r") : NULL;
		if (!stat)
			continue;
		if (fscanf(stat, "%*d (%31[^)]) %*c %d", comm, &parent) == 2 &&
			parent == agent.pid && !strcmp(comm, name))
			pids[count++] = pid;
		fclose(stat);
	}
	closedir(proc);
	return count;
}

static bool gone(pid_t pid)
{
	for (double end = now_seconds() + 3; now_seconds() < end; usleep(5000))
		if (kill(pid, 0) && errno == ESRCH)
			return true;
	return false;
}

/* --- what a worker may see ---------------------------------------------------------------- */

static void worker_sees_nothing_secret(void **state)
{
	pid_t worker;
	char path[64], text[8192];
	struct client c;
	FILE *file;
	size_t n;
	int fds = 0;
	DIR *folder;
	struct dirent *entry;

	(void)state;
	setenv("MY_SECRET", "do not pass on", 1);
	setenv("VCUDA_SOFTGPU_TEST", "pass on", 1);
	/* The toy worker aborts where it finds the token in its configuration. */
	agent_start(&agent, "/toy/ready",
		(const char *[]){"--set", "token=word", "--gpus", "0,3", NULL});
	unsetenv("MY_SECRET");
	assert_true(agent.ready);
	assert_int_equal(children("agent-worker", &worker, 1), 1);
	snprintf(path, sizeof(path), "/proc/%d/environ", worker);
	file = fopen(path, "r");
	assert_non_null(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	for (size_t i = 0; i < n; i++)
		text[i] = text[i] ? text[i] : '\n';
	text[n] = 0;
	assert_null(strstr(text, "MY_SECRET"));
	assert_null(strstr(text, "LD_PRELOAD"));
	assert_non_null(strstr(text, "VCUDA_SOFTGPU_TEST=pass on\n"));
	assert_non_null(strstr(text, "CUDA_VISIBLE_DEVICES=0,3\n"));
	snprintf(path, sizeof(path), "/proc/%d/fd", worker);
	folder = opendir(path);
	while ((entry = readdir(folder))) {
		char target[64] = "";

		/* The sandbox keeps names in /proc that its rules are for (O_PATH). */
		if (readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1) < 0 ||
			strncmp(target, "/proc/", 6))
			fds++;
	}
	closedir(folder);
	assert_int_equal(fds, 2 + 4); /* . and ..; 0, 1, 2 and the hand-off socket */
	assert_true(client_open(&agent, &c, NULL, "word"));
	client_close(&c);
	agent_stop(&agent);
}

/* Whether the process has the bytes anywhere in its writable memory. */
static bool has_in_memory(pid_t pid, const char *word)
{
	char path[64], line[512], *copy;
	FILE *maps, *mem;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "r");
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	mem = fopen(path, "r");
	if (!maps || !mem)
		skip(); /* not root: the kernel itself says no */
	while (!found && fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		char mode[8];

		if (sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3 || mode[1] != 'w' ||
			to - from > (256ul << 20))
			continue;
		copy = malloc(to - from);
		assert_non_null(copy);
		if (!fseeko(mem, (off_t)from, SEEK_SET) &&
			fread(copy, 1, to - from, mem) == to - from)
			found = memmem(copy, to - from, word, strlen(word));
		free(copy);
	}
	fclose(maps);
	fclose(mem);
	return found;
}

static void token_is_in_no_memory_but_a_hello(void **state)
{
	static const char word[] = "a-token-that-stands-nowhere-else";
	char file[] = "/tmp/agent-token-XXXXXX", path[64], text[4096], *mine;
	int fd = mkstemp(file);
	pid_t front, worker;
	struct client c;
	size_t n;

	(void)state;
	assert_int_equal(write(fd, word, strlen(word)), (ssize_t)strlen(word));
	agent_start(&agent, "/toy/ready", (const char *[]){"--token-file", file, NULL});
	assert_true(client_open(&agent, &c, NULL, word));
	client_echo(&c, "in");
	assert_int_equal(children("agent-front", &front, 1), 1);
	assert_int_equal(children("agent-worker", &worker, 1), 1);
	mine = strdup(word);
	assert_true(has_in_memory(getpid(), word)); /* it looks in the right places */
	free(mine);
	assert_false(has_in_memory(front, word));
	assert_false(has_in_memory(worker, word));
	client_close(&c);
	agent_stop(&agent);
	close(fd);
	unlink(file);

	/* On the command line everybody could read it. */
	agent_start(&agent, "/toy/ready",
		(const char *[]){"--set", "token=a-token-on-the-command-line", NULL});
	snprintf(path, sizeof(path), "/proc/%d/cmdline", agent.pid);
	fd = open(path, O_RDONLY);
	n = (size_t)read(fd, text, sizeof(text));
	close(fd);
	assert_true(n < sizeof(text));
	assert_non_null(memmem(text, n, "token=", 6));
	assert_null(memmem(text, n, "token=a", 7));
	assert_true(client_open(&agent, &c, NULL, "a-token-on-the-command-line"));
	client_close(&c);
	agent_stop(&agent);
}

/* --- kill -9 ------------------------------------------------------------------------------ */

/* Neither back to 0, nor what a session that goes on had is counted again. */
static void counters_go_on_in_the_next_front(void **state)
{
	static const char tenants[] = "vcuda_agent_tenant_launches_total{tenant=\"default\"}";
	struct client over, old;
	pid_t front;

	(void)state;
	agent_start(&agent, "/toy/ready", NULL);
	assert_true(client_open(&agent, &over, NULL, NULL));
	client_say(over.commands, "T", 1);
	assert_true(http_metric_becomes(&agent, "vcuda_agent_launches_total", 5));
	client_close(&over);
	assert_true(http_metric_becomes(&agent, "vcuda_agent_sessions{state=\"running\"}", 0));
	assert_true(client_open(&agent, &old, NULL, NULL));
	client_say(old.commands, "T", 1);
	assert_true(http_metric_becomes(&agent, "vcuda_agent_launches_total", 10));
	assert_int_equal(http_metric(&agent, tenants), 10);
	assert_int_equal(children("agent-front", &front, 1), 1);
	kill(front, SIGKILL);
	assert_true(gone(front));
	assert_int_equal(http_metric(&agent, "vcuda_agent_launches_total"), 10);
	assert_int_equal(http_metric(&agent, "vcuda_agent_sessions_total"), 2);
	client_say(old.commands, "T", 1); /* the same figures once more */
	client_echo(&old, "heard");
	usleep(50000);
	assert_int_equal(http_metric(&agent, "vcuda_agent_launches_total"), 10);
	assert_int_equal(http_metric(&agent, tenants), 10);
	client_close(&old);
	agent_stop(&agent);
}

static void killed_front_is_replaced(void **state)
{
	pid_t front;
	struct client old, new;

	(void)state;
	agent_start(&agent, "/toy/ready", NULL);
	assert_true(client_open(&agent, &old, NULL, NULL));
	client_echo(&old, "there"); /* the session is the worker's */
	assert_int_equal(children("agent-front", &front, 1), 1);
	kill(front, SIGKILL);
	assert_true(gone(front)); /* on a busy machine it still took connections along */
	/* The same ports; a connection made meanwhile waits and is not refused. */
	if (!client_open(&agent, &new, NULL, NULL))
		fail_msg("%u %s\n%s", new.welcome.status, new.welcome.text, agent_log(&agent));
	client_echo(&new, "again");
	client_echo(&old, "still");
	assert_int_equal(http_metric(&agent, "vcuda_agent_sessions_adopted_total"), 1);
	assert_int_equal(http_metric(&agent, "vcuda_agent_front_restarts_total"), 1);
	client_close(&old);
	client_close(&new);
	agent_stop(&agent);
}

/* It asked a front that never read it, and asks the next one again: one grant, not two. */
static void lease_is_asked_for_again(void **state)
{
	char text[32] = "";
	struct client c;
	pid_t front;

	(void)state;
	agent_start(&agent, "/toy/ready", NULL);
	assert_true(client_open(&agent, &c, NULL, NULL));
	client_echo(&c, "there"); /* the session is the worker's */
	assert_int_equal(children("agent-front", &front, 1), 1);
	kill(front, SIGSTOP);
	client_say(c.commands, "L", 1);
	usleep(100000); /* that it lies there is what is tried; sooner tries less */
	kill(front, SIGKILL);
	assert_true(recv(c.replies, text, sizeof(text) - 1, 0) > 0);
	assert_int_equal(strtoull(text, NULL, 10), 512ull << 20);
	assert_int_equal(http_metric(&agent, LEASED), 512ull << 20);
	client_close(&c);
	agent_stop(&agent);
}

static void killed_worker_ends_its_session_at_once(void **state)
{
	pid_t workers[8];
	struct client a, b;

	(void)state;
	agent_start(&agent, "/toy/ready", NULL);
	assert_int_equal(children("agent-worker", workers, 8), 1);
	assert_true(client_open(&agent, &a, NULL, NULL)); /* takes the one there is */
	assert_true(client_open(&agent, &b, NULL, NULL));
	kill(workers[0], SIGKILL);
	assert_true(client_ended(&a));
	assert_true(http_metric_becomes(&agent, "vcuda_agent_sessions{state=\"running\"}", 1));
	client_echo(&b, "undisturbed");
	client_close(&a);
	client_close(&b);
	agent_stop(&agent);
}

static void killed_supervisor_takes_all_along(void **state)
{
	pid_t front, workers[8];
	struct client c;
	int count;

	(void)state;
	agent_start(&agent, "/toy/ready", NULL);
	assert_true(client_open(&agent, &c, NULL, NULL));
	assert_int_equal(children("agent-front", &front, 1), 1);
	count = children("agent-worker", workers, 8);
	agent_signal(&agent, SIGKILL);
	assert_true(client_ended(&c));
	client_close(&c);
	assert_true(gone(front));
	for (int i = 0; i < count; i++)
		assert_true(gone(workers[i]));
	agent_end(&agent, 128 + SIGKILL);
	agent_clean(&agent);
}

static void session_of_a_killed_client_is_freed(void **state)
{
	pid_t child;
	int status, pipes[2];
	char byte;

	(void)state;
	agent_start(&agent, "/toy/ready", NULL);
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (child == 0) {
		struct client c;

		client_open(&agent, &c, NULL, NULL);
		(void)!write(pipes[1], "x", 1);
		pause();
	}
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	assert_int_equal(http_metric(&agent, "vcuda_agent_sessions{state=\"running\"}"), 1);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	assert_true(http_metric_becomes(&agent, "vcuda_agent_sessions{state=\"running\"}", 0));
	assert_true(http_metric_becomes(&agent, "vcuda_agent_workers{state=\"ending\"}", 0));
	close(pipes[0]);
	close(pipes[1]);
	agent_stop(&agent);
}

/* --- a worker that hears nothing ---------------------------------------------------------- */

static void a_worker_that_outlives_its_client_is_ended(void **state)
{
	static const char running[] = "vcuda_agent_sessions{state=\"running\"}";
	struct client deaf;
	char *log;

	(void)state;
	agent_start(&agent, "/toy/ready", NULL);
	assert_true(client_open(&agent, &deaf, NULL, NULL));
	client_echo(&deaf, "x");
	client_say(deaf.commands, "S", 1); /* looks at nothing any more */
	client_close(&deaf);
	assert_true(http_metric_becomes(&agent, running, 0));
	assert_true(http_metric_becomes(&agent, "vcuda_agent_workers{state=\"ending\"}", 0));
	log = agent_log(&agent);
	assert_int_equal(client_count(log, "event=session.outlived"), 1);
	free(log);
	agent_stop(&agent);
}

static void a_worker_without_a_sign_of_life_is_ended(void **state)
{
	struct client deaf, other;

	(void)state;
	agent_start(&agent, "/toy/ready", (const char *[]){"--set", "worker_silence=1s", NULL});
	assert_true(client_open(&agent, &deaf, NULL, NULL));
	client_say(deaf.commands, "S", 1);
	assert_true(client_ended(&deaf));
	client_close(&deaf);
	/* It speaks now and then: nothing happens to it. */
	assert_true(client_open(&agent, &other, NULL, NULL));
	for (int i = 0; i < 8; i++) {
		client_say(other.commands, "T", 1);
		usleep(250000);
	}
	client_echo(&other, "still here");
	client_close(&other);
	agent_stop(&agent);
}

/* --- whether it is alive ------------------------------------------------------------------ */

static void liveness_is_asked_where_strangers_cannot(void **state)
{
	char folder[] = "/tmp/agent-health-XXXXXX", setting[64], flags[128], said[1024];
	const char *path = setting + strlen("health_socket=");
	int idle[64];
	struct stat st;
	pid_t front;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(setting, sizeof(setting), "health_socket=%s/s", folder);
	/* A token file that is just being written is not its affair. */
	snprintf(flags, sizeof(flags), "--healthy --set %s --token-file /nonexistent", setting);
	assert_int_equal(agent_run(flags, said, sizeof(said)), 1);
	assert_non_null(strstr(said, "no agent answers at"));
	agent_start(&agent, "/toy/ready", (const char *[]){"--set", setting, NULL});
	assert_int_equal(agent_run(flags, said, sizeof(said)), 0);
	assert_string_equal(said, "");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	for (int i = 0; i < 64; i++)
		idle[i] = client_connect("127.0.0.9", agent.control);
	assert_int_equal(agent_run(flags, said, sizeof(said)), 0);
	for (int i = 0; i < 64; i++)
		close(idle[i]);
	assert_int_equal(children("agent-front", &front, 1), 1);
	kill(front, SIGSTOP);
	assert_int_equal(agent_run(flags, said, sizeof(said)), 1);
	assert_non_null(strstr(said, "does not answer within 2000 ms"));
	kill(front, SIGCONT);
	assert_int_equal(agent_run(flags, said, sizeof(said)), 0);
	/* The next front takes the place of one that left it behind. */
	kill(front, SIGKILL);
	assert_true(gone(front));
	assert_true(http_metric_becomes(&agent, "vcuda_agent_front_restarts_total", 1));
	assert_int_equal(agent_run(flags, said, sizeof(said)), 0);
	agent_stop(&agent);
	assert_int_equal(access(path, F_OK), -1);
	rmdir(folder);
	assert_int_equal(agent_run("--healthy --ports 0,0,0", said, sizeof(said)), 1);
	assert_non_null(strstr(said, "health_socket: none"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker_sees_nothing_secret),
		cmocka_unit_test(token_is_in_no_memory_but_a_hello),
		cmocka_unit_test(killed_front_is_replaced),
		cmocka_unit_test(counters_go_on_in_the_next_front),
		cmocka_unit_test(lease_is_asked_for_again),
		cmocka_unit_test(killed_worker_ends_its_session_at_once),
		cmocka_unit_test(killed_supervisor_takes_all_along),
		cmocka_unit_test(session_of_a_killed_client_is_freed),
		cmocka_unit_test(a_worker_that_outlives_its_client_is_ended),
		cmocka_unit_test(a_worker_without_a_sign_of_life_is_ended),
		cmocka_unit_test(liveness_is_asked_where_strangers_cannot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
