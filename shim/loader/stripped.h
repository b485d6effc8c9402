/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of a statically linked CUDA runtime whose symbols were stripped.
 */
#ifndef VCUDA_SHIM_LOADER_STRIPPED_H
#define VCUDA_SHIM_LOADER_STRIPPED_H

#include "shim/loader/elf.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stripped {
	const struct dl_phdr_info *info;
	const struct unwind_entry *entries; /* each function, in the order of addresses */
	size_t count, first;		    /* the runtime's first */
	const Elf64_Rela *relatives; /* of the object, that the loader adds its base to */
	size_t relative_count;
};

/* Looks for a runtime in a loaded object. Reads what is mapped, and of most objects without one
 * the table of where functions begin only. */
bool stripped_find(struct stripped *runtime, const struct dl_phdr_info *info);

/* Goes through the functions: *at starts at 0. False at the end. Reads a function's code, so it
 * may be overwritten once it was told. */
bool stripped_next(const struct stripped *runtime, size_t *at, struct image_function *function);

#endif
