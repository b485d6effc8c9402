/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs and libraries with NVIDIA's runtime linked in statically.
 */
#ifndef VCUDA_SHIM_LOADER_STATIC_H
#define VCUDA_SHIM_LOADER_STATIC_H

/* Looks at the objects that were loaded since the last call (at first: at all) and sends the
 * functions of a runtime linked into one of them to our runtime front. To be called before
 * their constructors run, by one thread at a time. Costs a look at the imported names of each
 * object; a file is opened only for one that imports what a static runtime imports. */
void static_redirect(void);

#endif
