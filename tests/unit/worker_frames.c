/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker against a client that lies: every frame that it serves, cut short at every length,
 * and frames with each bit of the header flipped.  A real worker process on the software GPU;
 * this program plays front and client.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu-agent/agent.h"
#include "gpu-agent/worker.h"
#include "protocol/channel.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "protocol/open.h"

#define PATIENCE_MS 5000

struct peer {
	pid_t worker;
	int handoff, commands, replies;
	uint64_t seq;
	struct handoff ready;
};

static void peer_start(struct peer *p)
{
	static struct agent_config config;
	struct handoff session = {.version = HANDOFF_VERSION, .what = HANDOFF_SESSION};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct iovec iov = {&session, sizeof(session)};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int handoff[2], commands[2], replies[2], fds[2];

	memset(p, 0, sizeof(*p));
	config.driver = DRIVER_SOFTWARE;
	snprintf(config.driver_path, sizeof(config.driver_path), "%s", getenv("SOFTGPU"));
	snprintf(config.cache_dir, sizeof(config.cache_dir), "/tmp/vcuda-test-cache-%d",
		(int)getpid());
	config.cache_bytes = 1 << 20;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, handoff), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, commands), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, replies), 0);
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
	fds[0] = commands[1];
	fds[1] = replies[1];
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
	snprintf(session.text, sizeof(session.text), "native");
	for (int i = 0; i < HANDOFF_DEVICES; i++)
		session.devices[i].lease = 64 << 20;
	assert_int_equal(sendmsg(p->handoff, &m, 0), sizeof(session));
	close(commands[1]);
	close(replies[1]);
}

/* The worker has to be gone within two seconds of the end of its client. */
static void peer_stop(struct peer *p)
{
	int status = 0;
	pid_t gone = 0;

	close(p->commands);
	close(p->replies);
	for (int i = 0; i < 200 && !gone; i++) {
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

/* The next frame of the kind. -1: the worker closed the connection; 0 and *lost = true: it said
 * that the session is over. */
static int peer_reply(struct peer *p, struct frame_header *h, bool *lost)
{
	static unsigned char body[1 << 21];

	*lost = false;
	for (;;) {
		if (read_all(p->replies, h, sizeof(*h)))
			return -1;
		assert_int_equal(h->magic, FRAME_MAGIC);
		assert_true(h->length <= sizeof(body));
		if (read_all(p->replies, body, h->length))
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

static void expect_alive(struct peer *p)
{
	struct wire_vcudaSync body = {.scope = SYNC_CONTEXT};
	struct frame_header h = call_header(p, OP_vcudaSync, sizeof(body));
	bool lost;

	peer_send(p, &h, &body);
	assert_int_equal(peer_reply(p, &h, &lost), 0);
	assert_false(lost);
	assert_int_equal(h.status, CUDA_SUCCESS);
}

static void every_op_is_refused_when_cut_short(void **state)
{
	static const unsigned char zeros[4096];
	struct peer p;
	unsigned ops = 0, frames = 0;

	(void)state;
	peer_start(&p);
	for (unsigned op = 1; op < 65536; op++) {
		const struct serve_entry *entry = serve_find((uint16_t)op);

		if (!entry)
			continue;
		ops++;
		for (uint32_t n = 0; n < entry->body_bytes; n++) {
			struct frame_header h = call_header(&p, (uint16_t)op, n);
			bool lost;

			peer_send(&p, &h, zeros);
			assert_int_equal(peer_reply(&p, &h, &lost), 0);
			assert_false(lost);
			assert_int_equal(h.tag, 5);
			if (h.status != CUDA_ERROR_INVALID_VALUE)
				fail_msg("%s, %u of %u bytes: status %u", entry->name, n,
					entry->body_bytes, h.status);
			frames++;
		}
	}
	assert_true(ops > 40);
	assert_true(frames > 1000);
	expect_alive(&p);
	peer_stop(&p);
}

static void an_unknown_op_is_not_supported(void **state)
{
	struct peer p;
	struct frame_header h;
	bool lost;

	(void)state;
	peer_start(&p);
	h = call_header(&p, 65000, 0);
	peer_send(&p, &h, "");
	assert_int_equal(peer_reply(&p, &h, &lost), 0);
	assert_int_equal(h.status, CUDA_ERROR_NOT_SUPPORTED);
	expect_alive(&p);
	peer_stop(&p);
}

/* Each bit of the body of frames with handles, addresses, geometry and runs: an error or a
 * success, never the worker's end. */
static void flipped_bodies_are_answered(void **state)
{
	struct wire_vcudaFill fill = {
		.dst = 0x200000000000, .element = 1, .width = 16, .height = 1};
	struct wire_vcudaCopyOut copy = {
		.src = 0x200000000000, .width = 16, .height = 1, .depth = 1};
	struct wire_vcudaMemMap map = {.address = 0x200000000000, .bytes = 2 << 20};
	struct wire_vcudaLaunch launch = {.gridX = 1, .gridY = 1, .gridZ = 1, .blockX = 1};
	struct {
		uint16_t op;
		void *body;
		uint32_t n;
	} frames[] = {
		{OP_vcudaFill, &fill, sizeof(fill)},
		{OP_vcudaCopyOut, &copy, sizeof(copy)},
		{OP_vcudaMemMap, &map, sizeof(map)},
		{OP_vcudaLaunch, &launch, sizeof(launch)},
	};
	struct peer p;

	(void)state;
	peer_start(&p);
	for (size_t f = 0; f < sizeof(frames) / sizeof(frames[0]); f++)
		for (uint32_t bit = 0; bit < 8 * frames[f].n; bit++) {
			unsigned char body[256];
			struct frame_header h = call_header(&p, frames[f].op, frames[f].n);
			bool lost;

			memcpy(body, frames[f].body, frames[f].n);
			body[bit / 8] ^= (unsigned char)(1u << bit % 8);
			peer_send(&p, &h, body);
			assert_int_equal(peer_reply(&p, &h, &lost), 0);
			assert_false(lost);
		}
	expect_alive(&p);
	peer_stop(&p);
}

/* Each bit of the header: the frame is answered, or the session ends with a reason; the worker
 * itself ends in order (peer_stop looks at its exit status). */
static void flipped_headers_end_at_most_the_session(void **state)
{
	unsigned ended = 0, answered = 0;

	(void)state;
	for (unsigned bit = 0; bit < 8 * sizeof(struct frame_header); bit++) {
		struct wire_vcudaSync body = {.scope = SYNC_CONTEXT};
		struct frame_header h;
		struct peer p;
		bool lost;

		/* `length` and `body` made larger announce bytes that do not come: the worker
		 * waits for them, which is right. op, seq and the rest are what this is about.
		 */
		if (bit < 32 || (bit >= 128 && bit < 160))
			continue;
		peer_start(&p);
		h = call_header(&p, OP_vcudaSync, sizeof(body));
		((unsigned char *)&h)[bit / 8] ^= (unsigned char)(1u << bit % 8);
		peer_send(&p, &h, &body);
		/* A kind that is not answered (a post, a pong) is followed by one that is. */
		if (h.kind == FRAME_CALL)
			p.seq = h.seq;
		else if (h.kind != FRAME_POST)
			p.seq = 0;
		h = call_header(&p, OP_vcudaSync, sizeof(body));
		send(p.commands, &h, sizeof(h), MSG_NOSIGNAL);
		send(p.commands, &body, sizeof(body), MSG_NOSIGNAL);
		if (peer_reply(&p, &h, &lost) || lost)
			ended++;
		else
			answered++;
		peer_stop(&p);
	}
	assert_true(ended > 50);
	assert_true(answered > 10);
}

static void a_forged_handle_is_refused(void **state)
{
	struct wire_vcudaStreamCreate create = {.stream = handle_make(1, KIND_CUstream, 3)};
	struct wire_vcudaSync sync = {.scope = SYNC_STREAM, .handle = create.stream};
	struct wire_vcudaStreamDestroy gone = {.stream = create.stream};
	struct frame_header h;
	struct peer p;
	bool lost;

#define CALL(op_, body_, expected)                                                             \
	do {                                                                                   \
		h = call_header(&p, op_, sizeof(body_));                                       \
		peer_send(&p, &h, &(body_));                                                   \
		assert_int_equal(peer_reply(&p, &h, &lost), 0);                                \
		assert_int_equal(h.status, expected);                                          \
	} while (0)

	(void)state;
	peer_start(&p);
	CALL(OP_vcudaStreamCreate, create, CUDA_SUCCESS);
	CALL(OP_vcudaStreamCreate, create, CUDA_ERROR_INVALID_HANDLE); /* in use */
	CALL(OP_vcudaSync, sync, CUDA_SUCCESS);
	sync.handle = handle_make(1, KIND_CUevent, 3); /* another kind */
	CALL(OP_vcudaSync, sync, CUDA_ERROR_INVALID_HANDLE);
	sync.handle = handle_make(2, KIND_CUstream, 3); /* another generation */
	CALL(OP_vcudaSync, sync, CUDA_ERROR_INVALID_HANDLE);
	sync.handle = handle_make(1, KIND_CUstream, 0xffffff); /* beyond the table */
	CALL(OP_vcudaSync, sync, CUDA_ERROR_INVALID_HANDLE);
	CALL(OP_vcudaStreamDestroy, gone, CUDA_SUCCESS);
	CALL(OP_vcudaStreamDestroy, gone, CUDA_ERROR_INVALID_HANDLE); /* stale */
	CALL(OP_vcudaStreamCreate, create,
		CUDA_ERROR_INVALID_HANDLE); /* an old number come again */
	create.stream = handle_make(2, KIND_CUstream, 3);
	CALL(OP_vcudaStreamCreate, create, CUDA_SUCCESS);
	expect_alive(&p);
	peer_stop(&p);
}

static void memory_beyond_the_lease_is_refused(void **state)
{
	struct wire_vcudaMemMap map = {.bytes = 64 << 20};
	struct frame_header h;
	struct peer p;
	bool lost;

	(void)state;
	peer_start(&p);
	map.address = 0x200000000000;
	CALL(OP_vcudaMemMap, map, CUDA_SUCCESS);
	CALL(OP_vcudaMemMap, map, CUDA_ERROR_INVALID_VALUE); /* there is memory already */
	map.address += map.bytes;
	map.bytes = 2 << 20;
	CALL(OP_vcudaMemMap, map, CUDA_ERROR_OUT_OF_MEMORY);
	map.address = 0x1000;
	CALL(OP_vcudaMemMap, map, CUDA_ERROR_INVALID_VALUE); /* not the window */
	expect_alive(&p);
	peer_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_op_is_refused_when_cut_short),
		cmocka_unit_test(an_unknown_op_is_not_supported),
		cmocka_unit_test(flipped_bodies_are_answered),
		cmocka_unit_test(flipped_headers_end_at_most_the_session),
		cmocka_unit_test(a_forged_handle_is_refused),
		cmocka_unit_test(memory_beyond_the_lease_is_refused),
	};

	if (!getenv("SOFTGPU")) {
		fprintf(stderr, "worker_frames: SOFTGPU must name libvcuda-softgpu.so\n");
		return 1;
	}
	return cmocka_run_group_tests_name("worker_frames", tests, NULL, NULL);
}
