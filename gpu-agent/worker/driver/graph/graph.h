/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs on the worker: graph.c (graphs, executable graphs, launches), graph_table.c (which
 * node has which number), graph_node.c (nodes that are added and changed), graph_read.c (what
 * they hold), graph_list.c (lists of them, and their edges), capture.c (streams that capture).
 *
 * A node is a number in its graph's table.  The shim numbers those that the app adds; those
 * that a capture made are found by asking the driver, and come behind.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_GRAPH_GRAPH_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_GRAPH_GRAPH_H

#include "gpu-agent/worker/driver/graph/graph_modules.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/generated/cuda_wire.h"
#include "protocol/wire/graph.h"

/* Of a list, or of a node's parameters, in one answer. */
#define GRAPH_LIST_BYTES 1900

struct worker_graph {
	CUgraph graph;
	uint64_t handle;
	CUgraphNode *nodes; /* by number; NULL: gone */
	uint32_t count, room;
	uint32_t *slots; /* open hash of the nodes: number + 1 */
	uint32_t slot_count;
	bool owned;		      /* not the child graph of a node */
	struct worker_stream *origin; /* the stream that captures into it */
	bool kept; /* was there before that capture, so outlives its failure */
	struct worker_graph *parent, *children, *sibling;
	uint32_t parent_node;
	uint64_t *conditions; /* handles that the driver gave for its conditional nodes */
	uint32_t condition_count;
	struct graph_modules modules; /* but for those of its children */
};

struct worker_exec {
	CUgraphExec exec;
	uint32_t host_nodes; /* host functions that a launch runs */
	uint32_t count;	     /* nodes, as graph_charge has counted them */
	struct graph_modules modules;
};

/* The graph behind a handle; refuses. */
struct worker_graph *graph_of(struct worker *w, struct request *r, uint64_t handle);
/* All that the driver says it has. NODES is the caller's to free, with an error too. */
CUresult graph_nodes_read(struct worker *w, CUgraph graph, CUgraphNode **nodes, size_t *count);
/* Its node by number; refuses. */
CUgraphNode graph_node(struct request *r, struct worker_graph *graph, uint32_t number);
/* Numbers the nodes that the driver has and the table does not. */
CUresult graph_refresh(struct worker *w, struct worker_graph *graph);
bool graph_add_number(struct worker_graph *graph, CUgraphNode node);
/* The number stays taken; the driver may use the address again. */
void graph_remove_number(struct worker_graph *graph, uint32_t number);
/* GRAPH_NO_NODE: not in the table. */
uint32_t graph_number_of(const struct worker_graph *graph, CUgraphNode node);

/* All types (uint32_t) and then all edges (struct graph_edge) into TO, GRAPH_LIST_BYTES long,
 * and how many there are of each; how many bytes. 0 where they have no room, or the driver
 * does not tell. The graph is refreshed. */
size_t graph_list_whole(struct worker *w, struct worker_graph *graph, unsigned char *to,
	uint32_t *types, uint32_t *edges);
/* Node numbers as the driver's nodes, malloc'ed; NULL where there are none, or refused. */
CUgraphNode *graph_nodes_in(
	struct request *r, struct worker_graph *graph, const uint32_t *numbers, uint32_t count);
/* Counts so many more nodes of graphs and executable graphs, of which a session may have
 * GRAPH_SESSION_NODES; a graph is one itself. false: too many, and none was counted. */
bool graph_charge(uint32_t count);
void graph_discharge(uint32_t count);
struct worker_graph *graph_new_object(CUgraph graph, uint64_t handle);
/* A name for the driver's GRAPH inside of node NUMBER of FROM. */
CUresult graph_bind_inside(struct worker *w, struct request *r, struct worker_graph *from,
	uint32_t number, CUgraph graph, uint64_t handle);
/* The table alone: the driver's graph is gone, or belongs to another. */
void graph_drop_object(struct worker *w, struct worker_graph *graph);
/* The child graphs of node NUMBER are gone. */
void graph_drop_children(struct worker *w, struct worker_graph *graph, uint32_t number);

/* copy.c: a copy between device addresses, checked; refuses. */
void copy_describe(struct worker *w, struct request *r, const struct graph_copy *from,
	CUDA_MEMCPY3D *copy);
/* copy.c: refuses a fill of elements that there are not, or of memory not the session's. */
void copy_check_fill(struct worker *w, struct request *r, uint64_t at, uint64_t pitch,
	uint32_t element, uint64_t width, uint64_t height);

/* stream.c: one operation of a batch, checked as the call is that does the same alone; refuses.
 * NOWHERE: it may be at address 0, of a node that is not to be launched. */
void stream_value(struct worker *w, struct request *r, const CUstreamBatchMemOpParams *from,
	CUstreamBatchMemOpParams *to, bool nowhere);

/* host_function.c: what a host node calls; its argument is the ticket. */
void CUDA_CB host_function_run_node(void *ticket);

/* A graph or an executable graph whose context goes. */
void graph_forget(struct worker *w, enum handle_kind kind, void *object);

#endif
