/* SPDX-License-Identifier: Apache-2.0
 *
 * The front's event loop: epoll over watches that live inside their owners.  One thread.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_EVENTS_H
#define VCUDA_GPU_AGENT_FRONT_EVENTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "common/error.h"

/* The struct that a watch is a member of. */
#define events_container(watch, type, member)                                                  \
	((type *)(void *)((char *)(watch) - offsetof(type, member)))

#define EVENTS_A_TURN 64

struct events {
	int epoll;
	void *owner; /* of the loop and of its watches */
	/* What this turn still has to serve: list[next] to list[count - 1]. */
	struct epoll_event list[EVENTS_A_TURN];
	int next, count;
};

struct watch {
	int fd;	     /* -1: not watched */
	void *owner; /* as events_open got it */
	void (*ready)(struct watch *watch, uint32_t mask);
};

int events_open(struct events *events, void *owner, struct error *error);

/* mask: EPOLLIN …, level-triggered. The watch must stay where it is until events_forget; fd
 * still belongs to the caller. 0 or -errno. */
int events_watch(struct events *events, struct watch *watch, int fd, uint32_t mask,
	void (*ready)(struct watch *watch, uint32_t mask));

/* Stops watching; returns the descriptor, which stays open, or -1. To be called before a
 * watched descriptor is closed: a copy in another process would keep it in the epoll set. */
int events_forget(struct events *events, struct watch *watch);

/* Waits until `until` (CLOCK_MONOTONIC ns) at the latest and serves what is ready. A watch that
 * was forgotten in the same turn is not served, nor one that was set anew then: what was ready
 * was the descriptor before. */
void events_turn(struct events *events, uint64_t until);

#endif
