/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/tensor/tensor_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/descriptors.h"
#include "common/log.h"
#include "common/unix_socket.h"
#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/tensor/tensors.h"
#include "protocol/wire/tensor_socket.h"

/* A process says who it is at once. */
#define HELLO_NS (2000 * FRONT_MS)
#define ACCEPTS_A_TURN 16
#define FRAMES_A_TURN 32
/* A question waits for the one before it; the library asks one at a time. */
#define UNDER_WAY 32u

struct tensor_client {
	struct watch watch;
	uint64_t session;  /* 0: it has not said who it is */
	uint64_t deadline; /* to say so */
	pid_t pid;
	bool follows; /* it says when it has made a sealed tensor read-only */
	char space[TENSOR_SPACE];
};

struct tensor_socket {
	struct watch listener;
	struct tensor_client clients[TENSOR_SOCKET_CLIENTS];
};

/* As the store has them. */
static const uint32_t whats[TENSOR_SOCKET_QUESTIONS] = {
	[TENSOR_SOCKET_TAKE] = TENSOR_TAKE,
	[TENSOR_SOCKET_SEAL] = TENSOR_SEAL,
	[TENSOR_SOCKET_CLOSE] = TENSOR_CLOSE,
	[TENSOR_SOCKET_DELETE] = TENSOR_DELETE,
	[TENSOR_SOCKET_STAT] = TENSOR_STAT,
	[TENSOR_SOCKET_LIST] = TENSOR_LIST,
	[TENSOR_SOCKET_TOUCH] = TENSOR_TOUCH,
	[TENSOR_SOCKET_SHARE] = TENSOR_SHARE,
};

static uint32_t what_of(uint32_t store)
{
	uint32_t what = TENSOR_SOCKET_TAKE;

	while (what < TENSOR_SOCKET_QUESTIONS && whats[what] != store)
		what++;
	return what < TENSOR_SOCKET_QUESTIONS ? what : TENSOR_SOCKET_READ_ONLY;
}

static void drop(struct front *front, struct tensor_client *client, const char *why)
{
	uint64_t session = client->session;
	int fd = events_forget(&front->events, &client->watch);

	if (fd >= 0)
		close(fd);
	if (why)
		log_warn("tensors.client", "pid=%d text=\"%s\"", client->pid, why);
	client->session = 0;
	if (session)
		tensors_over(front, session);
}

static struct tensor_client *client_of(struct front *front, uint64_t session)
{
	struct tensor_socket *t = front->tensors.socket;

	for (uint32_t i = 0; t && session && i < TENSOR_SOCKET_CLIENTS; i++)
		if (t->clients[i].session == session)
			return &t->clients[i];
	return NULL;
}

bool tensor_socket_follows(struct front *front, uint64_t session)
{
	const struct tensor_client *client = client_of(front, session);

	return client && client->follows;
}

uint64_t tensor_socket_session(const struct front *front, uint32_t index)
{
	const struct tensor_socket *t = front->tensors.socket;

	return t ? t->clients[index].session : 0;
}

int tensor_socket_tell(
	struct front *front, uint64_t session, const struct tensor_message *m, int fd)
{
	struct tensor_client *client = client_of(front, session);
	struct tensor_socket_frame frame = {.version = TENSOR_SOCKET_VERSION,
		.what = what_of(m->what),
		.status = m->status,
		.tag = m->tag,
		/* Of READ_ONLY: that it is to be answered. */
		.cursor = m->what == TENSOR_READ_ONLY ? 1 : m->cursor,
		.about = m->about};

	int ret;

	if (!client)
		return -ENOENT;
	memcpy(frame.id, m->id, sizeof(frame.id));
	memcpy(frame.gpu, m->gpu, sizeof(frame.gpu));
	memcpy(frame.name, m->name, sizeof(frame.name));
	memcpy(frame.text, m->text, sizeof(frame.text));
	ret = descriptors_send(
		client->watch.fd, &frame, sizeof(frame), &fd, fd >= 0, MSG_DONTWAIT);
	/* Its end is seen by the loop: here somebody may be walking through what is to be said.
	 */
	if (ret && ret != -EAGAIN && ret != -ENOBUFS)
		shutdown(client->watch.fd, SHUT_RDWR);
	return ret;
}

/* ---- from the process ---- */

static bool greet(
	struct front *front, struct tensor_client *client, const void *bytes, size_t n)
{
	const struct transport none = {.name = "unix"};
	struct tensor_socket_hello hello;
	const struct tenant *tenant;
	bool follows;

	if (n != sizeof(hello))
		return false;
	memcpy(&hello, bytes, n);
	if (memcmp(hello.magic, TENSOR_SOCKET_MAGIC, sizeof(hello.magic)) ||
		hello.version != TENSOR_SOCKET_VERSION ||
		!memchr(hello.token, 0, sizeof(hello.token)))
		return false;
	follows = hello.follows == 1;
	tenant = tenants_find(front, &none, hello.token);
	explicit_bzero(&hello, sizeof(hello));
	if (!tenant)
		return false;
	tensors_space(tenant, client->space);
	client->follows = follows;
	client->session = ++front->next_session;
	log_info("tensors.client", "pid=%d session=%llu namespace=%s", client->pid,
		(unsigned long long)client->session, client->space);
	return true;
}

static bool question(
	struct front *front, struct tensor_client *client, const void *bytes, size_t n)
{
	struct tensor_socket_frame frame;
	struct tensor_message m = {.version = TENSOR_VERSION};

	if (n != sizeof(frame))
		return false;
	memcpy(&frame, bytes, n);
	if (frame.version == TENSOR_SOCKET_VERSION && frame.what == TENSOR_SOCKET_FOLLOWED) {
		tensors_followed(front, client->session, frame.id);
		return true;
	}
	if (frame.version != TENSOR_SOCKET_VERSION || !frame.what ||
		frame.what >= TENSOR_SOCKET_QUESTIONS || !memchr(frame.name, 0, TENSOR_NAME) ||
		!memchr(frame.text, 0, sizeof(frame.text)))
		return false;
	m.what = whats[frame.what];
	m.tag = frame.tag;
	m.cursor = frame.cursor;
	m.session = client->session;
	m.about = frame.about;
	memcpy(m.id, frame.id, sizeof(m.id));
	memcpy(m.gpu, frame.gpu, sizeof(m.gpu));
	memcpy(m.space, client->space, sizeof(m.space));
	memcpy(m.name, frame.name, sizeof(m.name));
	memcpy(m.text, frame.text, sizeof(m.text));
	return tensors_ask_for(front, &m, UNDER_WAY);
}

static void client_ready(struct watch *watch, uint32_t mask)
{
	struct tensor_client *client = events_container(watch, struct tensor_client, watch);
	struct front *front = watch->owner;
	unsigned char bytes[sizeof(struct tensor_socket_frame)];

	(void)mask;
	for (int i = 0; i < FRAMES_A_TURN && watch->fd >= 0; i++) {
		int none;
		ssize_t n = descriptors_receive(
			watch->fd, bytes, sizeof(bytes), &none, 0, MSG_DONTWAIT);
		bool right;

		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			drop(front, client, NULL);
			return;
		}
		right = client->session ? question(front, client, bytes, (size_t)n)
					: greet(front, client, bytes, (size_t)n);
		if (!right)
			drop(front, client,
				client->session
					? "a question that makes no sense"
					: "another release's, or a token that is nobody's");
	}
}

static void listener_ready(struct watch *watch, uint32_t mask)
{
	struct front *front = watch->owner;
	struct tensor_socket *t = front->tensors.socket;

	(void)mask;
	for (int i = 0; i < ACCEPTS_A_TURN; i++) {
		struct unix_peer peer;
		struct tensor_client *client = t->clients;
		int fd = unix_accept(watch->fd, &peer);

		if (fd < 0)
			return;
		while (client < t->clients + TENSOR_SOCKET_CLIENTS && client->watch.fd >= 0)
			client++;
		if (client == t->clients + TENSOR_SOCKET_CLIENTS ||
			events_watch(
				&front->events, &client->watch, fd, EPOLLIN, client_ready)) {
			log_warn("tensors.client", "pid=%d text=\"there are %u already\"",
				peer.pid, TENSOR_SOCKET_CLIENTS);
			close(fd);
			continue;
		}
		client->pid = peer.pid;
		client->deadline = wait_now() + HELLO_NS;
	}
}

/* ---- the socket ---- */

void tensor_socket_open(struct front *front)
{
	const char *path = front->config->store.socket;
	struct tensor_socket *t;
	int ret, fd = -1;

	if (!path[0] || !front->config->store.bytes)
		return;
	t = calloc(1, sizeof(*t));
	ret = t ? 0 : -ENOMEM;
	for (uint32_t i = 0; t && i < TENSOR_SOCKET_CLIENTS; i++)
		t->clients[i].watch.fd = -1;
	/* Its group may connect: that of the folder, where that has the setgid bit. */
	if (!ret)
		fd = ret = unix_listen_alone(path, SOCK_SEQPACKET, 0660);
	if (ret >= 0) {
		t->listener.fd = -1;
		ret = events_watch(&front->events, &t->listener, fd, EPOLLIN, listener_ready);
	}
	if (!ret) {
		front->tensors.socket = t;
		return;
	}
	log_warn("store.socket", "path=\"%s\" text=\"%s; processes of the node find nobody\"",
		path, strerror(-ret));
	if (fd >= 0)
		close(fd);
	free(t);
}

void tensor_socket_close(struct front *front)
{
	struct tensor_socket *t = front->tensors.socket;
	int fd;

	if (!t)
		return;
	for (uint32_t i = 0; i < TENSOR_SOCKET_CLIENTS; i++)
		if (t->clients[i].watch.fd >= 0)
			drop(front, &t->clients[i], NULL);
	fd = events_forget(&front->events, &t->listener);
	if (fd >= 0)
		close(fd);
	unlink(front->config->store.socket);
	front->tensors.socket = NULL;
	free(t);
}

uint64_t tensor_socket_tick(struct front *front, uint64_t now)
{
	struct tensor_socket *t = front->tensors.socket;
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; t && i < TENSOR_SOCKET_CLIENTS; i++) {
		struct tensor_client *client = &t->clients[i];

		if (client->watch.fd < 0 || client->session)
			continue;
		if (client->deadline <= now)
			drop(front, client, "it did not say who it is");
		else if (client->deadline < next)
			next = client->deadline;
	}
	return next;
}
