/* SPDX-License-Identifier: Apache-2.0
 *
 * The sidecar as a whole: its socket, the list of channels, a segment prepared for the next
 * one. The main thread accepts, prepares and watches; each channel has a thread of its own.
 *
 * Locks: `lock` guards the list, the spare and the counters that are not atomic; nothing blocks
 * under it.
 */
#ifndef VCUDA_SIDECAR_SERVER_SERVER_H
#define VCUDA_SIDECAR_SERVER_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/latency.h"
#include "sidecar/agents/agents.h"
#include "sidecar/options/options.h"
#include "sidecar/server/pending.h"
#include "sidecar/memory/heartbeat.h"
#include "sidecar/channel/relay.h"
#include "sidecar/memory/segment.h"
#include "sidecar/stripes/stripes.h"

struct channel;

struct server {
	struct options options;
	struct spread spread;
	struct agents agents[CHANNEL_AGENTS];	       /* by its parts */
	struct transport_place places[CHANNEL_AGENTS]; /* where each was found last; `lock` */
	struct heartbeat heartbeat;
	struct pending pending; /* the main thread's */
	uint64_t spin;		/* ns */
	uint64_t started;	/* CLOCK_MONOTONIC ns */
	int listen_fd;
	int announce_fd; /* the same in the network namespace; -1 = not there */
	int lock_fd;
	int stop_fd; /* eventfd, never read: readable = everybody ends */
	int wake_fd; /* eventfd: the main thread looks around */
	_Atomic bool draining;
	_Atomic bool leaving; /* SIGTERM: another sidecar may come; set before stop_fd is */
	pthread_mutex_t lock;
	pthread_mutex_t making; /* with shm_size: held while a segment is made; before `lock` */
	struct channel *channels;
	unsigned channel_count;	 /* threads */
	uint64_t last_process;	 /* when one was attached last; ns */
	struct segment *spare;	 /* as large as a channel's own */
	_Atomic bool freed;	 /* a channel is gone: there is memory to give back */
	_Atomic unsigned ending; /* channels whose program is gone, but not its memory */
	/* Totals, for `status`. */
	_Atomic uint64_t attached, refused, poisoned, lost, resumed, resumes_failed;
	_Atomic uint64_t frames_sent, bytes_sent, frames_received, bytes_received;
	struct relays relays;			 /* under the lock, but for what is atomic */
	struct stripes_counts pieces;		 /* of channels that are gone */
	struct latency latency[LATENCY_CLASSES]; /* of channels that are gone; under the lock */
};

/* Serves until SIGTERM, SIGINT, idle_exit or the end of a drain. 0, or -errno with *error;
 * -EEXIST where a live sidecar holds the socket (idle_exit: 0, that one serves). */
int server_run(const struct options *options, struct error *error);

/* The segment of a new channel: the spare one, or made now. Where there is no memory but a
 * program has just ended, waits for what it had. */
int server_segment(struct server *server, struct segment **segment, struct error *error);
/* Makes the spare one, while nothing else is to be done. The pages are there, so an attach
 * costs no page faults. */
void server_prepare(struct server *server);

/* The main thread looks around. */
void server_wake(struct server *server);

#endif
