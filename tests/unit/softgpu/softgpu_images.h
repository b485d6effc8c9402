/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules for tests of the software GPU's driver: of kernels that nvcc compiled
 * (softgpu_kernels.cu), in each form in which it writes them.
 */
#ifndef VCUDA_TESTS_UNIT_SOFTGPU_IMAGES_H
#define VCUDA_TESTS_UNIT_SOFTGPU_IMAGES_H

#include <stdio.h>

#include "tests/unit/softgpu/softgpu_test.h"

/* An image's bytes with a NUL behind them, and how many; SIZE may be NULL. */
static inline void *load(const char *name, size_t *size)
{
	char path[512];
	char *bytes;
	FILE *file;
	long end;

	snprintf(path, sizeof(path), "%s/%s", IMAGES, name);
	file = fopen(path, "rb");
	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	end = ftell(file);
	rewind(file);
	bytes = calloc(1, (size_t)end + 1);
	assert_true(end > 0 && bytes);
	assert_int_equal(fread(bytes, 1, (size_t)end, file), end);
	fclose(file);
	if (size)
		*size = (size_t)end;
	return bytes;
}

static inline CUmodule module_of(const char *name)
{
	char *image = load(name, NULL);
	CUmodule module;

	ok(cuModuleLoadData(&module, image));
	free(image);
	return module;
}

/* A context of its own, for what poisons it. */
static inline CUcontext context_new(void)
{
	CUcontext context;

	ok(cuCtxCreate(&context, NULL, 0, 0));
	return context;
}

#endif
