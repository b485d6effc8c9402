/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/events.h"

#include <errno.h>
#include <unistd.h>

#include "common/wait.h"

/* A deadline that came up while deadlines were looked at is met this much late at most. */
#define EVENTS_LONGEST_MS 1000

int events_open(struct events *events, void *owner, struct error *error)
{
	events->owner = owner;
	events->epoll = epoll_create1(EPOLL_CLOEXEC);
	return events->epoll < 0 ? error_set(error, errno, "epoll_create1") : 0;
}

int events_watch(struct events *events, struct watch *watch, int fd, uint32_t mask,
	void (*ready)(struct watch *watch, uint32_t mask))
{
	struct epoll_event event = {.events = mask, .data.ptr = watch};

	if (epoll_ctl(events->epoll, EPOLL_CTL_ADD, fd, &event))
		return -errno;
	watch->fd = fd;
	watch->owner = events->owner;
	watch->ready = ready;
	return 0;
}

int events_forget(struct events *events, struct watch *watch)
{
	int fd = watch->fd;

	if (fd >= 0)
		epoll_ctl(events->epoll, EPOLL_CTL_DEL, fd, NULL);
	watch->fd = -1;
	/* It may be set again in this turn, for another descriptor. */
	for (int i = events->next; i < events->count; i++)
		if (events->list[i].data.ptr == watch)
			events->list[i].data.ptr = NULL;
	return fd;
}

void events_turn(struct events *events, uint64_t until)
{
	uint64_t now = wait_now();
	uint64_t ms = until <= now ? 0 : (until - now) / 1000000 + 1;

	if (ms > EVENTS_LONGEST_MS)
		ms = EVENTS_LONGEST_MS;
	events->count = epoll_wait(events->epoll, events->list, EVENTS_A_TURN, (int)ms);
	for (events->next = 0; events->next < events->count;) {
		const struct epoll_event *event = &events->list[events->next++];
		struct watch *watch = event->data.ptr;

		if (watch)
			watch->ready(watch, event->events);
	}
	events->next = events->count = 0;
}
