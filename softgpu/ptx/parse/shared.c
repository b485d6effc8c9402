/* SPDX-License-Identifier: Apache-2.0
 *
 * Where .shared variables lie.  A kernel's block has those that the kernel and what it calls
 * name, and no others: a module of a hundred kernels may have more of them than a block holds.
 * Code is one for all kernels that reach it, so a variable has one place; it is behind those
 * that any of its kernels has already.  Those of many kernels come first.
 */
#include <stdlib.h>

#include "softgpu/ptx/parse/read.h"

uint32_t ptx_shared_add(struct ptx_build *b, uint64_t bytes, uint32_t align)
{
	if (bytes > PTX_MAX_SHARED)
		ptx_build_fail(b, b->scan.line, "too much shared memory");
	b->shared =
		ptx_build_grow(b, b->shared, b->nshared, &b->shared_room, sizeof(*b->shared));
	b->shared[b->nshared] = (struct ptx_shared){.bytes = (uint32_t)bytes, .align = align};
	return b->nshared++;
}

void ptx_shared_use(struct ptx_build *b, uint32_t variable)
{
	struct ptx_shared_use *last = b->nuses ? &b->uses[b->nuses - 1] : NULL;

	if (b->function == UINT32_MAX ||
		(last && last->function == b->function && last->variable == variable))
		return;
	b->uses = ptx_build_grow(b, b->uses, b->nuses, &b->use_room, sizeof(*b->uses));
	b->uses[b->nuses++] = (struct ptx_shared_use){b->function, variable};
}

/* What a kernel has, as it is found. */
struct reach {
	struct ptx_build *b;
	uint32_t *first;   /* of each function's uses, in order; one more for the end */
	uint32_t *visited; /* of each function: 1 + the last kernel that reached it */
	uint32_t *seen;	   /* of each variable, the same */
	uint32_t *waiting; /* functions still to look at */
	uint32_t nwaiting;
	struct ptx_shared_use *pairs; /* kernel, variable */
	uint32_t npairs, pair_room;
};

static int by_function(const void *a, const void *b)
{
	const struct ptx_shared_use *x = a, *y = b;

	return x->function != y->function   ? (x->function < y->function ? -1 : 1)
	       : x->variable != y->variable ? (x->variable < y->variable ? -1 : 1)
					    : 0;
}

static int by_variable(const void *a, const void *b)
{
	const struct ptx_shared_use *x = a, *y = b;

	return x->variable != y->variable   ? (x->variable < y->variable ? -1 : 1)
	       : x->function != y->function ? (x->function < y->function ? -1 : 1)
					    : 0;
}

static void reach_variable(struct reach *r, uint32_t kernel, uint32_t variable)
{
	if (r->seen[variable] == kernel + 1)
		return;
	r->seen[variable] = kernel + 1;
	r->b->shared[variable].kernels++;
	r->pairs = ptx_build_grow(r->b, r->pairs, r->npairs, &r->pair_room, sizeof(*r->pairs));
	r->b->pairs = r->pairs;
	r->pairs[r->npairs++] = (struct ptx_shared_use){kernel, variable};
}

static void reach_function(struct reach *r, uint32_t kernel, uint32_t function)
{
	if (r->visited[function] == kernel + 1)
		return;
	r->visited[function] = kernel + 1;
	r->waiting[r->nwaiting++] = function;
}

/* All that the kernel may come to: what is called by its address may be any function. */
static void reach_kernel(struct reach *r, uint32_t kernel)
{
	const struct ptx_build *b = r->b;
	const struct ptx_module *module = b->module;

	for (uint32_t k = 0; k < b->nshared; k++)
		if (b->shared[k].everywhere)
			reach_variable(r, kernel, k);
	reach_function(r, kernel, kernel);
	while (r->nwaiting) {
		uint32_t function = r->waiting[--r->nwaiting];
		const struct ptx_function *f = &module->functions[function];

		for (uint32_t k = r->first[function]; k < r->first[function + 1]; k++)
			reach_variable(r, kernel, b->uses[k].variable);
		for (uint32_t k = 0; k < f->ncallees; k++)
			reach_function(r, kernel, f->callees[k]);
		for (uint32_t k = 0; f->has_indirect && k < module->nfunctions; k++)
			if (!module->functions[k].is_kernel)
				reach_function(r, kernel, k);
	}
}

/* Behind what each of its kernels has. */
static void place(struct ptx_build *b, const struct ptx_shared_use *pairs, uint32_t npairs,
	uint32_t variable)
{
	struct ptx_shared *s = &b->shared[variable];
	uint64_t at = 0;

	for (uint32_t k = 0; k < npairs; k++) {
		uint32_t end = b->module->functions[pairs[k].function].shared_bytes;

		at = end > at ? end : at;
	}
	at = (at + s->align - 1) & ~(uint64_t)(s->align - 1);
	for (uint32_t k = 0; k < npairs; k++) {
		struct ptx_function *f = &b->module->functions[pairs[k].function];

		if (at + s->bytes > PTX_MAX_SHARED)
			ptx_build_fail(b, 0, "%s has too much shared memory", f->name);
		f->shared_bytes = (uint32_t)(at + s->bytes);
	}
	s->offset = (uint32_t)at;
}

/* So many kernels at most are of variables that are placed in one round, from many to one. */
static uint32_t round_of(uint32_t kernels)
{
	uint32_t n = 0;

	while (kernels >>= 1)
		n++;
	return n;
}

void ptx_shared_layout(struct ptx_build *b)
{
	struct ptx_module *module = b->module;
	struct reach r = {.b = b};

	if (!b->nshared)
		return;
	r.first = ptx_build_alloc(b, (module->nfunctions + 1) * sizeof(*r.first));
	r.visited = ptx_build_alloc(b, module->nfunctions * sizeof(*r.visited));
	r.waiting = ptx_build_alloc(b, module->nfunctions * sizeof(*r.waiting));
	r.seen = ptx_build_alloc(b, b->nshared * sizeof(*r.seen));
	if (b->nuses)
		qsort(b->uses, b->nuses, sizeof(*b->uses), by_function);
	for (uint32_t k = 0; k < b->nuses; k++)
		r.first[b->uses[k].function + 1]++;
	for (uint32_t k = 0; k < module->nfunctions; k++)
		r.first[k + 1] += r.first[k];
	for (uint32_t k = 0; k < module->nfunctions; k++)
		if (module->functions[k].is_kernel && module->functions[k].is_defined)
			reach_kernel(&r, k);
	if (r.npairs)
		qsort(r.pairs, r.npairs, sizeof(*r.pairs), by_variable);
	for (uint32_t round = round_of(module->nfunctions) + 1; round--;)
		for (uint32_t k = 0, n; k < r.npairs; k += n) {
			n = b->shared[r.pairs[k].variable].kernels;
			if (round_of(n) == round)
				place(b, r.pairs + k, n, r.pairs[k].variable);
		}
}
