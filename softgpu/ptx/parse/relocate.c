/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of loading: branches and addresses get their final values, variables their memory.
 */
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/ptx/parse/read.h"

/* The initial values; device memory is zero where it is new, so what has none is left alone. */
static void put_values(struct ptx_build *b)
{
	static const unsigned char none[4096];

	for (size_t at = 0; at < b->data_bytes; at += sizeof(none)) {
		size_t n =
			b->data_bytes - at < sizeof(none) ? b->data_bytes - at : sizeof(none);

		if (memcmp(b->data + at, none, n))
			memcpy((void *)(uintptr_t)(b->module->block + at), b->data + at, n);
	}
}

static bool takes_memory(enum ptx_builtin builtin)
{
	return builtin == PTX_MALLOC || builtin == PTX_RUNTIME_MALLOC ||
	       builtin == PTX_RUNTIME_ERROR_NAME || builtin == PTX_RUNTIME_ERROR_TEXT ||
	       builtin == PTX_RUNTIME_BUFFER || builtin == PTX_RUNTIME_BUFFER_OF;
}

static void place_shared(struct ptx_build *b)
{
	for (uint32_t k = 0; k < b->npointers; k++) {
		const struct ptx_symbol *symbol = ptx_build_find(b, b->pointers[k].name);

		if (symbol && symbol->kind == PTX_SYM_SHARED)
			b->shared[symbol->value].everywhere = true;
	}
	ptx_shared_layout(b);
}

/* Branches and addresses get their final values. */
void ptx_link_module(struct ptx_build *b, ptx_allocate allocate, void *arg)
{
	struct ptx_module *module = b->module;
	size_t heap = 0, work = 0, heap_at = 0;

	for (uint32_t k = 0; k < b->nbranches; k++) {
		struct ptx_ins *ins = &module->code[b->branches[k]];

		ins->imm = (uint64_t)(uintptr_t)(module->code + ins->imm);
	}
	module->block_bytes = b->data_bytes;
	for (uint32_t k = 0; k < module->nfunctions; k++)
		if (takes_memory(module->functions[k].builtin))
			heap = module->heap_bytes;
	if (heap) {
		heap_at = (b->data_bytes + 255) & ~(size_t)255;
		module->block_bytes = heap_at + heap;
	}
	if (module->wants_workspace) {
		work = (module->block_bytes + 255) & ~(size_t)255;
		module->block_bytes = work + (size_t)PTX_WORKSPACES * PTX_WORKSPACE;
	}
	if (module->block_bytes) {
		module->block = allocate(arg, module->block_bytes, 256);
		if (!module->block) {
			b->error->status = PTX_NO_MEMORY;
			snprintf(b->error->text, sizeof(b->error->text),
				"no device memory for %zu bytes of variables",
				module->block_bytes);
			longjmp(b->failed, 1);
		}
	}
	if (module->wants_workspace)
		module->workspace = module->block + work;
	if (heap) {
		module->heap = ptx_heap_new(module->block + heap_at, heap);
		if (!module->heap)
			ptx_build_fail(b, 0, "out of memory");
	}
	place_shared(b);
	for (uint32_t k = 0; k < b->npointers; k++) {
		struct ptx_pointer *p = &b->pointers[k];
		struct ptx_symbol *symbol = ptx_build_find(b, p->name);
		uint64_t value = p->value;

		if (symbol && symbol->kind == PTX_SYM_FUNCTION) {
			value += PTX_CODE_BASE + 16 * symbol->value;
		} else if (symbol && symbol->kind == PTX_SYM_GLOBAL && !symbol->awaited) {
			value += (symbol->bound ? 0 : module->block) + symbol->value;
		} else if (symbol && symbol->kind == PTX_SYM_SHARED) {
			value += b->shared[symbol->value].offset;
		} else {
			b->error->status = PTX_NOT_FOUND;
			b->error->line = p->line;
			snprintf(b->error->text, sizeof(b->error->text),
				"no variable or function %.*s", (int)p->name.n, p->name.p);
			longjmp(b->failed, 1);
		}
		value >>= p->shift;
		memcpy(b->data + p->at, &value, p->bytes);
	}
	put_values(b);
	for (uint32_t k = 0; k < b->nrelocations; k++) {
		struct ptx_relocation *r = &b->relocations[k];
		uint64_t add = r->base == PTX_IN_BLOCK
				       ? module->block
				       : b->shared[r->base - PTX_IN_SHARED].offset;

		for (uint32_t l = 0; l < PTX_LANES; l++) {
			unsigned char *p = module->pool + r->offset + l * r->size;
			uint64_t value = 0;
			const size_t low = r->size < sizeof(value) ? r->size : sizeof(value);

			memcpy(&value, p, low); /* of 128 bits the low half: the other is 0 */
			value += add;
			memcpy(p, &value, low);
		}
	}
}

static struct ptx_function *find_function(struct ptx_build *b, struct ptx_word word, int line)
{
	const struct ptx_symbol *symbol = ptx_build_find(b, word);
	struct ptx_function *f;

	if (!symbol || symbol->kind != PTX_SYM_FUNCTION)
		ptx_build_fail(
			b, line, ".alias: there is no function %.*s", (int)word.n, word.p);
	f = &b->module->functions[symbol->value];
	if (f->is_kernel)
		ptx_build_fail(b, line, ".alias: %s is a kernel", f->name);
	return f;
}

static void *copy_of(struct ptx_build *b, const void *array, size_t bytes)
{
	void *copy = malloc(bytes + 1);

	if (!copy)
		ptx_build_fail(b, 0, "out of memory");
	if (bytes)
		memcpy(copy, array, bytes);
	return copy;
}

/* A function of the name that begins where the other one does, and needs what it needs: it
 * counts as its only callee. What a failure leaves, ptx_module_free takes. */
static void make_alias(struct ptx_build *b, struct ptx_function *to, struct ptx_function *of)
{
	const uint32_t callee = (uint32_t)(of - b->module->functions);
	struct ptx_function made = *of;

	made.name = to->name;
	free(to->params);
	to->params = made.params = NULL;
	free(to->rets);
	to->rets = NULL;
	free(to->callees);
	to->callees = NULL;
	to->params = copy_of(b, of->params, of->nparams * sizeof(*of->params));
	to->rets = copy_of(b, of->rets, of->nrets * sizeof(*of->rets));
	to->callees = copy_of(b, &callee, sizeof(callee));
	made.params = to->params;
	made.rets = to->rets;
	made.callees = to->callees;
	made.ncallees = 1;
	/* It cannot be launched; the other one says why. */
	made.bad_text = to->bad_text;
	*to = made;
}

void ptx_link_aliases(struct ptx_build *b)
{
	for (const struct ptx_alias *alias = b->aliases; alias; alias = alias->next) {
		struct ptx_function *to = find_function(b, alias->name, alias->line);
		struct ptx_function *of = find_function(b, alias->of, alias->line);

		if (to->is_defined)
			ptx_build_fail(b, alias->line, ".alias: %s has a body", to->name);
		if (!of->is_defined)
			ptx_build_fail(b, alias->line, ".alias: %s has no body", of->name);
		make_alias(b, to, of);
	}
}

/* Local memory that a function and all it calls need; recursion is found on the way. */
static uint32_t stack_need(struct ptx_module *module, struct ptx_function *f)
{
	uint32_t most = 0;

	if (f->visit == 2)
		return f->stack_bytes;
	if (f->visit == 1) {
		f->is_recursive = true;
		return 0;
	}
	f->visit = 1;
	for (uint32_t k = 0; k < f->ncallees; k++) {
		struct ptx_function *callee = &module->functions[f->callees[k]];
		uint32_t need = stack_need(module, callee);

		most = need > most ? need : most;
		f->is_recursive |= callee->is_recursive;
		f->has_indirect |= callee->has_indirect;
		f->has_alloca |= callee->has_alloca;
	}
	f->stack_bytes = ((f->frame_bytes + 15) & ~15u) + most;
	if (f->is_recursive || f->has_indirect || f->has_alloca)
		f->stack_bytes = f->frame_bytes + PTX_RECURSIVE_STACK;
	f->visit = 2;
	return f->stack_bytes;
}

/* Whatever a kernel may call must be there: what is declared only, and what only functions
 * that no kernel reaches would call, need not be. */
static void check_callees(struct ptx_build *b)
{
	struct ptx_module *module = b->module;
	uint32_t *todo = ptx_build_alloc(b, (module->nfunctions + 1) * sizeof(*todo));
	bool *seen = ptx_build_alloc(b, module->nfunctions + 1);
	uint32_t n = 0;

	for (uint32_t k = 0; k < module->nfunctions; k++) {
		seen[k] = module->functions[k].is_kernel;
		if (seen[k])
			todo[n++] = k;
	}
	while (n) {
		const struct ptx_function *f = &module->functions[todo[--n]];

		if (!f->is_defined && !f->is_kernel && !f->builtin)
			ptx_build_fail(b, 0, "Unresolved extern function '%s'", f->name);
		for (uint32_t k = 0; k < f->ncallees; k++)
			if (!seen[f->callees[k]]) {
				seen[f->callees[k]] = true;
				todo[n++] = f->callees[k];
			}
	}
}

void ptx_link_kernels(struct ptx_build *b)
{
	struct ptx_module *module = b->module;

	check_callees(b);
	for (uint32_t k = 0; k < module->nfunctions; k++) {
		(void)stack_need(module, &module->functions[k]);
		module->nkernels +=
			module->functions[k].is_kernel && module->functions[k].is_defined;
	}
	module->kernels = calloc(module->nkernels + 1, sizeof(*module->kernels));
	if (!module->kernels)
		ptx_build_fail(b, 0, "out of memory");
	module->nkernels = 0;
	for (uint32_t k = 0; k < module->nfunctions; k++)
		if (module->functions[k].is_kernel && module->functions[k].is_defined)
			module->kernels[module->nkernels++] =
				(struct ptx_kernel){module, &module->functions[k]};
}
