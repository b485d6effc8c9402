/* SPDX-License-Identifier: Apache-2.0
 *
 * Python modules that Cython made (cuda.bindings), with NVIDIA's runtime linked in statically
 * and stripped of its symbols.
 */
#ifndef VCUDA_SHIM_LOADER_CAPSULES_H
#define VCUDA_SHIM_LOADER_CAPSULES_H

#include <link.h>
#include <stdbool.h>

#include "shim/loader/elf.h"

/* True where the file may be such a module, whose runtime is worth a search. */
bool capsules_worth(const struct image *image);

/* Sees to it that the module hands functions of our runtime, those with that symbol version, to
 * other modules in place of its own. To be called before its constructors run. */
void capsules_redirect(
	const struct dl_phdr_info *info, const struct image *image, const char *version);

#endif
