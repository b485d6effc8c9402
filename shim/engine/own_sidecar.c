/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/engine/own_sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void own_sidecar_socket(char *path, size_t n, const char *agent)
{
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	struct stat status;
	char name[80];
	size_t i;

	for (i = 0; agent[i] && i < sizeof(name) - 1; i++)
		name[i] = strchr("/ \t", agent[i]) ? '_' : agent[i];
	name[i] = 0;
	if (runtime && runtime[0] == '/' && strlen(runtime) < 64 && !stat(runtime, &status) &&
		status.st_uid == geteuid()) {
		snprintf(path, n, "%s/vcuda-%s.sock", runtime, name);
		return;
	}
	snprintf(path, n, "/tmp/vcuda-%u", (unsigned)geteuid());
	mkdir(path, 0700);
	/* Somebody else's directory there would let him answer for the sidecar. */
	if (lstat(path, &status) || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
		status.st_mode & 022) {
		path[0] = 0;
		return;
	}
	snprintf(path, n, "/tmp/vcuda-%u/vcuda-%s.sock", (unsigned)geteuid(), name);
}

struct own_path {
	char *path;
	size_t n;
};

static int find_own_path(struct dl_phdr_info *object, size_t size, void *argument)
{
	struct own_path *own = argument;
	uintptr_t here = (uintptr_t)&find_own_path;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uintptr_t start = object->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD || here < start ||
			here - start >= segment->p_memsz)
			continue;
		snprintf(own->path, own->n, "%s", object->dlpi_name);
		return 1;
	}
	return 0;
}

bool own_sidecar_find(char *path, size_t n)
{
	const char *named = secure_getenv("VCUDA_CLIENT");
	char library[512] = "";
	char *slash;

	if (named && *named)
		return snprintf(path, n, "%s", named) < (int)n;
	dl_iterate_phdr(find_own_path, &(struct own_path){library, sizeof(library)});
	slash = strrchr(library, '/');
	if (!slash)
		return false;
	*slash = 0;
	return snprintf(path, n, "%s/../bin/vcuda-client", library) < (int)n;
}

/* By a grandchild, so that the app never sees a child of ours in wait(). */
bool own_sidecar_start(const char *client, const char *agent, const char *path)
{
	const char *arguments[] = {
		client, "run", "--agent", agent, "--socket", path, "--idle-exit", "10", NULL};
	char *environment[512];
	size_t n = 0;
	sigset_t all, old;
	pid_t child;
	int status;

	for (char **e = environ; *e && n < 511; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11) && strncmp(*e, "VCUDA_STATS=", 12))
			environment[n++] = *e;
	environment[n] = NULL;

	/* The child of a threaded process may only do what is async-signal-safe. vfork would
	 * share our memory but no fork handlers run with it: _Fork is too new, so block
	 * signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	child = vfork();
	if (!child) {
		pid_t grandchild = vfork();

		if (!grandchild) {
			int null = open("/dev/null", O_RDWR);

			setsid();
			pthread_sigmask(SIG_SETMASK, &(sigset_t){0}, NULL);
			if (null >= 0) {
				dup2(null, STDIN_FILENO);
				dup2(null, STDOUT_FILENO);
				if (!secure_getenv("VCUDA_DEBUG"))
					dup2(null, STDERR_FILENO);
			}
			for (int fd = 3; fd < 256; fd++)
				close(fd);
			if (chdir("/") == 0)
				execve(client, (char **)arguments, environment);
			_exit(127);
		}
		_exit(grandchild < 0);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (child < 0)
		return false;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return true;
}
