/* SPDX-License-Identifier: Apache-2.0
 *
 * What the names in a library that is opened mean, where that differs from what they mean
 * without us:
 * - with RTLD_DEEPBIND they are looked for in the libraries that it needs before those that are
 *   preloaded, so it calls the C library's dlopen (Taichi's module does) and never the guard's;
 * - a *double* has functions or variables of its own with the names of NVIDIA's and opens the
 *   libraries itself (TensorFlow's has one for each function, slang-rhi keeps their addresses
 * in such variables): by these names it and what needs it would find ours, which are preloaded,
 *   of any ABI, and write over their code;
 * - one that calls the CUDA runtime and needs none finds the one that its opener needs, which
 * says so; both are preloaded, and by a name without a version it would find CUDA 12's.
 */
#ifndef VCUDA_SHIM_LOADER_BIND_H
#define VCUDA_SHIM_LOADER_BIND_H

/* Before a dlopen of this thread with that mode. */
void bind_expect(int mode);

/* Sees to the objects that were mapped since the last call. To be called while they are not yet
 * relocated, under the loader's lock; at first when the program starts. */
void bind_mapped(void);

#endif
