/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the sidecar runs at all: a process that was stopped (SIGSTOP, a debugger, a frozen
 * container) keeps its socket open, and who waits for it would wait for ever.  It counts up
 * a page each second (protocol/wire/channel.h).  Only who waits looks, every 50 ms or so.
 */
#ifndef VCUDA_SHIM_ENGINE_HEARTBEAT_H
#define VCUDA_SHIM_ENGINE_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

/* Maps the page of FD, which stays the caller's, in place of the one before, at which others
 * may look meanwhile. False: it cannot be one. */
bool heartbeat_open(int fd);
void heartbeat_close(void);

/* Looks. True: it has stood still for longer than heartbeat_patience() while somebody looked;
 * time in which nobody did, this process having been stopped itself, hardly counts. Any thread.
 */
bool heartbeat_stopped(void);

/* Seconds: $VCUDA_SIDECAR_TIMEOUT, at least 2; 5 where it is not set; 0: for ever. */
unsigned heartbeat_patience(void);

#endif
