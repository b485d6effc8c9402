/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN in a worker that waits for its session: opened, two handles made (the program's first,
 * and the one that graphs are made with), and one small convolution planned, so that the parts
 * of 700 MB that cuDNN opens by itself are there.  A program that comes then finds the library
 * as if it had used it before.  Nothing of it is run on the GPU, and what fails is left out.
 */
#include <stdlib.h>

#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/libraries/cudnn/cudnn.h"
#include "gpu-agent/probe/library_search.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/libraries/cudnn_attributes.h"
#include "protocol/libraries/cudnn_backend.h"

#define SPARES 2
#define DESCRIPTORS 16

static struct spare {
	const struct cudnn_library *library;
	CUcontext context;
	cudnnHandle_t handle;
} spares[SPARES];

/* What has been made for the convolution, and whether all went well so far. */
struct warming {
	const struct cudnn_library *library;
	cudnnHandle_t handle;
	cudnnBackendDescriptor_t made[DESCRIPTORS];
	unsigned count;
	cudnnStatus_t status;
};

static cudnnBackendDescriptor_t warm_new(struct warming *g, int type)
{
	cudnnBackendDescriptor_t d = NULL;

	if (!g->status)
		g->status = g->library->cudnnBackendCreateDescriptor(type, &d);
	if (d)
		g->made[g->count++] = d;
	return d;
}

static void warm_set(struct warming *g, cudnnBackendDescriptor_t d, int name, int type,
	int64_t count, const void *elements)
{
	if (!g->status)
		g->status =
			g->library->cudnnBackendSetAttribute(d, name, type, count, elements);
}

static void warm_finalize(struct warming *g, cudnnBackendDescriptor_t d)
{
	if (!g->status)
		g->status = g->library->cudnnBackendFinalize(d);
}

static cudnnBackendDescriptor_t warm_tensor(struct warming *g, int64_t uid, int64_t side)
{
	const int64_t dims[] = {uid == 'w' ? 8 : 1, 8, side, side};
	const int64_t strides[] = {8 * side * side, side * side, side, 1}, alignment = 16;
	const int type = CUDNN_DATA_FLOAT;
	cudnnBackendDescriptor_t d = warm_new(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);

	warm_set(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	warm_set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
	warm_set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
	warm_set(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
	warm_set(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
	warm_finalize(g, d);
	return d;
}

static cudnnBackendDescriptor_t warm_convolution(struct warming *g)
{
	const int64_t two = 2, ones[] = {1, 1};
	const int type = CUDNN_DATA_FLOAT, mode = CUDNN_CROSS_CORRELATION;
	cudnnBackendDescriptor_t d = warm_new(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);

	warm_set(g, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	warm_set(g, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
	warm_set(g, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &two);
	warm_set(g, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, ones);
	warm_set(g, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, ones);
	warm_set(g, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, ones);
	warm_set(g, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones);
	warm_finalize(g, d);
	return d;
}

static cudnnBackendDescriptor_t warm_graph(struct warming *g)
{
	cudnnBackendDescriptor_t x = warm_tensor(g, 'x', 8), w = warm_tensor(g, 'w', 3);
	cudnnBackendDescriptor_t y = warm_tensor(g, 'y', 8), conv = warm_convolution(g);
	cudnnBackendDescriptor_t op, graph;
	const float one = 1, zero = 0;

	op = warm_new(g, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
	warm_set(g, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
		CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv);
	warm_set(g, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
		CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
	warm_set(g, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
		CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w);
	warm_set(g, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
		CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
	warm_set(g, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1,
		&one);
	warm_set(g, op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1,
		&zero);
	warm_finalize(g, op);
	graph = warm_new(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	warm_set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
	warm_set(
		g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op);
	warm_finalize(g, graph);
	return graph;
}

/* The first of what heuristics find, as a plan. */
static void warm_plan(struct warming *g)
{
	cudnnBackendDescriptor_t graph = warm_graph(g), heuristics, config, plan;
	const int mode = CUDNN_HEUR_MODE_INSTANT;
	int64_t count = 0;

	heuristics = warm_new(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	warm_set(g, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
		CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
	warm_set(g, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
	warm_finalize(g, heuristics);
	config = warm_new(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	if (!g->status)
		g->status = g->library->cudnnBackendGetAttribute(heuristics,
			CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
			&config);
	if (count < 1)
		return;
	plan = warm_new(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	warm_set(g, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
	warm_set(g, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
		CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
	warm_finalize(g, plan);
}

void cudnn_warm_context(const struct cudnn_library *library, CUcontext context)
{
	struct warming g = {.library = library};

	for (unsigned i = 0; library && i < SPARES; i++) {
		struct spare *s = &spares[i];

		if (s->library || library->cudnnCreate(&s->handle))
			continue;
		s->library = library;
		s->context = context;
		g.handle = s->handle;
	}
	if (!g.handle || !library->cudnnBackendCreateDescriptor ||
		!library->cudnnBackendSetAttribute || !library->cudnnBackendFinalize ||
		!library->cudnnBackendGetAttribute || !library->cudnnBackendDestroyDescriptor)
		return;
	warm_plan(&g);
	while (g.count)
		library->cudnnBackendDestroyDescriptor(g.made[--g.count]);
}

cudnnStatus_t cudnn_handle_new(const struct request *r, const struct cudnn_library *library,
	CUcontext context, cudnnHandle_t *handle)
{
	cudnnStatus_t status;

	for (unsigned i = 0; i < SPARES; i++) {
		struct spare *s = &spares[i];

		if (s->library != library || s->context != context)
			continue;
		*handle = s->handle;
		s->library = NULL;
		return CUDNN_STATUS_SUCCESS;
	}
	beside_leave(r);
	status = library->cudnnCreate(handle);
	beside_enter(r);
	return status;
}

void cudnn_warm_forget(void)
{
	for (unsigned i = 0; i < SPARES; i++) {
		if (spares[i].library)
			spares[i].library->cudnnDestroy(spares[i].handle);
		spares[i].library = NULL;
	}
}
