/* SPDX-License-Identifier: Apache-2.0
 *
 * The shim's handles: {generation, kind, index} and the object behind each.  Looking one up
 * takes no lock; minting and releasing do.
 */
#ifndef VCUDA_SHIM_ENGINE_HANDLE_H
#define VCUDA_SHIM_ENGINE_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/handle.h"

/* 0: HANDLE_INDEX_MAX are live, or there is no memory for the table. */
uint64_t handle_mint(enum handle_kind kind, void *object);
/* NULL: not one of ours, another kind, or released. */
void *handle_object(uint64_t handle, enum handle_kind kind);
/* Forgets the handle; false where it was stale already (then nobody may free the object). */
bool handle_release(uint64_t handle);
/* The same, but its index is never given out again: the worker still knows the name (functions
 * of a module that was unloaded). */
bool handle_retire(uint64_t handle);
/* Calls FUNCTION(object, argument) for every live handle of KIND, with the table's lock held:
 * it may not mint or release. */
void handle_each(
	enum handle_kind kind, void (*function)(void *object, void *argument), void *argument);

#endif
