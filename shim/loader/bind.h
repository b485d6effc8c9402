/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries opened with RTLD_DEEPBIND: what they import is looked for in the libraries that
 * they need before those that are preloaded, so they call the C library's dlopen (Taichi's
 * module does) and never the guard's.
 */
#ifndef VCUDA_SHIM_LOADER_BIND_H
#define VCUDA_SHIM_LOADER_BIND_H

/* Before a dlopen of this thread with that mode. */
void bind_expect(int mode);

/* Binds to this library what the objects that such a dlopen has mapped import of it. To be
 * called while objects are mapped and not yet relocated, under the loader's lock. */
void bind_imports(void);

#endif
