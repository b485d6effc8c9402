/* SPDX-License-Identifier: Apache-2.0
 *
 * References to textures and surfaces as the shim knows them: their names.
 */
#ifndef VCUDA_SHIM_DRIVER_ARRAY_REFERENCE_H
#define VCUDA_SHIM_DRIVER_ARRAY_REFERENCE_H

#include <stdint.h>

#include "protocol/wire/handle.h"

struct context;

struct reference {
	struct reference *next;
	uint64_t handle;
	uint64_t module; /* handle; 0: made by cuTexRefCreate */
	const struct context *context;
	enum handle_kind kind; /* KIND_CUtexref, KIND_CUsurfref */
	char name[];
};

/* The reference of that name; NULL: it is none. */
const struct reference *reference_find(uint64_t handle, enum handle_kind kind);
/* The module goes, and what it has; the context goes. */
void reference_module_gone(uint64_t module);
void reference_reset(const struct context *context);

#endif
