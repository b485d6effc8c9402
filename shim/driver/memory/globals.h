/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables of modules: device memory that lies outside the windows, where the driver put it.
 * memory.c holds its lock around every function here.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_GLOBALS_H
#define VCUDA_SHIM_DRIVER_MEMORY_GLOBALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct global {
	uint64_t address, bytes; /* device addresses */
	uint64_t id;		 /* as of an allocation */
	int device;
};

/* The variable that holds the address, or NULL: AGENT's, else another's, since each agent's
 * driver puts them where it likes. Good until the next globals_put. */
const struct global *globals_find(uint64_t address, unsigned agent);
/* Notes a variable; one that began at the same address is replaced and keeps its id. Where
 * there is no memory it stays unknown, and copies that name it are refused. */
void globals_put(const struct global *global, unsigned agent);
/* Whether there is one; without the lock. */
bool globals_any(void);

#endif
