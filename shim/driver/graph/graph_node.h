/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's parameters on their way to the worker, for graph_node.c (what is done with them) and
 * node_calls.c (the calls, one or three for each type of node).
 */
#ifndef VCUDA_SHIM_DRIVER_GRAPH_GRAPH_NODE_H
#define VCUDA_SHIM_DRIVER_GRAPH_GRAPH_NODE_H

#include "shim/driver/graph/graph.h"

struct node_params {
	uint32_t type; /* CUgraphNodeType */
	unsigned char *bytes;
	size_t size;
	struct part *part;   /* what stays here; NULL: nothing */
	struct graph *child; /* GRAPH */
	bool move;	     /* the child itself, not a clone */
	bool stands;	     /* MEMCPY: a stand-in, though kernels reach the memory */
	bool awaited;	     /* only the driver knows whether it can be */
	/* The app's description: MEMCPY, BATCH_MEM_OP, MEMSET (element size 0: none), KERNEL
	 * (function 0: none). */
	const CUDA_MEMCPY3D *copy;
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch;
	CUDA_MEMSET_NODE_PARAMS fill;
	struct graph_kernel kernel;
};

/* NULL, or the current one. */
bool node_context_ok(CUcontext ctx);
/* A node is added or changed in CTX, where that is another than the thread's: between the two
 * it is current. node_without: STATUS. */
CUresult node_within(CUcontext ctx, bool *entered);
/* The same for a kernel's: a function runs in its own context, and cuda.h says that the
 * parameters' is ignored then, which some programs leave as it is. */
CUresult node_within_kernel(const CUDA_KERNEL_NODE_PARAMS *k, bool *entered);
CUresult node_without(bool entered, CUresult status);
/* A kernel of the app's whose module was unloaded. */
bool node_kernel_gone(const struct graph_node *node);
/* node_described.c: what the app says of the node. */
void node_describe(struct graph_node *node, const struct node_params *said);
/* Whether the memory that its nodes fill, as the app described them, is there. */
bool graph_fills_good(const struct graph *graph);
/* What a captured node in EXEC keeps is asked for before it first gets P. */
void exec_ask_kept(
	struct graph_exec *exec, const struct graph_node *node, const struct node_params *p);
/* Whether what the node in EXEC keeps is known to be otherwise in P. */
bool exec_kept_other(const struct graph_exec *exec, const struct graph_node *node,
	const struct node_params *p);
/* Checks and packs; whatever comes of it, node_add or node_set ends it. */
CUresult node_params_kernel(struct node_params *p, const CUDA_KERNEL_NODE_PARAMS *k);
/* PARTS: those of the graph to which it is added; NULL: it changes one that is there. */
CUresult node_params_copy(
	struct node_params *p, const CUDA_MEMCPY3D *copy, const struct parts *parts);
CUresult node_params_fill(struct node_params *p, const CUDA_MEMSET_NODE_PARAMS *fill);
CUresult node_params_host(struct node_params *p, const CUDA_HOST_NODE_PARAMS *host);
CUresult node_params_batch(struct node_params *p, const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch);
CUresult node_params_event(struct node_params *p, uint32_t type, CUevent event);
/* OWNERSHIP: the node has a clone of it, or the graph itself. */
CUresult node_params_child(
	struct node_params *p, CUgraph child, CUgraphChildGraphNodeOwnership ownership);
CUresult node_params_empty(struct node_params *p);
/* memory_node.c */
CUresult node_params_free_memory(
	struct node_params *p, const struct graph *graph, CUdeviceptr address);

void node_params_free(struct node_params *p);

/* STATUS: what packing them said; nothing is sent where it is not SUCCESS. DATA may be NULL. */
CUresult node_add(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
	const CUgraphEdgeData *data, size_t n, struct node_params *p, CUresult status);
/* memory_node.c; where it succeeds ALLOC learns its address. */
CUresult node_add_alloc(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t n,
	CUDA_MEM_ALLOC_NODE_PARAMS *alloc);
/* conditional.c */
CUresult node_add_conditional(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t n,
	CUDA_CONDITIONAL_NODE_PARAMS *params);
CUresult node_get_conditional(
	const struct graph_node *node, CUDA_CONDITIONAL_NODE_PARAMS *params);
/* The node, or with hExec its copy in there. */
CUresult node_set(
	CUgraphNode hNode, const CUgraphExec *hExec, struct node_params *p, CUresult status);
/* node_child.c: another graph for a node that has one. */
CUresult node_set_child(CUgraphNode hNode, const CUDA_CHILD_GRAPH_NODE_PARAMS *params);
/* What the worker says of it; INVALID_VALUE: it is of another type. */
CUresult node_get(
	const struct graph_node *node, uint32_t type, void *to, size_t room, size_t *bytes);
/* The same, malloc'ed, however much there is. */
CUresult node_get_all(
	const struct graph_node *node, uint32_t type, unsigned char **params, size_t *bytes);
/* The part of a node; NULL: it has none there. */
struct part_place *node_place(const struct graph_node *node, struct parts *parts);

/* node_copy.c: a copy that was captured, as far as the worker and its part tell. */
CUresult node_copy_ask(const struct graph_node *node, CUDA_MEMCPY3D *to);
/* Before a copy of an executable graph gets other parameters. One with a stand-in
 * keeps to that, and another one to memory that kernels reach: NVIDIA's driver lets no node go
 * from device memory, as a stand-in is, to the program's, nor back. */
void exec_copy_begin(
	struct node_params *p, CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy);
/* Before the graph is made executable, or another one's child. What copies from or to pinned
 * memory that a kernel was not known to reach when they came becomes the device's own copy, in
 * the order of the nodes.
 */
CUresult graph_reach(struct graph *graph);

#endif
