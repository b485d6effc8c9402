/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables that a text declares .extern and the program places: CU_JIT_GLOBAL_SYMBOL_…
 */
#ifndef VCUDA_SOFTGPU_DRIVER_MODULE_PLACED_H
#define VCUDA_SOFTGPU_DRIVER_MODULE_PLACED_H

#include <cuda.h>
#include <stddef.h>

struct placed {
	const char *const *names;
	void *const *addresses;
	size_t count;
};

/* What the options say of them. INVALID_VALUE: only a part. */
CUresult placed_read(
	struct placed *placed, unsigned count, const CUjit_option *options, void **values);
/* TEXT with what the interpreter is told of them before it, malloc'ed. INVALID_VALUE: a name
 * that is none. */
CUresult placed_text(const struct placed *placed, const char *text, char **out);

#endif
