/* SPDX-License-Identifier: Apache-2.0
 *
 * Events that processes share: what a session has of them.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_IPC_IPC_EVENT_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_IPC_IPC_EVENT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct board;
struct handoff;
struct name;
struct request;
struct worker;
struct worker_stream;

#define EVENT_LISTENERS 4u

struct ipc_event {
	struct board *board;
	uint32_t number;
	CUevent event;
	uint64_t here; /* the recording that EVENT stands for; 0: an earlier one, or none */
};

/* A stream waits on the device for what another session recorded. */
struct event_hold {
	struct event_hold *next;
	struct board *board;
	uint64_t recording, looked;
};

struct ipc_events {
	struct board *boards, *fresh; /* fresh: the front is asked for its name */
	uint32_t count, own;
	struct event_hold *holds;
	bool given_up; /* behind a fault */
	/* Streams of the worker's own, which record what was there before an event was shared.
	 */
	struct worker_stream *listeners[EVENT_LISTENERS];
	uint32_t listener_count;
};

/* By its handle; NULL and refused: there is none. */
struct name *ipc_event_named(struct worker *w, struct request *r, uint64_t handle);
/* What it stands for as it is shared, if that is not done, is the board's first recording. */
CUresult ipc_event_begin(struct worker *w, struct ipc_event *e);
/* The front's word on what w->ipc waits for. *FD: what came with it, or on its SHARE went out;
 * -1 where it is taken. */
void ipc_event_answer(struct worker *w, const struct handoff *h, int *fd);

#endif
