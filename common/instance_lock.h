/* SPDX-License-Identifier: Apache-2.0
 *
 * A program's place in the file system: its socket and the lock beside it.  The lock says who
 * lives, so that of several that start at once one serves, and a stale socket is told from a
 * live one.
 */
#ifndef VCUDA_COMMON_INSTANCE_LOCK_H
#define VCUDA_COMMON_INSTANCE_LOCK_H

#include <sys/types.h>

#include "common/error.h"

struct instance_kind {
	const char *who;     /* "sidecar" */
	const char *setting; /* that names the path, for the error: "--socket" */
	int type;	     /* SOCK_STREAM or SOCK_SEQPACKET */
	unsigned mode;	     /* of the socket file; the lock's is 0600 */
};

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
int instance_lock_acquire(struct instance_lock *instance, const char *path,
	const struct instance_kind *kind, struct error *error);

/* Removes socket and lock. */
void instance_lock_release(struct instance_lock *instance);

#endif
