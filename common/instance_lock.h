/* SPDX-License-Identifier: Apache-2.0
 *
 * The sidecar's place in the file system: its socket and the lock beside it.  The lock says who
 * lives, so that of several that start at once one serves, and a stale socket is told from a
 * live one.
 */
#ifndef VCUDA_COMMON_INSTANCE_LOCK_H
#define VCUDA_COMMON_INSTANCE_LOCK_H

#include <sys/types.h>

#include "common/error.h"

struct instance_lock {
	char socket[108];
	char lock[112];
	int listen_fd;
	int lock_fd;
	pid_t holder; /* after -EEXIST: who serves there, 0 = not known */
};

/* Makes the folder if it may, takes the lock, replaces a stale socket, listens. 0; -EEXIST
 * where a live one serves (it is waited for while it starts); another -errno; each with *error.
 */
int instance_lock_acquire(
	struct instance_lock *instance, const char *path, unsigned mode, struct error *error);

/* Listens also under the socket's path as a name of the network namespace, which the containers
 * of a pod share even where they share no volume. fd, or -errno with *error (-EADDRINUSE: with
 * hostNetwork another pod has it). */
int instance_announce(const struct instance_lock *instance, struct error *error);

/* Removes socket and lock. */
void instance_lock_release(struct instance_lock *instance);

/* Connects to the sidecar at PATH. fd, or -errno with *error; *holder: its pid. */
int instance_connect(const char *path, pid_t *holder, struct error *error);

#endif
