/* SPDX-License-Identifier: Apache-2.0
 *
 * Being told of objects that the loader has mapped, before any code of theirs runs.
 */
#ifndef VCUDA_SHIM_LOADER_MAPPED_H
#define VCUDA_SHIM_LOADER_MAPPED_H

#include <stdbool.h>

/* From now on CHANGED is called whenever the loader has changed its list of objects: in a
 * dlopen, of any form and by whomever, once its objects are mapped and before the first of
 * their constructors. The thread then holds the loader's lock. To be called while there is one
 * thread. False where the loader is not built as glibc's are: CHANGED is never called. */
bool mapped_watch(void (*changed)(void));

/* In CHANGED: all that a dlopen maps, what is needed by what it opens too, is in the list. */
bool mapped_settled(void);

#endif
