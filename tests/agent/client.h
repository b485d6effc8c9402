/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the agent: starts one (with the toy worker), speaks the session's handshake as a
 * client would or would not, and asks its HTTP pages.  Whatever fails that must not fails the
 * test.
 */
#ifndef VCUDA_TESTS_AGENT_CLIENT_H
#define VCUDA_TESTS_AGENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/wire/session.h"

/* The metric of what sessions have leased of the toy worker's GPU. */
#define LEASED                                                                                 \
	"vcuda_agent_device_memory_leased_bytes{gpu=\"0\","                                    \
	"UUID=\"GPU-07070707-0707-0707-0707-070707070707\",modelName=\"Toy GPU\"}"

struct agent {
	pid_t pid;
	char folder[32]; /* its ready file and log */
	uint16_t send, recv, control;
	bool ready;
	char text[256]; /* why it is not ready */
};

/* A session from the client's end. */
struct client {
	int commands, replies;
	struct session_welcome welcome;
};

/* $TOY_AGENT with a free port each, then `flags` (NULL-terminated), and --insecure where they
 * name no token; returns when its ready file is there. */
void agent_start(struct agent *agent, const char *driver, const char *const *flags);
void agent_signal(struct agent *agent, int signal);
/* Waits for its exit (10 s at most) and checks the status. */
void agent_end(struct agent *agent, int expected);
/* SIGTERM, exit status 0, folder removed. */
void agent_stop(struct agent *agent);
/* Removes the folder of an agent that has ended, with its log. */
void agent_clean(struct agent *agent);
/* The log so far, NUL-terminated, to be freed. */
char *agent_log(struct agent *agent);
/* Runs $TOY_AGENT with ARGUMENTS to its end, 5 s at most: its exit status, and what it said. */
int agent_run(const char *arguments, char *said, size_t n);

/* A TCP connection from `source` (127.0.0.x), with a receive deadline of 8 s. */
int client_connect(const char *source, uint16_t port);
void client_hello(struct session_hello *hello, uint32_t role);
/* Sends all of it; receives a WELCOME: false where the connection ended before. */
void client_say(int fd, const void *bytes, size_t n);
bool client_hear(int fd, struct session_welcome *welcome);
/* One HELLO on a connection of its own, and what came back (status 9999: closed). */
struct session_welcome client_ask(uint16_t port, const struct session_hello *hello);
/* Both connections. False, with welcome, where it is refused. */
bool client_open(
	struct agent *agent, struct client *client, const char *pod, const char *token);
/* The same with a HELLO of one's own, for role COMMANDS. */
bool client_open_as(
	struct agent *agent, struct client *client, const struct session_hello *hello);
/* Where the next clients come from; "127.0.0.1" at the start. */
extern const char *client_source;
/* Its worker asks for 64 MiB more; the bytes that it has then. */
uint64_t client_lease(struct client *client);
/* Its worker asks the front whether the sessions of its pod that are over are gone, and has its
 * answer. */
void client_drained(struct client *client);
/* Its worker says that the session is over, and exits half a second later; its pid. */
pid_t client_end_slowly(struct client *client);
/* The quota of handles that its worker was given. */
uint64_t client_quota(struct client *client);
/* Its worker shares memory; the status. */
uint32_t client_share(struct client *client);
/* Its worker tells what GPU time it used, and reads no answer before it has; how much it may
 * use beyond that. */
uint64_t client_time(struct client *client);
void client_close(struct client *client);
/* Sends `text` and expects it back. */
void client_echo(struct client *client, const char *text);
/* Whether the replies end within the deadline. */
bool client_ended(struct client *client);
/* Whether the agent closes a connection on which it said nothing, within the deadline. */
bool client_is_closed(int fd);

/* GET of a path: the status, body in a buffer that the next call uses again. */
int http_get(struct agent *agent, const char *path, const char **body);
/* The same with a token. */
int http_get_as(struct agent *agent, const char *path, const char *token, const char **body);
/* `request` as it is. 0: closed without an answer. */
int http_raw(struct agent *agent, const char *request, size_t n, const char **body);
/* The value behind "NAME " at a line's start on /metrics. */
uint64_t http_metric(struct agent *agent, const char *name);
/* Asks until it is `value`, 5 s at most; false where it never was. */
bool http_metric_becomes(struct agent *agent, const char *name, uint64_t value);

/* How often WORD is in TEXT. */
size_t client_count(const char *text, const char *word);

double now_seconds(void);

#endif
