/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/loopback.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/socket_link.h"

static struct {
	pthread_mutex_t lock;
	struct {
		char name[64];
		loop_front front;
		void *argument;
	} names[LOOP_NAMES];
} loops = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int loop_find(const char *name)
{
	for (int i = 0; i < LOOP_NAMES; i++)
		if (loops.names[i].front && !strcmp(loops.names[i].name, name))
			return i;
	return -1;
}

int loopback_serve(const char *name, loop_front front, void *argument)
{
	int ret = -ENOSPC;

	if (strlen(name) >= sizeof(loops.names[0].name))
		return -ENAMETOOLONG;
	pthread_mutex_lock(&loops.lock);
	if (loop_find(name) >= 0)
		ret = -EEXIST;
	for (int i = 0; ret == -ENOSPC && i < LOOP_NAMES; i++) {
		if (loops.names[i].front)
			continue;
		snprintf(loops.names[i].name, sizeof(loops.names[i].name), "%s", name);
		loops.names[i].front = front;
		loops.names[i].argument = argument;
		ret = 0;
	}
	pthread_mutex_unlock(&loops.lock);
	return ret;
}

void loopback_forget(const char *name)
{
	int i;

	pthread_mutex_lock(&loops.lock);
	i = loop_find(name);
	if (i >= 0)
		loops.names[i].front = NULL;
	pthread_mutex_unlock(&loops.lock);
}

static int loop_dial(const char *address, const struct session_hello *hello,
	struct session_welcome *welcome, uint64_t deadline, struct link **link,
	struct error *error)
{
	int commands[2] = {-1, -1}, replies[2] = {-1, -1}, agent[2] = {-1, -1};
	loop_front front = NULL;
	void *argument = NULL;
	int i, ret;

	(void)deadline;
	*link = NULL;
	memset(welcome, 0, sizeof(*welcome));
	welcome->magic = SESSION_MAGIC;
	welcome->version = SESSION_VERSION;
	pthread_mutex_lock(&loops.lock);
	i = loop_find(address);
	if (i >= 0) {
		front = loops.names[i].front;
		argument = loops.names[i].argument;
	}
	pthread_mutex_unlock(&loops.lock);
	if (!front)
		return error_set(error, ECONNREFUSED, "loop://%s", address);

	if (hello->role != SESSION_PROBE) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, commands) ||
			socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, replies)) {
			ret = error_set(error, errno, "loop://%s", address);
			goto fail;
		}
		agent[0] = commands[1];
		agent[1] = replies[1];
	}
	ret = front(argument, hello, welcome, agent);
	if (ret < 0 || welcome->status) {
		error_set(error, 0, "loop://%s refused: %s", address, welcome->text);
		ret = -ECONNREFUSED;
		goto fail;
	}
	if (hello->role == SESSION_PROBE)
		return 0;
	ret = stream_open(replies[0], commands[0], link, error);
	if (!ret)
		return 0;
	commands[1] = replies[1] = -1; /* granted: the front's */
fail:
	for (i = 0; i < 2; i++) {
		if (commands[i] >= 0)
			close(commands[i]);
		if (replies[i] >= 0)
			close(replies[i]);
	}
	return ret;
}

static int loop_describe(
	const char *address, struct transport_description *description, struct error *error)
{
	(void)address;
	(void)error;
	snprintf(description->host, sizeof(description->host), "127.0.0.1");
	return 0;
}

const struct transport transport_loop = {
	.name = "loop",
	.connections = 2,
	.dial = loop_dial,
	.link = stream_link,
	.describe = loop_describe,
};
