/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole worker, as it is, on the software GPU: a hostile client's frames, what comes over
 * stripes, and what the front says meanwhile.  Each input is a session in a process of its own,
 * made by fork from this one, which has the libraries open already (forked.h).
 *
 * An input is a list of records (struct record, its body, its payload).  A record is a frame
 * with a right header, unless its kind says otherwise, so that most of what is tried reaches
 * the operations; seeds.py makes a session for each of them.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/agent.h"
#include "gpu-agent/uploads.h"
#include "gpu-agent/worker/worker.h"
#include "protocol/wire/channel.h"
#include "protocol/wire/frame.h"
#include "tests/fuzz/conversation.h"
#include "tests/fuzz/forked.h"

#define SECONDS_MAX 60 /* a session that takes longer hangs */
#define BUFFER (4 << 20)
#define OPS 4096

enum record_kind {
	RECORD_FRAME = 0, /* as its operation wants it */
	RECORD_CALL = 1,
	RECORD_POST = 2,
	RECORD_RAW = 3,	    /* the body, without a header */
	RECORD_HANDOFF = 4, /* a datagram of the front; its first byte: which */
	RECORD_STRIPE = 5,  /* a new stripe; what the other end sends is the body */
	RECORD_PLAIN = 6,   /* PING, PONG, BYE … : the frame's kind is `op` */
	RECORD_KINDS
};

struct session {
	pid_t worker;
	int handoff, commands, replies;
	uint64_t seq;
	uint32_t stripes;
	int ends[SESSION_STRIPES];     /* ours of its stripes */
	int lanes[SESSION_STRIPES][2]; /* and of what these ask agent-uploads by; 0: nothing */
};

static struct agent_config config;
static uint16_t ops[OPS];
static unsigned op_count;
static uint64_t sessions, frames; /* that workers took, as they say when they end */

/* --- the worker's process ------------------------------------------------------------------
 */

static void tell_frames(void)
{
	fprintf(stderr, "workers took %llu frames in %llu sessions\n",
		(unsigned long long)frames, (unsigned long long)sessions);
}

static void setup(void)
{
	const char *softgpu = getenv("SOFTGPU");

	if (!softgpu) {
		fprintf(stderr, "SOFTGPU: where libvcuda-softgpu.so is\n");
		abort();
	}
	forked_setup();
	log_level = LOG_ERROR;
	config.driver = DRIVER_SOFTWARE;
	snprintf(config.driver_path, sizeof(config.driver_path), "%s", softgpu);
	config.launch_timeout_ms = 500;
	if (!dlopen(softgpu, RTLD_NOW | RTLD_LOCAL)) {
		fprintf(stderr, "%s\n", dlerror());
		abort();
	}
	for (unsigned op = 1; op < OPS; op++)
		if (serve_find((uint16_t)op))
			ops[op_count++] = (uint16_t)op;
	atexit(tell_frames);
}

/* --- its front and its client --------------------------------------------------------------
 */

static void start(struct session *s)
{
	struct handoff h = {.version = HANDOFF_VERSION, .what = HANDOFF_SESSION};
	int handoff[2], commands[2], replies[2], fds[2];

	memset(s, 0, sizeof(*s));
	must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, handoff), "socketpair");
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, commands), "socketpair");
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, replies), "socketpair");
	setsockopt(commands[0], SOL_SOCKET, SO_SNDBUFFORCE, &(int){BUFFER}, sizeof(int));
	s->worker = forked_start();
	if (!s->worker) {
		close(handoff[0]);
		close(commands[0]);
		close(replies[0]);
		_exit(worker_main(&config, handoff[1]));
	}
	close(handoff[1]);
	s->handoff = handoff[0];
	s->commands = commands[0];
	s->replies = replies[0];
	fds[0] = commands[1];
	fds[1] = replies[1];
	snprintf(h.text, sizeof(h.text), "native");
	h.device_count = 1;
	h.devices[0].lease = 256u << 20;
	must(!descriptors_send(s->handoff, &h, sizeof(h), fds, 2, 0), "SESSION");
	close(commands[1]);
	close(replies[1]);
}

static void send_all(int fd, const void *bytes, size_t n)
{
	/* What does not fit into 4 MiB, or comes when it has gone, is lost. */
	(void)!send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void send_frame(struct session *s, const struct record *r, const uint8_t *body)
{
	const struct serve_entry *entry = serve_find(r->op);
	struct frame_header h = {
		.length = (uint32_t)r->body + r->payload,
		.op = r->op,
		.kind = FRAME_CALL,
		.flags = (uint8_t)(r->stripe % (SESSION_STRIPES + 1) << FRAME_STRIPE_SHIFT),
		.body = r->body,
		.tag = (uint16_t)(s->seq % CHANNEL_SLOTS),
		.context = r->context,
		.magic = FRAME_MAGIC,
	};
	uint32_t stripe = r->stripe % (SESSION_STRIPES + 1);
	uint32_t piece[2] = {r->payload, 0};

	if (r->kind == RECORD_POST ||
		(r->kind == RECORD_FRAME && entry && entry->flags & SERVE_POST))
		h.kind = FRAME_POST;
	if (r->kind == RECORD_PLAIN) {
		h.kind = (uint8_t)r->op;
		h.op = 0;
	}
	if (h.kind == FRAME_CALL || h.kind == FRAME_POST || h.kind == FRAME_BYE)
		h.seq = ++s->seq;
	if (!r->payload) {
		h.flags = 0;
		stripe = 0;
	}
	send_all(s->commands, &h, sizeof(h));
	send_all(s->commands, body, r->body);
	if (!stripe) {
		send_all(s->commands, body + r->body, r->payload);
	} else if (stripe <= s->stripes) {
		send_all(s->ends[stripe - 1], piece, sizeof(piece));
		send_all(s->ends[stripe - 1], body + r->body, r->payload);
	}
}

static void send_handoff(struct session *s, const struct record *r, const uint8_t *body)
{
	static const uint32_t kinds[] = {HANDOFF_GRANT, HANDOFF_OTHERS, HANDOFF_SHARED,
		HANDOFF_GIVEN, HANDOFF_STRIPE, HANDOFF_SESSION};
	struct handoff h = {.version = HANDOFF_VERSION};
	size_t n = r->body < sizeof(h) - 8 ? r->body : sizeof(h) - 8;
	int fd = r->op & 1 ? memfd_create("fuzz", MFD_CLOEXEC) : -1;

	memcpy((char *)&h + 8, body, n);
	h.what = kinds[r->op / 2 % (sizeof(kinds) / sizeof(kinds[0]))];
	(void)!descriptors_send(s->handoff, &h, sizeof(h), &fd, fd >= 0, MSG_DONTWAIT);
	if (fd >= 0)
		close(fd);
}

/* An agent-uploads that says beforehand what it will have been asked: payloads may be named. */
static void open_lane(struct session *s, uint32_t number)
{
	static const uint32_t answers[] = {
		UPLOADS_BEGIN, UPLOADS_ASK, UPLOADS_GET, UPLOADS_ASK, UPLOADS_GET, UPLOADS_GET};
	const struct handoff h = {
		.version = HANDOFF_VERSION, .what = HANDOFF_UPLOADS, .device = number};
	int *lane = s->lanes[s->stripes], theirs[2];

	for (int i = 0; i < 2; i++) {
		int pair[2];

		must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair),
			"socketpair");
		lane[i] = pair[0];
		theirs[i] = pair[1];
	}
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		const struct uploads_answer answer = {.what = answers[i], .have = 5};

		(void)!send(lane[0], &answer, sizeof(answer), MSG_DONTWAIT);
	}
	for (int i = 0; i < 2; i++)
		shutdown(lane[i], SHUT_WR); /* behind these it is gone */
	(void)!descriptors_send(s->handoff, &h, sizeof(h), theirs, 2, MSG_DONTWAIT);
	close(theirs[0]);
	close(theirs[1]);
}

static void open_stripe(struct session *s, const struct record *r, const uint8_t *body)
{
	struct handoff h = {.version = HANDOFF_VERSION,
		.what = HANDOFF_STRIPE,
		.device = s->stripes + 1 + r->op % 2 * 3};
	int pair[2];

	if (s->stripes == SESSION_STRIPES ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return;
	if (r->op & 2)
		open_lane(s, h.device);
	(void)!descriptors_send(s->handoff, &h, sizeof(h), &pair[1], 1, MSG_DONTWAIT);
	close(pair[1]);
	s->ends[s->stripes++] = pair[0];
	send_all(pair[0], body, r->body);
}

static void send_record(struct session *s, const struct record *r, const uint8_t *body)
{
	switch (r->kind % RECORD_KINDS) {
	case RECORD_RAW: send_all(s->commands, body, r->body); break;
	case RECORD_HANDOFF: send_handoff(s, r, body); break;
	case RECORD_STRIPE: open_stripe(s, r, body); break;
	default: send_frame(s, r, body); break;
	}
}

/* A worker that does not get ready is no finding but no test either. */
static void note_said(const struct handoff *h)
{
	if (h->what == HANDOFF_ENDED)
		frames += h->frames_received;
	if (h->what == HANDOFF_FAILED)
		fprintf(stderr, "the worker did not get ready: %.*s\n",
			(int)sizeof(h->text) - 1, h->text);
}

/* Reads what it says until it ends. */
static void finish(struct session *s)
{
	const uint64_t until = wait_now() + SECONDS_MAX * 1000000000ull;
	struct pollfd p[2] = {
		{.fd = s->replies, .events = POLLIN}, {.fd = s->handoff, .events = POLLIN}};
	static char waste[1 << 16];

	shutdown(s->commands, SHUT_WR);
	while ((p[0].fd >= 0 || p[1].fd >= 0) && wait_now() < until) {
		poll(p, 2, 100);
		for (int i = 0; i < 2; i++) {
			if (!p[i].revents)
				continue;
			if (recv(p[i].fd, waste, sizeof(waste), 0) <= 0)
				p[i].fd = -1;
			else if (i == 1)
				note_said((const void *)waste);
		}
	}
	forked_end(s->worker, until);
	sessions++;
	close(s->handoff);
	close(s->commands);
	close(s->replies);
	for (uint32_t i = 0; i < s->stripes; i++) {
		close(s->ends[i]);
		for (int j = 0; j < 2 && s->lanes[i][j]; j++)
			close(s->lanes[i][j]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct session s;
	struct record r;

	if (!op_count)
		setup();
	start(&s);
	while (record_next(&bytes, &n, &r)) {
		send_record(&s, &r, bytes);
		record_skip(&bytes, &n, &r);
	}
	finish(&s);
	return 0;
}

/* --- inputs --------------------------------------------------------------------------------
 */

/* A frame of any operation, of its body's size. */
size_t make_record(uint8_t *out, size_t most)
{
	const struct serve_entry *entry;
	struct record r = {.context = 1};

	if (!op_count)
		setup();
	r.op = ops[record_random(op_count)];
	entry = serve_find(r.op);
	r.body = (uint16_t)(entry->body_bytes + (record_random(4) ? 0 : 8 * record_random(9)));
	if (entry->flags & SERVE_PAYLOAD)
		r.payload = (uint16_t)record_random(300);
	return record_write(out, most, &r);
}
