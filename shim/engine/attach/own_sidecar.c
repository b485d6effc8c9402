/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/engine/attach/own_sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/engine/sha256.h"

extern char **environ;

#define SUFFIX "/vcuda-%s.sock"
/* Room for the sidecar's lock beside the socket. */
#define PATH_MOST (sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof(".lock"))
#define SHORT_PREFIX 8 /* of a name that ends in a digest of all of it */

static void readable(char *to, const char *agent, size_t n)
{
	size_t i;

	for (i = 0; agent[i] && i < n - 1; i++)
		to[i] = strchr("/ \t", agent[i]) ? '_' : agent[i];
	to[i] = 0;
}

/* The socket for AGENT in FOLDER: by its name where that fits, else by its beginning and a
 * digest, since names that are cut could be those of two agents. */
static void socket_in(char *path, size_t n, const char *folder, const char *agent)
{
	char name[80];
	uint8_t digest[32];
	size_t at;

	if (strlen(agent) < sizeof(name) &&
		strlen(folder) + strlen(SUFFIX) - 2 + strlen(agent) <= PATH_MOST) {
		readable(name, agent, sizeof(name));
	} else {
		sha256(agent, strlen(agent), digest);
		readable(name, agent, SHORT_PREFIX + 1);
		at = strlen(name);
		name[at++] = '-';
		for (size_t i = 0; i < 8; i++)
			at += (size_t)snprintf(name + at, sizeof(name) - at, "%02x", digest[i]);
	}
	snprintf(path, n, "%s" SUFFIX, folder, name);
}

void own_sidecar_socket(char *path, size_t n, const char *agent)
{
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	struct stat status;
	char folder[64];

	if (runtime && runtime[0] == '/' && strlen(runtime) < sizeof(folder) &&
		!stat(runtime, &status) && status.st_uid == geteuid()) {
		socket_in(path, n, runtime, agent);
		return;
	}
	snprintf(folder, sizeof(folder), "/tmp/vcuda-%u", (unsigned)geteuid());
	mkdir(folder, 0700);
	/* Somebody else's directory there would let him answer for the sidecar. */
	if (lstat(folder, &status) || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
		status.st_mode & 022) {
		path[0] = 0;
		return;
	}
	socket_in(path, n, folder, agent);
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

static char *environment[512];

void own_sidecar_keep(void)
{
	static bool kept;
	size_t n = 0;

	for (char **e = environ; !kept && e && *e && n < 511; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11) && strncmp(*e, "VCUDA_STATS=", 12)) {
			environment[n] = strdup(*e);
			n += environment[n] != NULL;
		}
	kept = true;
}

/* By a grandchild, so that the app never sees a child of ours in wait(). */
bool own_sidecar_start(const char *client, const char *agent, const char *path)
{
	const char *arguments[] = {
		client, "run", "--agent", agent, "--socket", path, "--idle-exit", "10", NULL};
	sigset_t all, old;
	pid_t child;
	int status;

	own_sidecar_keep();
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
