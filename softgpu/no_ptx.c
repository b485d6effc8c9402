/* SPDX-License-Identifier: Apache-2.0
 *
 * In the place of the interpreter where a build has none: modules with PTX are refused, and
 * everything else works.  module.mk leaves it out where softgpu/ptx.mk exists.
 */
#include "softgpu/ptx.h"

#include <stdio.h>

int ptx_init(const struct ptx_window *window, unsigned threads)
{
	(void)window, (void)threads;
	return 0;
}

struct ptx_module *ptx_module_load(
	const char *text, size_t n, ptx_allocate allocate, void *arg, struct ptx_error *error)
{
	(void)text, (void)n, (void)allocate, (void)arg;
	*error = (struct ptx_error){.status = PTX_NOT_SUPPORTED};
	snprintf(error->text, sizeof(error->text), "built without the PTX interpreter");
	return NULL;
}

void ptx_module_free(struct ptx_module *module)
{
	(void)module;
}

uint64_t ptx_module_block(const struct ptx_module *module, size_t *size)
{
	(void)module;
	*size = 0;
	return 0;
}

bool ptx_module_global(
	const struct ptx_module *module, const char *name, uint64_t *address, size_t *size)
{
	(void)module, (void)name, (void)address, (void)size;
	return false;
}

size_t ptx_module_kernel_count(const struct ptx_module *module)
{
	(void)module;
	return 0;
}

struct ptx_kernel *ptx_module_kernel_at(const struct ptx_module *module, size_t index)
{
	(void)module, (void)index;
	return NULL;
}

void ptx_kernel_info(const struct ptx_kernel *kernel, struct ptx_kernel_info *info)
{
	(void)kernel;
	*info = (struct ptx_kernel_info){0};
}

enum ptx_status ptx_launch(const struct ptx_launch *launch, struct ptx_error *error)
{
	(void)launch;
	*error = (struct ptx_error){.status = PTX_NOT_SUPPORTED};
	return PTX_NOT_SUPPORTED;
}
