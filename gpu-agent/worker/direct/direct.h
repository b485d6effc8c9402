/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections to sessions of the same process at other agents (protocol/wire/direct.h): what
 * travels over them, and what streams wait for.  Everything here is the loop's.
 *
 * direct.c has the connections and the turn, direct_wire.c the messages, direct_hold.c what
 * holds a stream until a message comes, driver/copy/direct.c the copies.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DIRECT_DIRECT_H
#define VCUDA_GPU_AGENT_WORKER_DIRECT_DIRECT_H

#include <cuda.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/handoff.h"
#include "gpu-agent/worker/staging/staging.h"
#include "protocol/wire/direct.h"
#include "transport/transport.h"

struct pending;
struct worker;
struct worker_stream;

#define DIRECT_LINKS 64	   /* of a session at once */
#define DIRECT_EARLY 65536 /* messages that came before the frame they are for */
#define DIRECT_QUIET_NS                                                                        \
	3000000000ull			/* then something is said, so that the other end hears \
					 */
#define DIRECT_SILENT_NS 15000000000ull /* then the other end counts as gone */
#define DIRECT_MAKE_NS 15000000000ull	/* that the making of a connection may last */

/* A message on its way out. */
struct direct_out {
	struct direct_message head;
	const unsigned char *bytes;
	struct staging_range *range; /* of `out`; held until it is sent */
};

enum direct_state { DIRECT_MAKING, DIRECT_OPEN, DIRECT_BROKEN };

struct direct_link {
	enum direct_state state;
	uint32_t number;  /* the program's */
	uint32_t counter; /* set to `number` when it breaks */
	uint8_t session[16];
	struct link *link;
	int tag; /* of the call that waits for it; -1: none */
	uint64_t made_at, heard_at, said_at;
	/* Out: [first, first + count) of a ring, the first of which went out up to `sent`. */
	struct direct_out *queue;
	uint32_t first, count, room;
	size_t sent;
	/* In: a head, then its bytes in staging memory. */
	struct direct_message head;
	uint32_t head_got, body_got;
	bool greeted;
	unsigned char *body; /* where they go; NULL: nowhere, the copy is no more */
	struct staging_range *range;
	struct direct_copy *copy;
	bool room_wanted; /* there is no staging memory for them now */
	struct direct_early {
		uint64_t id, value;
		uint32_t what;
	} *early;
	uint32_t early_count, early_room;
	uint64_t newest; /* number of the last frame about something of this connection's */
};

/* Where a stream waits: a value in pinned memory. */
struct direct_hold {
	uint64_t *at; /* NULL: nothing is held */
	CUdeviceptr address;
	const struct worker_stream *stream; /* NULL: it is gone */
	uint64_t work;			    /* of the stream, when it began to wait */
};

/* A stream waits for a SIGNAL. */
struct direct_wait {
	struct direct_wait *next;
	struct direct_link *link;
	uint64_t id;
	struct direct_hold hold;
};

struct direct {
	struct direct_link *links[DIRECT_LINKS];
	uint32_t count;
	struct staging in, out;
	struct direct_copy *copies, **copies_tail;  /* in the order of their frames */
	uint64_t serial;			    /* of the last one */
	struct direct_piece *pieces, **pieces_tail; /* on their way to staging memory */
	struct direct_wait *waits;
	/* Each block is a page of holds; those that nothing waits at. */
	struct direct_hold *holds;
	uint32_t hold_count, hold_room, blocks;
	struct worker_stream *streams[HANDOFF_DEVICES]; /* of copies */
	struct worker_stream **listeners; /* each waits for an event of the app's */
	uint32_t listener_count;
};

/* --- direct.c --- */
/* What there is, made at the first call; NULL: no memory. */
struct direct *direct_get(struct worker *w);
/* By the program's number; NULL: none, or it is broken. */
struct direct_link *direct_find(const struct worker *w, uint32_t number);
/* TICKETED and PEER, with what came with it, which is taken over. */
void direct_answer(struct worker *w, const struct handoff *h, int fds[TRANSPORT_FDS]);
/* It is over: whoever waits for the other end goes on, and the next call that waits hears it.
 */
void direct_break(struct worker *w, struct direct_link *l, const char *why);
/* A turn: true where something was done. */
bool direct_turn(struct worker *w);
/* For loop_sleep: fills in at most 2 * DIRECT_LINKS of FDS; how many. */
unsigned direct_fds(struct worker *w, struct pollfd *fds);
/* Something of the GPU's, or of staging memory, is awaited. */
bool direct_watches(const struct worker *w);
/* How many connections are open. */
uint32_t direct_open_count(const struct worker *w);
/* A copy, or a stream, waits for another agent: a call that would wait for all streams within
 * the driver has to wait before it. */
bool direct_busy(const struct worker *w);

/* --- direct_wire.c --- */
/* Puts a message into the queue; where that cannot be, the connection breaks. */
void direct_say(struct worker *w, struct direct_link *l, enum direct_what what, uint64_t id,
	uint64_t value);
/* The same of DATA: RANGE is let go when it is sent. False: no memory. */
bool direct_say_data(struct worker *w, struct direct_link *l, uint64_t id, uint64_t offset,
	const unsigned char *bytes, uint32_t n, struct staging_range *range);
/* Sends and receives what can be. True: something was done. */
bool direct_exchange(struct worker *w, struct direct_link *l);
/* The frame of that number is here. The program's numbers grow: what came for earlier ones, and
 * still comes, is for nobody. */
void direct_newest(struct direct_link *l, uint64_t id);
/* The message of that number that came before its frame: true, and it is taken. */
bool direct_early(struct direct_link *l, uint64_t id, struct direct_early *early);
void direct_wire_close(struct direct_link *l);

/* --- direct_hold.c --- */
/* The stream does not go on before direct_release. */
CUresult direct_hold(struct worker *w, struct worker_stream *stream, struct direct_hold *hold);
void direct_release(struct worker *w, struct direct_hold *hold);
/* It is held, and much was put on its stream since. */
bool direct_hold_deep(const struct direct_hold *hold);
/* A page of them, where none is free: direct_hold then asks the driver for no memory. */
CUresult direct_hold_prepare(struct worker *w);

/* --- driver/copy/direct.c, which the above call --- */
/* A message about a copy, or a signal. False: it is none of those that are awaited. */
bool direct_heard(struct worker *w, struct direct_link *l, const struct direct_message *m);
/* Where DATA of that head is to go. NULL: nowhere. -1: it does not fit the copy. */
int direct_place(struct worker *w, struct direct_link *l, const struct direct_message *m,
	struct direct_copy **copy);
/* It is there. */
void direct_landed(struct worker *w, struct direct_link *l, struct direct_copy *copy,
	const struct direct_message *m, const unsigned char *bytes,
	struct staging_range *range);
/* Sends what can be. True: something was done. */
bool direct_pump(struct worker *w);
/* What is not done over that connection fails, and the other end hears it where it can. */
void direct_fail_all(struct worker *w, struct direct_link *l);
/* The same of every connection. */
void direct_give_up(struct worker *w);
/* Behind a fence (PENDING_DIRECT). */
void direct_passed(struct worker *w, struct pending *p, CUresult status);
/* A stream that waits has so much behind it that the driver's queue may be full soon: the loop
 * would wait in the driver for a message that it has to read itself. */
bool direct_deep(const struct worker *w);
void direct_stream_gone(struct worker *w, const struct worker_stream *stream);
/* All copies up to number SERIAL are done. */
bool direct_done_up_to(const struct worker *w, uint64_t serial);
/* The streams of that context go. */
void direct_forget(struct worker *w, uint16_t context);

#endif
