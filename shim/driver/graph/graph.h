/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs as the shim knows them.  The graph itself is the worker's; the shim gives names,
 * counts nodes, and keeps the parts that concern the app's side: memory of the app that copies
 * read and write, host functions, events.
 *
 * A copy between app and device inside a graph becomes a copy between device and a stand-in:
 * device memory that is filled from the app's before each launch, and fetched to it behind
 * each.
 *
 * As CUDA says: a graph is used by one thread at a time. Parts are counted atomically.
 */
#ifndef VCUDA_SHIM_DRIVER_GRAPH_GRAPH_H
#define VCUDA_SHIM_DRIVER_GRAPH_GRAPH_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire/graph.h"
#include "shim/driver/graph/graph_shape.h"

struct context;
struct stream;
struct user_object;
struct graph_memory;

enum part_kind {
	PART_IN,      /* from the app's memory, before a launch */
	PART_OUT,     /* to it, behind one */
	PART_WITHIN,  /* from one place of it to another */
	PART_THROUGH, /* from it what the graph has copied there: see `source` */
	PART_HOST,    /* a host function: host_function.c */
	PART_RECORD,  /* an event that a launch records */
	PART_ALLOC,   /* memory of the graph's own: memory_node.c */
	PART_FREE,    /* it, or another graph's, is freed */
	PART_USER,    /* references to a user object: user_object.c */
	PART_NOWHERE, /* values in no memory in which there can be some: it cannot be launched
		       */
};

/* A copy with one side in the app's memory, or both. */
struct part_copy {
	uint64_t host; /* WITHIN: the source */
	size_t host_pitch, host_slice;
	uint64_t device; /* where the graph's node copies from or to; WITHIN: the destination */
	size_t device_pitch, device_slice;
	size_t width, height, depth;
	const struct array *device_array; /* as in struct shape (copy.h) */
};

struct part {
	_Atomic uint32_t refs;
	enum part_kind kind;
	struct part_copy copy; /* IN, OUT, WITHIN */
	CUdeviceptr memory;    /* IN, OUT: the stand-in, packed; WITHIN: what the node copies;
				* THROUGH: a place in another's */
	uint16_t context;      /* whose that memory is */
	size_t bytes;
	uint64_t number; /* HOST: ticket; RECORD: event; USER: how many references */
	bool behind;	 /* WITHIN: made behind a launch, since it reads what that brings */
	bool called;	 /* WITHIN: made by a host function behind the node */
	struct user_object *user;
	struct graph_memory *held; /* ALLOC, FREE */
	/* THROUGH: the OUT whose stand-in the node reads, `memory` being where; referenced. */
	struct part *source;
	bool read; /* OUT: by such a part, so that it is filled before a launch as well */
};

/* Where a part belongs: a node; GRAPH_NO_NODE: captured, its number is not known. */
struct part_place {
	struct part *part;
	uint64_t graph;
	uint32_t node;
	uint32_t inside; /* of which child graph's node here; GRAPH_NO_NODE: of none, or a
			    captured one */
	bool off;	 /* the node is switched off */
	uint64_t line;	 /* each part of a line comes behind the one before it; 0: of none */
};
struct parts {
	struct part_place *places;
	size_t count, room;
};

/* One launch: which of the host nodes have begun, by their places among its parts. */
struct part_runs {
	_Atomic uint32_t refs;
	bool begun[]; /* the thread's that runs host functions */
};

struct graph_node {
	uint64_t handle;
	struct graph *graph;
	uint32_t number;
	void *storage; /* what GetParams pointed to last */
	/* As the app described it; NULL: not known, or it is of another type. */
	CUDA_MEMCPY3D *copy;
	CUDA_MEMSET_NODE_PARAMS *fill;
	CUDA_BATCH_MEM_OP_NODE_PARAMS *batch; /* its array lies behind it */
	struct graph_kernel kernel;	      /* function 0: not known */
};

struct graph {
	uint64_t handle;
	uint32_t id;		   /* of graphs and executable graphs, never used again */
	uint32_t count;		   /* nodes that have a number, gone ones too */
	struct graph_node **nodes; /* by number, made when the app gets to see them */
	uint32_t room;
	uint32_t *types; /* by number, where known */
	uint32_t types_known;
	struct graph_edge *edges; /* where known: not while it is captured into */
	uint32_t edge_count;
	bool edges_known;
	struct parts parts;
	struct graph_shapes shapes; /* of its child graphs' nodes, as they were added */
	uint64_t line;	   /* of the node that the app added last (struct part_place) */
	uint32_t line_end; /* that node */
	uint16_t context;  /* that was current when it was made, whatever its nodes are in */
	bool lost;	   /* it went with that: only its name is left, to be destroyed */
	bool capturing;
	bool captured; /* a capture has ended in it */
	bool pruned;   /* nodes are gone: the count says nothing */
	bool has_conditional;
	bool has_handle;      /* of a condition */
	bool body;	      /* of a conditional node */
	bool has_memory;      /* nodes that allocate or free: it is not cloned, nor cut */
	uint64_t exec;	      /* made of such a one last: there may be one at a time */
	uint64_t original;    /* of a clone */
	struct graph *parent; /* a child graph; NULL: the app's own */
	struct graph *children, *sibling;
	uint32_t parent_node;
};

/* What a node of an executable graph keeps: which kinds of memory its copy is between, how
 * large its fill is. */
struct graph_kept {
	uint64_t graph;
	uint32_t node;
	CUmemorytype from, to;
	CUDA_MEMSET_NODE_PARAMS fill;
	bool asked; /* of a captured node: UNIFIED stands for any memory with an address */
};

/* A node that is switched off. */
struct graph_off {
	uint64_t graph;
	uint32_t node;
};

struct graph_exec {
	uint64_t handle;
	uint32_t id;
	uint64_t graph; /* that it was made from */
	uint32_t count; /* of that one's nodes, gone ones too: those it knows */
	uint64_t flags;
	uint16_t context; /* as a graph's */
	CUcontext within; /* the same by its handle */
	bool lost;
	struct parts parts;
	struct graph_shapes shapes;
	uint64_t stream; /* launched there last */
	bool marked;	 /* the event below is recorded behind the last launch */
	struct graph_off *off;
	size_t off_count;
	struct graph_kept *kept; /* of copies and fills that the app described, or changed */
	size_t kept_count;
	uint64_t event; /* orders launches on different streams */
};

/* graph.c */
uint32_t graph_id_new(void);
struct graph *graph_new(void); /* named; the worker does not know it yet */
void graph_free(struct graph *graph);
/* The names of the graphs inside of node NUMBER go. */
void graph_child_gone(struct graph *graph, uint32_t number);
/* The worker's graph or executable graph of that name goes. */
CUresult graph_gone(uint64_t handle);
struct graph *graph_find(CUgraph graph);
/* The context goes: what of graphs the worker has in it, and the memory of their parts. */
void graph_context_gone(const struct context *context);
void graph_node_free(struct graph_node *node);
struct graph_node *graph_node_find(CUgraphNode node);
/* The app's name for a node; NULL: no memory, or no such number. */
CUgraphNode graph_node_name(struct graph *graph, uint32_t number);
/* N nodes as numbers of GRAPH, malloc'ed (NULL where there are none). */
CUresult graph_numbers(
	const struct graph *graph, const CUgraphNode *nodes, size_t n, uint32_t **numbers);
/* A node behind the N nodes AFTER comes behind the one that was added last: it is of its line.
 */
bool graph_line_goes_on(const struct graph *graph, const uint32_t *after, size_t n);
/* All of them are its nodes. */
bool graph_has_nodes(const struct graph *graph, const CUgraphNode *nodes, size_t n);

/* graph_exec.c */
struct graph_exec *graph_exec_find(CUgraphExec exec);
/* Whether EXEC (NULL: no) was made from the graph that the node is in. */
bool exec_has_node(const struct graph_exec *exec, const struct graph_node *node);

/* node_copy.c: of the nodes that GRAPH has now, for an executable graph of it. */
bool exec_take_kept(struct graph_exec *exec, const struct graph *graph);
/* The clone's nodes are described as those that they were made of. */
void graph_clone_described(struct graph *clone, const struct graph *graph);

/* graph_list.c */
/* The type of a node; GRAPH_NO_NODE: it is gone. */
CUresult graph_node_type(struct graph *graph, uint32_t number, uint32_t *type);
/* Whether it has nodes, and only those that CUDA allows in a graph launched from the device. */
bool graph_for_device(struct graph *graph);
/* A capture into it has ended, and its agent told all TYPES and EDGES (LIST, BYTES long; as
 * vcudaCaptureEndListed has them). What does not hold together is asked for later. */
void graph_listed(struct graph *graph, const unsigned char *list, size_t bytes, uint32_t types,
	uint32_t edges);
/* What is known of the nodes' types is known of a clone's. */
void graph_clone_types(struct graph *clone, const struct graph *graph);
/* How many nodes it has, where a capture adds some. */
CUresult graph_recount(struct graph *graph);
/* A node that the app added. */
void graph_added(struct graph *graph, uint32_t type);

/* host_function.c: what a host node calls; false: the ticket is none of the app's. */
bool host_function_node_read(uint64_t ticket, CUhostFn *function, void **argument);
/* host_function.c: a part for a host node's function. */
CUresult host_function_node_new(CUhostFn function, void *argument, struct part **part);

/* copy_described.c: a copy between device and device (*INSIDE), or with the app. */
enum copy_way {
	COPY_WAY_INSIDE = -1,
	COPY_WAY_IN = PART_IN,
	COPY_WAY_OUT = PART_OUT,
	COPY_WAY_WITHIN = PART_WITHIN
};
/* STANDS: memory that kernels reach is the app's as well. */
CUresult copy_node(const CUDA_MEMCPY3D *copy, bool stands, enum copy_way *way,
	struct graph_copy *inside, struct part_copy *app);

/* graph_part.c */
/* The node's copy between device and stand-in. */
void part_inside(const struct part *part, struct graph_copy *inside);
bool parts_add(struct parts *parts, struct part *part, uint64_t graph, uint32_t node);
bool parts_add_line(
	struct parts *parts, struct part *part, uint64_t graph, uint32_t node, uint64_t line);
/* Captured on a stream: its number is not known. */
bool parts_add_captured(
	struct parts *parts, struct part *part, const struct graph *graph, uint64_t stream);
bool parts_copy(struct parts *to, const struct parts *from);
/* As parts of the child graph of node NUMBER, which may be there more than once: in lines of
 * their own. GRAPH_NO_NODE: of one that is captured, whose number is not known. */
bool parts_copy_as_child(struct parts *to, const struct parts *from, uint32_t number);
/* All of a graph's, so. */
bool parts_copy_child(struct parts *to, const struct graph *child, uint32_t number);
/* Those of a child graph go. */
void parts_drop_child(struct parts *parts, uint32_t number);
/* The same, and CHILD's come in their place. */
bool parts_set_child(struct parts *parts, uint32_t number, const struct graph *child);
/* The graph's, those of the graphs that its conditional nodes decide about, and what was added
 * to the graphs inside of its child graphs' nodes. */
bool parts_copy_all(struct parts *to, const struct graph *graph);
/* The memory that they have of that context goes with it. */
void parts_context_gone(const struct parts *parts, const struct context *context);
/* What is behind what is not known any more. */
void graph_lines_end(struct graph *graph);
/* The others keep their order. */
void parts_remove(struct parts *parts, size_t at);
void parts_free(struct parts *parts);
/* A part with one reference, which parts_add or part_put takes; NULL: no memory. */
struct part *part_new(enum part_kind kind);
void part_get(struct part *part); /* one reference more */
void part_put(struct part *part);
/* The stand-in for a copy with the app, and the copy of the node itself. PARTS: those of the
 * graph that the node goes behind, or NULL. */
CUresult part_copy_new(enum part_kind kind, const struct part_copy *copy,
	const struct parts *parts, struct part **part);
/* Whether the node that copies INSIDE is the part's. */
bool part_is(const struct part *part, const struct graph_copy *inside);
CUresult part_copy_captured(struct graph *graph, enum part_kind kind,
	const struct part_copy *copy, CUstream stream);
/* graph_launch.c */
/* For the host node at place AT: what comes before it is fetched (PART_OUT), or what comes
 * behind it is filled anew (PART_IN); copies within the app's memory go with those. */
CUresult parts_move(const struct parts *parts, enum part_kind kind, size_t at,
	const struct part_runs *runs, CUstream stream);
void part_runs_put(struct part_runs *runs);
/* Before and behind a launch. */
CUresult parts_fill(const struct parts *parts, CUstream stream);
CUresult parts_fetch(const struct parts *parts, CUstream stream, uint64_t seq);

#endif
