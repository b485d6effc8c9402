/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules as the driver half sees them.
 */
#include <stdlib.h>

#include "softgpu/ptx/internal.h"

struct ptx_module *ptx_module_load(const char *text, size_t n, ptx_allocate allocate, void *arg,
	size_t heap, struct ptx_error *error)
{
	struct ptx_module *module;

	ptx_op_init();
	module = ptx_parse(text, n, allocate, arg, heap, error);
	if (module)
		for (uint32_t k = 0; k < module->nfunctions; k++)
			module->functions[k].module = module;
	return module;
}

uint64_t ptx_module_block(const struct ptx_module *module, size_t *size)
{
	*size = module->block_bytes;
	return module->block;
}

static uint64_t global_address(const struct ptx_module *module, const struct ptx_global *global)
{
	return (global->elsewhere ? 0 : module->block) + global->offset;
}

const char *ptx_module_managed_at(
	const struct ptx_module *module, uint32_t *at, uint64_t *address)
{
	while (*at < module->nglobals) {
		const struct ptx_global *global = &module->globals[(*at)++];

		if (global->is_managed) {
			*address = global_address(module, global);
			return global->name;
		}
	}
	return NULL;
}

bool ptx_module_global(
	const struct ptx_module *module, const char *name, uint64_t *address, size_t *size)
{
	for (uint32_t k = 0; k < module->nglobals; k++)
		if (!module->globals[k].opaque && !strcmp(module->globals[k].name, name)) {
			*address = global_address(module, &module->globals[k]);
			*size = module->globals[k].size;
			return true;
		}
	return false;
}

bool ptx_module_managed(const struct ptx_module *module, uint64_t address)
{
	for (uint32_t k = 0; k < module->nglobals; k++) {
		const struct ptx_global *global = &module->globals[k];

		if (global->is_managed &&
			address - global_address(module, global) < global->size)
			return true;
	}
	return false;
}

bool ptx_module_reference(
	const struct ptx_module *module, const char *name, bool surface, uint64_t *address)
{
	for (uint32_t k = 0; k < module->nglobals; k++)
		if (module->globals[k].opaque == (surface ? PTX_SURFREF : PTX_TEXREF) &&
			!strcmp(module->globals[k].name, name)) {
			*address = module->block + module->globals[k].offset;
			return true;
		}
	return false;
}

enum ptx_opaque ptx_module_opaque(const struct ptx_module *module, uint64_t address)
{
	const uint64_t at = address - module->block;

	for (uint32_t k = 0; at < module->block_bytes && k < module->nglobals; k++) {
		const struct ptx_global *g = &module->globals[k];

		if (g->opaque && at - g->offset < g->size && (at - g->offset) % 8 == 0)
			return g->opaque;
	}
	return PTX_PLAIN;
}

size_t ptx_module_kernel_count(const struct ptx_module *module)
{
	return module->nkernels;
}

struct ptx_kernel *ptx_module_kernel_at(const struct ptx_module *module, size_t index)
{
	return index < module->nkernels ? &module->kernels[index] : NULL;
}

struct ptx_kernel *ptx_module_kernel(const struct ptx_module *module, const char *name)
{
	for (uint32_t k = 0; k < module->nkernels; k++)
		if (!strcmp(module->kernels[k].function->name, name))
			return &module->kernels[k];
	return NULL;
}

static unsigned at_most(unsigned registers, unsigned limit)
{
	return limit && limit < registers ? limit : registers;
}

void ptx_kernel_info(const struct ptx_kernel *kernel, struct ptx_kernel_info *info)
{
	const struct ptx_function *f = kernel->function;
	const struct ptx_module *module = kernel->module;

	*info = (struct ptx_kernel_info){
		.name = f->name,
		.params = f->params,
		.param_count = f->nparams,
		.param_bytes = f->param_bytes,
		.static_shared = f->shared_bytes,
		.local_bytes = f->frame_bytes,
		.const_bytes = module->const_bytes,
		.registers = f->reg_count < 16	  ? 16
			     : f->reg_count > 128 ? 128
						  : f->reg_count,
		.max_threads = f->max_threads ? f->max_threads : PTX_MAX_THREADS,
		.ptx_version = module->version,
		.target = module->target,
	};
	/* So many that a block of max_threads fits the 64 Ki registers of a multiprocessor. */
	while (info->registers * info->max_threads > 65536)
		info->registers = 65536 / info->max_threads;
	info->registers = at_most(info->registers, f->max_registers);
	info->registers = at_most(info->registers, module->max_registers);
	memcpy(info->required, f->required, sizeof(info->required));
	memcpy(info->cluster, f->cluster, sizeof(info->cluster));
}
