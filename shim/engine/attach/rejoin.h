/* SPDX-License-Identifier: Apache-2.0
 *
 * The sidecar is gone and has not said good-bye: the session goes on with the next one that
 * listens at the same place (docs/RESUME.md).  A thread watches the socket; where that ends it
 * brings the shared memory to whoever answers there, until the grace is over.  Meanwhile the
 * others go on: what is posted stays in the ring, who waits looks every 50 ms whether it is
 * over.  Any thread, unless said otherwise.
 */
#ifndef VCUDA_SHIM_ENGINE_REJOIN_H
#define VCUDA_SHIM_ENGINE_REJOIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A descriptor that the program closed may be another file's by now. */
struct held {
	int fd; /* -1: none */
	uint64_t size;
	dev_t device;
	ino_t inode;
};

/* Of a session. */
struct rejoin {
	_Atomic bool possible, away;
	_Atomic uint32_t count; /* futex word */
	uint64_t grace;		/* ns */
	/* Under the session's socket_lock. */
	struct held socket;
	struct held *held; /* [number of the segment]; 0 is the channel's own */
	uint32_t room, used, most;
};

/* While joining: where sidecars listen, and the agent for which one's own is started there, or
 * NULL. */
void rejoin_at(const char *path, const char *agent);

/* The sidecar knows adoption. SEGMENT, the channel's own, is taken. */
void rejoin_open(int segment);
/* From now on the socket is watched. Once for each rejoin_open, in time for the first answer:
 * starting the thread is no part of what the program waits for. */
void rejoin_watch(void);
/* All of it is over: attaching failed, or this is a child of fork. */
void rejoin_drop(void);

/* With the session's socket_lock held: pinned memory comes, FD of SIZE bytes, which is taken;
 * and goes. */
void rejoin_hold(uint32_t number, int fd, uint64_t size);
void rejoin_release(uint32_t number);

/* A sidecar that is gone is no end of the session; and it is gone now. */
bool rejoin_possible(void);
bool rejoin_away(void);

/* How often the session has found another sidecar. */
uint32_t rejoin_count(void);
/* A request that was made when there were COUNT got no answer: waits for the next sidecar.
 * True: it is there; false: the request failed for good. */
bool rejoin_wait(uint32_t count);

#endif
