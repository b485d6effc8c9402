/* SPDX-License-Identifier: Apache-2.0
 *
 * loop://NAME: both ends in one process, over socket pairs.  A test plays the agent.
 */
#ifndef VCUDA_TRANSPORT_LOOPBACK_H
#define VCUDA_TRANSPORT_LOOPBACK_H

#include "transport/transport.h"

extern const struct transport transport_loop;

/* Plays the agent's front: fills in *welcome (all zero but magic and version) and, where it
 * grants, owns the agent's end from then on (fds[0] brings commands, fds[1] takes replies: what
 * transport.link wants). Called in the dialing thread; a PROBE comes with fds -1. Returns 0 to
 * grant; where welcome->status is not 0 the fds stay the caller's. */
typedef int (*loop_front)(void *argument, const struct session_hello *hello,
	struct session_welcome *welcome, const int fds[2]);

/* Answers for NAME until loopback_forget; -EEXIST, or -ENOSPC where LOOP_NAMES are taken. */
int loopback_serve(const char *name, loop_front front, void *argument);
void loopback_forget(const char *name);

#define LOOP_NAMES 16

#endif
