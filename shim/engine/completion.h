/* SPDX-License-Identifier: Apache-2.0
 *
 * Completion counters, which the agent sets: who owns which.
 */
#ifndef VCUDA_SHIM_ENGINE_COMPLETION_H
#define VCUDA_SHIM_ENGINE_COMPLETION_H

#include <stdint.h>

/* A counter of one's own, set to 0; 0: none left. */
uint32_t completion_get(void);
void completion_put(uint32_t counter);
uint64_t completion_read(uint32_t counter);

#endif
