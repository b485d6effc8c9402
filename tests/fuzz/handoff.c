/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: what a hostile worker says to the front.  Three workers: two have a session
 * each, of one pod; the third is starting.  A record is a datagram of one of them, with
 * descriptors or without; behind each the front turns.  What must hold: its accounts add up,
 * and when the workers are gone nothing is left of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/journal.h"
#include "gpu-agent/front/sharing.h"
#include "tests/fuzz/agent_target.h"
#include "tests/fuzz/conversation.h"

#define WORKERS 3
#define PID 100000 /* nobody's: the front does not signal */
#define PATIENCE 200
#define SHORT_NS 200000
#define GIB (1ull << 30)

enum record_kind {
	RECORD_DATAGRAM, /* `op`: which, its bits 8 and 9: a name, devices; the body: all behind
			  * `what` */
	RECORD_RAW,	 /* of any length */
	RECORD_EXIT,	 /* the worker ends */
	RECORD_GONE,	 /* its client ends */
	RECORD_KINDS
};

static const uint32_t kinds[] = {HANDOFF_READY, HANDOFF_FAILED, HANDOFF_LEASE, HANDOFF_STATS,
	HANDOFF_ENDED, HANDOFF_SHARE, HANDOFF_UNSHARE, HANDOFF_WANT, HANDOFF_ALIVE, 0, 15, 16,
	~0u, HANDOFF_TIME, HANDOFF_IMAGE_WANT, HANDOFF_IMAGE_PUT};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct worker_end {
	int fd; /* the worker's end; -1: it has gone */
	int commands, replies;
} ends[WORKERS];
static uint8_t shared[16]; /* the last name that the front gave */

/* --- workers and clients that behave -------------------------------------------------------
 */

static void worker_start(int i)
{
	struct front *front = target_front();
	struct control c = {0};
	int pair[2];

	front->pool.failing = false;
	pool_balance(front, wait_now());
	for (int tries = 0; c.what != CONTROL_START; tries++) {
		must(tries < PATIENCE, "the front asks for no worker");
		if (!target_told(&c))
			target_turn(SHORT_NS);
	}
	must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
		"socketpair");
	ends[i] = (struct worker_end){.fd = pair[1], .commands = -1, .replies = -1};
	c.what = CONTROL_STARTED;
	c.pid = PID + i;
	pool_started(front, &c, pair[0]);
}

/* As many devices as there can be, all alike but for their names. */
static void devices_make(struct handoff *h)
{
	for (uint8_t d = 0; d < HANDOFF_DEVICES; d++) {
		memset(h->devices[d].uuid, 7 + d, sizeof(h->devices[d].uuid));
		h->devices[d].total_memory = h->devices[d].free_memory = 64 * GIB;
		h->devices[d].context_memory = GIB / 4;
	}
}

static void worker_ready(int i)
{
	struct handoff h = {.version = HANDOFF_VERSION,
		.what = HANDOFF_READY,
		.device_count = 2,
		.text = "a driver"};

	devices_make(&h);
	must(!descriptors_send(ends[i].fd, &h, sizeof(h), NULL, 0, 0), "READY");
	target_turn(SHORT_NS);
}

static int client_say(
	int listener, const struct session_hello *hello, struct session_welcome *welcome)
{
	int fd = target_connect(listener);
	ssize_t n = -1;

	must(send(fd, hello, sizeof(*hello), MSG_NOSIGNAL) == sizeof(*hello), "HELLO");
	for (int tries = 0; n < 0; tries++) {
		must(tries < PATIENCE, "no WELCOME");
		target_turn(SHORT_NS);
		n = recv(fd, welcome, sizeof(*welcome), MSG_DONTWAIT);
	}
	must(n == sizeof(*welcome) && !welcome->status, "the session was refused");
	return fd;
}

static void client_open(int i)
{
	struct session_hello hello = {.magic = SESSION_MAGIC,
		.version = SESSION_VERSION,
		.role = SESSION_COMMANDS,
		.pid = 1,
		.program = "fuzz",
		.pod = "fuzz/pod",
		.token = "t"};
	struct session_welcome welcome;

	ends[i].commands = client_say(LISTEN_RECV, &hello, &welcome);
	hello.role = SESSION_REPLIES;
	memcpy(hello.session, welcome.session, sizeof(hello.session));
	memcpy(hello.secret, welcome.secret, sizeof(hello.secret));
	ends[i].replies = client_say(LISTEN_SEND, &hello, &welcome);
}

static void worker_end(int i)
{
	const struct control c = {.what = CONTROL_EXITED, .pid = PID + i};

	shut(&ends[i].commands);
	shut(&ends[i].replies);
	shut(&ends[i].fd);
	target_turn(SHORT_NS);
	pool_exited(target_front(), &c);
}

/* --- inputs --------------------------------------------------------------------------------
 */

/* The front's answers; what came with them is closed. */
static void hear(int i)
{
	struct handoff h;
	int fds[2];
	ssize_t n;

	while (ends[i].fd >= 0 && (n = descriptors_receive(ends[i].fd, &h, sizeof(h), fds, 2,
					   MSG_DONTWAIT)) > 0) {
		if (n == sizeof(h) && h.what == HANDOFF_SHARED && !h.status)
			memcpy(shared, h.session, sizeof(shared));
		shut(&fds[0]);
		shut(&fds[1]);
	}
}

static void say(int i, const struct record *r, const uint8_t *body)
{
	struct handoff h = {.version = HANDOFF_VERSION};
	const size_t head = 2 * sizeof(uint32_t);
	size_t n = r->body < sizeof(h) - head ? r->body : sizeof(h) - head;
	int fds[2];
	unsigned count = r->context % 3;

	descriptors_made(fds, count);
	if (r->op & 512)
		devices_make(&h);
	memcpy((char *)&h + head, body, n);
	h.what = kinds[r->op % KINDS];
	if (r->op & 256)
		memcpy(h.session, shared, sizeof(shared));
	if (ends[i].fd >= 0 && r->kind % RECORD_KINDS == RECORD_RAW)
		(void)!descriptors_send(ends[i].fd, body, r->body, fds, count, MSG_DONTWAIT);
	else if (ends[i].fd >= 0)
		(void)!descriptors_send(ends[i].fd, &h, sizeof(h), fds, count, MSG_DONTWAIT);
	shut(&fds[0]);
	shut(&fds[1]);
}

static void obey(const struct record *r, const uint8_t *body)
{
	int i = r->stripe % WORKERS;

	switch (r->kind % RECORD_KINDS) {
	case RECORD_EXIT: worker_end(i); break;
	case RECORD_GONE:
		shut(&ends[i].commands);
		shut(&ends[i].replies);
		break;
	default: say(i, r, body); break;
	}
	target_turn(SHORT_NS);
	hear(i);
	must(!target_front()->ledger.bugs, "the accounts do not add up");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct front *front = target_front();
	static int nowhere = -1;
	struct record r;
	struct control c;

	if (nowhere < 0)
		log_to(nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC));
	for (int i = 0; i < WORKERS; i++) {
		worker_start(i);
		if (i == WORKERS - 1)
			break;
		worker_ready(i);
		client_open(i);
	}
	while (record_next(&bytes, &n, &r)) {
		obey(&r, bytes);
		record_skip(&bytes, &n, &r);
	}
	for (int i = 0; i < WORKERS; i++)
		worker_end(i);
	while (target_told(&c))
		if (c.what == CONTROL_START)
			pool_refused(front, &c);
	target_turn(SHORT_NS);
	while (target_told(&c))
		;
	must(!front->session_count, "a session is left");
	for (uint32_t d = 0; d < front->ledger.device_count; d++)
		must(!front->ledger.devices[d].leased && !front->ledger.devices[d].contexts,
			"memory is left");
	for (uint32_t i = 0; i < JOURNAL_SHARES; i++)
		must(!sharing_has(front, i), "shared memory is left");
	return 0;
}

size_t make_record(uint8_t *out, size_t most)
{
	struct record r = {.op = (uint16_t)(record_random(KINDS) | 256 * record_random(4)),
		.stripe = (uint8_t)record_random(WORKERS),
		.context = (uint16_t)record_random(3),
		.body = (uint16_t)(record_random(4) ? 88 : sizeof(struct handoff) - 8)};

	r.kind = record_random(12) ? RECORD_DATAGRAM : (uint8_t)record_random(RECORD_KINDS);
	return record_write(out, most, &r);
}
