/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of the graph API as content (protocol/libraries/cudnn_tree.h), out and in, and
 * what is asked of the agent with it.
 */
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/libraries/cudnn/backend.h"
#include "shim/engine/sha256.h"

#define WORDS (CUDNN_TREE_BYTES / 4)

/* --- out ------------------------------------------------------------------------------------
 */

static cudnnStatus_t full(void)
{
	return cudnn_fault(CUDNN_STATUS_NOT_SUPPORTED, "the graph is too large to travel");
}

/* Its number + 1; 0: it is not in the tree yet. */
static uint32_t number_of(const struct tree *tree, const struct backend *b)
{
	for (uint32_t i = tree->nodes; i; i--)
		if (tree->node[i - 1] == b)
			return i;
	return 0;
}

static cudnnStatus_t put_attribute(struct tree *tree, const struct backend_attribute *a)
{
	uint32_t words = cudnn_attribute_words(a->type, a->count);
	struct backend *const *held = a->data;
	uint32_t *at = tree->words + tree->count;

	if (words == UINT32_MAX || words + 2 > WORDS - tree->count)
		return full();
	at[0] = a->name | (uint32_t)a->type << 16;
	at[1] = a->count;
	tree->count += 2 + words;
	if (a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
		for (uint32_t i = 0; i < a->count; i++)
			at[2 + i] = held[i] ? number_of(tree, held[i]) : 0;
	} else if (a->type == CUDNN_TYPE_HANDLE) {
		if (!tree->handle && a->count)
			memcpy(&tree->handle, a->data, sizeof(tree->handle));
	} else if (words) {
		at[1 + words] = 0; /* the padding */
		memcpy(at + 2, a->data, (size_t)a->count * cudnn_attribute_bytes(a->type));
	}
	return CUDNN_STATUS_SUCCESS;
}

/* What it refers to, then itself. Descriptors refer to finalized ones, so there is no ring. */
static cudnnStatus_t put_node(struct tree *tree, const struct backend *b)
{
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
	uint32_t head, sent = 0;

	for (uint32_t i = 0; !status && i < b->attributes; i++) {
		struct backend *const *held = b->attribute[i].data;

		if (b->attribute[i].type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
			continue;
		for (uint32_t n = 0; !status && n < b->attribute[i].count; n++)
			if (held[n] && !number_of(tree, held[n]))
				status = put_node(tree, held[n]);
	}
	if (status)
		return status;
	if (tree->nodes == CUDNN_TREE_NODES || tree->count == WORDS)
		return full();
	head = tree->count++;
	for (uint32_t i = 0; !status && i < b->attributes; i++)
		if (!b->attribute[i].told) {
			status = put_attribute(tree, &b->attribute[i]);
			sent++;
		}
	tree->words[head] = b->type | sent << 16;
	tree->node[tree->nodes++] = b;
	return status;
}

cudnnStatus_t tree_of(struct tree *tree, const struct backend *root)
{
	cudnnStatus_t status;

	tree->words = malloc(CUDNN_TREE_BYTES);
	tree->count = 1;
	tree->nodes = 0;
	tree->handle = 0;
	if (!tree->words)
		return CUDNN_STATUS_ALLOC_FAILED;
	status = put_node(tree, root);
	tree->words[0] = tree->nodes;
	return status;
}

/* --- in -------------------------------------------------------------------------------------
 */

struct reader {
	const uint32_t *at, *end;
	struct backend *node[CUDNN_TREE_NODES];
	uint32_t nodes;
};

/* What the agent says of an engine is no part of what makes it. */
static bool is_told(uint32_t name)
{
	return name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE ||
	       name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE;
}

static cudnnStatus_t read_attribute(struct reader *r, struct backend *b)
{
	struct backend *others[CUDNN_TREE_ATTRIBUTES];
	uint32_t name, type, count, words;
	cudnnStatus_t status;

	if (r->end - r->at < 2)
		return CUDNN_STATUS_INTERNAL_ERROR;
	name = r->at[0] & 0xffff;
	type = r->at[0] >> 16;
	count = r->at[1];
	words = cudnn_attribute_words(type, count);
	r->at += 2;
	if (words > (size_t)(r->end - r->at))
		return CUDNN_STATUS_INTERNAL_ERROR;
	if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
		if (count > CUDNN_TREE_ATTRIBUTES)
			return CUDNN_STATUS_INTERNAL_ERROR;
		for (uint32_t i = 0; i < count; i++) {
			if (r->at[i] > r->nodes)
				return CUDNN_STATUS_INTERNAL_ERROR;
			others[i] = r->at[i] ? r->node[r->at[i] - 1] : NULL;
		}
		status = backend_set(b, name, type, count, others);
	} else if (type == CUDNN_TYPE_HANDLE) {
		return CUDNN_STATUS_INTERNAL_ERROR;
	} else {
		status = backend_set(b, name, type, count, r->at);
	}
	if (!status)
		backend_find(b, name)->told = is_told(name);
	r->at += words;
	return status;
}

static cudnnStatus_t read_nodes(struct reader *r, struct backend *root, uint32_t count)
{
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

	for (uint32_t i = 0; !status && i < count; i++) {
		uint32_t attributes;
		struct backend *b;

		if (r->at == r->end)
			return CUDNN_STATUS_INTERNAL_ERROR;
		b = i + 1 == count ? root : backend_new(*r->at & 0xffff);
		if (!b)
			return CUDNN_STATUS_ALLOC_FAILED;
		if (b == root)
			backend_hold(root);
		r->node[r->nodes++] = b;
		if (b->type != (*r->at & 0xffff))
			return CUDNN_STATUS_INTERNAL_ERROR;
		attributes = *r->at++ >> 16;
		while (attributes-- && !status)
			status = read_attribute(r, b);
		b->finalized = !status;
	}
	return status;
}

cudnnStatus_t backend_read(struct backend *b, const uint32_t *words, uint32_t count)
{
	struct reader *r = malloc(sizeof(*r));
	cudnnStatus_t status = CUDNN_STATUS_INTERNAL_ERROR;

	if (!r)
		return CUDNN_STATUS_ALLOC_FAILED;
	r->at = words + 1;
	r->end = words + count;
	r->nodes = 0;
	if (count && words[0] && words[0] <= CUDNN_TREE_NODES)
		status = read_nodes(r, b, words[0]);
	for (uint32_t i = 0; i < r->nodes; i++)
		backend_drop(r->node[i]);
	free(r);
	return status ? cudnn_fault(status, "an answer that cannot be read") : status;
}

/* --- asking ---------------------------------------------------------------------------------
 */

static cudnnStatus_t handle_of(const struct tree *tree, uint64_t *number)
{
	const struct library_handle *handle =
		cudnn_find((cudnnHandle_t)(uintptr_t)tree->handle);

	if (!handle)
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM, "a graph without a handle of cuDNN");
	*number = handle->state.handle;
	return CUDNN_STATUS_SUCCESS;
}

/* Sends the frame: `fixed` bytes of the call's own, the digest, the tree. Where the answer is
 * kept, it is by what lies from key_from to the digest's end. */
static cudnnStatus_t send(struct front_frame *frame, const void *own, uint32_t fixed,
	const struct tree *tree, const uint8_t *digest)
{
	uint32_t bytes = 4 * tree->count;
	char *body = malloc((size_t)fixed + 32 + bytes);
	cudnnStatus_t status;

	if (!body)
		return CUDNN_STATUS_ALLOC_FAILED;
	memcpy(body, own, fixed);
	memcpy(body + fixed, digest, 32);
	memcpy(body + fixed + 32, tree->words, bytes);
	frame->call = FRONT_COUNTED;
	frame->status_first = true;
	frame->stream_at = FRONT_NO_STREAM;
	frame->key_to = fixed + 32;
	frame->body = body;
	frame->body_bytes = fixed + 32 + bytes;
	status = cudnn_status(vcuda_front_send(frame));
	free(body);
	return status;
}

/* The bytes that an answer of GOT bytes brings behind its FIXED ones; none where it lies. */
static size_t get_answer(unsigned char to[CUDNN_ANSWER_BYTES], const void *reply, size_t fixed,
	uint32_t got, const struct wire_run *run)
{
	if (run->offset < fixed || run->length > CUDNN_ANSWER_BYTES ||
		(uint64_t)run->offset + run->length > got)
		return 0;
	memcpy(to, (const char *)reply + run->offset, run->length);
	return run->length;
}

/* Never kept where it names a plan. */
static cudnnStatus_t send_ask(const struct tree *tree, struct ask *ask, const uint8_t *digest)
{
	struct wire_vcudaCudnnAsk body = {
		.plan = ask->plan,
		.attribute = ask->attribute,
		.type = ask->type,
		.first = ask->first,
		.wanted = ask->wanted,
		.tree_bytes = 4 * tree->count,
		.digest = {sizeof(body), 32},
		.tree = {sizeof(body) + 32, 4 * tree->count},
	};
	struct {
		struct wire_vcudaCudnnAsk_reply fixed;
		unsigned char answer[CUDNN_ANSWER_BYTES];
	} reply = {0};
	uint32_t got = 0;
	struct front_frame frame = {
		.op = OP_vcudaCudnnAsk,
		.cached = !ask->plan,
		.key_from = offsetof(struct wire_vcudaCudnnAsk, attribute),
		.reply = &reply,
		.reply_bytes = sizeof(reply.fixed),
		.reply_most = sizeof(reply),
		.reply_got = &got,
	};
	cudnnStatus_t status = handle_of(tree, &body.handle);

	if (!status)
		status = send(&frame, &body, sizeof(body), tree, digest);
	if (!status && reply.fixed.status)
		status = cudnn_fault(
			(cudnnStatus_t)reply.fixed.status, "refused by the agent's cuDNN");
	if (status)
		return status;
	ask->count = reply.fixed.count;
	ask->total = reply.fixed.total;
	ask->bytes =
		get_answer(ask->answer, &reply, sizeof(reply.fixed), got, &reply.fixed.answer);
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t send_find(
	const struct tree *tree, struct found *found, const uint8_t *digest)
{
	struct wire_vcudaCudnnFind body = {
		.first = found->first,
		.tree_bytes = 4 * tree->count,
		.digest = {sizeof(body), 32},
		.tree = {sizeof(body) + 32, 4 * tree->count},
	};
	struct {
		struct wire_vcudaCudnnFind_reply fixed;
		unsigned char answer[CUDNN_ANSWER_BYTES];
	} reply = {0};
	uint32_t got = 0;
	struct front_frame frame = {
		.op = OP_vcudaCudnnFind,
		.cached = true,
		.key_from = offsetof(struct wire_vcudaCudnnFind, first),
		.reply = &reply,
		.reply_bytes = sizeof(reply.fixed),
		.reply_most = sizeof(reply),
		.reply_got = &got,
	};
	cudnnStatus_t status = handle_of(tree, &body.handle);

	if (!status)
		status = send(&frame, &body, sizeof(body), tree, digest);
	if (!status && reply.fixed.flags & LIBRARY_PASSING) {
		status = (cudnnStatus_t)reply.fixed.status;
		cudnn_answered(status);
	}
	if (status)
		return status;
	found->graph = (cudnnStatus_t)reply.fixed.graph;
	found->count = reply.fixed.count;
	found->total = reply.fixed.total;
	found->bytes = get_answer(
		found->answer, &reply, sizeof(reply.fixed), got, &reply.fixed.answer);
	return (cudnnStatus_t)reply.fixed.status;
}

/* The descriptor as a tree, and its digest. tree_free: also where this failed. */
static cudnnStatus_t tree_new(const struct backend *b, struct tree **tree, uint8_t *digest)
{
	cudnnStatus_t status;

	*tree = malloc(sizeof(**tree));
	if (!*tree)
		return CUDNN_STATUS_ALLOC_FAILED;
	status = tree_of(*tree, b);
	if (!status)
		sha256((*tree)->words, 4 * (size_t)(*tree)->count, digest);
	return status;
}

static void tree_free(struct tree *tree)
{
	if (tree)
		free(tree->words);
	free(tree);
}

cudnnStatus_t backend_find_results(const struct backend *b, struct found *found)
{
	struct tree *tree;
	uint8_t digest[32];
	cudnnStatus_t status = tree_new(b, &tree, digest);

	found->graph = CUDNN_STATUS_NOT_INITIALIZED;
	if (!status)
		status = send_find(tree, found, digest);
	tree_free(tree);
	return status;
}

cudnnStatus_t backend_ask(const struct backend *b, struct ask *ask, uint8_t *digest)
{
	struct tree *tree;
	cudnnStatus_t status = tree_new(b, &tree, digest);

	if (!status)
		status = send_ask(tree, ask, digest);
	tree_free(tree);
	return status;
}
