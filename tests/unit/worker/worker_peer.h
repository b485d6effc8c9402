/* SPDX-License-Identifier: Apache-2.0
 *
 * A real worker process on the software GPU ($SOFTGPU), and the test as its front and client:
 * what the tests of the worker share.  Every wait ends after PATIENCE_MS with a failure.  With
 * SOFTGPU=libcuda.so.1 it is NVIDIA's driver, with libraries that LD_LIBRARY_PATH has.
 */
#ifndef VCUDA_TESTS_UNIT_WORKER_PEER_H
#define VCUDA_TESTS_UNIT_WORKER_PEER_H

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/descriptors.h"
#include "gpu-agent/agent.h"
#include "gpu-agent/tally.h"
#include "gpu-agent/worker/worker.h"
#include "protocol/wire/channel.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "protocol/wire/open.h"

#define PATIENCE_MS 5000

struct peer {
	pid_t worker;
	int handoff, commands, replies;
	uint64_t seq;
	struct handoff ready;
};

/* The driver of the workers that start next; NULL: the software GPU. */
static const char *peer_driver;

/* host_memory of the workers that start next. */
static uint64_t peer_host_memory;

/* The lease of the sessions that begin next, of each device. */
static uint64_t peer_lease = 64 << 20;

/* The quotas of the sessions that begin next. */
static uint64_t peer_quotas[QUOTAS];

/* The tally of the sessions that begin next, and their slot in it; -1: each has its own. */
static int peer_tally = -1;
static uint32_t peer_slot;

static inline int peer_tally_make(void)
{
	int fd = memfd_create("tally", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(struct tally)), 0);
	return fd;
}

/* As the front does, before the SESSION. */
static inline void peer_say_tally(const struct peer *p)
{
	struct handoff h = {.version = HANDOFF_VERSION, .what = HANDOFF_TALLY};
	int fd = peer_tally < 0 ? peer_tally_make() : dup(peer_tally);
	uint32_t slots = peer_slot + 1;

	h.device = peer_slot;
	if (peer_tally < 0)
		assert_int_equal(
			pwrite(fd, &slots, sizeof(slots), offsetof(struct tally, slots)),
			sizeof(slots));
	assert_int_equal(descriptors_send(p->handoff, &h, sizeof(h), &fd, 1, 0), 0);
	close(fd);
}

/* The worker's next frames fill its socket at once. */
static bool peer_small;

/* What comes between READY and SESSION. */
static void (*peer_before_session)(const struct peer *p);

static inline bool peer_nvidia(void)
{
	return !strcmp(getenv("SOFTGPU"), "libcuda.so.1");
}

static void peer_start(struct peer *p)
{
	static struct agent_config config;
	struct handoff session = {.version = HANDOFF_VERSION, .what = HANDOFF_SESSION};
	int handoff[2], commands[2], replies[2], fds[2];

	memset(p, 0, sizeof(*p));
	config.driver = peer_nvidia() ? DRIVER_NVIDIA : DRIVER_SOFTWARE;
	snprintf(config.driver_path, sizeof(config.driver_path), "%s",
		peer_driver ? peer_driver : getenv("SOFTGPU"));
	config.host_memory = peer_host_memory;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, handoff), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, commands), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, replies), 0);
	if (peer_small)
		setsockopt(replies[1], SOL_SOCKET, SO_SNDBUF, &(int){4096}, sizeof(int));
	p->worker = fork();
	if (!p->worker) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(handoff[0]);
		close(commands[0]);
		close(replies[0]);
		_exit(worker_main(&config, handoff[1]));
	}
	close(handoff[1]);
	p->handoff = handoff[0];
	p->commands = commands[0];
	p->replies = replies[0];
	assert_int_equal(recv(p->handoff, &p->ready, sizeof(p->ready), 0), sizeof(p->ready));
	if (p->ready.what != HANDOFF_READY)
		fail_msg("the worker did not get ready: %s", p->ready.text);
	peer_say_tally(p);
	fds[0] = commands[1];
	fds[1] = replies[1];
	snprintf(session.text, sizeof(session.text), "native");
	session.device_count = p->ready.device_count;
	memcpy(session.quotas, peer_quotas, sizeof(session.quotas));
	for (int i = 0; i < HANDOFF_DEVICES; i++) {
		session.gpus[i] = (uint8_t)i;
		session.devices[i].lease = peer_lease;
	}
	if (peer_before_session)
		peer_before_session(p);
	assert_int_equal(descriptors_send(p->handoff, &session, sizeof(session), fds, 2, 0), 0);
	close(commands[1]);
	close(replies[1]);
}

/* The worker has to be gone within so many seconds of the end of its client. */
static void peer_stop_within(struct peer *p, int seconds)
{
	int status = 0;
	pid_t gone = 0;

	close(p->commands);
	close(p->replies);
	for (int i = 0; i < 100 * seconds && !gone; i++) {
		gone = waitpid(p->worker, &status, WNOHANG);
		if (!gone)
			usleep(10000);
	}
	if (!gone) {
		kill(p->worker, SIGKILL);
		waitpid(p->worker, NULL, 0);
		fail_msg("the worker outlived its client");
	}
	close(p->handoff);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static inline void peer_stop(struct peer *p)
{
	peer_stop_within(p, 2);
}

static int read_all(int fd, void *to, size_t n)
{
	while (n) {
		struct pollfd poller = {.fd = fd, .events = POLLIN};
		ssize_t got;

		if (poll(&poller, 1, PATIENCE_MS) != 1)
			fail_msg("the worker does not answer");
		got = recv(fd, to, n, 0);
		if (got <= 0)
			return -1;
		to = (char *)to + got;
		n -= (size_t)got;
	}
	return 0;
}

/* What came with the last reply. */
static unsigned char peer_body[1 << 21];

/* The next frame of the kind. -1: the worker closed the connection; 0 and *lost = true: it said
 * that the session is over. */
static int peer_reply(struct peer *p, struct frame_header *h, bool *lost)
{
	*lost = false;
	for (;;) {
		if (read_all(p->replies, h, sizeof(*h)))
			return -1;
		assert_int_equal(h->magic, FRAME_MAGIC);
		assert_true(h->length <= sizeof(peer_body));
		if (read_all(p->replies, peer_body, h->length))
			return -1;
		if (h->kind == FRAME_LOST)
			*lost = true;
		if (h->kind == FRAME_REPLY || h->kind == FRAME_LOST)
			return 0;
	}
}

static void peer_send(struct peer *p, const struct frame_header *h, const void *body)
{
	unsigned char bytes[sizeof(*h) + 4096];

	memcpy(bytes, h, sizeof(*h));
	memcpy(bytes + sizeof(*h), body, h->body < 4096 ? h->body : 4096);
	assert_true(send(p->commands, bytes, sizeof(*h) + (h->body < 4096 ? h->body : 4096),
			    MSG_NOSIGNAL) > 0);
}

static struct frame_header call_header(struct peer *p, uint16_t op, uint32_t body)
{
	return (struct frame_header){
		.length = body,
		.op = op,
		.kind = FRAME_CALL,
		.seq = ++p->seq,
		.body = body,
		.tag = 5,
		.context = CONTEXT_PRIMARY(0),
		.magic = FRAME_MAGIC,
	};
}

/* A call, and the status that it is answered with. */
static CUresult peer_status(struct peer *p, uint16_t op, const void *body, size_t n)
{
	struct frame_header h = call_header(p, op, (uint32_t)n);
	bool lost;

	peer_send(p, &h, body);
	assert_int_equal(peer_reply(p, &h, &lost), 0);
	assert_false(lost);
	return (CUresult)h.status;
}
#define CALL_OF(OP, BODY) peer_status(p, OP, &(BODY), sizeof(BODY))

static inline void expect_alive(struct peer *p)
{
	struct wire_vcudaSync body = {.scope = SYNC_CONTEXT};

	assert_int_equal(CALL_OF(OP_vcudaSync, body), CUDA_SUCCESS);
}

/* What some of the tests use. */
static inline void send_post(struct peer *p, uint16_t op, const void *body, uint32_t n)
{
	struct frame_header h = call_header(p, op, n);

	h.kind = FRAME_POST;
	peer_send(p, &h, body);
}

static inline enum frame_kind next_frame(struct peer *p, struct frame_header *h)
{
	static unsigned char body[1 << 21];

	assert_int_equal(read_all(p->replies, h, sizeof(*h)), 0);
	assert_true(h->length <= sizeof(body));
	assert_int_equal(read_all(p->replies, body, h->length), 0);
	return (enum frame_kind)h->kind;
}

/* A host function that runs: before the worker says so, its end would be nobody's. */
static inline void begin_function(struct peer *p)
{
	struct wire_vcudaHostFunc func = {.ticket = 1};
	struct frame_header h;

	send_post(p, OP_vcudaHostFunc, &func, sizeof(func));
	while (next_frame(p, &h) != FRAME_UPCALL)
		;
}

static inline void end_function(struct peer *p)
{
	struct wire_vcudaHostFuncDone done = {.ticket = 1};

	send_post(p, OP_vcudaHostFuncDone, &done, sizeof(done));
}

/* One call, and what it has to answer. Needs p, h and lost. */
#define CALL(op_, body_, expected)                                                             \
	do {                                                                                   \
		h = call_header(&p, op_, sizeof(body_));                                       \
		peer_send(&p, &h, &(body_));                                                   \
		assert_int_equal(peer_reply(&p, &h, &lost), 0);                                \
		assert_int_equal(h.status, expected);                                          \
	} while (0)

#endif
