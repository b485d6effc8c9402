/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend (graph) API: a descriptor is a list of typed attributes until it is finalized,
 * which makes a plain struct of it. Finalized operations hold copies of their tensors, an
 * operation graph holds copies of its operations in an order in which they can run, and
 * engines, configurations and plans share that graph.
 */
#ifndef VCUDA_SOFTGPU_DNN_BACKEND_H
#define VCUDA_SOFTGPU_DNN_BACKEND_H

#include "softgpu/dnn/backend_names.h"
#include "softgpu/dnn/dnn.h"

#define BACKEND_ATTRIBUTES 16 /* most of one descriptor */
#define BACKEND_OPERATIONS 64 /* most of one graph */
#define BACKEND_TENSORS 5     /* most of one operation */

struct backend_attribute {
	int name, type;
	int64_t count;
	void *bytes;
};

struct backend_tensor {
	struct dnn_tensor tensor; /* count 0: the operation has none in this role */
	int64_t uid;
	bool is_virtual, by_value;
};

struct backend_pointwise {
	int mode;
	double lower, upper, slope, elu_alpha, softplus_beta, swish_beta;
	int64_t axis;
};

/* The roles of an operation's tensors; IN and OUT are shared by all kinds. */
enum { ROLE_X, ROLE_B, ROLE_T, ROLE_DY, ROLE_OUT };

struct backend_operation {
	int kind;
	struct backend_tensor tensors[BACKEND_TENSORS];
	double alpha, beta;
	struct dnn_shape shape;		    /* convolutions */
	struct backend_pointwise pointwise; /* pointwise */
	int reduction;
};

struct backend_graph {
	_Atomic int users;
	int count;
	uint64_t workspace;
	struct backend_operation operations[];
};

struct backend_descriptor {
	int kind;
	bool finalized;
	int count;
	struct backend_attribute attributes[BACKEND_ATTRIBUTES];
	/* What finalizing made of it. */
	struct backend_tensor tensor;
	struct dnn_window window;
	bool flip;
	struct backend_pointwise pointwise;
	int reduction;
	struct backend_operation *operation;
	struct backend_graph *graph; /* from an operation graph to a plan */
};

/* ---- backend.c ---- */

const struct backend_attribute *soft_backend_find(
	const struct backend_descriptor *descriptor, int name);
/* The first number of an attribute of integers or enumerators, or of floats; else `otherwise`.
 */
int64_t backend_integer(
	const struct backend_descriptor *descriptor, int name, int64_t otherwise);
double backend_real(const struct backend_descriptor *descriptor, int name, double otherwise);
/* The finalized descriptor of that kind that an attribute names; NULL: none. */
struct backend_descriptor *backend_nested(
	const struct backend_descriptor *descriptor, int name, int64_t index, int kind);
void backend_graph_drop(struct backend_graph *graph);

/* ---- backend_finalize.c ---- */

/* A status; on failure nothing of the descriptor has changed. */
int backend_finalize(struct backend_descriptor *descriptor);

/* ---- pointwise.c ---- */

/* How many of X, B and T (or X and DY) a mode reads; 0: not served. */
int backend_pointwise_inputs(int mode);
bool backend_pointwise_backward(int mode);
/* One value; `index` is the element's position along the axis. */
double backend_pointwise_value(
	const struct backend_pointwise *pointwise, double x, double b, double t, int64_t index);

/* ---- operation_graph.c ---- */

/* Runs a plan's graph in the handle's stream on what a variant pack names. */
int backend_execute(struct dnn_handle *handle, const struct backend_descriptor *plan,
	const struct backend_descriptor *pack);

#endif
