/* SPDX-License-Identifier: Apache-2.0
 *
 * What heuristics find.  Reading their results makes the library search, each time, so they are
 * read once and kept beside the heuristics, as they travel; an app that reads on, or asks anew,
 * gets them from there.  Each configuration is kept, for the plan that may be made with it.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/libraries/cudnn/engine_config.h"
#include "gpu-agent/worker/worker_state.h"

#define RESULTS_MAX 1024
/* Of all results of one search; a configuration has some thirty bytes. */
#define FOUND_BYTES (256u * 1024)

struct graph_found {
	uint32_t count;
	uint32_t used; /* of the bytes */
	unsigned char bytes[];
};

struct finding {
	struct library_frame f;
	struct graph_tree *tree;
	const struct graph_node *graph, *root;
	bool plain; /* nothing but graph and mode: what is found can be named by them */
};

/* One result; the library's descriptor is kept, or destroyed. */
static cudnnStatus_t find_one(struct finding *a, struct cudnn_config_reader *reader,
	struct cudnn_found_bytes *out, cudnnBackendDescriptor_t config, bool first)
{
	struct cudnn_found found;
	cudnnStatus_t status = cudnn_config_read(reader, config, &found);

	if (!status && first) {
		beside_leave(a->f.r);
		cudnn_config_sizes(reader, config, &found);
		beside_enter(a->f.r);
	}
	if (!status && a->plain)
		cudnn_config_keep(&a->f, a->graph, &found, config);
	else
		cudnn_of(&a->f)->cudnnBackendDestroyDescriptor(config);
	if (!status)
		cudnn_found_write(out, &found);
	return status;
}

/* Reads `count` results into what is kept. */
static cudnnStatus_t find_read(struct finding *a, struct graph_made *made,
	cudnnBackendDescriptor_t *list, int64_t count)
{
	struct cudnn_config_reader reader = {.f = &a->f};
	struct graph_found *kept = calloc(1, sizeof(*kept) + FOUND_BYTES), *fitted;
	struct cudnn_found_bytes out;
	cudnnStatus_t status = kept ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;

	if (!kept)
		return status;
	out = (struct cudnn_found_bytes){kept->bytes, kept->bytes + FOUND_BYTES, false};
	for (int64_t i = 0; i < count; i++) {
		status = find_one(a, &reader, &out, list[i], !i);
		list[i] = NULL;
		if (status || out.broken)
			break;
		kept->used = (uint32_t)(out.at - kept->bytes);
		kept->count++;
	}
	cudnn_config_end(&reader);
	if (status) {
		free(kept);
		return status;
	}
	fitted = realloc(kept, sizeof(*kept) + kept->used);
	made->found = fitted ? fitted : kept;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t find_results(struct finding *a, struct graph_made *made)
{
	const struct cudnn_library *l = a->f.library;
	cudnnBackendDescriptor_t *list;
	int64_t count = 0, room = 0;
	cudnnStatus_t status = l->cudnnBackendGetAttribute(made->descriptor,
		CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &room, NULL);

	if (status)
		return cudnn_nine(a->f.library, status);
	if (room < 0 || room > RESULTS_MAX)
		room = RESULTS_MAX;
	list = calloc((size_t)room + 1, sizeof(*list));
	if (!list)
		return CUDNN_STATUS_ALLOC_FAILED;
	for (int64_t i = 0; !status && i < room; i++)
		status = l->cudnnBackendCreateDescriptor(
			CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &list[i]);
	beside_leave(a->f.r);
	if (!status && room)
		status = l->cudnnBackendGetAttribute(made->descriptor,
			CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, room,
			&count, list);
	beside_enter(a->f.r);
	status = cudnn_nine(a->f.library, status);
	if (count < 0 || count > room)
		count = room;
	if (!status)
		status = find_read(a, made, list, count);
	for (int64_t i = 0; i < room; i++)
		if (list[i])
			l->cudnnBackendDestroyDescriptor(list[i]);
	free(list);
	return status;
}

/* Whether graph and mode are all that the heuristics have. */
static bool find_plain(const struct graph_node *root)
{
	for (const uint32_t *at = root->first; at < root->end;
		at += 2 + cudnn_attribute_words(at[0] >> 16, at[1]))
		if ((at[0] & 0xffff) != CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH &&
			(at[0] & 0xffff) != CUDNN_ATTR_ENGINEHEUR_MODE)
			return false;
	return true;
}

/* As many results as an answer takes, from number `first` on. */
static void find_answer(struct finding *a, struct graph_found *kept, uint64_t first,
	struct wire_vcudaCudnnFind_reply *reply)
{
	struct cudnn_found_bytes in = {kept->bytes, kept->bytes + kept->used, false};
	unsigned char *from = in.at, *end = in.at;
	struct cudnn_found found;
	void *out;

	reply->total = kept->count;
	for (uint64_t i = 0; i < kept->count; i++) {
		cudnn_found_read(&in, &found);
		if (i < first) {
			from = end = in.at;
			continue;
		}
		if (in.at - from > CUDNN_ANSWER_BYTES)
			break;
		end = in.at;
		reply->count++;
	}
	out = worker_out(a->f.r, &reply->answer, (uint64_t)(end - from));
	memcpy(out, from, (size_t)(end - from));
}

static void find(struct finding *a, const struct wire_vcudaCudnnFind *req,
	struct wire_vcudaCudnnFind_reply *reply)
{
	const void *bytes = worker_in(a->f.r, &req->tree, req->tree_bytes);
	struct graph_made *graph, *made = NULL;
	cudnnStatus_t status;

	if (worker_refused(a->f.r) || !cudnn_graph_read(a->tree, bytes, req->tree_bytes)) {
		worker_refuse(a->f.r, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	a->root = &a->tree->node[a->tree->nodes - 1];
	a->graph = cudnn_graph_named(a->tree, a->root, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
	a->plain = find_plain(a->root);
	if (a->root->type != CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR || !a->graph ||
		a->graph->type != CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
		worker_refuse(a->f.r, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	status = cudnn_graph_make_node(&a->f, a->tree, a->graph, &graph);
	reply->graph = (uint32_t)status;
	if (!status)
		status = cudnn_graph_make(&a->f, a->tree, &made);
	if (!status && !made->found)
		status = find_results(a, made);
	worker_refuse(a->f.r, cudnn_answer(a->f.r, status));
	if (!status)
		find_answer(a, made->found, req->first, reply);
}

CUresult serve_vcudaCudnnFind(struct worker *w, struct request *r)
{
	const struct wire_vcudaCudnnFind *req = (const void *)r->body;
	struct plain_served *served;
	struct finding a = {0};

	if (beside_serve(w, r, serve_vcudaCudnnFind))
		return CUDA_SUCCESS;
	served = worker_handle(w, r, req->handle, KIND_cudnnHandle);
	if (served && !plain_reaches(w, served, r->header.context))
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	if (worker_refused(r))
		return r->refused;
	a.tree = malloc(sizeof(*a.tree));
	if (!a.tree)
		return CUDA_ERROR_OUT_OF_MEMORY;
	a.f = (struct library_frame){.w = w,
		.r = r,
		.of = &cudnn_plain,
		.library = served->library,
		.handle = served->handle};
	cudnn_graph_begin(&a.f);
	find(&a, req, (struct wire_vcudaCudnnFind_reply *)(void *)r->answer);
	cudnn_graph_end();
	free(a.tree);
	return r->refused;
}
