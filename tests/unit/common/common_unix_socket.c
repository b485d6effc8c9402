/* SPDX-License-Identifier: Apache-2.0
 *
 * Sockets in the file system: who is there, who takes a place that is free, stale or taken, and
 * what is left behind.
 */
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

#include "common/instance_lock.h"
#include "common/unix_socket.h"

static char folder[32], path[64];
static const struct instance_kind kind = {"server", "path", SOCK_STREAM, 0620};

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/unix-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/deep/s", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "%s/deep", folder);
	return rmdir(path) || rmdir(folder); /* nothing is left in it */
}

static void one_takes_the_place(void **state)
{
	struct instance_lock first, second;
	struct unix_peer peer;
	struct error error;
	struct stat st;
	char pid[32];
	int fd, came;

	(void)state;
	assert_int_equal(unix_connect(path, SOCK_STREAM, &error), -ENOENT);
	assert_int_equal(instance_lock_acquire(&first, path, &kind, &error), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0620);
	assert_int_equal(instance_lock_acquire(&second, path, &kind, &error), -EEXIST);
	snprintf(pid, sizeof(pid), "server (pid %d) serves", (int)getpid());
	assert_non_null(strstr(error.text, pid));
	assert_non_null(strstr(error.text, path));

	/* The one that asked who serves there has come, too, and is gone. */
	came = unix_accept(first.listen_fd, NULL);
	assert_true(came >= 0);
	close(came);
	fd = unix_connect(path, SOCK_STREAM, &error);
	assert_true(fd >= 0);
	came = unix_accept(first.listen_fd, &peer);
	assert_true(came >= 0);
	assert_int_equal(peer.uid, geteuid());
	assert_int_equal(peer.pid, getpid());
	assert_int_equal(unix_accept(first.listen_fd, &peer), -EAGAIN);
	close(fd);
	close(came);
	instance_lock_release(&first);
	assert_int_equal(access(path, F_OK), -1);
}

static void a_dead_ones_socket_is_replaced(void **state)
{
	struct instance_lock instance;
	struct error error;
	struct stat before, after;

	(void)state;
	assert_int_equal(instance_lock_acquire(&instance, path, &kind, &error), 0);
	assert_int_equal(stat(path, &before), 0);
	/* As its end by SIGKILL leaves them: the files stay. */
	close(instance.listen_fd);
	close(instance.lock_fd);
	assert_int_equal(unix_connect(path, SOCK_STREAM, &error), -ECONNREFUSED);
	assert_int_equal(instance_lock_acquire(&instance, path, &kind, &error), 0);
	assert_int_equal(stat(path, &after), 0);
	assert_true(before.st_ino != after.st_ino ||
		    before.st_ctim.tv_nsec != after.st_ctim.tv_nsec);
	instance_lock_release(&instance);
}

/* Who asks while one replaces another finds a socket, be it one that nobody listens on. */
static void a_replaced_socket_is_never_absent(void **state)
{
	char at[80];
	pid_t asking;
	int status;

	(void)state;
	snprintf(at, sizeof(at), "%s/replaced", folder);
	close(unix_listen(at, SOCK_STREAM, 0600, NULL));
	asking = fork();
	if (!asking)
		for (;;) {
			int fd = unix_connect(at, SOCK_STREAM, NULL);

			if (fd < 0 && fd != -ECONNREFUSED)
				_exit(fd == -ENOENT ? 1 : 2);
			close(fd);
		}
	assert_true(asking > 0);
	for (int i = 0; i < 5000 && waitpid(asking, &status, WNOHANG) == 0; i++) {
		int fd = unix_listen(at, SOCK_STREAM, 0600, NULL);

		assert_true(fd >= 0);
		close(fd);
	}
	assert_int_equal(kill(asking, SIGKILL), 0);
	assert_int_equal(waitpid(asking, &status, 0), asking);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(unlink(at), 0);
}

static void other_files_stay(void **state)
{
	struct instance_lock instance;
	struct error error;
	char longer[200];
	int fd;

	(void)state;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(instance_lock_acquire(&instance, path, &kind, &error), -EEXIST);
	assert_non_null(strstr(error.text, "is not a socket"));
	assert_int_equal(unlink(path), 0);
	memset(longer, 'x', sizeof(longer));
	longer[0] = '/';
	longer[sizeof(longer) - 1] = 0;
	assert_int_equal(
		instance_lock_acquire(&instance, longer, &kind, &error), -ENAMETOOLONG);
	assert_int_equal(unix_connect(longer, SOCK_STREAM, &error), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_takes_the_place),
		cmocka_unit_test(a_dead_ones_socket_is_replaced),
		cmocka_unit_test(a_replaced_socket_is_never_absent),
		cmocka_unit_test(other_files_stay),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
