/* SPDX-License-Identifier: Apache-2.0
 *
 * What engine.c and slot.c have of each other.
 */
#ifndef VCUDA_SHIM_ENGINE_SLOT_H
#define VCUDA_SHIM_ENGINE_SLOT_H

#include <cuda.h>
#include <stdint.h>

/* A sleeper looks at the state of the session that often: what bounds how long a sidecar's
 * death goes unnoticed (at most 0.5 s: docs/RELIABILITY.md). */
#define ENGINE_LOOK_NS 50000000u

struct shim_call;

/* Puts the call into the ring as a frame of KIND (FRAME_CALL, FRAME_POST); TAG: its slot. Waits
 * for room. Any thread. */
CUresult engine_send(struct shim_call *call, uint8_t kind, uint16_t tag);

#endif
