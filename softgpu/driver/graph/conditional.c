/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditional nodes.  A condition is a word of device memory, and its handle is the word's
 * address: that is what a kernel's cudaGraphSetConditional writes to.  A launch puts an
 * operation into the stream that looks at the word when its turn comes and puts the body, and
 * for a loop itself, right behind itself.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/graph/graph.h"

#define PAGE_BYTES 4096u
#define PAGE_WORDS (PAGE_BYTES / sizeof(uint32_t))

/* Where conditions of a context lie; the memory goes with the context. */
struct condition_page {
	struct condition_page *next;
	unsigned long long context; /* its id */
	uint64_t address;
	uint64_t used[PAGE_WORDS / 64];
};

struct condition {
	unsigned refs; /* graphs, branches, defaults under way */
	struct condition_page *page;
	uint64_t address;
	uint32_t value; /* at each launch, if `assign` */
	bool assign;
};

struct branch {
	unsigned refs; /* the step, and operations of launches */
	CUgraphConditionalNodeType type;
	struct condition *condition;
	struct CUgraphExec_st **bodies;
	unsigned count;
};

struct branch_op {
	struct op op;
	struct branch *branch;
};

struct defaults_op {
	struct op op;
	size_t count;
	struct condition *conditions[];
};

static struct condition_page *pages; /* under queue_lock */

/* ---- the words ---- */

static uint32_t condition_load(const struct condition *c)
{
	uint32_t value = 0;

	pthread_rwlock_rdlock(&memory_lock);
	if (memory_mapped_locked(c->address, sizeof(value)))
		value = __atomic_load_n(
			(const uint32_t *)(uintptr_t)c->address, __ATOMIC_ACQUIRE);
	pthread_rwlock_unlock(&memory_lock);
	return value;
}

static void condition_store(const struct condition *c, uint32_t value)
{
	pthread_rwlock_rdlock(&memory_lock);
	if (memory_mapped_locked(c->address, sizeof(value)))
		__atomic_store_n((uint32_t *)(uintptr_t)c->address, value, __ATOMIC_RELEASE);
	pthread_rwlock_unlock(&memory_lock);
}

static bool page_word_alloc(struct condition_page *page, struct condition *c)
{
	for (size_t i = 0; i < PAGE_WORDS; i++)
		if (!(page->used[i / 64] >> i % 64 & 1)) {
			page->used[i / 64] |= 1ull << i % 64;
			c->page = page;
			c->address = page->address + i * sizeof(uint32_t);
			return true;
		}
	return false;
}

/* Without queue_lock. */
static CUresult condition_place(struct CUctx_st *context, struct condition *c)
{
	struct condition_page *page;
	bool placed = false;
	CUresult ret;

	pthread_mutex_lock(&queue_lock);
	for (page = pages; page && !placed; page = page->next)
		placed = page->context == context->id && page_word_alloc(page, c);
	pthread_mutex_unlock(&queue_lock);
	if (placed)
		return CUDA_SUCCESS;
	page = calloc(1, sizeof(*page));
	if (!page)
		return CUDA_ERROR_OUT_OF_MEMORY;
	page->context = context->id;
	ret = memory_allocate(context, context->device, PAGE_BYTES, PAGE_BYTES, BLOCK_DEVICE,
		NULL, &page->address);
	if (ret) {
		free(page);
		return ret;
	}
	pthread_mutex_lock(&queue_lock);
	page->next = pages;
	pages = page;
	page_word_alloc(page, c);
	pthread_mutex_unlock(&queue_lock);
	return CUDA_SUCCESS;
}

struct condition *condition_get(struct condition *c)
{
	c->refs++;
	return c;
}

void condition_put(struct condition *c)
{
	size_t word;

	if (--c->refs)
		return;
	word = (c->address - c->page->address) / sizeof(uint32_t);
	c->page->used[word / 64] &= ~(1ull << word % 64);
	free(c);
}

CUresult conditions_copy(
	struct condition *const *from, size_t count, struct condition ***to, size_t *to_count)
{
	struct condition **list;

	if (!count)
		return CUDA_SUCCESS;
	list = realloc(*to, (*to_count + count) * sizeof(struct condition *));
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*to = list;
	for (size_t i = 0; i < count; i++) {
		list[(*to_count)++] = from[i];
		from[i]->refs++;
	}
	return CUDA_SUCCESS;
}

void conditions_drop(struct condition **conditions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		condition_put(conditions[i]);
	free(conditions);
}

/* Of the graph, or one that it is inside of. */
struct condition *condition_find(const struct CUgraph_st *graph, uint64_t handle)
{
	for (; graph; graph = graph->parent ? graph->parent->graph : NULL)
		for (size_t i = 0; i < graph->condition_count; i++)
			if (graph->conditions[i]->address == handle)
				return graph->conditions[i];
	return NULL;
}

/* Whether a node of the graph, or of one inside of it, decides by C. */
static bool condition_decides(const struct CUgraph_st *graph, const struct condition *c)
{
	for (size_t i = 0; i < graph->count; i++) {
		const struct CUgraphNode_st *node = graph->nodes[i];

		if (node->condition == c || (node->child && condition_decides(node->child, c)))
			return true;
		for (unsigned b = 0; b < node->body_count; b++)
			if (condition_decides(node->bodies[b], c))
				return true;
	}
	return false;
}

bool conditions_used(const struct CUgraph_st *graph)
{
	for (size_t i = 0; i < graph->condition_count; i++)
		if (!condition_decides(graph, graph->conditions[i]))
			return false;
	return true;
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph,
	CUcontext ctx, unsigned int defaultLaunchValue, unsigned int flags)
{
	struct CUctx_st *context;
	struct condition *c;
	CUresult ret = soft_context_current(&context);

	if (ret)
		return ret;
	if (!pHandle_out || flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT)
		return CUDA_ERROR_INVALID_VALUE;
	if (ctx && ctx != context)
		return CUDA_ERROR_NOT_SUPPORTED; /* one context a graph */
	c = calloc(1, sizeof(*c));
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	c->refs = 1;
	c->value = defaultLaunchValue;
	c->assign = flags & CU_GRAPH_COND_ASSIGN_DEFAULT;
	ret = condition_place(context, c);
	if (ret) {
		free(c);
		return ret;
	}
	pthread_mutex_lock(&queue_lock);
	ret = CUDA_ERROR_INVALID_VALUE;
	if (object_is(hGraph, OBJECT_GRAPH))
		ret = conditions_copy(&c, 1, &hGraph->conditions, &hGraph->condition_count);
	if (!ret)
		*pHandle_out = c->address;
	condition_put(c);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

/* ---- launches ---- */

void branch_let(struct branch *branch)
{
	if (--branch->refs)
		return;
	for (unsigned i = 0; i < branch->count; i++)
		exec_free(branch->bodies[i]);
	condition_put(branch->condition);
	free(branch->bodies);
	free(branch);
}

CUresult branch_new(const struct CUgraphNode_st *node, struct branch **out)
{
	struct branch *branch = calloc(1, sizeof(*branch));
	CUresult ret = CUDA_SUCCESS;

	if (!branch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	branch->refs = 1;
	branch->type = node->branch_type;
	branch->condition = node->condition;
	branch->condition->refs++;
	branch->bodies = calloc(node->body_count, sizeof(struct CUgraphExec_st *));
	if (!branch->bodies)
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < node->body_count && !ret; i++) {
		ret = exec_flat(node->bodies[i], &branch->bodies[i]);
		branch->count += !ret;
	}
	if (ret)
		branch_let(branch);
	else
		*out = branch;
	return ret;
}

static void branch_drop(struct op *op)
{
	branch_let(((struct branch_op *)op)->branch);
	free(op);
}

/* The body that is to run now; NULL: none. */
static const struct CUgraphExec_st *branch_choose(const struct branch *branch)
{
	uint32_t value = condition_load(branch->condition);

	switch ((int)branch->type) {
	case CU_GRAPH_COND_TYPE_IF:
		if (value)
			return branch->bodies[0];
		return branch->count > 1 ? branch->bodies[1] : NULL;
	case CU_GRAPH_COND_TYPE_WHILE: return value ? branch->bodies[0] : NULL;
	default: return value < branch->count ? branch->bodies[value] : NULL;
	}
}

struct CUgraphExec_st *branch_body(const struct branch *branch, unsigned number)
{
	return branch && number < branch->count ? branch->bodies[number] : NULL;
}

/* Behind the operation that runs, as if it had been in the stream before those that follow.
 * They have its number, so nobody who waits for a later one goes on too early. */
static void insert_behind(struct op *op, struct op *first, struct op **last)
{
	struct CUstream_st *stream = op->stream;

	for (struct op *o = first; o; o = o->next) {
		o->stream = stream;
		o->context = op->context;
		o->seq = op->seq;
		o->profile.graph = op->profile.graph;
		o->profile.call = op->profile.call;
		o->profile.wanted = op->profile.wanted;
	}
	*last = op->next;
	if (!op->next)
		stream->last = last;
	op->next = first;
}

static void branch_run(struct op *base)
{
	struct branch *branch = ((struct branch_op *)base)->branch;
	const struct CUgraphExec_st *body = branch_choose(branch);
	struct op *first = NULL, **last = &first;
	bool whole = true;

	if (!body || atomic_load(&base->context->cancel))
		return;
	pthread_mutex_lock(&queue_lock);
	for (size_t i = 0; i < body->count && whole; i++) {
		*last = NULL;
		whole = exec_step_op(&body->steps[i], last);
		if (*last)
			last = &(*last)->next;
	}
	if (whole && branch->type == CU_GRAPH_COND_TYPE_WHILE) {
		*last = branch_op_new(branch);
		whole = *last != NULL;
		if (whole)
			last = &(*last)->next;
	}
	if (first)
		insert_behind(base, first, last);
	pthread_mutex_unlock(&queue_lock);
	if (!whole)
		context_fault(base->context, CUDA_ERROR_OUT_OF_MEMORY);
}

struct op *branch_op_new(struct branch *branch)
{
	struct branch_op *op = calloc(1, sizeof(*op));

	if (!op)
		return NULL;
	op->op.kind = OP_WORK;
	op->op.run = branch_run;
	op->op.drop = branch_drop;
	op->branch = branch;
	branch->refs++;
	return &op->op;
}

/* ---- values at the beginning of a launch ---- */

static size_t defaults_count(const struct CUgraphExec_st *exec, struct condition **to)
{
	size_t n = 0;

	for (size_t i = 0; i < exec->condition_count; i++) {
		if (!exec->conditions[i]->assign)
			continue;
		if (to)
			to[n] = exec->conditions[i];
		n++;
	}
	for (size_t i = 0; i < exec->count; i++) {
		const struct branch *branch = exec->steps[i].branch;

		for (unsigned b = 0; branch && b < branch->count; b++)
			n += defaults_count(branch->bodies[b], to ? to + n : NULL);
	}
	return n;
}

static void defaults_run(struct op *base)
{
	struct defaults_op *op = (struct defaults_op *)base;

	for (size_t i = 0; i < op->count; i++)
		condition_store(op->conditions[i], op->conditions[i]->value);
}

static void defaults_drop(struct op *base)
{
	struct defaults_op *op = (struct defaults_op *)base;

	for (size_t i = 0; i < op->count; i++)
		condition_put(op->conditions[i]);
	free(op);
}

bool defaults_op_new(const struct CUgraphExec_st *exec, struct op **out)
{
	size_t count = exec->branches || exec->condition_count ? defaults_count(exec, NULL) : 0;
	struct defaults_op *op;

	*out = NULL;
	if (!count)
		return true;
	op = calloc(1, sizeof(*op) + count * sizeof(struct condition *));
	if (!op)
		return false;
	op->op.kind = OP_WORK;
	op->op.run = defaults_run;
	op->op.drop = defaults_drop;
	op->op.light = true;
	op->count = defaults_count(exec, op->conditions);
	for (size_t i = 0; i < count; i++)
		op->conditions[i]->refs++;
	*out = &op->op;
	return true;
}
