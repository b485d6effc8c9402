/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/worker/libraries/cudnn/engine_config.h"

#include <stdlib.h>
#include <string.h>

/* --- a tree put together here ------------------------------------------------------------- */

void tree_put(struct tree_writer *out, uint32_t word)
{
	if (out->used < out->room)
		out->word[out->used] = word;
	out->used++;
}

void tree_put_attribute(struct tree_writer *out, uint32_t name, uint32_t type, uint32_t count,
	const void *elements)
{
	uint32_t bytes = count * cudnn_attribute_bytes(type);

	tree_put(out, name | type << 16);
	tree_put(out, count);
	for (uint32_t at = 0; at < bytes; at += 4) {
		uint32_t word = 0;

		memcpy(&word, (const char *)elements + at, bytes - at < 4 ? bytes - at : 4);
		tree_put(out, word);
	}
}

void tree_put_knobs(struct tree_writer *out, const struct cudnn_found *found)
{
	for (uint32_t i = 0; i < found->knobs; i++) {
		tree_put(out, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR | 2u << 16);
		tree_put_attribute(out, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE,
			1, &found->knob[i].type);
		tree_put_attribute(out, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1,
			&found->knob[i].value);
	}
}

void tree_put_config(struct tree_writer *out, const struct cudnn_found *found, uint32_t first)
{
	tree_put(out, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR | (found->knobs ? 2u : 1u) << 16);
	tree_put(out, CUDNN_ATTR_ENGINECFG_ENGINE | CUDNN_TYPE_BACKEND_DESCRIPTOR << 16);
	tree_put(out, 1);
	tree_put(out, first + found->knobs + 1);
	if (!found->knobs)
		return;
	tree_put(out, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES | CUDNN_TYPE_BACKEND_DESCRIPTOR << 16);
	tree_put(out, found->knobs);
	for (uint32_t i = 0; i < found->knobs; i++)
		tree_put(out, first + i + 1);
}

/* --- reading one ----------------------------------------------------------------------------
 */

static cudnnStatus_t config_get(const struct cudnn_config_reader *r,
	cudnnBackendDescriptor_t from, uint32_t name, uint32_t type, int64_t most,
	int64_t *count, void *to)
{
	*count = 0;
	return cudnn_nine(r->f->library, cudnn_of(r->f)->cudnnBackendGetAttribute(
						 from, (int)name, (int)type, most, count, to));
}

static cudnnStatus_t config_new(const struct cudnn_config_reader *r, uint32_t type,
	cudnnBackendDescriptor_t *descriptor)
{
	return cudnn_nine(r->f->library,
		cudnn_of(r->f)->cudnnBackendCreateDescriptor((int)type, descriptor));
}

static void config_delete(
	const struct cudnn_config_reader *r, cudnnBackendDescriptor_t *descriptor)
{
	if (*descriptor)
		cudnn_of(r->f)->cudnnBackendDestroyDescriptor(*descriptor);
	*descriptor = NULL;
}

void cudnn_config_end(struct cudnn_config_reader *r)
{
	for (uint32_t i = 0; i < CUDNN_FOUND_KNOBS; i++)
		config_delete(r, &r->knob[i]);
}

static cudnnStatus_t config_read_knobs(
	struct cudnn_config_reader *r, cudnnBackendDescriptor_t from, struct cudnn_found *found)
{
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
	int64_t count, one;

	found->knobs = 0;
	for (uint32_t i = 0; !status && i < CUDNN_FOUND_KNOBS; i++)
		if (!r->knob[i])
			status = config_new(
				r, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &r->knob[i]);
	/* A library that knows no knobs has none; one that has none may refuse the question. */
	if (status ||
		config_get(r, from, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
			CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_FOUND_KNOBS, &count, r->knob))
		return CUDNN_STATUS_SUCCESS;
	for (int64_t i = 0; !status && i < count && i < CUDNN_FOUND_KNOBS; i++) {
		status = config_get(r, r->knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
			CUDNN_TYPE_KNOB_TYPE, 1, &one, &found->knob[i].type);
		if (!status)
			status = config_get(r, r->knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
				CUDNN_TYPE_INT64, 1, &one, &found->knob[i].value);
		config_delete(r, &r->knob[i]);
		found->knobs++;
	}
	return status;
}

static void config_read_notes(struct cudnn_config_reader *r, cudnnBackendDescriptor_t engine,
	uint32_t name, uint32_t type, struct cudnn_found_notes *notes)
{
	int64_t count;

	notes->known =
		!config_get(r, engine, name, type, CUDNN_FOUND_NOTES, &count, notes->note) &&
		count >= 0;
	notes->count = !notes->known		   ? 0
		       : count > CUDNN_FOUND_NOTES ? CUDNN_FOUND_NOTES
						   : (uint32_t)count;
}

cudnnStatus_t cudnn_config_read(struct cudnn_config_reader *r, cudnnBackendDescriptor_t config,
	struct cudnn_found *found)
{
	cudnnBackendDescriptor_t engine = NULL;
	cudnnStatus_t status;
	int64_t one;

	memset(found, 0, sizeof(*found));
	found->workspace = found->shared = -1;
	status = config_new(r, CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
	if (!status)
		status = config_get(r, config, CUDNN_ATTR_ENGINECFG_ENGINE,
			CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine);
	if (!status)
		status = config_get(r, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64,
			1, &one, &found->engine);
	if (!status)
		status = config_read_knobs(r, config, found);
	if (!status) {
		config_read_notes(r, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
			CUDNN_TYPE_NUMERICAL_NOTE, &found->numerical);
		config_read_notes(r, engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
			CUDNN_TYPE_BEHAVIOR_NOTE, &found->behavior);
	}
	config_delete(r, &engine);
	return status;
}

void cudnn_config_sizes(struct cudnn_config_reader *r, cudnnBackendDescriptor_t config,
	struct cudnn_found *found)
{
	int64_t bytes = 0, one;
	int32_t shared = 0;

	if (!config_get(r, config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
		    &one, &bytes) &&
		one == 1 && bytes >= 0)
		found->workspace = bytes;
	if (!config_get(r, config, CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED, CUDNN_TYPE_INT32, 1,
		    &one, &shared) &&
		one == 1 && shared >= 0)
		found->shared = shared;
}

/* --- keeping one ----------------------------------------------------------------------------
 */

/* Graph, knobs, engine, configuration. */
static bool config_tree(struct graph_tree *tree, struct tree_writer *out,
	const struct graph_node *graph, const struct cudnn_found *found)
{
	const uint32_t *at = out->word;

	tree_put_knobs(out, found);
	tree_put(out, CUDNN_BACKEND_ENGINE_DESCRIPTOR | 2u << 16);
	tree_put(out, CUDNN_ATTR_ENGINE_OPERATION_GRAPH | CUDNN_TYPE_BACKEND_DESCRIPTOR << 16);
	tree_put(out, 1);
	tree_put(out, 1);
	tree_put_attribute(
		out, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &found->engine);
	tree_put_config(out, found, 1);
	if (out->used > out->room)
		return false;
	tree->node[0] = *graph;
	tree->nodes = 1;
	while (at < out->word + out->used) {
		struct graph_node *n = &tree->node[tree->nodes++];

		n->type = (uint16_t)*at;
		n->attributes = (uint16_t)(*at++ >> 16);
		n->first = at;
		for (uint32_t i = 0; i < n->attributes; i++)
			at += 2 + cudnn_attribute_words(at[0] >> 16, at[1]);
		n->end = at;
		cudnn_graph_digest(tree, n);
	}
	return true;
}

void cudnn_config_keep(struct library_frame *f, const struct graph_node *graph,
	const struct cudnn_found *found, cudnnBackendDescriptor_t config)
{
	uint32_t words[16 + 16 * CUDNN_FOUND_KNOBS];
	struct tree_writer out = {.word = words, .room = sizeof(words) / 4};
	struct graph_made *made = cudnn_graph_find(f, graph->digest);
	struct graph_tree *tree = made ? malloc(sizeof(*tree)) : NULL;

	if (tree && config_tree(tree, &out, graph, found))
		cudnn_graph_keep(f, tree->node[tree->nodes - 1].digest,
			CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, config, made);
	else
		cudnn_of(f)->cudnnBackendDestroyDescriptor(config);
	free(tree);
}
