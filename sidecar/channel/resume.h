/* SPDX-License-Identifier: Apache-2.0
 *
 * Coming back to a session whose connections are cut (docs/RESUME.md): a thread dials until the
 * agent takes us or the grace is over; meanwhile the channel's own goes on with the program's
 * socket.  All functions are for the channel's thread, but for resume_is_cut: any.
 */
#ifndef VCUDA_SIDECAR_CHANNEL_RESUME_H
#define VCUDA_SIDECAR_CHANNEL_RESUME_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "protocol/wire/channel.h"
#include "protocol/wire/session.h"
#include "sidecar/agents/agents.h"
#include "transport/transport.h"

enum resume_state {
	RESUME_IDLE,
	RESUME_DIALING,
	RESUME_DONE,   /* link and welcome are there */
	RESUME_FAILED, /* nobody will come back: welcome.ended, or error */
};

struct resume {
	bool possible;	/* the session outlives its connections, by … */
	uint64_t grace; /* … ns */
	char address[AGENT_TEXT];
	struct session_hello hello; /* with session, and the secret that serves now */
	uint64_t cut_at;
	uint64_t closed_ns;	/* so long a port may be closed; ns */
	_Atomic uint32_t state; /* enum resume_state */
	_Atomic uint32_t stop;	/* the thread sleeps on it */
	_Atomic uint32_t times; /* it came back */
	bool started;
	pthread_t thread;
	int wake;	 /* eventfd of the channel: written when the thread is done */
	int carry;	 /* the segment with the page's `carry`; -1: nobody comes after us */
	uint32_t serves; /* as in there */
	struct link *link;
	struct session_welcome welcome;
	struct error error, cut;
};

/* After the session was opened at ADDRESS with HELLO and WELCOME. SEVERAL: the program has
 * other agents, too. */
void resume_init(struct resume *resume, const char *address, const struct session_hello *hello,
	const struct session_welcome *welcome, bool several, int wake);

/* From now on PAGE, which nobody else has yet and FD begins with, knows the session, for a
 * sidecar that takes our place. */
void resume_carry(struct resume *resume, struct channel_page *page, int fd);
/* The same with a page in which another sidecar said CARRY, a copy. */
void resume_carried(struct resume *resume, const struct channel_carry *carry, int fd);

/* The connections are gone, as TEXT says; RECEIVED of the worker's frames were counted. Where
 * the session cannot be resumed, the agent is asked why it is over. False: there is no thread
 * to dial. */
bool resume_start(struct resume *resume, uint64_t received, uint64_t now, const char *text);

/* RESUME_DONE or RESUME_FAILED ends here: the link, which is the caller's, or NULL with
 * resume->error. */
struct link *resume_finish(struct resume *resume);

/* Ends the thread, wherever it is: within some seconds. */
void resume_stop(struct resume *resume);

/* Tells the agent that nobody comes back; takes 2 s at the most. Wipes the secret. */
void resume_part(struct resume *resume, bool tell);

static inline bool resume_is_cut(const struct resume *resume)
{
	return atomic_load_explicit(&resume->state, memory_order_relaxed) != RESUME_IDLE;
}

#endif
