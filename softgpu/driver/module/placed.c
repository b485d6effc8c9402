/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables that the program places: see placed.h.
 */
#include "softgpu/driver/module/placed.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/ptx.h"

CUresult placed_read(
	struct placed *placed, unsigned count, const CUjit_option *options, void **values)
{
	*placed = (struct placed){0};
	for (unsigned i = 0; i < count; i++) {
		if (options[i] == CU_JIT_GLOBAL_SYMBOL_NAMES)
			placed->names = values[i];
		else if (options[i] == CU_JIT_GLOBAL_SYMBOL_ADDRESSES)
			placed->addresses = values[i];
		else if (options[i] == CU_JIT_GLOBAL_SYMBOL_COUNT)
			placed->count = (uint32_t)(uintptr_t)values[i];
	}
	return placed->count && (!placed->names || !placed->addresses)
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

CUresult placed_text(const struct placed *placed, const char *text, char **out)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_$%";
	size_t bytes = strlen(text) + 1, at = 0;

	for (size_t i = 0; i < placed->count; i++) {
		const char *name = placed->names[i];

		if (!name || !*name || name[strspn(name, allowed)])
			return CUDA_ERROR_INVALID_VALUE;
		bytes += sizeof(PTX_PRAGMA_SYMBOL) + strlen(name) + 20;
	}
	*out = malloc(bytes);
	if (!*out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < placed->count; i++)
		at += (size_t)snprintf(*out + at, bytes - at, PTX_PRAGMA_SYMBOL,
			placed->names[i], (unsigned long long)(uintptr_t)placed->addresses[i]);
	memcpy(*out + at, text, strlen(text) + 1);
	return CUDA_SUCCESS;
}
