/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors that the supervisor keeps for the front, so that they outlive it: the front's own
 * journal, and for each worker with a session what the front would otherwise have the only copy
 * of.  The next front gets them all (control.h: KEPT); the store's, the next store.  The
 * supervisor never looks into them.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_KEPT_H
#define VCUDA_GPU_AGENT_SUPERVISOR_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpu-agent/control.h"

struct kept {
	pid_t pid; /* the worker that it goes with; 0: the front's own */
	uint8_t name[CONTROL_NAME];
	int fd;
};

struct kept_table {
	struct kept *list;
	size_t count, room;
	size_t most; /* that there may be: the rest of the process's descriptors are for workers
		      */
};

/* Takes FD, in the place of what has that name already. false: no room; FD is closed. */
bool kept_add(struct kept_table *table, pid_t pid, const uint8_t name[CONTROL_NAME], int fd);
void kept_drop(struct kept_table *table, pid_t pid, const uint8_t name[CONTROL_NAME]);
/* All that goes with PID. */
void kept_forget(struct kept_table *table, pid_t pid);
/* All that does not. */
void kept_forget_but(struct kept_table *table, pid_t pid);
void kept_clear(struct kept_table *table);

#endif
