/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph ("backend") API. A descriptor is a bag of typed attributes, kept here; one that
 * refers to others holds them. What needs the library (operation graphs, heuristics, engines,
 * plans) is asked of the agent by content, as a tree (protocol/libraries/cudnn_tree.h), once
 * for each content. A plan has a name of its own, and is executed by a post.
 *
 * backend.c has the exported functions, tree.c content and what is asked with it, results.c
 * heuristics, plan.c plans, execute.c execution.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUDNN_BACKEND_H
#define VCUDA_SHIM_LIBRARIES_CUDNN_BACKEND_H

#include "protocol/libraries/cudnn_tree.h"
#include "shim/libraries/cudnn/cudnn.h"

struct backend_attribute {
	uint16_t name, type;
	bool told; /* the agent said so: not part of the content */
	uint32_t count;
	void *data; /* count elements; descriptors: struct backend *, held */
};

struct backend {
	uint32_t magic;
	uint16_t type; /* cudnnBackendDescriptorType_t */
	bool finalized;
	uint16_t attributes;
	uint32_t holders; /* the app and other descriptors; atomic */
	struct backend_attribute *attribute;
	struct plan *plan;		 /* of a finalized execution plan */
	struct backend_results *results; /* of finalized heuristics */
};

struct backend *backend_new(uint32_t type);
struct backend *backend_of(const void *descriptor); /* NULL: none of ours */
void backend_hold(struct backend *b);
void backend_drop(struct backend *b);
struct backend_attribute *backend_find(const struct backend *b, uint32_t name);
/* Replaces it; `elements` of descriptors are struct backend *, and are held. */
cudnnStatus_t backend_set(
	struct backend *b, uint32_t name, uint32_t type, uint32_t count, const void *elements);
/* Whether such a descriptor takes such an attribute, as far as is known here. */
cudnnStatus_t attribute_check(uint32_t kind, uint32_t name, uint32_t type);
/* What an agent's tree says, into `b`, whose type is that of the root. */
cudnnStatus_t backend_read(struct backend *b, const uint32_t *words, uint32_t count);

/* A tree under construction. */
struct tree {
	uint32_t *words; /* CUDNN_TREE_BYTES; the caller frees */
	uint32_t count;
	uint32_t nodes;
	const struct backend *node[CUDNN_TREE_NODES];
	uint64_t handle; /* the first that was met, or 0 */
};
cudnnStatus_t tree_of(struct tree *tree, const struct backend *root);

/* One question about what a tree describes. `answer` has CUDNN_ANSWER_BYTES. */
struct ask {
	uint64_t plan; /* the name for it, or 0 */
	uint32_t attribute, type;
	uint64_t first, wanted;
	uint32_t count; /* out: elements, or bytes of text, in the answer */
	uint64_t total; /* out */
	size_t bytes;	/* out: of the answer */
	_Alignas(8) unsigned char answer[CUDNN_ANSWER_BYTES];
};
/* `digest`: filled in, 32 bytes. */
cudnnStatus_t backend_ask(const struct backend *b, struct ask *ask, uint8_t *digest);

cudnnStatus_t plan_finalize(struct backend *b);
/* Drops a holder of the plan. */
void plan_drop(struct plan *plan);
int64_t plan_workspace(const struct plan *plan);
uint64_t plan_number(const struct plan *plan);
/* Bytes of the tensor with that name if it is passed by value; 0: by address. */
uint32_t plan_value_bytes(const struct plan *plan, int64_t uid);

/* What heuristics find, from number `first` on: cudnn_found.h. `graph`: the status of their
 * operation graph, NOT_INITIALIZED where the agent was not asked. */
struct found {
	uint64_t first;
	cudnnStatus_t graph;
	uint32_t count, total;
	size_t bytes;
	unsigned char answer[CUDNN_ANSWER_BYTES];
};
cudnnStatus_t backend_find_results(const struct backend *b, struct found *found);

/* Finalizes an operation graph, and fetches what the heuristics that a program is likely to
 * ask next find in it, in the same trip. */
cudnnStatus_t cudnn_graph_finalize(struct backend *b);

/* What heuristics found: engine configurations, held. */
struct backend_results {
	uint32_t count;
	struct backend *config[];
};
cudnnStatus_t results_finalize(struct backend *b);
void results_free(struct backend_results *results);

#endif
