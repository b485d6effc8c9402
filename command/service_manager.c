/* SPDX-License-Identifier: Apache-2.0 */
#include "command/service_manager.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command/spawn.h"
#include "common/cleanup.h"
#include "common/unix_socket.h"
#include "common/wait.h"

#define SECOND 1000000000ull
#define READY_NS (60 * SECOND) /* for the agent's first worker: a GPU's context and more */
#define SOCKET_NS (10 * SECOND)
#define PATIENCE_MS 3000
#define PROBE_SECONDS 20 /* longer than it takes vcuda-client to give up */

/* What the service manager says once, when all is ready or has failed. */
struct report {
	int code; /* -errno, 0 = ready */
	struct error error;
	char socket[100];
};

struct services {
	const struct service_wish *wish;
	char folder[64];
	pid_t agent, sidecar;
	char address[4096];
	char token_file[PATH_MAX];
};

static const char *path_in(const struct services *services, const char *name)
{
	static char path[sizeof(services->folder) + 32];

	snprintf(path, sizeof(path), "%s/%s", services->folder, name);
	return path;
}

static int make_token(struct services *services, struct error *error)
{
	unsigned char random[16];
	char text[2 * sizeof(random) + 2];
	cleanup_close int fd = -1;

	snprintf(services->token_file, sizeof(services->token_file), "%s",
		path_in(services, "token"));
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return error_set(error, errno, "random numbers");
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(text + 2 * i, 3, "%02x", random[i]);
	text[2 * sizeof(random)] = '\n';
	fd = open(services->token_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, 2 * sizeof(random) + 1) < 0)
		return error_set(error, errno, "%s", services->token_file);
	return 0;
}

/* The last line that a service wrote, for the error. */
static void last_line(const struct services *services, const char *log, char *out, size_t n)
{
	cleanup_close int fd = open(path_in(services, log), O_RDONLY | O_CLOEXEC);
	char tail[1024];
	ssize_t got;
	char *line;
	off_t size;

	snprintf(out, n, "no reason given");
	if (fd < 0)
		return;
	size = lseek(fd, 0, SEEK_END);
	got = pread(fd, tail, sizeof(tail) - 1, size > 1023 ? size - 1023 : 0);
	while (got > 0 && tail[got - 1] == '\n')
		got--;
	if (got <= 0)
		return;
	tail[got] = 0;
	line = strrchr(tail, '\n');
	snprintf(out, n, "%.*s", (int)n - 1, line ? line + 1 : tail);
}

static int open_log(const struct services *services, const char *log)
{
	if (services->wish->verbose)
		return -1;
	return open(path_in(services, log), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* The service has not died. */
static int alive(struct services *services, pid_t *pid, const char *name, const char *log,
	struct error *error)
{
	char line[160];

	if (!waitpid(*pid, NULL, WNOHANG))
		return 0;
	*pid = 0;
	if (services->wish->verbose)
		return error_set(error, 0, "%s ended at once", name);
	last_line(services, log, line, sizeof(line));
	return error_set(error, 0, "%s ended at once: %s", name, line);
}

/* Reads what the agent wrote when it got ready: its port. 0, 1 = not there yet. */
static int read_ready(struct services *services, struct error *error)
{
	cleanup_close int fd = open(path_in(services, "agent.json"), O_RDONLY | O_CLOEXEC);
	const cJSON *port, *text;
	char json[4096];
	cJSON *root;
	ssize_t n;
	int ret = 1;

	if (fd < 0)
		return 1;
	n = read(fd, json, sizeof(json) - 1);
	if (n <= 0)
		return 1;
	json[n] = 0;
	root = cJSON_Parse(json);
	text = cJSON_GetObjectItemCaseSensitive(root, "text");
	port = cJSON_GetObjectItemCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(root, "ports"), "recv");
	if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(root, "ready"))) {
		ret = error_set(error, 0, "the software GPU's agent: %s",
			cJSON_IsString(text) ? text->valuestring : "not ready");
	} else if (cJSON_IsNumber(port)) {
		snprintf(services->address, sizeof(services->address), "127.0.0.1:%d",
			port->valueint);
		ret = 0;
	}
	cJSON_Delete(root);
	return ret;
}

/* Frameworks that compile for the GPU ahead of time find this command under ptxas' name. */
static int make_tools(struct services *services, struct error *error)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return error_set(error, errno, "/proc/self/exe");
	self[n] = 0;
	if (mkdir(path_in(services, SERVICE_TOOLS), 0700) ||
		symlink(self, path_in(services, SERVICE_TOOLS "/ptxas")))
		return error_set(error, errno, "%s", path_in(services, SERVICE_TOOLS));
	return 0;
}

static int start_agent(struct services *services, struct error *error)
{
	uint64_t deadline = wait_now() + READY_NS;
	char program[PATH_MAX], ready[sizeof(services->folder) + 32];
	cleanup_close int log = open_log(services, "agent.log");
	int ret = spawn_beside("gpu-agent", program, sizeof(program), error);

	if (ret < 0)
		return ret;
	snprintf(ready, sizeof(ready), "%s", path_in(services, "agent.json"));
	services->agent = spawn_service(
		(char *const[]){program, "--driver", "software", "--address", "127.0.0.1",
			"--ports", "0,0,0", "--warm", "1", "--drain", "0", "--token-file",
			services->token_file, "--ready-file", ready,
			/* It serves one user, and nobody beyond this machine. */
			"--set", "nccl.allowed=true", NULL},
		log);
	if (services->agent < 0)
		return error_set(error, -services->agent, "%s", program);
	while (wait_now() < deadline) {
		ret = read_ready(services, error);
		if (ret > 0)
			ret = alive(
				services, &services->agent, "gpu-agent", "agent.log", error);
		else
			return ret;
		if (ret < 0)
			return ret;
		usleep(5000);
	}
	return error_set(error, ETIMEDOUT, "gpu-agent did not get ready");
}

static int start_sidecar(struct services *services, struct error *error)
{
	uint64_t deadline = wait_now() + SOCKET_NS;
	char program[PATH_MAX], socket[sizeof(services->folder) + 32];
	cleanup_close int log = open_log(services, "sidecar.log");
	char *token = services->token_file[0] ? "--token-file" : NULL;
	int ret = spawn_beside("vcuda-client", program, sizeof(program), error);

	if (ret < 0)
		return ret;
	snprintf(socket, sizeof(socket), "%s", path_in(services, "vcuda.sock"));
	services->sidecar = spawn_service(
		(char *const[]){program, "run", "--agent", services->address, "--socket",
			socket, "--ipc", "pod", token, services->token_file, NULL},
		log);
	if (services->sidecar < 0)
		return error_set(error, -services->sidecar, "%s", program);
	while (wait_now() < deadline) {
		int fd = unix_connect(socket, SOCK_SEQPACKET, NULL);

		if (fd >= 0) {
			close(fd);
			return 0;
		}
		ret = alive(services, &services->sidecar, "vcuda-client", "sidecar.log", error);
		if (ret < 0)
			return ret;
		usleep(2000);
	}
	return error_set(error, ETIMEDOUT, "vcuda-client did not get ready");
}

/* An agent that is not there is an error now and not one of the program's later. */
static int probe_agent(struct services *services, struct error *error)
{
	static const char prefix[] = "vcuda-client: ";
	char program[PATH_MAX], out[256], err[512];
	char *token = services->token_file[0] ? "--token-file" : NULL, *line = err;
	int ret = spawn_beside("vcuda-client", program, sizeof(program), error);

	if (ret < 0)
		return ret;
	ret = spawn_capture((char *const[]){program, "probe", "--agent", services->address,
				    token, services->token_file, NULL},
		PROBE_SECONDS, out, err, sizeof(err));
	if (!ret)
		return 0;
	if (ret < 0)
		return error_set(error, -ret, "agent %s", services->address);
	line[strcspn(line, "\n")] = 0;
	if (!strncmp(line, prefix, sizeof(prefix) - 1))
		line += sizeof(prefix) - 1;
	return error_set(error, 0, "%s", line);
}

static int services_start(struct services *services, struct error *error)
{
	const struct service_wish *wish = services->wish;
	const char *temporary = getenv("TMPDIR");
	int ret = 0;

	/* A socket's path is short: a long $TMPDIR will not do. */
	if (!temporary || *temporary != '/' || strlen(temporary) > 32)
		temporary = "/tmp";
	snprintf(services->folder, sizeof(services->folder), "%s/vcuda-run-XXXXXX", temporary);
	if (!mkdtemp(services->folder)) {
		services->folder[0] = 0;
		return error_set(error, errno, "a folder in %s", temporary);
	}
	if (wish->token_file && !realpath(wish->token_file, services->token_file))
		return error_set(error, errno, "--token-file %s", wish->token_file);
	if (wish->software) {
		if (!wish->token_file)
			ret = make_token(services, error);
		if (!ret)
			ret = make_tools(services, error);
		if (!ret)
			ret = start_agent(services, error);
	} else {
		snprintf(services->address, sizeof(services->address), "%s", wish->agent);
		ret = probe_agent(services, error);
	}
	return ret ? ret : start_sidecar(services, error);
}

static void services_end(struct services *services)
{
	static const char *const names[] = {"vcuda.sock", "vcuda.sock.lock", "agent.json",
		"agent.json.part", "token", "agent.log", "sidecar.log", SERVICE_TOOLS "/ptxas"};

	/* The end, and not a restart: programs that were left behind are told so. */
	if (services->sidecar > 0)
		kill(services->sidecar, SIGINT);
	spawn_end(services->sidecar, PATIENCE_MS);
	spawn_end(services->agent, PATIENCE_MS);
	if (!services->folder[0])
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(path_in(services, names[i]));
	rmdir(path_in(services, SERVICE_TOOLS));
	rmdir(services->folder);
}

/* Until LIFE ends. A sidecar that dies meanwhile is started again, once for each time: its
 * programs go on with the next one (docs/RESUME.md). */
static void services_attend(struct services *services, int life, int children)
{
	struct pollfd fds[2] = {
		{.fd = life, .events = POLLIN}, {.fd = children, .events = POLLIN}};
	struct signalfd_siginfo got;
	struct error error;

	while (!fds[0].revents) {
		if (poll(fds, 2, -1) < 0 || !fds[1].revents)
			continue;
		if (read(children, &got, sizeof(got)) < 0 || services->sidecar <= 0 ||
			waitpid(services->sidecar, NULL, WNOHANG) != services->sidecar)
			continue;
		services->sidecar = 0;
		if (!fds[0].revents && start_sidecar(services, &error) < 0)
			dprintf(STDERR_FILENO, "vcuda: run: %s\n", error.text);
	}
}

/* The service_manager's whole life. `life`: ends when its other end is closed. */
static void service_manager_live(const struct service_wish *wish, int life, int say)
{
	struct services services = {.wish = wish};
	struct report report = {0};
	sigset_t all, child;
	int children;

	setsid(); /* Ctrl-C is for the program; what ends us is the pipe */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	report.code = services_start(&services, &report.error);
	if (!report.code)
		snprintf(report.socket, sizeof(report.socket), "%s",
			path_in(&services, "vcuda.sock"));
	if (write(say, &report, sizeof(report)) == sizeof(report) && !report.code)
		services_attend(&services, life, children);
	services_end(&services);
	_exit(0);
}

/* The service_manager's report; -EINTR where a signal that ends us came first. */
static int hear(int say, int signals, struct report *report, struct error *error)
{
	struct pollfd fds[2] = {
		{.fd = say, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	struct signalfd_siginfo got;

	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[0].revents)
			break;
		if (read(signals, &got, sizeof(got)) == sizeof(got) &&
			(got.ssi_signo == SIGINT || got.ssi_signo == SIGTERM ||
				got.ssi_signo == SIGHUP || got.ssi_signo == SIGQUIT))
			return error_set(error, EINTR, "run: signal %u", got.ssi_signo);
	}
	if (read(say, report, sizeof(*report)) != sizeof(*report))
		return error_set(error, 0, "what was started ended at once");
	*error = report->error;
	return report->code;
}

int service_manager_start(const struct service_wish *wish, int signals,
	struct service_manager *service_manager, struct error *error)
{
	int life[2], say[2];
	struct report report;
	int ret;

	*service_manager = (struct service_manager){.pipe = -1};
	if (pipe2(life, O_CLOEXEC) || pipe2(say, O_CLOEXEC))
		return error_set(error, errno, "pipe");
	service_manager->pid = fork();
	if (service_manager->pid < 0)
		return error_set(error, errno, "fork");
	if (!service_manager->pid) {
		close(life[1]);
		close(say[0]);
		service_manager_live(wish, life[0], say[1]);
	}
	close(life[0]);
	close(say[1]);
	service_manager->pipe = life[1];
	ret = hear(say[0], signals, &report, error);
	close(say[0]);
	if (ret < 0) {
		service_manager_end(service_manager);
		return ret;
	}
	memcpy(service_manager->socket, report.socket, sizeof(service_manager->socket));
	return 0;
}

void service_manager_end(struct service_manager *service_manager)
{
	if (service_manager->pipe >= 0)
		close(service_manager->pipe);
	if (service_manager->pid > 0)
		while (waitpid(service_manager->pid, NULL, 0) < 0 && errno == EINTR)
			;
	*service_manager = (struct service_manager){.pipe = -1};
}
