/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs and libraries with NVIDIA's runtime linked in statically.
 */
#ifndef VCUDA_SHIM_LOADER_STATIC_H
#define VCUDA_SHIM_LOADER_STATIC_H

#include <stdbool.h>
#include <stddef.h>

/* How many objects the loader has ever added: to be taken before a dlopen. */
unsigned long long static_objects(void);

/* Looks at the objects added since then (0: at all) and sends the functions of a runtime linked
 * into one of them to our runtime front. `registered`: their constructors have run, so what
 * they registered with the other runtime is registered once more with ours. Returns how many
 * objects were redirected. Costs a look at the imported names of each object; a file is opened
 * only for one that imports what a static runtime imports. */
int static_redirect(unsigned long long since, bool registered);

#endif
