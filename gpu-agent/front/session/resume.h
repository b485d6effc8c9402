/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions whose clients come back with other connections (docs/RESUME.md).
 */
#ifndef VCUDA_GPU_AGENT_FRONT_RESUME_H
#define VCUDA_GPU_AGENT_FRONT_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/front/session/hello.h"
#include "gpu-agent/handoff.h"

struct front;
struct pool_worker;
struct session;

enum resume_state {
	RESUME_NONE,
	RESUME_ASKED,	/* the worker is to say how far it got */
	RESUME_JOINING, /* WELCOME sent; for the link's other connections */
};

/* Of a session. A secret serves until its successor, which the last WELCOME brought, has come
 * back: who shows that one has got it. */
struct resume {
	enum resume_state state;
	uint32_t attempt; /* which PARKED counts */
	uint8_t next[16];
	bool offered; /* next is a secret */
	uint64_t received;
	uint64_t deadline;  /* of the attempt; ns */
	uint64_t parked_at; /* 0: it is not parked */
	uint32_t times;
};

/* What a client that asks for GRACE_MS gets. */
uint32_t resume_grace(const struct front *front, const struct session_hello *hello);

/* How long its worker is kept without a client; ns. */
uint64_t resume_patience(const struct session *session);

/* SESSION_RESUME, and SESSION_END: takes fd where it returns 0; else a CUresult to refuse with,
 * *refusal and text filled in. */
uint32_t resume_begin(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192]);
uint32_t resume_end(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192]);

/* A client showed SECRET: where it is the next one, the one before it is worth nothing more. */
void resume_promote(struct session *session, const uint8_t secret[16]);

/* A connection behind the first: the same rules. */
uint32_t resume_join(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192]);

/* A connection behind the first has come, which may be the last. */
void resume_joined(struct front *front, struct session *session);

/* The worker's word. False: it makes no sense. */
bool resume_parked(
	struct front *front, struct pool_worker *worker, const struct handoff *handoff);

/* Gives up an attempt that takes too long; when to look again. */
uint64_t resume_tick(struct front *front, struct session *session, uint64_t now);

#endif
