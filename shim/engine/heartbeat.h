/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the sidecar runs at all: a process that was stopped (SIGSTOP, a debugger, a frozen
 * container) keeps its socket open, and who waits for it would wait for ever.  It counts up
 * a page each second (protocol/wire/channel.h).  Only who waits looks, every 50 ms or so.
 */
#ifndef VCUDA_SHIM_PULSE_H
#define VCUDA_SHIM_PULSE_H

#include <stdbool.h>
#include <stdint.h>

/* Maps the page of FD, which stays the caller's. False: it cannot be one. */
bool pulse_open(int fd);
void pulse_close(void);

/* Looks. True: it has stood still for longer than pulse_patience() while somebody looked; time
 * in which nobody did, this process having been stopped itself, hardly counts. Any thread. */
bool pulse_stopped(void);

/* Seconds: $VCUDA_SIDECAR_TIMEOUT, at least 2; 5 where it is not set; 0: for ever. */
unsigned pulse_patience(void);

#endif
