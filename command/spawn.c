/* SPDX-License-Identifier: Apache-2.0 */
#include "command/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/wait.h"

/* Where a pod's containers find what vcuda-client installed; a single file of it may be mounted
 * elsewhere, as /usr/local/bin/nvidia-smi. */
#define POD_FOLDER "/lib/vcuda"

/* The folder of this command's file, without a slash at the end. */
static int own_folder(char folder[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);
	char *slash;

	if (n < 0)
		return -errno;
	folder[n] = 0;
	slash = strrchr(folder, '/');
	if (!slash)
		return -ENOENT;
	*slash = 0;
	return 0;
}

/* NAME in the folder RELATIVE to this command's, or, where that begins with a slash, there. */
static int find(const char *relative, const char *name, int mode, char *path, size_t n)
{
	char folder[PATH_MAX], raw[PATH_MAX + 300], real[PATH_MAX];
	int ret = *relative == '/' ? 0 : own_folder(folder);

	if (ret < 0)
		return ret;
	snprintf(raw, sizeof(raw), "%s%s%s", *relative == '/' ? "" : folder,
		*relative == '/' ? "" : "/", relative);
	if (!realpath(raw, real))
		return -errno;
	if (snprintf(path, n, "%s/%s", real, name) >= (int)n)
		return -ENAMETOOLONG;
	return access(path, mode) ? -errno : 0;
}

int spawn_beside(const char *name, char *path, size_t n, struct error *error)
{
	char here[PATH_MAX + 300];
	int ret = find(".", name, X_OK, path, n);

	if (!ret || !find(POD_FOLDER, name, X_OK, here, sizeof(here))) {
		if (ret && snprintf(path, n, "%s", here) >= (int)n)
			return error_set(error, ENAMETOOLONG, "%s", name);
		return 0;
	}
	return error_set(error, -ret, "%s (it belongs beside vcuda)", path);
}

int spawn_library(const char *name, char *path, size_t n)
{
	static const char *const places[] = {"../lib", "../lib/vcuda", ".", POD_FOLDER};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!find(places[i], name, R_OK, path, n))
			return 0;
	return -ENOENT;
}

/* In the child: nothing of ours stays blocked or ignored, and it dies with its parent. */
static void child_begin(pid_t parent)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(127);
}

pid_t spawn_service(char *const argv[], int log)
{
	pid_t parent = getpid(), pid = fork();
	int null;

	if (pid)
		return pid < 0 ? -errno : pid;
	child_begin(parent);
	/* The program's: the software GPU's agent would take it for its own. */
	unsetenv("CUDA_VISIBLE_DEVICES");
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(null, STDIN_FILENO);
	if (log >= 0) {
		dup2(null, STDOUT_FILENO);
		dup2(log, STDERR_FILENO);
	}
	execv(argv[0], argv);
	dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

void spawn_end(pid_t pid, unsigned patience_ms)
{
	uint64_t deadline = wait_now() + patience_ms * 1000000ull;

	if (pid <= 0)
		return;
	kill(pid, SIGTERM);
	while (!waitpid(pid, NULL, WNOHANG)) {
		if (wait_now() >= deadline) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			return;
		}
		usleep(2000);
	}
}

/* Keeps what comes; what does not fit is dropped. false at the end. */
static bool drink(int fd, char *to, size_t *at, size_t n)
{
	char waste[4096];
	size_t room = n - 1 - *at;
	ssize_t got = read(fd, room ? to + *at : waste, room ? room : sizeof(waste));

	if (got <= 0)
		return got < 0 && errno == EINTR;
	if (room)
		*at += (size_t)got;
	return true;
}

static void child_captured(char *const argv[], int out, int err)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	execv(argv[0], argv);
	dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

int spawn_capture(char *const argv[], unsigned seconds, char *out, char *err, size_t n)
{
	uint64_t deadline = wait_now() + seconds * 1000000000ull;
	struct pollfd fds[2] = {{.events = POLLIN}, {.events = POLLIN}};
	int out_pipe[2], err_pipe[2], status = 0;
	size_t out_at = 0, err_at = 0;
	pid_t parent = getpid(), pid;
	bool late = false;

	if (pipe2(out_pipe, O_CLOEXEC))
		return -errno;
	if (pipe2(err_pipe, O_CLOEXEC)) {
		close(out_pipe[0]);
		close(out_pipe[1]);
		return -errno;
	}
	pid = fork();
	if (!pid) {
		child_begin(parent);
		child_captured(argv, out_pipe[1], err_pipe[1]);
	}
	close(out_pipe[1]);
	close(err_pipe[1]);
	fds[0].fd = out_pipe[0];
	fds[1].fd = err_pipe[0];
	while (pid > 0 && (fds[0].fd >= 0 || fds[1].fd >= 0)) {
		uint64_t now = wait_now();

		if (now >= deadline) {
			late = true;
			break;
		}
		if (poll(fds, 2, (int)((deadline - now) / 1000000) + 1) <= 0)
			continue;
		if (fds[0].revents && !drink(out_pipe[0], out, &out_at, n))
			fds[0].fd = -1;
		if (fds[1].revents && !drink(err_pipe[0], err, &err_at, n))
			fds[1].fd = -1;
	}
	close(out_pipe[0]);
	close(err_pipe[0]);
	out[out_at] = err[err_at] = 0;
	if (pid < 0)
		return -EAGAIN;
	if (late)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (late)
		return -ETIMEDOUT;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
