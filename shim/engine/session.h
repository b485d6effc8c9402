/* SPDX-License-Identifier: Apache-2.0
 *
 * A session: what joins the process to one agent.  The channel's segment mapped, the socket to
 * the sidecar, what is given out of the segment, and what became of it all.  engine.c sends and
 * waits through it; attach.c opens it and ends it.
 *
 * Each thread has one at a time, session_here(): that of its current context, else the first.
 * All functions of the engine are about that one.  A thread that is to act on another one's
 * things makes a context of that one current (thread_set) meanwhile.
 */
#ifndef VCUDA_SHIM_ENGINE_SESSION_H
#define VCUDA_SHIM_ENGINE_SESSION_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/handle.h"
#include "shim/engine/blocks.h"
#include "shim/engine/attach/rejoin.h"
#include "shim/engine/ring.h"
#include "shim/engine/thread.h"

struct context;

enum session_phase {
	SESSION_NONE = 0, /* not attached */
	SESSION_READY = 1,
	SESSION_LOST = 2,   /* `lost` says what every call answers */
	SESSION_FORKED = 3, /* this is a child: the session is the parent's */
	SESSION_ENDED = 4,  /* the process is exiting */
	SESSION_JOINED = 5, /* attached for NVML (nvml.h); cuInit has not been called */
};

struct session {
	_Atomic uint32_t phase;
	_Atomic uint32_t lost; /* CUresult */
	struct channel_page *page;
	struct channel_slot *slots;
	_Atomic uint64_t *counters;
	struct channel_upcall *upcalls;
	unsigned index;	       /* in sessions[] */
	unsigned agents;       /* how many the sidecar has */
	unsigned first;	       /* which of the process' devices is its first */
	unsigned domain_moved; /* of their PCI places (pci.h) */
	int socket;
	int doorbell;
	uint64_t bytes; /* of the segment */
	uint64_t spin_ns;
	pthread_mutex_t socket_lock; /* one request and its answer at a time */
	unsigned overdue; /* answers that may still come, for nobody; under that lock */
	bool relays;	  /* the sidecar does (CHANNEL_FEATURE_RELAY); under that lock */
	struct {	  /* reserve.c: memory for all of arena and bounce buffer */
		_Atomic bool whole;	/* they have it */
		bool possible;		/* the sidecar gives it; under the socket's lock */
		_Atomic uint64_t again; /* not asked for before; ns */
	} reserve;
	struct ring ring;
	struct { /* pinned memory that frames name (shim_few_named); under the ring's lock */
		uint64_t bytes;	 /* … since the mark was set */
		uint64_t marked; /* the ring's tail then */
	} named;
	char agent[128];
	char name[36];	/* the session's, as in the sidecar's and the agent's logs; "": none */
	char text[320]; /* why attaching failed, or the session was lost */
	_Atomic uint64_t glanced; /* session_glance(); ns */
	struct rejoin rejoin;	  /* rejoin.c */
	struct {		  /* of the slots (slot.c) */
		_Atomic uint64_t taken[CHANNEL_SLOTS / 64];
		_Atomic uint32_t
			given; /* futex word: bumped when one is given while some wait */
		_Atomic uint32_t wanted;
	} tags;
	struct { /* of the bounce buffer (bounce.c) */
		pthread_mutex_t lock;
		struct blocks blocks;
		_Atomic uint32_t given; /* futex word */
	} bounce;
	struct { /* of the completion counters (completion.c) */
		pthread_mutex_t lock;
		struct blocks map;
	} completions;
	struct { /* shim/driver/stream/order.c: the last copy that nothing must overtake; its
		    lock */
		_Atomic uint64_t loose;	 /* its frame; 0: none */
		struct context *context; /* and where it is */
		uint64_t stream;	 /* 0: the legacy one of that context */
		_Atomic bool shared;	 /* they are awaited */
	} order;
};
extern struct session session_first;
/* All, in the order of the agents: they are made while the first call joins, and stay. */
extern struct session *sessions[CHANNEL_AGENTS];
extern unsigned session_count;

/* The next one, which joins nothing yet; NULL: no memory. */
struct session *session_new(void);

static inline struct session *session_here(void)
{
	return thread_self.session;
}

/* For what belongs to no context, and to another session than the thread's: between the two the
 * thread's calls go to TO, without a context. */
struct session_visit {
	struct session *session;
	uint16_t number, wire;
};
static inline struct session_visit session_visit(struct session *to)
{
	struct session_visit visit = {
		thread_self.session, thread_self.number, thread_self.wire};

	if (to != visit.session) {
		thread_self.session = to;
		thread_self.number = thread_self.wire = CONTEXT_NONE;
	}
	return visit;
}
static inline void session_leave(struct session_visit visit)
{
	thread_self.session = visit.session;
	thread_self.number = visit.number;
	thread_self.wire = visit.wire;
}

/* What its agent calls the context of that number: the process has one series of numbers for
 * all agents, in which primary contexts come first. */
static inline uint16_t session_context(const struct session *session, uint16_t number)
{
	return number && number <= CONTEXT_CREATED ? (uint16_t)(number - session->first)
						   : number;
}

/* Joins the sidecar (starting one if REMOTE_GPU_ADDRESS says so) and maps the segment. The
 * session is not READY yet: init.c opens it on the worker first. */
CUresult attach(void);
/* Unmaps and closes what attach opened: after a failure, and in a child that will attach anew.
 */
void attach_drop(void);

/* Asks the sidecar over the socket; fills *answer and *fd (-1: none came). */
struct channel_request;
struct channel_answer;
bool attach_ask(struct channel_request *request, struct channel_answer *answer, int *fd,
	int timeout_ms);
bool attach_tell(struct channel_request *request);
/* The same over SOCKET, with the descriptor FD where that is not -1. False: errno. */
bool attach_tell_to(int socket, struct channel_request *request, int fd);
/* An answer with up to two descriptors, or -1, which are the caller's; waits until DEADLINE
 * (ns), and with HEART only while the sidecar's heart beats. False: errno. */
bool attach_receive(
	int socket, struct channel_answer *answer, int fds[2], uint64_t deadline, bool heart);
/* A connection to the sidecar that listens at PATH, or -1 with errno. */
int attach_dial(const char *path);
/* Maps SIZE bytes of the segment that came with an answer, at WANTED where that is not NULL and
 * nothing is there. NULL: could not. */
void *attach_map(int fd, uint64_t size, void *wanted);

/* Looks at the page and at the socket; marks the session lost where either says so. True: lost.
 */
bool session_check(void);
/* The same for who polls by itself and never waits; at most every 50 ms, else it costs nothing.
 */
void session_glance(void);
/* The session is over: STATUS is what calls answer from now on, unless it was over before. */
void session_mark_lost(CUresult status, const char *text);
/* What calls answer now; CUDA_SUCCESS while READY (or while attaching). */
CUresult session_status(void);

/* Which of the addresses of its agent it was reached at, of an attached one. */
const char *session_reached(const struct session *session);

/* Why attaching failed, or the session was lost; the first text stays. */
void session_because(const char *text);

/* A line to stderr if VCUDA_DEBUG is set. */
void session_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One to stderr without being asked for it, once a process: there should be a GPU, and none can
 * be had. CUDA's own text for the number says nothing of that. */
void session_complain(CUresult status);

#endif
