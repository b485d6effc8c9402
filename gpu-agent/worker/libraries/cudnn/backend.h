/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph API on the worker: descriptors of the library by content.  A tree
 * (protocol/libraries/cudnn_tree.h) is checked as a whole, and every node gets a digest of what
 * it is and refers to; a node that was made before is not made again.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUDNN_BACKEND_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUDNN_BACKEND_H

#include "gpu-agent/worker/libraries/cudnn/cudnn.h"
#include "protocol/libraries/cudnn_tree.h"

struct graph_node {
	uint16_t type;
	uint16_t attributes;
	const uint32_t *first; /* attribute */
	const uint32_t *end;
	unsigned char digest[32];
};

struct graph_tree {
	uint32_t nodes;
	struct graph_node node[CUDNN_TREE_NODES];
};

/* A descriptor of the library that was made, with those it refers to held. */
struct graph_made {
	struct graph_made *next;	  /* of the bucket */
	struct graph_made *newer, *older; /* by use */
	unsigned char digest[32];
	const struct cudnn_library *library;
	uint16_t context;
	uint16_t type;
	uint32_t holders; /* others that refer to it, and plans; it goes when there are none */
	uint32_t other_count;
	cudnnBackendDescriptor_t descriptor;
	struct graph_found *found; /* of heuristics that were read (find.c); or NULL */
	struct graph_made *other[];
};

/* Reads and checks; true, and a tree with digests. Bytes come from the app. */
bool cudnn_graph_read(struct graph_tree *tree, const void *bytes, uint32_t count);

/* Fills in the node's digest; those that it names have theirs. */
void cudnn_graph_digest(const struct graph_tree *tree, struct graph_node *n);

/* Between these one call makes and asks, and has all that is kept here for itself; another that
 * wants to waits. Plans that are there are executed meanwhile. */
void cudnn_graph_begin(struct library_frame *f);
void cudnn_graph_end(void);

/* A node, or the root, as a finalized descriptor of the library. */
cudnnStatus_t cudnn_graph_make_node(struct library_frame *f, const struct graph_tree *tree,
	const struct graph_node *n, struct graph_made **made);
cudnnStatus_t cudnn_graph_make(
	struct library_frame *f, const struct graph_tree *tree, struct graph_made **made);
/* An attribute of the node that names one descriptor; NULL: none does. */
const struct graph_node *cudnn_graph_named(
	const struct graph_tree *tree, const struct graph_node *n, uint32_t name);
/* The one with that digest; or NULL. */
struct graph_made *cudnn_graph_find(struct library_frame *f, const unsigned char digest[32]);
/* Keeps a descriptor that the library filled, under a digest; it refers to `other`. NULL, and
 * it is destroyed, where there is no memory, or it is there already. */
struct graph_made *cudnn_graph_keep(struct library_frame *f, const unsigned char digest[32],
	uint16_t type, cudnnBackendDescriptor_t descriptor, struct graph_made *other);
void cudnn_graph_hold(struct graph_made *made);
void cudnn_graph_drop(struct graph_made *made);

/* Gives an execution plan, made of this tree, the name that the app chose. */
cudnnStatus_t plan_name(struct library_frame *f, uint64_t name, const struct graph_tree *tree,
	struct graph_made *made);

/* Forgets all that belongs to a context that is going. */
void cudnn_graph_forget(uint16_t context);

#endif
