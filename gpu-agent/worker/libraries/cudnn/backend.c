/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes and keeps descriptors of the graph API: see backend.h.  The least lately used ones
 * that nothing refers to go when there are many.
 *
 * Graphs and plans are made with a handle of the worker's own: the app may destroy the one that
 * it named, and go on with the plan.
 *
 * What may last, finalizing, happens outside of the loop's place (beside_call.h); what is kept
 * here is one call's at a time.
 */
#include "gpu-agent/worker/libraries/cudnn/backend.h"

#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/worker_state.h"

#define BUCKETS 1024
/* A plan of attention has a hundred descriptors; a model some hundred plans. */
#define MADE_MAX 16384

static struct graph_made *buckets[BUCKETS];
static struct graph_made *newest, *oldest;
static uint32_t made_count;
static bool making; /* some call has it */

/* A handle for each context and library. */
static struct builder {
	struct builder *next;
	const struct cudnn_library *library;
	uint16_t context;
	cudnnHandle_t handle;
} *builders;

static struct graph_made **graph_bucket(const unsigned char digest[32])
{
	uint32_t hash;

	memcpy(&hash, digest, sizeof(hash));
	return &buckets[hash % BUCKETS];
}

static void graph_unlink(struct graph_made *made)
{
	*(made->newer ? &made->newer->older : &newest) = made->older;
	*(made->older ? &made->older->newer : &oldest) = made->newer;
}

static void graph_first(struct graph_made *made)
{
	made->newer = NULL;
	made->older = newest;
	*(newest ? &newest->newer : &oldest) = made;
	newest = made;
}

void cudnn_graph_begin(struct library_frame *f)
{
	while (making)
		beside_others(f->w, f->r);
	making = true;
}

void cudnn_graph_end(void)
{
	making = false;
}

void cudnn_graph_hold(struct graph_made *made)
{
	made->holders++;
}

void cudnn_graph_drop(struct graph_made *made)
{
	made->holders--;
}

static void graph_destroy(struct graph_made *made)
{
	struct graph_made **at = graph_bucket(made->digest);

	while (*at != made)
		at = &(*at)->next;
	*at = made->next;
	graph_unlink(made);
	made_count--;
	made->library->cudnnBackendDestroyDescriptor(made->descriptor);
	for (uint32_t i = 0; i < made->other_count; i++)
		if (made->other[i])
			cudnn_graph_drop(made->other[i]);
	free(made->found);
	free(made);
}

/* Makes room where there are too many, from the old end. */
static void graph_trim(void)
{
	struct graph_made *made = oldest;

	while (made && made_count > MADE_MAX) {
		struct graph_made *newer = made->newer;

		if (!made->holders)
			graph_destroy(made);
		made = newer;
	}
}

void cudnn_graph_forget(uint16_t context)
{
	bool again = true;

	while (again) { /* what is referred to goes after what refers to it */
		struct graph_made *made = newest;

		again = false;
		while (made) {
			struct graph_made *older = made->older;

			if (made->context == context && !made->holders) {
				graph_destroy(made);
				again = true;
			}
			made = older;
		}
	}
	/* Plans whose names go with the context: they are never found again. */
	for (struct graph_made *made = newest; made; made = made->older)
		if (made->context == context)
			made->context = CONTEXT_NONE;
	for (struct builder **at = &builders; *at;) {
		struct builder *b = *at;

		if (b->context != context) {
			at = &b->next;
			continue;
		}
		*at = b->next;
		b->library->cudnnDestroy(b->handle);
		free(b);
	}
}

static cudnnHandle_t graph_handle(struct library_frame *f)
{
	struct builder *b;

	for (b = builders; b; b = b->next)
		if (b->library == f->library && b->context == f->r->header.context)
			return b->handle;
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->library = f->library;
	b->context = f->r->header.context;
	if (cudnn_handle_new(
		    f->r, f->library, f->w->contexts[f->r->header.context], &b->handle)) {
		free(b);
		return NULL;
	}
	b->next = builders;
	builders = b;
	return b->handle;
}

struct graph_made *cudnn_graph_find(struct library_frame *f, const unsigned char digest[32])
{
	struct graph_made *made = *graph_bucket(digest);

	for (; made; made = made->next)
		if (made->library == f->library && made->context == f->r->header.context &&
			!memcmp(made->digest, digest, sizeof(made->digest)))
			break;
	if (made) {
		graph_unlink(made);
		graph_first(made);
	}
	return made;
}

/* Into the cache; it holds the `others` from here on. */
static void graph_add(struct library_frame *f, struct graph_made *made)
{
	struct graph_made **bucket = graph_bucket(made->digest);

	made->library = f->library;
	made->context = f->r->header.context;
	made->next = *bucket;
	*bucket = made;
	graph_first(made);
	made_count++;
	for (uint32_t i = 0; i < made->other_count; i++)
		if (made->other[i])
			cudnn_graph_hold(made->other[i]);
}

struct graph_made *cudnn_graph_keep(struct library_frame *f, const unsigned char digest[32],
	uint16_t type, cudnnBackendDescriptor_t descriptor, struct graph_made *other)
{
	struct graph_made *made = NULL;

	if (!cudnn_graph_find(f, digest))
		made = calloc(1, sizeof(*made) + sizeof(struct graph_made *));
	if (!made) {
		cudnn_of(f)->cudnnBackendDestroyDescriptor(descriptor);
		return NULL;
	}
	memcpy(made->digest, digest, sizeof(made->digest));
	made->type = type;
	made->descriptor = descriptor;
	made->other[0] = other;
	made->other_count = 1;
	graph_add(f, made);
	return made;
}

/* --- making ---------------------------------------------------------------------------------
 */

static cudnnStatus_t graph_one(struct library_frame *f, const struct graph_tree *tree,
	const struct graph_node *n, struct graph_made **made);

/* How many descriptors the node names. */
static uint32_t graph_others(const struct graph_node *n)
{
	uint32_t count = 0;

	for (const uint32_t *at = n->first; at < n->end;) {
		uint32_t words = cudnn_attribute_words(at[0] >> 16, at[1]);

		if (at[0] >> 16 == CUDNN_TYPE_BACKEND_DESCRIPTOR)
			count += words;
		at += 2 + words;
	}
	return count;
}

/* Sets one attribute from the words; *other: where the descriptors that it names are noted. */
static cudnnStatus_t graph_set(struct library_frame *f, const struct graph_tree *tree,
	struct graph_made *made, const uint32_t *at, struct graph_made ***other)
{
	/* Aligned, and as large as an attribute may be. */
	static _Alignas(16) unsigned char room[CUDNN_TREE_BYTES];
	cudnnBackendDescriptor_t *descriptors;
	int name = (int)(at[0] & 0xffff);
	uint32_t type = at[0] >> 16;
	uint32_t count = at[1];
	uint32_t words = cudnn_attribute_words(type, count);
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

	if (type == CUDNN_TYPE_HANDLE) {
		cudnnHandle_t handle = graph_handle(f);

		return handle ? cudnn_nine(f->library,
					cudnn_of(f)->cudnnBackendSetAttribute(
						made->descriptor, name, (int)type, 1, &handle))
			      : CUDNN_STATUS_NOT_INITIALIZED;
	}
	if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
		memcpy(room, at + 2, 4 * (size_t)words);
		return cudnn_nine(
			f->library, cudnn_of(f)->cudnnBackendSetAttribute(
					    made->descriptor, name, (int)type, count, room));
	}
	descriptors = calloc(count ? count : 1, sizeof(*descriptors));
	if (!descriptors)
		return CUDNN_STATUS_ALLOC_FAILED;
	for (uint32_t i = 0; !status && i < count; i++) {
		struct graph_made *one = NULL;

		if (at[2 + i])
			status = graph_one(f, tree, &tree->node[at[2 + i] - 1], &one);
		if (one) {
			/* Not to go while its siblings are made. */
			descriptors[i] = one->descriptor;
			cudnn_graph_hold(one);
			*(*other)++ = one;
			made->other_count++;
		}
	}
	if (!status)
		status = cudnn_nine(
			f->library, cudnn_of(f)->cudnnBackendSetAttribute(made->descriptor,
					    name, (int)type, count, descriptors));
	free(descriptors);
	return status;
}

/* Trees are as deep as a plan: configuration, engine, graph, operation, tensor, its offsets; a
 * tree that nests deeper is no use, and would use up the stack. */
#define DEPTH_MAX 16
static unsigned depth;

static cudnnStatus_t graph_one(struct library_frame *f, const struct graph_tree *tree,
	const struct graph_node *n, struct graph_made **made)
{
	struct graph_made *found = cudnn_graph_find(f, n->digest);
	const struct cudnn_library *l = f->library;
	struct graph_made **other;
	cudnnStatus_t status;

	*made = found;
	if (found)
		return CUDNN_STATUS_SUCCESS;
	if (depth == DEPTH_MAX)
		return CUDNN_STATUS_NOT_SUPPORTED;
	found = calloc(1, sizeof(*found) + graph_others(n) * sizeof(struct graph_made *));
	if (!found)
		return CUDNN_STATUS_ALLOC_FAILED;
	memcpy(found->digest, n->digest, sizeof(found->digest));
	found->type = n->type;
	other = found->other;
	depth++;
	status = cudnn_nine(
		f->library, l->cudnnBackendCreateDescriptor((int)n->type, &found->descriptor));
	for (const uint32_t *at = n->first; !status && at < n->end;
		at += 2 + cudnn_attribute_words(at[0] >> 16, at[1]))
		status = graph_set(f, tree, found, at, &other);
	if (!status) {
		beside_leave(f->r);
		status = cudnn_nine(f->library, l->cudnnBackendFinalize(found->descriptor));
		beside_enter(f->r);
	}
	depth--;
	if (!status)
		graph_add(f, found);
	for (uint32_t i = 0; i < found->other_count; i++)
		cudnn_graph_drop(found->other[i]); /* graph_add has a hold of its own */
	if (status) {
		if (found->descriptor)
			l->cudnnBackendDestroyDescriptor(found->descriptor);
		free(found);
		return status;
	}
	*made = found;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_graph_make_node(struct library_frame *f, const struct graph_tree *tree,
	const struct graph_node *n, struct graph_made **made)
{
	if (!cudnn_of(f)->cudnnBackendCreateDescriptor || !cudnn_of(f)->cudnnBackendFinalize ||
		!cudnn_of(f)->cudnnBackendSetAttribute ||
		!cudnn_of(f)->cudnnBackendGetAttribute ||
		!cudnn_of(f)->cudnnBackendDestroyDescriptor)
		return CUDNN_STATUS_NOT_SUPPORTED;
	graph_trim();
	return graph_one(f, tree, n, made);
}

cudnnStatus_t cudnn_graph_make(
	struct library_frame *f, const struct graph_tree *tree, struct graph_made **made)
{
	return cudnn_graph_make_node(f, tree, &tree->node[tree->nodes - 1], made);
}
