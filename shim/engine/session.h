/* SPDX-License-Identifier: Apache-2.0
 *
 * The process's one session: the channel's segment mapped, the socket to the sidecar, and what
 * became of it.  engine.c sends and waits through it; attach.c opens it and ends it.
 */
#ifndef VCUDA_SHIM_ENGINE_SESSION_H
#define VCUDA_SHIM_ENGINE_SESSION_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/engine/ring.h"

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
	int socket;
	int doorbell;
	uint64_t bytes; /* of the segment */
	uint64_t spin_ns;
	pthread_mutex_t socket_lock; /* one request and its answer at a time */
	struct ring ring;
	char agent[128];
	char name[36];	/* the session's, as in the sidecar's and the agent's logs; "": none */
	char text[320]; /* why attaching failed, or the session was lost */
};
extern struct session session;

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

/* Why attaching failed, or the session was lost; the first text stays. */
void session_because(const char *text);

/* A line to stderr if VCUDA_DEBUG is set. */
void session_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One to stderr without being asked for it, once a process: there should be a GPU, and none can
 * be had. CUDA's own text for the number says nothing of that. */
void session_complain(CUresult status);

#endif
