/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory shared with other sessions.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_IPC_IPC_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_IPC_IPC_H

#include <cuda.h>
#include <stdint.h>

struct handoff;
struct request;
struct worker;

/* The memory that begins there is unmapped: nobody can have it any more. */
void ipc_forget(struct worker *w, uint32_t device, uint64_t address);
/* The same of what has that name. */
void ipc_unname(struct worker *w, const uint8_t name[16]);
/* The front is asked for one thing at a time, and the shim asks so: NOT_READY. */
CUresult ipc_idle(const struct worker *w);
/* Asks the front for what w->ipc says, which the request waits for; takes FD. */
CUresult ipc_ask(struct worker *w, struct request *r, const struct handoff *ask, int fd);

#endif
