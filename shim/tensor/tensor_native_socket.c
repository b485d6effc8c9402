/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection to the agent of this node.  One question at a time, under tensor_native.c's
 * lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/tensor/tensor_native.h"

/* The agent answers within 30 s, whatever its store does. */
#define ANSWER_S 35
#define LISTEN_MS 1000

static struct {
	int fd;	   /* -1: none */
	pid_t pid; /* whose it is: a child has one of its own */
	uint64_t number;
	uint64_t tag;
} connection = {.fd = -1};

uint64_t native_connection(void)
{
	return connection.number;
}

static const char *path_of(void)
{
	const char *path = getenv("VCUDA_TENSOR_SOCKET");

	return path && *path ? path : TENSOR_SOCKET_PATH;
}

static void lose(void)
{
	if (connection.fd >= 0)
		close(connection.fd);
	connection.fd = -1;
}

/* $VCUDA_TOKEN_FILE's first line, as the sidecar reads it; "" without. */
static int read_token(char token[TENSOR_SOCKET_TOKEN])
{
	const char *path = getenv("VCUDA_TOKEN_FILE");
	ssize_t n;
	int fd;

	token[0] = 0;
	if (!path || !*path)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, token, TENSOR_SOCKET_TOKEN - 1);
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return native_fail(CUDA_ERROR_NOT_PERMITTED, "%s: %s", path, strerror(errno));
	token[n] = 0;
	token[strcspn(token, "\r\n")] = 0;
	return 0;
}

static int greet(int fd)
{
	struct tensor_socket_hello hello = {.version = TENSOR_SOCKET_VERSION, .follows = 1};
	int status = read_token(hello.token);

	memcpy(hello.magic, TENSOR_SOCKET_MAGIC, sizeof(hello.magic));
	if (!status && send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) != (ssize_t)sizeof(hello))
		status = native_fail(CUDA_ERROR_SYSTEM_NOT_READY, "the agent at %s: %s",
			path_of(), strerror(errno));
	explicit_bzero(hello.token, sizeof(hello.token));
	return status;
}

/* Nobody listens: vcuda is neither preloaded nor on this node. */
static int nobody(int error)
{
	if (error == ENOENT)
		return native_fail(CUDA_ERROR_NO_DEVICE,
			"vcuda is not preloaded here (run the program in an annotated pod, or "
			"by "
			"`vcuda run`), and no agent of this node listens at %.60s",
			path_of());
	return native_fail(CUDA_ERROR_SYSTEM_NOT_READY, "the agent at %.100s: %s", path_of(),
		strerror(error));
}

static int open_connection(void)
{
	const struct timeval patience = {.tv_sec = ANSWER_S};
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd, status;

	if (connection.fd >= 0 && connection.pid == getpid())
		return 0;
	lose();
	if (strlen(path_of()) >= sizeof(at.sun_path))
		return native_fail(CUDA_ERROR_INVALID_VALUE, "VCUDA_TENSOR_SOCKET is too long");
	strcpy(at.sun_path, path_of());
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return nobody(errno);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
		connect(fd, (struct sockaddr *)&at, sizeof(at))) {
		status = nobody(errno);
		close(fd);
		return status;
	}
	status = greet(fd);
	if (status) {
		close(fd);
		return status;
	}
	connection.fd = fd;
	connection.pid = getpid();
	connection.number++;
	return 0;
}

/* One datagram within ANSWER_S; false: the connection is of no use. */
static bool receive(struct tensor_socket_frame *frame, int *fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {frame, sizeof(*frame)};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c;
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(connection.fd, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	for (c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL; c; c = CMSG_NXTHDR(&message, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
			c->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(fd, CMSG_DATA(c), sizeof(int));
	if (n == (ssize_t)sizeof(*frame) && frame->version == TENSOR_SOCKET_VERSION)
		return true;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return false;
}

static int lost(void)
{
	int error = errno;

	lose();
	return native_fail(CUDA_ERROR_SYSTEM_NOT_READY,
		"the agent at %.80s hung up or does not answer (%s): another release, a token "
		"that "
		"is nobody's, or it is starting",
		path_of(), strerror(error));
}

/* A connection that ended since the last question, with the agent's front, is made anew. */
static int ask(const struct tensor_socket_frame *frame)
{
	int status = open_connection();

	for (int tries = 0; !status; tries++) {
		errno = 0;
		if (send(connection.fd, frame, sizeof(*frame), MSG_NOSIGNAL) ==
			(ssize_t)sizeof(*frame))
			return 0;
		if (tries)
			return lost();
		lose();
		status = open_connection();
	}
	return status;
}

/* It is read-only here. `cursor`: the agent wants to hear that; an older one would hang up. */
static void follow(const struct tensor_socket_frame *told)
{
	struct tensor_socket_frame frame = {
		.version = TENSOR_SOCKET_VERSION, .what = TENSOR_SOCKET_FOLLOWED};

	native_sealed(told->id);
	if (!told->cursor)
		return;
	memcpy(frame.id, told->id, sizeof(frame.id));
	send(connection.fd, &frame, sizeof(frame), MSG_NOSIGNAL);
}

/* ---- what is said unasked ---- */

static struct {
	bool runs;
	bool (*needed)(void);
	void (*lock)(void), (*unlock)(void);
	pid_t pid; /* whose thread it is */
} listener;

/* Under the lock nobody waits for an answer: what is there was said unasked. */
static void hear(void)
{
	struct tensor_socket_frame frame;
	ssize_t n;

	while ((n = recv(connection.fd, &frame, sizeof(frame), MSG_DONTWAIT)) ==
		(ssize_t)sizeof(frame))
		if (frame.version == TENSOR_SOCKET_VERSION &&
			frame.what == TENSOR_SOCKET_READ_ONLY)
			follow(&frame);
	if (!n)
		lose(); /* its end; the next question connects anew */
}

static void *listen_main(void *argument)
{
	bool runs = true;

	(void)argument;
	while (runs) {
		struct pollfd p = {.events = POLLIN};

		listener.lock();
		p.fd = connection.fd;
		runs = listener.runs = p.fd >= 0 && listener.needed();
		listener.unlock();
		if (!runs || poll(&p, 1, LISTEN_MS) < 1)
			continue;
		listener.lock();
		if (connection.fd == p.fd)
			hear();
		listener.unlock();
	}
	return NULL;
}

void native_listen(bool (*needed)(void), void (*lock)(void), void (*unlock)(void))
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (listener.runs && listener.pid == getpid())
		return;
	/* A child has the lock as it is at the fork, and no thread that would give it back. */
	if (!listener.needed && pthread_atfork(lock, unlock, unlock))
		return;
	listener.needed = needed;
	listener.lock = lock;
	listener.unlock = unlock;
	listener.pid = getpid();
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	/* Without it, it is heard with the next answer, or the seal is refused. */
	listener.runs = !pthread_create(&thread, &attributes, listen_main, NULL);
	pthread_attr_destroy(&attributes);
}

int native_ask(struct tensor_socket_frame *frame, int *fd)
{
	struct tensor_socket_frame answer;
	uint64_t tag = frame->tag = ++connection.tag;
	int status;

	*fd = -1;
	frame->version = TENSOR_SOCKET_VERSION;
	status = ask(frame);
	if (status)
		return status;
	for (;;) {
		if (!receive(&answer, fd))
			return lost();
		if (answer.what == TENSOR_SOCKET_READ_ONLY)
			follow(&answer);
		else if (answer.tag == tag)
			break;
		if (*fd >= 0)
			close(*fd);
	}
	answer.text[sizeof(answer.text) - 1] = 0;
	answer.name[sizeof(answer.name) - 1] = 0;
	*frame = answer;
	return answer.status ? native_fail((int)answer.status, "%s", answer.text) : 0;
}
