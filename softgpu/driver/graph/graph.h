/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs of the software GPU, and streams that capture into one.
 *
 * A node holds a queue operation that is never run itself: a launch of the executable graph
 * puts copies of all of them into the stream, in an order that keeps every dependency.
 * Capturing is the same from the other end: what would be queued becomes a node instead, behind
 * those that the stream (or the event that it waited for) left off at.
 *
 * Everything here is under queue_lock, unless it says otherwise.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_GRAPH_GRAPH_H
#define VCUDA_SOFTGPU_DRIVER_GRAPH_GRAPH_H

#include "softgpu/driver/softgpu.h"

struct CUgraphNode_st {
	struct CUgraph_st *graph;
	struct node_set after; /* what it waits for */
	CUgraphNodeType type;
	struct op *op;		    /* KERNEL, MEMCPY, MEMSET, HOST, BATCH_MEM_OP */
	CUevent event;		    /* EVENT_RECORD, WAIT_EVENT; referenced */
	struct CUgraph_st *child;   /* GRAPH */
	struct CUgraph_st **bodies; /* CONDITIONAL; the program sees this array */
	unsigned body_count;
	CUgraphConditionalNodeType branch_type;
	struct condition *condition;	       /* referenced */
	const struct CUgraphNode_st *original; /* of a clone: what it was made from */
	size_t index;			       /* in the graph's list, kept up to date */
	unsigned mark;			       /* of walks */
};

struct user_object_ref {
	struct CUuserObject_st *object;
	unsigned count;
};

struct CUgraph_st {
	uint32_t number; /* a profiler's */
	struct CUgraphNode_st **nodes;
	size_t count, room;
	struct CUgraphNode_st *parent; /* the node that it is the child graph of */
	struct capture *capture;       /* that goes on into it */
	struct user_object_ref *objects;
	size_t object_count;
	struct condition **conditions; /* made for it; referenced */
	size_t condition_count;
};

/* One step of an executable graph. */
struct step {
	CUgraphNodeType type;
	const struct CUgraphNode_st *key; /* the node it came from: compared, never followed */
	struct op *op;
	CUevent event;	       /* referenced */
	struct branch *branch; /* CONDITIONAL; referenced */
	bool disabled;
	uint64_t shape;	       /* what an update must not change: type and edges */
	size_t inside;	       /* GRAPH: so many steps behind it are its child's */
	uint32_t graph, index; /* a profiler's numbers: of the executable graph, and in it */
};
struct CUgraphExec_st {
	unsigned refs;		  /* one for the handle, one a launch that is not done */
	uint32_t number;	  /* a profiler's */
	struct CUctx_st *context; /* referenced */
	struct step *steps;
	size_t count, room;
	unsigned long long flags;
	struct CUstream_st *last; /* launched there, referenced; it never runs twice at once */
	uint64_t last_seq;
	struct user_object_ref *objects;
	size_t object_count;
	struct condition **conditions; /* referenced */
	size_t condition_count;
	bool branches; /* it has conditional nodes */
};

struct capture {
	struct capture *next;
	struct CUgraph_st *graph;
	struct CUstream_st *origin;
	struct CUstream_st *streams; /* that are part of it, of whatever device */
	struct node_set left;	     /* the tails of those that were destroyed in it */
	struct CUctx_st *context;    /* the origin's */
	CUstreamCaptureMode mode;
	pthread_t thread;
	unsigned long long id;
	bool to_graph; /* the graph was there before, and stays when the capture ends */
	bool invalid;
};

/* graph.c */
struct CUgraph_st *soft_graph_new(void);
void soft_graph_free(struct CUgraph_st *graph);
struct CUgraph_st *graph_clone(const struct CUgraph_st *graph);
/* A node behind AFTER (a copy is kept).  It takes OP and a reference of EVENT, on success. */
struct CUgraphNode_st *graph_add(struct CUgraph_st *graph, CUgraphNodeType type,
	const struct node_set *after, struct op *op, CUevent event);
void graph_remove(struct CUgraphNode_st *node);
/* What an operation is when it is copied into a stream. */
struct op *graph_op_copy(const struct op *op);
/* Whether a node of type TO may have an edge that says DATA from such a node. */
bool graph_edge_valid(
	const struct CUgraphNode_st *from, CUgraphNodeType to, const CUgraphEdgeData *data);
/* Marks everything that the set waits for, and the set itself; the mark. */
unsigned graph_mark(const struct node_set *set);
/* Adds references of its own behind those that are there. */
CUresult graph_objects_copy(const struct user_object_ref *from, size_t count,
	struct user_object_ref **to, size_t *to_count);
void graph_objects_drop(struct user_object_ref *objects, size_t count);
/* The node of a clone that was made from ORIGINAL. */
struct CUgraphNode_st *soft_graph_find(
	struct CUgraph_st *graph, const struct CUgraphNode_st *original);

/* capture.c */
/* Whether CALLER may do what a capture somewhere forbids: STREAM_CAPTURE_UNSUPPORTED, and those
 * captures are invalid from then on. Takes queue_lock itself. */
CUresult capture_unsafe(void);
/* The same for calls that wait for all of a context. Takes queue_lock itself. */
CUresult capture_context(const struct CUctx_st *context);
/* Before anything is put on a stream: INVALIDATED, or IMPLICIT on the legacy stream. */
CUresult soft_capture_use(struct CUstream_st *stream);
/* The call cannot be captured: UNSUPPORTED where the stream captures. */
CUresult soft_capture_refuse(struct CUstream_st *stream);
bool capture_op(struct CUstream_st *stream, struct op *op);
CUresult soft_capture_record(
	struct CUstream_st *stream, CUevent event, struct event_capture *at, bool external);
/* *HANDLED: the wait is part of a capture now, nothing is to be queued. */
CUresult soft_capture_wait(struct CUstream_st *stream, CUevent event,
	const struct event_capture *at, bool recorded, bool external, bool *handled);
void soft_capture_stream_gone(struct CUstream_st *stream);
void capture_context_gone(const struct CUctx_st *context);
/* The stream's tail becomes this one node. */
void capture_tail(struct CUstream_st *stream, struct CUgraphNode_st *node);
/* A node goes: nothing may name it any more. */
void capture_forget_node(const struct CUgraphNode_st *node);
bool node_set_add(struct node_set *set, struct CUgraphNode_st *node);
/* The same; DATA: what the edge from the node says. It orders as any other here. */
bool node_set_add_edge(
	struct node_set *set, struct CUgraphNode_st *node, const CUgraphEdgeData *data);
void node_set_remove(struct node_set *set, const struct CUgraphNode_st *node);
bool node_set_copy(struct node_set *to, const struct node_set *from);
void node_set_free(struct node_set *set);

/* event.c, for the steps of a graph; queue_lock held */
void event_hold(CUevent event);
void event_let(CUevent event);
CUresult event_record_locked(CUevent event, struct CUstream_st *stream);
CUresult event_wait_locked(struct CUstream_st *stream, CUevent event);

/* graph_exec.c */
/* One reference less: it may be the last. */
void exec_free(struct CUgraphExec_st *exec);
/* A graph's steps without a handle of their own. */
CUresult exec_flat(const struct CUgraph_st *graph, struct CUgraphExec_st **exec);
/* The same with a handle of its own, and the flags of cuGraphInstantiate. */
CUresult exec_new(
	const struct CUgraph_st *graph, unsigned long long flags, struct CUgraphExec_st **exec);
/* A step's operation for a stream: NULL where there is nothing to do; false: no memory. */
bool exec_step_op(const struct step *step, struct op **op);

/* conditional.c: see there */
struct condition *condition_find(const struct CUgraph_st *graph, uint64_t handle);
/* Each that was made for the graph belongs to a node of it, or of one inside of it. */
bool conditions_used(const struct CUgraph_st *graph);
struct condition *condition_get(struct condition *condition); /* one reference more */
void condition_put(struct condition *condition);
CUresult conditions_copy(
	struct condition *const *from, size_t count, struct condition ***to, size_t *to_count);
void conditions_drop(struct condition **conditions, size_t count);
CUresult branch_new(const struct CUgraphNode_st *node, struct branch **branch);
void branch_let(struct branch *branch);
/* Its body of that number, NULL behind the last one; BRANCH may be NULL. */
struct CUgraphExec_st *branch_body(const struct branch *branch, unsigned number);
struct op *branch_op_new(struct branch *branch);
/* What sets the conditions that have a value at each launch; *OP: NULL where there is none. */
bool defaults_op_new(const struct CUgraphExec_st *exec, struct op **op);

/* Operations made from node parameters, and the way back. Without queue_lock. */
CUresult launch_op_new(const CUDA_KERNEL_NODE_PARAMS *params, struct op **op);
void launch_op_read(struct op *op, CUDA_KERNEL_NODE_PARAMS *params);
bool launch_op_loaded(const struct op *op); /* its module is */
CUresult copy_op_new(const CUDA_MEMCPY3D *params, struct op **op);
void copy_op_read(const struct op *op, CUDA_MEMCPY3D *params);
CUresult fill_op_new(const CUDA_MEMSET_NODE_PARAMS *params, struct op **op);
void fill_op_read(const struct op *op, CUDA_MEMSET_NODE_PARAMS *params);
CUresult host_op_new(const CUDA_HOST_NODE_PARAMS *params, struct op **op);
void host_op_read(const struct op *op, CUDA_HOST_NODE_PARAMS *params);
/* NODE: where it is, a launch sees. */
CUresult memop_batch_new(
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *params, bool node, struct op **op);
/* Whether an executable graph's node may become the other: only addresses and values differ. */
bool memop_batch_like(const struct op *a, const struct op *b);
void memop_batch_read(struct op *op, CUDA_BATCH_MEM_OP_NODE_PARAMS *params);

/* A kernel's attributes. queue_lock held. */
CUresult launch_op_attribute(
	struct op *op, CUlaunchAttributeID id, const CUlaunchAttributeValue *value);
CUresult launch_op_attribute_read(
	const struct op *op, CUlaunchAttributeID id, CUlaunchAttributeValue *value);
/* A node's parameters change, its attributes do not. */
void launch_op_keep_attributes(struct op *op, const struct op *before);

#endif
