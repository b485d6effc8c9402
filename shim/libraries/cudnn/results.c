/* SPDX-License-Identifier: Apache-2.0
 *
 * Heuristics. What they find comes with the operation graph's status when the program has asked
 * a graph before: then the next graph will be asked the same, and its trip saves one.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/libraries/cudnn_found.h"
#include "shim/libraries/cudnn/backend.h"

/* 1 + the mode that was asked last by graph and mode alone; 0: none was. */
static atomic_int last_mode;

void results_free(struct backend_results *results)
{
	if (!results)
		return;
	for (uint32_t i = 0; i < results->count; i++)
		backend_drop(results->config[i]);
	free(results);
}

static cudnnStatus_t put_notes(struct backend *engine, uint32_t name, uint32_t type,
	const struct cudnn_found_notes *notes)
{
	cudnnStatus_t status;

	if (!notes->known)
		return CUDNN_STATUS_SUCCESS;
	status = backend_set(engine, name, type, notes->count, notes->note);
	if (!status)
		backend_find(engine, name)->told = true;
	return status;
}

/* What the agent says of an engine is no part of what makes it. */
static cudnnStatus_t fill_engine(
	struct backend *engine, const struct cudnn_found *found, struct backend *graph)
{
	cudnnStatus_t status = backend_set(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
		CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);

	if (!status)
		status = backend_set(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64,
			1, &found->engine);
	if (!status)
		status = put_notes(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
			CUDNN_TYPE_NUMERICAL_NOTE, &found->numerical);
	if (!status)
		status = put_notes(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
			CUDNN_TYPE_BEHAVIOR_NOTE, &found->behavior);
	engine->finalized = !status;
	return status;
}

static cudnnStatus_t put_knobs(struct backend *config, const struct cudnn_found *found)
{
	struct backend *knobs[CUDNN_FOUND_KNOBS];
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
	uint32_t made = 0;

	while (!status && made < found->knobs) {
		struct backend *knob = backend_new(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);

		if (!knob) {
			status = CUDNN_STATUS_ALLOC_FAILED;
			break;
		}
		status = backend_set(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
			CUDNN_TYPE_KNOB_TYPE, 1, &found->knob[made].type);
		if (!status)
			status = backend_set(knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
				CUDNN_TYPE_INT64, 1, &found->knob[made].value);
		knob->finalized = !status;
		knobs[made++] = knob;
	}
	if (!status && made)
		status = backend_set(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
			CUDNN_TYPE_BACKEND_DESCRIPTOR, made, knobs);
	while (made)
		backend_drop(knobs[--made]);
	return status;
}

static cudnnStatus_t put_size(
	struct backend *config, uint32_t name, uint32_t type, const void *value)
{
	cudnnStatus_t status = backend_set(config, name, type, 1, value);

	if (!status)
		backend_find(config, name)->told = true;
	return status;
}

static cudnnStatus_t fill_config(
	struct backend *config, const struct cudnn_found *found, struct backend *graph)
{
	struct backend *engine = backend_new(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
	int32_t shared = (int32_t)found->shared;
	cudnnStatus_t status;

	if (!engine)
		return CUDNN_STATUS_ALLOC_FAILED;
	status = fill_engine(engine, found, graph);
	if (!status)
		status = backend_set(config, CUDNN_ATTR_ENGINECFG_ENGINE,
			CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
	backend_drop(engine);
	if (!status)
		status = put_knobs(config, found);
	if (!status && found->workspace >= 0)
		status = put_size(config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
			&found->workspace);
	if (!status && found->shared >= 0)
		status = put_size(config, CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED,
			CUDNN_TYPE_INT32, &shared);
	config->finalized = !status;
	return status;
}

/* An answer's worth of results. */
static cudnnStatus_t read_results(
	struct backend_results *results, struct found *from, struct backend *graph)
{
	struct cudnn_found_bytes in = {from->answer, from->answer + from->bytes, false};
	struct cudnn_found found;

	for (uint32_t i = 0; i < from->count && results->count < from->total; i++) {
		struct backend *config = backend_new(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
		cudnnStatus_t status;

		if (!config)
			return CUDNN_STATUS_ALLOC_FAILED;
		results->config[results->count++] = config;
		cudnn_found_read(&in, &found);
		status = in.broken ? CUDNN_STATUS_INTERNAL_ERROR
				   : fill_config(config, &found, graph);
		if (status)
			return cudnn_fault(status, "results that cannot be read");
	}
	return CUDNN_STATUS_SUCCESS;
}

/* The mode, where it and the graph are all that was set; else -1. */
static int plain_mode(const struct backend *b)
{
	const struct backend_attribute *mode = backend_find(b, CUDNN_ATTR_ENGINEHEUR_MODE);

	if (b->attributes != 2 || !mode || mode->type != CUDNN_TYPE_HEUR_MODE ||
		mode->count != 1)
		return -1;
	return *(const int32_t *)mode->data;
}

cudnnStatus_t results_finalize(struct backend *b)
{
	struct backend_attribute *graph =
		backend_find(b, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
	struct backend_results *results = NULL;
	struct found found = {0};
	cudnnStatus_t status;

	if (!graph || graph->type != CUDNN_TYPE_BACKEND_DESCRIPTOR || graph->count != 1 ||
		!*(struct backend **)graph->data)
		return cudnn_fault(CUDNN_STATUS_BAD_PARAM, "heuristics without a graph");
	do {
		status = backend_find_results(b, &found);
		if (status) {
			cudnn_fault(status, "refused by the agent's cuDNN");
			break;
		}
		if (!results && found.total <= CUDNN_TREE_ELEMENTS)
			results = calloc(
				1, sizeof(*results) + found.total * sizeof(struct backend *));
		if (!results) {
			status = CUDNN_STATUS_ALLOC_FAILED;
			break;
		}
		status = read_results(results, &found, *(struct backend **)graph->data);
		found.first += found.count;
	} while (!status && found.count && found.first < found.total);
	if (status) {
		results_free(results);
		return status;
	}
	b->results = results;
	if (plain_mode(b) >= 0)
		atomic_store(&last_mode, 1 + plain_mode(b));
	return CUDNN_STATUS_SUCCESS;
}

/* Heuristics as the program would make them; NULL: no memory. */
static struct backend *likely(struct backend *graph, int32_t mode)
{
	struct backend *b = backend_new(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);

	if (b &&
		!backend_set(b, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
			CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph) &&
		!backend_set(b, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode))
		return b;
	if (b)
		backend_drop(b);
	return NULL;
}

cudnnStatus_t cudnn_graph_finalize(struct backend *b)
{
	struct ask ask = {.attribute = CUDNN_ASK_NOTHING};
	int mode = atomic_load(&last_mode);
	struct backend *heuristics = mode ? likely(b, mode - 1) : NULL;
	struct found found = {0};
	uint8_t digest[32];

	if (heuristics) {
		/* What they find is kept with the answers; only the graph's status counts. */
		backend_find_results(heuristics, &found);
		backend_drop(heuristics);
		if (!found.graph)
			return CUDNN_STATUS_SUCCESS;
	}
	return backend_ask(b, &ask, digest);
}
