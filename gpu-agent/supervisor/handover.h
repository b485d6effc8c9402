/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor's part of a reload (reload.h): asks the new binary, hands what it has to
 * it, and takes over from the one before.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_HANDOVER_H
#define VCUDA_GPU_AGENT_SUPERVISOR_HANDOVER_H

#include "gpu-agent/supervisor/supervisor.h"

/* A reload was asked for: starts the process that is asked, unless one runs. */
void handover_ask(struct supervisor *s);
/* Kills a process that does not answer; the time of the next look, UINT64_MAX: none. */
uint64_t handover_tick(struct supervisor *s, uint64_t now);
/* It has ended with STATUS of waitpid's. True: the front is to end, and then handover_leave is
 * due. */
bool handover_answered(struct supervisor *s, int status);
/* The front is gone: becomes the new binary. Returns where that fails; everything is as it was.
 */
void handover_leave(struct supervisor *s);
/* In the new process, instead of opening anything: 0, or -errno with *error. */
int handover_enter(struct supervisor *s, struct error *error);

#endif
