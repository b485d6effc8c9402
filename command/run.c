/* SPDX-License-Identifier: Apache-2.0
 *
 * vcuda run: starts what is missing, runs the program with the libraries preloaded, passes
 * signals and the exit status on, and leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command/command.h"
#include "command/service_manager.h"
#include "command/spawn.h"
#include "common/cleanup.h"
#include "common/unix_socket.h"
#include "protocol/wire/channel.h"
#include "protocol/wire/session.h"
#include "transport/transport.h"

static const char usage[] =
	"vcuda run [--software | --agent HOST[:PORT]] [--token-file FILE] [--verbose] -- "
	"PROGRAM …\n"
	"\n"
	"  --software         on this machine's CPU: starts an agent with the software GPU\n"
	"  --agent HOST[:PORT]  on that agent's GPUs; more than once: on all of theirs, in\n"
	"                     this order\n"
	"  --token-file FILE  the token that the agent asks for; else $VCUDA_TOKEN_FILE\n"
	"  --verbose          what its sidecar, and the agent of --software, log\n"
	"  neither            through the sidecar that is running ($VCUDA_SOCKET)\n";

/* One more agent, all of which the program gets. */
static int add_agent(struct service_wish *wish, const char *value, struct error *error)
{
	size_t n = strlen(wish->agent);

	if (snprintf(wish->agent + n, sizeof(wish->agent) - n, "%s%s", n ? "+" : "", value) >=
		(int)(sizeof(wish->agent) - n))
		return error_set(error, 0, "run: --agent: these are too many");
	return 0;
}

static int parse(
	int argc, char **argv, struct service_wish *wish, int *program, struct error *error)
{
	struct transport_description description;
	int i;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (!strcmp(argv[i], "--")) {
			i++;
			break;
		}
		if (!strcmp(argv[i], "--software")) {
			wish->software = true;
		} else if (!strcmp(argv[i], "--verbose") || !strcmp(argv[i], "-v")) {
			wish->verbose = true;
		} else if (!strcmp(argv[i], "--agent") || !strcmp(argv[i], "--token-file")) {
			if (!value || !*value)
				return error_set(error, 0, "run: %s needs a value", argv[i]);
			if (argv[i][2] == 't')
				wish->token_file = value;
			else if (add_agent(wish, value, error) < 0)
				return -EINVAL;
			i++;
		} else {
			return error_set(
				error, 0, "run: unknown flag '%s'; vcuda run --help", argv[i]);
		}
	}
	*program = i;
	if (wish->software && wish->agent[0])
		return error_set(error, 0, "run: either --software or --agent, not both");
	if (wish->agent[0] && !strpbrk(wish->agent, ",+") &&
		transport_describe(wish->agent, 0, &description, error) < 0)
		return error_wrap(error, -EINVAL, "run: --agent");
	if (i >= argc)
		return error_set(
			error, 0, "run: which program? vcuda run --software -- PROGRAM …");
	return 0;
}

/* The sidecar that is there already. */
static int find_sidecar(char *path, size_t n, struct error *error)
{
	const char *wanted = getenv("VCUDA_SOCKET");
	cleanup_close int fd = -1;

	snprintf(path, n, "%s", wanted && *wanted ? wanted : CHANNEL_SOCKET);
	fd = unix_connect(path, SOCK_SEQPACKET, NULL);
	if (fd < 0)
		return error_set(error, 0,
			"run: no sidecar answers on %s (%s); give --software, or --agent "
			"HOST[:PORT]",
			path, strerror(-fd));
	return 0;
}

/* FOLDER behind those that are in a list of the user's. */
static int add_folder(const char *name, const char *folder, struct error *error)
{
	const char *old = getenv(name);
	cleanup_free char *value = NULL;

	if (asprintf(&value, "%s%s%s", old ? old : "", old && *old ? ":" : "", folder) < 0)
		return error_set(error, ENOMEM, "run");
	return setenv(name, value, 1) ? error_set(error, errno, "run") : 0;
}

/* For what looks for the driver as a file and not by its SONAME. */
static int set_folders(struct error *error)
{
	char path[PATH_MAX];
	int ret = 0;

	/* Triton links what it compiles with the libcuda.so.1 that ldconfig knows, or with
	 * this. */
	if (spawn_library("libcuda.so.1", path, sizeof(path)) == 0) {
		*strrchr(path, '/') = 0;
		if (setenv("TRITON_LIBCUDA_PATH", path, 0))
			return error_set(error, errno, "run");
	}
	/* Compilers that are told -lcuda, Python's find_library, which asks them (PyKeOps) or
	 * ld, and what looks into LD_LIBRARY_PATH itself (tinygrad). */
	if (spawn_library("driver/libcuda.so", path, sizeof(path)) == 0) {
		*strrchr(path, '/') = 0;
		ret = add_folder("LIBRARY_PATH", path, error);
		if (!ret)
			ret = add_folder("LD_LIBRARY_PATH", path, error);
	}
	return ret;
}

static int set_environment(const char *socket, struct error *error)
{
	char list[PRELOAD_MAX];
	const char *old = getenv("LD_PRELOAD");
	cleanup_free char *preload = NULL;
	int ret = preload_list(list, sizeof(list), error);

	if (ret < 0)
		return error_wrap(error, ret, "run");
	if (asprintf(&preload, "%s%s%s", list, old && *old ? ":" : "", old ? old : "") < 0)
		return error_set(error, ENOMEM, "run");
	if (setenv("LD_PRELOAD", preload, 1) || setenv("VCUDA_SOCKET", socket, 1))
		return error_set(error, errno, "run");
	return set_folders(error);
}

/* The software GPU runs PTX and no machine code: frameworks are told to make that. XLA looks
 * for ptxas in PATH, Mojo has one inside; a path or a wish of the user's own stays. */
static int set_compilers(const char *socket, struct error *error)
{
	const char *old = getenv("PATH"), *slash = strrchr(socket, '/');
	cleanup_free char *path = NULL, *ptxas = NULL;
	int folder = slash ? (int)(slash - socket) : 0;

	if (asprintf(&ptxas, "%.*s/" SERVICE_TOOLS "/ptxas", folder, socket) < 0 ||
		asprintf(&path, "%.*s/" SERVICE_TOOLS "%s%s", folder, socket, old ? ":" : "",
			old ? old : "") < 0)
		return error_set(error, ENOMEM, "run");
	if (setenv("PATH", path, 1) || setenv("TRITON_PTXAS_PATH", ptxas, 0) ||
		setenv("MODULAR_NVPTX_COMPILER_PATH", ptxas, 0) ||
		setenv("CUPY_COMPILE_WITH_PTX", "1", 0) || setenv("VCUDA_NVRTC", "ptx", 0))
		return error_set(error, errno, "run");
	return 0;
}

static pid_t start_program(char **argv, const sigset_t *unblocked)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid < 0 ? -errno : pid;
	sigprocmask(SIG_SETMASK, unblocked, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(127);
	execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "vcuda: run: %s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Passes signals on until the program ends; its exit status. */
static int attend(pid_t pid, int signals)
{
	struct signalfd_siginfo got;
	int status;

	while (read(signals, &got, sizeof(got)) == sizeof(got)) {
		if (got.ssi_signo != SIGCHLD) {
			/* What the terminal sends goes to the program by itself. */
			if (got.ssi_code != SI_KERNEL)
				kill(pid, (int)got.ssi_signo);
			continue;
		}
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	return 1;
}

int command_run(int argc, char **argv)
{
	static const int passed[] = {
		SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGALRM};
	struct service_wish wish = {0};
	struct service_manager service_manager = {.pipe = -1};
	struct error error;
	char found[100];
	const char *socket = found;
	sigset_t set, old;
	int program = argc, signals, status = 1;
	pid_t pid;

	if (command_helped(argc, argv, usage))
		return 0;
	if (parse(argc, argv, &wish, &program, &error) < 0)
		return command_complain(&error, 2);
	/* Before anything is started: a signal meanwhile is passed on or ends us in order. */
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		sigaddset(&set, passed[i]);
	sigprocmask(SIG_BLOCK, &set, &old);
	signals = signalfd(-1, &set, SFD_CLOEXEC);

	if (wish.software || wish.agent[0]) {
		if (service_manager_start(&wish, signals, &service_manager, &error) < 0)
			return command_complain(&error, 1);
		socket = service_manager.socket;
	} else if (find_sidecar(found, sizeof(found), &error) < 0) {
		return command_complain(&error, 1);
	}
	if (signals < 0 || set_environment(socket, &error) < 0 ||
		(wish.software && set_compilers(socket, &error) < 0)) {
		command_complain(&error, 1);
	} else {
		pid = start_program(argv + program, &old);
		if (pid > 0)
			status = attend(pid, signals);
	}
	service_manager_end(&service_manager);
	return status;
}
