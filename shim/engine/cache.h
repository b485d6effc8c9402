/* SPDX-License-Identifier: Apache-2.0
 *
 * What was answered once (cached calls) or has succeeded once (learned ones).
 */
#ifndef VCUDA_SHIM_ENGINE_CACHE_H
#define VCUDA_SHIM_ENGINE_CACHE_H

#include <stdint.h>

/* Forgets all that concerns a context: its number may come again. */
void cache_drop(uint16_t context);

#endif
