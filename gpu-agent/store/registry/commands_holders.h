/* SPDX-License-Identifier: Apache-2.0
 *
 * Holders that commands make: "pid:PID:START", a process of this node by its number and the
 * time of its start, and "ttl:SECONDS:NUMBER", until so many seconds since 1970.  What names
 * them says all of it, so that a new store watches them again.
 */
#ifndef VCUDA_GPU_AGENT_STORE_COMMANDS_HOLDERS_H
#define VCUDA_GPU_AGENT_STORE_COMMANDS_HOLDERS_H

#include "gpu-agent/store/registry/registry_link.h"

#define HOLDERS_MOST 4096u

struct holder {
	struct registry_watch watch;
	struct holder *next;
	struct holders *all;
	char name[REGISTRY_HOLDER + 1];
	int pidfd;     /* -1: by time, or gone */
	int64_t until; /* s since 1970; 0: by pidfd */
	bool gone;     /* to be told */
};

struct holders {
	struct holder *first;
	unsigned count;
	int epoll;
};

/* The holder of a command of this process, or of one that lives so many seconds: 0 with *out,
 * or -errno with *error: there is no such process. */
int holder_of_pid(char out[REGISTRY_HOLDER + 1], int32_t pid, struct error *error);
void holder_of_ttl(char out[REGISTRY_HOLDER + 1], uint32_t seconds);

/* Watches NAME, once however often it is said; others than those two are passed over. 0, or
 * -errno with *error: there are too many. */
int holders_watch(struct holders *holders, const char *name, struct error *error);
/* The next that has ended and that BUSY (its name) does not say to be in use: out of the list,
 * its name to OUT. */
bool holders_ended(struct holders *holders, bool (*busy)(void *argument, const char *name),
	void *argument, char out[REGISTRY_HOLDER + 1]);
/* Whether holders_ended has something to say now or at *UNTIL (ns, CLOCK_MONOTONIC; 0: no). */
uint64_t holders_until(const struct holders *holders);
void holders_close(struct holders *holders);

#endif
