/* SPDX-License-Identifier: Apache-2.0
 *
 * Unix sockets by path: for programs of one machine.  TYPE is SOCK_STREAM or SOCK_SEQPACKET,
 * with SOCK_NONBLOCK where it must not block; all are closed on exec.  Any thread, but
 * unix_listen: it changes the umask for a moment.
 */
#ifndef VCUDA_COMMON_UNIX_SOCKET_H
#define VCUDA_COMMON_UNIX_SOCKET_H

#include <sys/types.h>

#include "common/error.h"

#define UNIX_PATH 108 /* room for a path and its NUL */

/* Who is at the other end, as the kernel knows it: when it connected or listened. */
struct unix_peer {
	pid_t pid; /* 0: not of this namespace */
	uid_t uid;
};

/* fd, or -errno with *error: -ENOENT and -ECONNREFUSED, nobody listens there; -EAGAIN, its
 * queue is full and TYPE must not block. */
int unix_connect(const char *path, int type, struct error *error);

/* A listening socket with MODE at PATH, in place of one that is there: whether somebody listens
 * on that is the caller's to know. Who finds it can connect. fd, or -errno with *error. */
int unix_listen(const char *path, int type, unsigned mode, struct error *error);

/* The same, unless somebody listens there: -EADDRINUSE. A socket that nobody listens on is that
 * of a process that died. */
int unix_listen_alone(const char *path, int type, unsigned mode);

/* One under PATH as a name of the network namespace and not of the file system. */
int unix_announce(const char *path, int type, struct error *error);

/* A connection that came, non-blocking; *peer: who made it; NULL: of no interest. fd or -errno.
 */
int unix_accept(int listener, struct unix_peer *peer);

/* 0 or -errno. */
int unix_peer_of(int fd, struct unix_peer *peer);

#endif
