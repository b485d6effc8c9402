/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor has one thread, so the child may do ordinary things between fork and exec.
 */
#include "gpu-agent/supervisor/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "gpu-agent/supervisor/settings/network_settings.h"
#include "gpu-agent/supervisor/settings/settings.h"

#define WORKER_FILES 1024
#define ENVIRON_MAX 64
#define NCCL_VARIABLES (AGENT_PATH / sizeof("NCCL_A="))
#define FDS_MAX (3 + TRANSPORT_LISTENERS)

extern char **environ;

/* What a worker may see of the supervisor's environment; a '=' at the end: that name, else a
 * prefix.  Never LD_PRELOAD, never what could hold a secret. */
static const char *const allowed[] = {
	"PATH=",
	"HOME=",
	"TMPDIR=",
	"LANG=",
	"TZ=",
	"XDG_CACHE_HOME=",
	"CUDA_VISIBLE_DEVICES=",
	"NVIDIA_VISIBLE_DEVICES=",
	"NVIDIA_DRIVER_CAPABILITIES=",
	"VCUDA_SOFTGPU_",
	"VCUDA_DEBUG=",
	"VCUDA_PERF=",
	"OPENBLAS_NUM_THREADS=",
	"ASAN_OPTIONS=",
	"LSAN_OPTIONS=",
	"UBSAN_OPTIONS=",
	"TSAN_OPTIONS=",
};

struct child_environment {
	char *list[ENVIRON_MAX + NCCL_VARIABLES + 8];
	char libraries[(2 + AGENT_LIBRARIES) * AGENT_PATH + 32];
	char gpus[HANDOFF_DEVICES * 6 + 32];
	char nccl[AGENT_PATH];
};

static bool is_allowed(const char *entry)
{
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		if (!strncmp(entry, allowed[i], strlen(allowed[i])))
			return true;
	return false;
}

/* What a library needs lies in its folder: cuDNN opens its parts by name. */
static void add_folders(struct child_environment *env, const char *entries)
{
	char copy[AGENT_PATH], *rest = copy, *entry;

	snprintf(copy, sizeof(copy), "%s", entries);
	while ((entry = strsep(&rest, ":"))) {
		size_t at = strlen(env->libraries);
		const char *slash = strrchr(entry, '/');
		int n = (int)strlen(entry);

		if (!*entry)
			continue;
		if (slash && strstr(slash, ".so"))
			n = (int)(slash - entry);
		snprintf(env->libraries + at, sizeof(env->libraries) - at, "%s%.*s",
			at ? ":" : "LD_LIBRARY_PATH=", n, entry);
	}
}

static void add_libraries(struct child_environment *env, const struct agent_config *config)
{
	env->libraries[0] = 0;
	for (int i = 0; i < AGENT_LIBRARIES; i++)
		add_folders(env, config->libraries[i]);
	add_folders(env, config->library_path);
	if (getenv("LD_LIBRARY_PATH")) /* the agent's own, behind what is configured */
		add_folders(env, getenv("LD_LIBRARY_PATH"));
}

static void make_environment(struct child_environment *env, const struct agent_config *config)
{
	static char order[] = "CUDA_DEVICE_ORDER=PCI_BUS_ID";
	/* The driver's cache of compiled PTX is one folder for all, a write across sessions; a
	 * worker that has one of its own says so itself (compiled.h). */
	static char no_cache[] = "CUDA_CACHE_DISABLE=1";
	char *rest, *line;
	size_t n = 0, at;

	for (char **e = environ; *e && n < ENVIRON_MAX; e++)
		if (is_allowed(*e) && !(config->gpu_count && !strncmp(*e, "CUDA_VISIBLE", 12)))
			env->list[n++] = *e;
	env->list[n++] = order;
	env->list[n++] = no_cache;
	add_libraries(env, config);
	if (env->libraries[0])
		env->list[n++] = env->libraries;
	if (config->gpu_count) {
		at = (size_t)snprintf(env->gpus, sizeof(env->gpus), "CUDA_VISIBLE_DEVICES=");
		for (uint32_t i = 0; i < config->gpu_count; i++)
			at += (size_t)snprintf(env->gpus + at, sizeof(env->gpus) - at, "%s%u",
				i ? "," : "", config->gpus[i]);
		env->list[n++] = env->gpus;
	}
	/* The agent's own NCCL_… are not a worker's, nor are a program's: only these. */
	memcpy(env->nccl, config->nccl.environment, sizeof(env->nccl));
	rest = config->nccl.allowed ? env->nccl : NULL;
	while ((line = strsep(&rest, "\n")))
		if (*line)
			env->list[n++] = line;
	env->list[n] = NULL;
}

rlim_t spawn_limit_files(rlim_t value)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l))
		return 0;
	l.rlim_cur = value < l.rlim_max ? value : l.rlim_max;
	setrlimit(RLIMIT_NOFILE, &l);
	return l.rlim_cur;
}

/* The child: descriptors to 3, 4, 5 …, everything else closed, then exec. */
__attribute__((noreturn)) static void become(
	const char *role, const int *fds, int count, char *const *env, pid_t parent)
{
	char program[] = "gpu-agent", flag[] = "--role", word[16];
	char *argv[] = {program, flag, word, NULL};
	const struct rlimit no_core = {0, 0};
	int high[FDS_MAX];
	sigset_t none;

	snprintf(word, sizeof(word), "%s", role);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setsid();
	setrlimit(RLIMIT_CORE, &no_core);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 0; i < count; i++) {
		high[i] = fcntl(fds[i], F_DUPFD, 64);
		if (high[i] < 0)
			_exit(126);
	}
	for (int i = 0; i < count; i++)
		if (dup2(high[i], AGENT_FD_SOCKET + i) < 0)
			_exit(126);
	close_range((unsigned)(AGENT_FD_SOCKET + count), ~0u, 0);
	/* Only now: what the supervisor keeps may stand at every number up to that. */
	spawn_limit_files(strcmp(role, "worker") && strcmp(role, "probe") ? SPAWN_FILES_MOST
									  : WORKER_FILES);
	execve("/proc/self/exe", argv, env);
	_exit(AGENT_EXIT_NO_EXEC);
}

static pid_t start(
	const char *role, const int *fds, int count, char *const *env, struct error *error)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid < 0)
		return error_set(error, errno, "fork a %s", role);
	if (pid == 0)
		become(role, fds, count, env, parent);
	return pid;
}

/* A process that is told the configuration without its secrets, and one end of a pair. */
static pid_t spawn_public(const char *role, const struct agent_config *config, int *other_end,
	struct error *error)
{
	struct agent_config public = *config;
	struct child_environment env;
	int pair[2];
	pid_t pid;

	memset(&public.tokens, 0, sizeof(public.tokens));
	memset(&public.http_tokens, 0, sizeof(public.http_tokens));
	memset(public.limits, 0, sizeof(public.limits));
	public.limit_count = 0;
	if (strcmp(role, "directory")) {
		memset(public.networks, 0, sizeof(public.networks));
		public.network_count = 0;
	}
	cleanup_close int memory = settings_to_fd(&public, error);
	if (memory < 0)
		return memory;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return error_set(error, errno, "socketpair for a %s", role);
	make_environment(&env, config);
	pid = start(role, (int[]){pair[1], memory}, 2, env.list, error);
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	else
		*other_end = pair[0];
	return pid;
}

pid_t spawn_worker(const struct agent_config *config, int *front_end, struct error *error)
{
	return spawn_public("worker", config, front_end, error);
}

pid_t spawn_probe(const struct agent_config *config, int *own_end, struct error *error)
{
	return spawn_public("probe", config, own_end, error);
}

pid_t spawn_store(const struct agent_config *config, int *own_end, struct error *error)
{
	return spawn_public("store", config, own_end, error);
}

/* To the sandbox its directory is a registry: the one that it may dial, with its password. */
pid_t spawn_directory(
	const struct agent_config *config, uint32_t index, int *own_end, struct error *error)
{
	struct agent_config own = *config;
	struct agent_store *store = &own.store;
	const struct network *network = &config->networks[index].is;

	memset(own.networks, 0, sizeof(own.networks));
	own.networks[0].is = *network;
	own.network_count = 1;
	store->bytes = 0;
	memcpy(store->registry, network->directory, sizeof(store->registry));
	memcpy(store->registry_user, network->user, sizeof(store->registry_user));
	memcpy(store->registry_password_file, network->password_file,
		sizeof(store->registry_password_file));
	return spawn_public("directory", &own, own_end, error);
}

pid_t spawn_uploads(const struct agent_config *config, int *own_end, struct error *error)
{
	return spawn_public("uploads", config, own_end, error);
}

pid_t spawn_front(
	const struct agent_config *config, int http, int *own_end, struct error *error)
{
	struct child_environment env;
	int fds[FDS_MAX];
	int pair[2];
	pid_t pid;

	struct agent_config shown = *config;

	network_settings_hide(&shown);
	cleanup_close int memory = settings_to_fd(&shown, error);
	if (memory < 0)
		return memory;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return error_set(error, errno, "socketpair for the front");
	make_environment(&env, config);
	fds[0] = pair[1];
	fds[1] = memory;
	fds[2] = http;
	for (unsigned i = 0; i < config->listening.count; i++)
		fds[3 + i] = config->listening.at[i].fd;
	pid = start("front", fds, 3 + (int)config->listening.count, env.list, error);
	close(pair[1]);
	if (pid < 0)
		close(pair[0]);
	else
		*own_end = pair[0];
	return pid;
}
