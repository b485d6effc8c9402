/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about descriptors of the graph API: is it any good, and what does the library say
 * of it.  What heuristics find is asked by find.c.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/libraries/cudnn/engine_config.h"
#include "gpu-agent/worker/worker_state.h"

#define ANSWER_WORDS (CUDNN_ANSWER_BYTES / 4)
/* Elements of a short attribute; descriptors in a list. */
#define ELEMENTS_MAX 64
#define TEXT_MAX (64u << 20)
/* The longest configuration: so many knobs, and as many notes of each kind. */
#define CONFIG_WORDS (16 * CUDNN_FOUND_KNOBS)

/* The question, and its answer as it grows. */
struct asking {
	struct library_frame f;
	const struct wire_vcudaCudnnAsk *req;
	struct graph_tree *tree;
	struct graph_made *made;
	uint32_t words[ANSWER_WORDS];
	uint32_t used;
	uint32_t count;
	uint64_t total;
};

static cudnnStatus_t ask_get(const struct asking *a, cudnnBackendDescriptor_t d, uint32_t name,
	uint32_t type, int64_t requested, int64_t *count, void *to)
{
	int status;

	*count = 0;
	beside_leave(a->f.r);
	status = cudnn_of(&a->f)->cudnnBackendGetAttribute(
		d, (int)name, (int)type, requested, count, to);
	beside_enter(a->f.r);
	return cudnn_nine(a->f.library, status);
}

static cudnnStatus_t ask_new(
	const struct asking *a, uint32_t type, cudnnBackendDescriptor_t *descriptor)
{
	return cudnn_nine(a->f.library,
		cudnn_of(&a->f)->cudnnBackendCreateDescriptor((int)type, descriptor));
}

static void ask_delete(const struct asking *a, cudnnBackendDescriptor_t *descriptor)
{
	if (*descriptor)
		cudnn_of(&a->f)->cudnnBackendDestroyDescriptor(*descriptor);
	*descriptor = NULL;
}

/* --- descriptors ------------------------------------------------------------------------- */

/* Reads a short attribute of `from` and puts it; false where there is none. */
static bool copy_attribute(struct tree_writer *out, const struct asking *a,
	cudnnBackendDescriptor_t from, uint32_t name, uint32_t type)
{
	_Alignas(16) unsigned char room[ELEMENTS_MAX * 16] = {0};
	int64_t count;

	if (ask_get(a, from, name, type, ELEMENTS_MAX, &count, room) || count < 0)
		return false;
	tree_put_attribute(
		out, name, type, count < ELEMENTS_MAX ? (uint32_t)count : ELEMENTS_MAX, room);
	return true;
}

/* Whether a tree of so many words went into the answer. */
static bool answer_tree(struct asking *a, const struct tree_writer *tree)
{
	if (tree->used > tree->room || tree->used + 1 > ANSWER_WORDS - a->used)
		return false;
	a->words[a->used++] = tree->used;
	memcpy(a->words + a->used, tree->word, 4 * (size_t)tree->used);
	a->used += tree->used;
	a->count++;
	return true;
}

static void put_notes(struct tree_writer *out, uint32_t head, uint32_t name, uint32_t type,
	const struct cudnn_found_notes *notes)
{
	if (!notes->known)
		return;
	tree_put_attribute(out, name, type, notes->count, notes->note);
	out->word[head] += 1u << 16;
}

/* The configuration of a plan that was read from JSON: knobs, engine with what the library
 * notes of it, configuration. */
static cudnnStatus_t answer_config(
	struct asking *a, cudnnBackendDescriptor_t descriptor, bool *done)
{
	uint32_t words[CONFIG_WORDS];
	struct tree_writer out = {.word = words, .room = CONFIG_WORDS};
	struct cudnn_config_reader reader = {.f = &a->f};
	struct cudnn_found found;
	cudnnStatus_t status = cudnn_config_read(&reader, descriptor, &found);
	uint32_t head;

	cudnn_config_end(&reader);
	if (status)
		return status;
	tree_put(&out, found.knobs + 2);
	tree_put_knobs(&out, &found);
	head = out.used;
	tree_put(&out, CUDNN_BACKEND_ENGINE_DESCRIPTOR | 1u << 16);
	tree_put_attribute(
		&out, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &found.engine);
	put_notes(&out, head, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
		&found.numerical);
	put_notes(&out, head, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
		&found.behavior);
	tree_put_config(&out, &found, 0);
	*done = answer_tree(a, &out);
	return CUDNN_STATUS_SUCCESS;
}

/* --- other descriptors, which have numbers only --------------------------------------------
 */

static const struct {
	uint16_t descriptor, name, type;
} numbers[] = {
	{CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, CUDNN_ATTR_KNOB_INFO_TYPE, CUDNN_TYPE_KNOB_TYPE},
	{CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE,
		CUDNN_TYPE_INT64},
	{CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE,
		CUDNN_TYPE_INT64},
	{CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, CUDNN_ATTR_KNOB_INFO_STRIDE, CUDNN_TYPE_INT64},
	{CUDNN_BACKEND_LAYOUT_INFO_DESCRIPTOR, CUDNN_ATTR_LAYOUT_INFO_TENSOR_UID,
		CUDNN_TYPE_INT64},
	{CUDNN_BACKEND_LAYOUT_INFO_DESCRIPTOR, CUDNN_ATTR_LAYOUT_INFO_TYPES,
		CUDNN_TYPE_LAYOUT_TYPE},
	{CUDNN_BACKEND_INTERMEDIATE_INFO_DESCRIPTOR, CUDNN_ATTR_INTERMEDIATE_INFO_UNIQUE_ID,
		CUDNN_TYPE_INT64},
	{CUDNN_BACKEND_INTERMEDIATE_INFO_DESCRIPTOR, CUDNN_ATTR_INTERMEDIATE_INFO_SIZE,
		CUDNN_TYPE_INT64},
};

static cudnnStatus_t answer_numbers(
	struct asking *a, uint32_t kind, cudnnBackendDescriptor_t descriptor, bool *done)
{
	uint32_t words[ANSWER_WORDS];
	struct tree_writer out = {.word = words, .room = ANSWER_WORDS};

	tree_put(&out, 1);
	tree_put(&out, kind);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].descriptor == kind)
			words[1] += (uint32_t)copy_attribute(&out, a, descriptor,
					    numbers[i].name, numbers[i].type)
				    << 16;
	*done = answer_tree(a, &out);
	return CUDNN_STATUS_SUCCESS;
}

/* What an attribute that is descriptors consists of; UINT32_MAX: not known. */
static uint32_t kind_of(uint32_t name)
{
	switch (name) {
	/* Of one that was read from JSON. */
	case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG: return CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
	case CUDNN_ATTR_ENGINE_KNOB_INFO: return CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR;
	case CUDNN_ATTR_ENGINE_LAYOUT_INFO: return CUDNN_BACKEND_LAYOUT_INFO_DESCRIPTOR;
	case CUDNN_ATTR_ENGINECFG_INTERMEDIATE_INFO:
		return CUDNN_BACKEND_INTERMEDIATE_INFO_DESCRIPTOR;
	default: return UINT32_MAX;
	}
}

static cudnnStatus_t answer_descriptors(struct asking *a)
{
	uint32_t kind = kind_of(a->req->attribute);
	cudnnBackendDescriptor_t *list;
	int64_t count = 0, room = ELEMENTS_MAX;
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
	bool done = true;

	if (kind == UINT32_MAX)
		return CUDNN_STATUS_NOT_SUPPORTED;
	if (kind == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
		room = 1;
	list = calloc((size_t)room + 1, sizeof(*list));
	if (!list)
		return CUDNN_STATUS_ALLOC_FAILED;
	for (int64_t i = 0; !status && i < room; i++)
		status = ask_new(a, kind, &list[i]);
	if (!status && room)
		status = ask_get(a, a->made->descriptor, a->req->attribute, a->req->type, room,
			&count, list);
	if (count < 0 || count > room)
		count = room;
	a->total = (uint64_t)count;
	for (uint64_t i = a->req->first;
		!status && done && i < a->total && a->count < a->req->wanted; i++)
		status = kind == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR
				 ? answer_config(a, list[i], &done)
				 : answer_numbers(a, kind, list[i], &done);
	/* One that is too long for an answer would be asked for again and again. */
	if (!status && !done && !a->count)
		status = CUDNN_STATUS_NOT_SUPPORTED;
	for (int64_t i = 0; i < room; i++)
		ask_delete(a, &list[i]);
	free(list);
	return status;
}

/* --- numbers and text ------------------------------------------------------------------------
 */

/* A slice of `have` elements. */
static void answer_slice(struct asking *a, const unsigned char *from, uint64_t have)
{
	uint32_t each = cudnn_attribute_bytes(a->req->type);
	uint64_t count = a->req->first < have ? have - a->req->first : 0;

	a->total = have;
	if (count > a->req->wanted)
		count = a->req->wanted;
	if (count > CUDNN_ANSWER_BYTES / each)
		count = CUDNN_ANSWER_BYTES / each;
	if (!count)
		return;
	memcpy(a->words, from + a->req->first * each, count * each);
	a->count = (uint32_t)count;
	a->used = (uint32_t)(count * each + 3) / 4;
}

static cudnnStatus_t answer_text(struct asking *a)
{
	int64_t count, got;
	unsigned char *text;
	cudnnStatus_t status = ask_get(
		a, a->made->descriptor, a->req->attribute, a->req->type, 0, &count, NULL);

	if (status)
		return status;
	if (count < 0 || count > TEXT_MAX)
		return CUDNN_STATUS_NOT_SUPPORTED;
	text = calloc(1, (size_t)count + 1);
	if (!text)
		return CUDNN_STATUS_ALLOC_FAILED;
	status = ask_get(
		a, a->made->descriptor, a->req->attribute, a->req->type, count, &got, text);
	if (!status)
		answer_slice(a, text, (uint64_t)(got < count ? got : count));
	free(text);
	return status;
}

static cudnnStatus_t answer(struct asking *a)
{
	_Alignas(16) unsigned char room[ELEMENTS_MAX * 16] = {0};
	uint64_t wanted = a->req->wanted;
	int64_t count;
	cudnnStatus_t status;

	if (a->req->attribute == CUDNN_ASK_NOTHING)
		return CUDNN_STATUS_SUCCESS;
	if (!cudnn_attribute_bytes(a->req->type) || a->req->type == CUDNN_TYPE_HANDLE ||
		a->req->type == CUDNN_TYPE_VOID_PTR || a->req->attribute > UINT16_MAX)
		return CUDNN_STATUS_NOT_SUPPORTED;
	if (a->req->type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		return answer_descriptors(a);
	if (a->req->type == CUDNN_TYPE_CHAR)
		return answer_text(a);
	if (!wanted || wanted > ELEMENTS_MAX || a->req->first)
		wanted = ELEMENTS_MAX;
	status = ask_get(a, a->made->descriptor, a->req->attribute, a->req->type,
		(int64_t)wanted, &count, room);
	if (!status)
		answer_slice(a, room,
			count < 0	       ? 0
			: count > ELEMENTS_MAX ? ELEMENTS_MAX
					       : (uint64_t)count);
	return status;
}

/* --- frames ----------------------------------------------------------------------------------
 */

static cudnnStatus_t ask(struct asking *a)
{
	const void *bytes = worker_in(a->f.r, &a->req->tree, a->req->tree_bytes);
	cudnnStatus_t status;

	if (worker_refused(a->f.r) || !cudnn_graph_read(a->tree, bytes, a->req->tree_bytes)) {
		worker_refuse(a->f.r, CUDA_ERROR_INVALID_VALUE);
		return CUDNN_STATUS_BAD_PARAM;
	}
	status = cudnn_graph_make(&a->f, a->tree, &a->made);
	if (!status)
		status = answer(a);
	if (!status && a->req->plan)
		status = plan_name(&a->f, a->req->plan, a->tree, a->made);
	return status;
}

CUresult serve_vcudaCudnnAsk(struct worker *w, struct request *r)
{
	const struct wire_vcudaCudnnAsk *req = (const void *)r->body;
	struct wire_vcudaCudnnAsk_reply *reply = (void *)r->answer;
	struct plain_served *served;
	struct asking *a;
	cudnnStatus_t status;
	void *out;

	if (beside_serve(w, r, serve_vcudaCudnnAsk))
		return CUDA_SUCCESS;
	served = worker_handle(w, r, req->handle, KIND_cudnnHandle);
	if (served && !plain_reaches(w, served, r->header.context))
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	if (worker_refused(r))
		return r->refused;
	a = calloc(1, sizeof(*a));
	if (a)
		a->tree = malloc(sizeof(*a->tree));
	if (!a || !a->tree) {
		free(a);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	a->f = (struct library_frame){.w = w,
		.r = r,
		.of = &cudnn_plain,
		.library = served->library,
		.handle = served->handle};
	a->req = req;
	cudnn_graph_begin(&a->f);
	status = ask(a);
	cudnn_graph_end();
	if (!worker_refused(r) && !status) {
		reply->count = a->count;
		reply->total = a->total;
		out = worker_out(r, &reply->answer,
			req->type == CUDNN_TYPE_BACKEND_DESCRIPTOR
				? 4 * (uint64_t)a->used
				: (uint64_t)a->count * cudnn_attribute_bytes(req->type));
		if (out)
			memcpy(out, a->words, reply->answer.length);
	}
	if (!worker_refused(r))
		worker_refuse(r, cudnn_answer(r, status));
	free(a->tree);
	free(a);
	return r->refused;
}
