/* SPDX-License-Identifier: Apache-2.0
 *
 * The store as the supervisor sees it: started where `store.bytes` says so, started again when
 * it dies, and given what the one before it had.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_STORE_PROCESS_H
#define VCUDA_GPU_AGENT_SUPERVISOR_STORE_PROCESS_H

#include <stdint.h>

#include "gpu-agent/supervisor/supervisor.h"

/* In the kept table, the store's descriptors go with this pid. */
#define STORE_KEPT (-1)

void store_process_init(struct supervisor *s);
/* Starts it where that is due; the next time to look. */
uint64_t store_process_tick(struct supervisor *s, uint64_t now);
/* It said something. */
void store_process_hear(struct supervisor *s);
/* It was reaped. */
void store_process_ended(struct supervisor *s, int status);
/* Front and store, where there are both, get an end of a new pair each. */
void store_process_join(struct supervisor *s);
/* Kills it, and reads what it had to say. */
void store_process_stop(struct supervisor *s);

#endif
