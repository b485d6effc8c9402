/* SPDX-License-Identifier: Apache-2.0
 *
 * A session whose program is on this machine (docs/TRANSPORTS.md, "local"): frames are taken
 * from the program's ring, and answers go into its slots.  The program is as hostile as any
 * client: its memory is read once, by transport/ring.c.  What its sidecar says comes over the
 * session's link, in messages.  The loop's thread, but where it says otherwise.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LOCAL_LOCAL_H
#define VCUDA_GPU_AGENT_WORKER_LOCAL_LOCAL_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "protocol/wire/frame.h"
#include "transport/local.h"
#include "transport/ring.h"
#include "transport/segments.h"
#include "gpu-agent/worker/staging/staging.h"

struct worker;

/* A segment as the worker has it. */
struct local_segment {
	struct segment segment; /* first: transport/segments.h knows that part */
	bool registered;	/* with the GPU, which reads and writes it itself */
	uint32_t loans;
	uint64_t device, inode; /* of its file */
	bool kept;		/* the sidecar has it, as far as it has said which it has */
	bool quiet;		/* nobody waits to hear that it is gone */
};

/* Shared memory that the GPU reads or writes in place of staging memory: in the order in which
 * it was lent, and given back. */
#define LOCAL_LOANS 1024
struct local_loans {
	struct local_loan {
		struct staging_range range;
		struct local_segment *of;
		uint64_t end; /* of the arena: ring count behind the frame; else 0 */
		uint32_t bytes;
	} *at;
	uint32_t first, count;
	uint64_t bytes;
};

struct local {
	bool is;
	bool broken;	  /* the program's memory is not used any more */
	bool again;	  /* the session is resumed: ATTACH is to come */
	uint64_t gone_at; /* the sidecar said that the program is gone; 0: it has not */
	int doorbell;
	struct channel_page *page;
	struct channel_slot *slots;
	_Atomic uint64_t *counters;
	struct channel_upcall *upcalls;
	uint64_t upcall_tail;
	struct ring ring;
	struct segments segments;
	struct local_hearing hearing;
	uint64_t named;	      /* the last that was heard of numbers; 0: they are not counted */
	unsigned char *entry; /* RING_ENTRY_MAX: header and body of the frame that was taken */
	bool taken;	      /* one was, and its payload was not */
	struct ring_entry took; /* that one */
	bool separate;		/* the program takes its arena back by page->captured … */
	uint64_t captured;	/* … which says this */
	struct local_loans in, out;
	uint64_t counts[LOCAL_COUNTS];
};

/* The session's memory, for which it waits some seconds. 0, or -errno with *error, which the
 * sidecar was told. */
int local_open(struct worker *w, struct error *error);

/* The segments that there are become the GPU's to read and write. Once contexts are chosen. */
void local_register(struct worker *w);

/* A place for N bytes that the GPU is to write for DESTINATION, in the program's memory itself.
 * NULL: that cannot be, and staging memory is the way. */
struct staging_range *local_place(struct worker *w, const struct frame_destination *destination,
	uint32_t n, unsigned char **bytes);
/* Gives back what the GPU is done with. True: there was some. Each turn. */
bool local_reap(struct worker *w);
/* The context is done with, and so are its events. */
void local_forget(struct worker *w, uint16_t context);
static inline bool local_lends(const struct local *local)
{
	return local->in.count || local->out.count;
}

/* The next frame, whole, into w->receiver. False: there is none now, or no staging for it. */
bool local_receive(struct worker *w);

/* Instead of sending. Under the sender's lock. */
void local_reply(struct worker *w, struct frame_header *header, const void *body, uint32_t n);
/* Likewise N bytes for DESTINATION; RANGE is done with. */
void local_reply_payload(struct worker *w, struct frame_header *header,
	const struct frame_destination *destination, const void *bytes, uint32_t n,
	struct staging_range *range);
/* Whether the program has room for one more upcall. */
bool local_room(const struct worker *w);

/* What the sidecar said; and whether program and sidecar are there. Each 10 ms at least. */
void local_control(struct worker *w);
/* fds[0]: the doorbell, fds[1]: what the sidecar says. */
void local_fds(const struct worker *w, struct pollfd fds[2]);
/* Before the loop sleeps on the doorbell. False: there are frames. */
bool local_doze(struct worker *w);
void local_awake(struct worker *w, bool rung);

/* Another link, maybe another sidecar's: it brings what the worker has. */
void local_resumed(struct worker *w);

/* The last words to the sidecar. */
void local_end(struct worker *w);

#endif
