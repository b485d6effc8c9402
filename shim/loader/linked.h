/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects whose own CUDA runtime is redirected.  NVIDIA's runtimes keep some things for
 * each copy of themselves, so our one front has to know which copy was called.
 */
#ifndef VCUDA_SHIM_LOADER_LINKED_H
#define VCUDA_SHIM_LOADER_LINKED_H

#include <link.h>

/* Both under the loader's lock. The object is redirected now; it is one of those no longer
 * loaded (linked_prune finds out which). */
void linked_add(const struct dl_phdr_info *info);
void linked_prune(void);

/* vcuda_guard.linked (common/guard.h). */
unsigned linked_number(const void *address);

#endif
