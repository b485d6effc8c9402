/* SPDX-License-Identifier: Apache-2.0
 *
 * Engine configurations: what one consists of, and keeping it by what the app will name it by,
 * the graph, the engine and its knobs, so that a plan is made with the very one that was found.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUDNN_ENGINE_CONFIG_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUDNN_ENGINE_CONFIG_H

#include "gpu-agent/worker/libraries/cudnn/backend.h"
#include "protocol/libraries/cudnn_found.h"

/* A tree put together here: words, as many as there is room for; `used` counts them all. */
struct tree_writer {
	uint32_t *word;
	uint32_t room, used;
};
void tree_put(struct tree_writer *out, uint32_t word);
void tree_put_attribute(struct tree_writer *out, uint32_t name, uint32_t type, uint32_t count,
	const void *elements);
/* The knobs, each a node. */
void tree_put_knobs(struct tree_writer *out, const struct cudnn_found *found);
/* The configuration's node, when `first` nodes come before its knobs, and its engine behind
 * them. */
void tree_put_config(struct tree_writer *out, const struct cudnn_found *found, uint32_t first);

/* Knob choices that the library fills; what is left of them is for the next configuration. */
struct cudnn_config_reader {
	struct library_frame *f;
	cudnnBackendDescriptor_t knob[CUDNN_FOUND_KNOBS];
};
void cudnn_config_end(struct cudnn_config_reader *r);

/* What the library says of a configuration; sizes are not asked for. */
cudnnStatus_t cudnn_config_read(struct cudnn_config_reader *r, cudnnBackendDescriptor_t config,
	struct cudnn_found *found);
/* Its workspace and shared memory, where the library knows them. */
void cudnn_config_sizes(struct cudnn_config_reader *r, cudnnBackendDescriptor_t config,
	struct cudnn_found *found);

/* Takes it over, under the digest that a tree which names it will have. */
void cudnn_config_keep(struct library_frame *f, const struct graph_node *graph,
	const struct cudnn_found *found, cudnnBackendDescriptor_t config);

#endif
