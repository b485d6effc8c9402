/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/agent/client.h"

#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/wait.h"

#define FLAGS_MAX 24

const char *client_source = "127.0.0.1";

size_t client_count(const char *text, const char *word)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
		n++;
	return n;
}

double now_seconds(void)
{
	return (double)wait_now() / 1e9;
}

static char *read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = calloc(1, 1 << 20);
	ssize_t n = fd < 0 || !text ? -1 : read(fd, text, (1 << 20) - 1);

	if (fd >= 0)
		close(fd);
	if (n < 0) {
		free(text);
		return NULL;
	}
	return text;
}

static void read_ready(struct agent *agent, const char *text)
{
	cJSON *root = cJSON_Parse(text);
	const cJSON *ports = cJSON_GetObjectItem(root, "ports");

	assert_non_null(ports);
	agent->send = (uint16_t)cJSON_GetObjectItem(ports, "send")->valueint;
	agent->recv = (uint16_t)cJSON_GetObjectItem(ports, "recv")->valueint;
	agent->control = (uint16_t)cJSON_GetObjectItem(ports, "control")->valueint;
	agent->ready = cJSON_IsTrue(cJSON_GetObjectItem(root, "ready"));
	snprintf(agent->text, sizeof(agent->text), "%s",
		cJSON_GetObjectItem(root, "text")->valuestring);
	cJSON_Delete(root);
}

void agent_start(struct agent *agent, const char *driver, const char *const *flags)
{
	const char *argv[FLAGS_MAX] = {getenv("TOY_AGENT"), "--driver", driver, "--ports",
		"0,0,0", "--address", "127.0.0.1", "--ready-file"};
	char ready[64], log[64];
	char *text = NULL;
	bool token = false;
	int n = 8;

	memset(agent, 0, sizeof(*agent));
	if (!argv[0])
		fail_msg("TOY_AGENT names no agent: make test-agent");
	strcpy(agent->folder, "/tmp/agent-test-XXXXXX");
	assert_non_null(mkdtemp(agent->folder));
	snprintf(ready, sizeof(ready), "%s/ready", agent->folder);
	snprintf(log, sizeof(log), "%s/log", agent->folder);
	argv[n++] = ready;
	while (flags && *flags && n < FLAGS_MAX - 2) {
		token |= strstr(*flags, "token") || !strcmp(*flags, "-n");
		argv[n++] = *flags++;
	}
	if (!token)
		argv[n++] = "--insecure";
	agent->pid = fork();
	if (agent->pid == 0) {
		int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fd, STDERR_FILENO);
		close(fd);
		execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	for (double end = now_seconds() + 10; !text && now_seconds() < end; usleep(5000))
		text = read_file(ready);
	if (!text)
		fail_msg("no ready file: %s", read_file(log));
	read_ready(agent, text);
	free(text);
}

void agent_signal(struct agent *agent, int signal)
{
	assert_true(agent->pid > 0); /* else kill() takes the test's own group */
	assert_int_equal(kill(agent->pid, signal), 0);
}

void agent_end(struct agent *agent, int expected)
{
	int status = -1;
	pid_t pid = 0;

	for (double end = now_seconds() + 10; !pid && now_seconds() < end; usleep(5000))
		pid = waitpid(agent->pid, &status, WNOHANG);
	if (!pid) {
		kill(agent->pid, SIGKILL);
		fail_msg("the agent did not end: %s", agent_log(agent));
	}
	if (WIFSIGNALED(status))
		status = 128 + WTERMSIG(status);
	else
		status = WEXITSTATUS(status);
	if (status != expected)
		fail_msg("the agent exited with %d: %s", status, agent_log(agent));
}

void agent_stop(struct agent *agent)
{
	char path[64];

	agent_signal(agent, SIGTERM);
	agent_end(agent, 0);
	snprintf(path, sizeof(path), "%s/ready", agent->folder);
	assert_int_equal(access(path, F_OK), -1); /* it took its ready file away */
	agent_clean(agent);
}

void agent_clean(struct agent *agent)
{
	static const char *const FILES[] = {"ready", "log"};
	char path[64];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", agent->folder, FILES[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(agent->folder), 0);
}

char *agent_log(struct agent *agent)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/log", agent->folder);
	return read_file(path);
}

int agent_run(const char *arguments, char *said, size_t n)
{
	char command[256];
	FILE *out;
	size_t got;

	snprintf(command, sizeof(command), "timeout 5 %s %s 2>&1", getenv("TOY_AGENT"),
		arguments);
	out = popen(command, "r");
	assert_non_null(out);
	got = fread(said, 1, n - 1, out);
	said[got] = 0;
	return WEXITSTATUS(pclose(out));
}

int client_connect(const char *source, uint16_t port)
{
	struct sockaddr_in from = {.sin_family = AF_INET}, to = {.sin_family = AF_INET};
	struct timeval deadline = {.tv_sec = 8};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline));
	inet_pton(AF_INET, source, &from.sin_addr);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	to.sin_port = htons(port);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

void client_hello(struct session_hello *hello, uint32_t role)
{
	memset(hello, 0, sizeof(*hello));
	hello->magic = SESSION_MAGIC;
	hello->version = SESSION_VERSION;
	hello->role = role;
	hello->pid = (uint32_t)getpid();
	strcpy(hello->program, "test");
	strcpy(hello->pod, "space/pod");
}

void client_say(int fd, const void *bytes, size_t n)
{
	assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
}

bool client_hear(int fd, struct session_welcome *welcome)
{
	size_t got = 0;
	ssize_t n;

	memset(welcome, 0, sizeof(*welcome));
	while (got < sizeof(*welcome)) {
		n = recv(fd, (char *)welcome + got, sizeof(*welcome) - got, 0);
		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	assert_int_equal(welcome->magic, SESSION_MAGIC);
	assert_int_equal(welcome->version, SESSION_VERSION);
	return true;
}

struct session_welcome client_ask(uint16_t port, const struct session_hello *hello)
{
	struct session_welcome welcome;
	int fd = client_connect("127.0.0.1", port);

	client_say(fd, hello, sizeof(*hello));
	if (!client_hear(fd, &welcome))
		welcome.status = 9999;
	close(fd);
	return welcome;
}

bool client_open(struct agent *agent, struct client *client, const char *pod, const char *token)
{
	struct session_hello hello;

	client_hello(&hello, SESSION_COMMANDS);
	snprintf(hello.pod, sizeof(hello.pod), "%s", pod ? pod : "space/pod");
	snprintf(hello.token, sizeof(hello.token), "%s", token ? token : "");
	return client_open_as(agent, client, &hello);
}

bool client_open_as(struct agent *agent, struct client *client, const struct session_hello *say)
{
	struct session_hello hello = *say;
	struct session_welcome second;

	client->replies = -1;
	client->commands = client_connect(client_source, agent->recv);
	client_say(client->commands, &hello, sizeof(hello));
	if (!client_hear(client->commands, &client->welcome))
		client->welcome.status = 9999;
	if (client->welcome.status) {
		close(client->commands);
		return false;
	}
	assert_int_equal(client->welcome.reply_port, agent->send);
	hello.role = SESSION_REPLIES;
	memcpy(hello.session, client->welcome.session, sizeof(hello.session));
	memcpy(hello.secret, client->welcome.secret, sizeof(hello.secret));
	client->replies = client_connect(client_source, client->welcome.reply_port);
	client_say(client->replies, &hello, sizeof(hello));
	assert_true(client_hear(client->replies, &second));
	assert_int_equal(second.status, 0);
	return true;
}

/* An order, and the number that comes back. */
static uint64_t order(struct client *client, const char *what)
{
	char text[32] = "";
	size_t got = 0;

	client_say(client->commands, what, 1);
	while (!strchr(text, '\n')) {
		ssize_t n = recv(client->replies, text + got, sizeof(text) - 1 - got, 0);

		assert_true(n > 0);
		got += (size_t)n;
	}
	return strtoull(text, NULL, 10);
}

uint64_t client_lease(struct client *client)
{
	return order(client, "L");
}

void client_drained(struct client *client)
{
	assert_int_equal(order(client, "I"), 5);
}

pid_t client_end_slowly(struct client *client)
{
	return (pid_t)order(client, "D");
}

uint64_t client_quota(struct client *client)
{
	return order(client, "Q");
}

uint32_t client_share(struct client *client)
{
	return (uint32_t)order(client, "H");
}

uint64_t client_time(struct client *client)
{
	return order(client, "M");
}

void client_close(struct client *client)
{
	close(client->commands);
	close(client->replies);
}

void client_echo(struct client *client, const char *text)
{
	char back[64];
	size_t got = 0, n = strlen(text);

	client_say(client->commands, text, n);
	while (got < n) {
		ssize_t one = recv(client->replies, back + got, n - got, 0);

		assert_true(one > 0);
		got += (size_t)one;
	}
	assert_memory_equal(back, text, n);
}

bool client_ended(struct client *client)
{
	char waste[256];
	ssize_t n;

	while ((n = recv(client->replies, waste, sizeof(waste), 0)) > 0)
		;
	return n == 0 || errno == ECONNRESET;
}

bool client_is_closed(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, 0);

	return n == 0 || (n < 0 && errno == ECONNRESET);
}

int http_raw(struct agent *agent, const char *request, size_t n, const char **body)
{
	static char answer[1 << 18];
	int fd = client_connect("127.0.0.1", agent->control);
	size_t got = 0;
	ssize_t one;
	int status = 0;

	/* A server that had enough may have closed already. */
	(void)!send(fd, request, n, MSG_NOSIGNAL);
	while (got < sizeof(answer) - 1 &&
		(one = recv(fd, answer + got, sizeof(answer) - 1 - got, 0)) > 0)
		got += (size_t)one;
	answer[got] = 0;
	close(fd);
	*body = strstr(answer, "\r\n\r\n");
	*body = *body ? *body + 4 : "";
	return sscanf(answer, "HTTP/1.%*d %d", &status) == 1 ? status : 0;
}

int http_get(struct agent *agent, const char *path, const char **body)
{
	char request[256];
	int n = snprintf(request, sizeof(request),
		"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);

	return http_raw(agent, request, (size_t)n, body);
}

int http_get_as(struct agent *agent, const char *path, const char *token, const char **body)
{
	char request[768];
	int n = snprintf(request, sizeof(request),
		"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		"Authorization: Bearer %s\r\n\r\n",
		path, token);

	return http_raw(agent, request, (size_t)n, body);
}

uint64_t http_metric(struct agent *agent, const char *name)
{
	const char *body, *at;
	char line[128];

	assert_int_equal(http_get(agent, "/metrics", &body), 200);
	snprintf(line, sizeof(line), "\n%s ", name);
	at = strstr(body, line);
	if (!at)
		fail_msg("/metrics has no %s", name);
	return strtoull(at + strlen(line), NULL, 10);
}

bool http_metric_becomes(struct agent *agent, const char *name, uint64_t value)
{
	for (double end = now_seconds() + 5; now_seconds() < end; usleep(10000))
		if (http_metric(agent, name) == value)
			return true;
	return false;
}
