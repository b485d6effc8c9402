/* SPDX-License-Identifier: Apache-2.0
 *
 * agent-uploads, where `upload_cache_bytes` is set: started, and started again when it died.
 * What it had is gone then, which costs time and nothing else.  Its other end is the front's;
 * the supervisor keeps a copy for the next front.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_UPLOADS_PROCESS_H
#define VCUDA_GPU_AGENT_SUPERVISOR_UPLOADS_PROCESS_H

#include "gpu-agent/supervisor/supervisor.h"

void uploads_process_init(struct supervisor *s);
/* Starts it where that is due; when to look again. */
uint64_t uploads_process_tick(struct supervisor *s, uint64_t now);
/* A front is there: it gets the other end. */
void uploads_process_join(struct supervisor *s);
void uploads_process_ended(struct supervisor *s, int status);
void uploads_process_stop(struct supervisor *s);

#endif
