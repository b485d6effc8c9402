/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend API the way cudnn_frontend goes about it: descriptors with typed attributes, from
 * operations to a plan by way of the heuristics, and a plan's execution with a variant pack.
 */
#ifndef TESTS_CUDNN_GRAPH_H
#define TESTS_CUDNN_GRAPH_H

#include "tests/cudnn/check.h"

/* ---- descriptors ---- */

static inline cudnnBackendDescriptor_t create(int kind)
{
	cudnnBackendDescriptor_t d;

	DNN(cudnnBackendCreateDescriptor(kind, &d));
	return d;
}

static inline void set(
	cudnnBackendDescriptor_t d, int name, int type, int64_t count, const void *values)
{
	int status = (int)cudnnBackendSetAttribute(d, name, type, count, values);

	if (status)
		DIE("setting attribute %d gave %d (%s)", name, status,
			cudnnGetErrorString(status));
}

static inline void set_integer(cudnnBackendDescriptor_t d, int name, int64_t value)
{
	set(d, name, CUDNN_TYPE_INT64, 1, &value);
}

/* An enumerator; every enumeration has a type of its own. */
static inline void set_number(cudnnBackendDescriptor_t d, int name, int type, int value)
{
	set(d, name, type, 1, &value);
}

static inline void set_flag(cudnnBackendDescriptor_t d, int name, bool value)
{
	set(d, name, CUDNN_TYPE_BOOLEAN, 1, &value);
}

static inline void set_nested(
	cudnnBackendDescriptor_t d, int name, cudnnBackendDescriptor_t nested)
{
	set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &nested);
}

static inline void set_real(cudnnBackendDescriptor_t d, int name, double value, int type)
{
	float single = (float)value;

	if (type == CUDNN_DATA_DOUBLE)
		set(d, name, CUDNN_TYPE_DOUBLE, 1, &value);
	else
		set(d, name, CUDNN_TYPE_FLOAT, 1, &single);
}

static inline void finalize(cudnnBackendDescriptor_t d)
{
	DNN(cudnnBackendFinalize(d));
}

static inline void destroy(cudnnBackendDescriptor_t d)
{
	DNN(cudnnBackendDestroyDescriptor(d));
}

enum kind { REAL, VIRTUAL, BY_VALUE };

static inline cudnnBackendDescriptor_t tensor_of(
	const struct tensor *t, int64_t id, enum kind kind)
{
	cudnnBackendDescriptor_t d = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	int64_t dim[MOST], stride[MOST];

	for (int i = 0; i < t->count; i++) {
		dim[i] = t->dim[i];
		stride[i] = t->stride[i];
	}
	set_number(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, t->type);
	set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t->count, dim);
	set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t->count, stride);
	set_integer(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
	set_integer(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
	set_flag(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, kind == VIRTUAL);
	set_flag(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, kind == BY_VALUE);
	finalize(d);
	return d;
}

/* A virtual tensor like T, in the type that fused operations compute in. */
static inline cudnnBackendDescriptor_t between(const struct tensor *t, int64_t id)
{
	struct tensor v = *t;

	v.type = CUDNN_DATA_FLOAT;
	return tensor_of(&v, id, VIRTUAL);
}

static inline cudnnBackendDescriptor_t convolution_of(int type, int64_t pad, int64_t stride)
{
	cudnnBackendDescriptor_t d = create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
	int64_t ones[] = {1, 1}, pads[] = {pad, pad}, strides[] = {stride, stride};

	set_number(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, type);
	set_number(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
		CUDNN_CROSS_CORRELATION);
	set_integer(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
	set(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pads);
	set(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pads);
	set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides);
	set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones);
	finalize(d);
	return d;
}

static inline cudnnBackendDescriptor_t pointwise(int mode, cudnnBackendDescriptor_t x,
	cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y)
{
	cudnnBackendDescriptor_t p = create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
	cudnnBackendDescriptor_t d = create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);

	set_number(p, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
	set_number(p, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
	finalize(p);
	set_nested(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, p);
	set_nested(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
	if (b)
		set_nested(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
	set_nested(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
	finalize(d);
	/* It was copied: its owner may go. */
	destroy(p);
	return d;
}

/* ---- from operations to a plan ---- */

struct plan {
	cudnnBackendDescriptor_t graph, heuristics, config, plan;
	int64_t workspace;
	void *at;
};

/* Engine configurations of a mode: how many there are. */
static inline int64_t ask(struct plan *p, int mode)
{
	int64_t count = 0;

	p->heuristics = create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	set_nested(p->heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, p->graph);
	set_number(p->heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
	if (cudnnBackendFinalize(p->heuristics) ||
		cudnnBackendGetAttribute(p->heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
			CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, NULL))
		return 0;
	return count;
}

static inline bool planned(struct plan *p, cudnnBackendDescriptor_t config)
{
	int64_t count;

	p->plan = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
	set(p->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
	set_nested(p->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
	if (cudnnBackendFinalize(p->plan)) {
		destroy(p->plan);
		return false;
	}
	DNN(cudnnBackendGetAttribute(p->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
		CUDNN_TYPE_INT64, 1, &count, &p->workspace));
	return true;
}

/* The engine of a configuration has a number, as those who tag plans ask for. */
static inline void name_engine(cudnnBackendDescriptor_t config)
{
	cudnnBackendDescriptor_t engine = create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
	int64_t count = 0, index = -1;

	DNN(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
		CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine));
	DNN(cudnnBackendGetAttribute(
		engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &index));
	if (count != 1 || index < 0)
		DIE("an engine's number is %lld", (long long)index);
	destroy(engine);
}

/* The plan of the first configuration of that mode that makes one; false: none does. */
static inline bool plan_new(
	struct plan *p, int mode, int64_t count, const cudnnBackendDescriptor_t *operations)
{
	cudnnBackendDescriptor_t configs[64];
	int64_t found, got;
	bool done = false;

	memset(p, 0, sizeof(*p));
	p->graph = create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	set(p->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
	set(p->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
		operations);
	if (cudnnBackendFinalize(p->graph)) {
		destroy(p->graph);
		return false;
	}
	found = ask(p, mode);
	found = found < 64 ? found : 64;
	for (int64_t i = 0; i < found; i++)
		configs[i] = create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
	if (found)
		DNN(cudnnBackendGetAttribute(p->heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
			CUDNN_TYPE_BACKEND_DESCRIPTOR, found, &got, configs));
	for (int64_t i = 0; i < found; i++) {
		if (!done && planned(p, configs[i])) {
			name_engine(configs[i]);
			p->config = configs[i];
			done = true;
		} else {
			destroy(configs[i]);
		}
	}
	if (!done) {
		destroy(p->graph);
		destroy(p->heuristics);
		return false;
	}
	p->at = device_new((size_t)p->workspace);
	return true;
}

static inline void plan_free(struct plan *p)
{
	destroy(p->plan);
	destroy(p->config);
	destroy(p->heuristics);
	destroy(p->graph);
	device_free(p->at);
}

static inline void execute(
	struct plan *p, int64_t count, const int64_t *ids, void *const *places)
{
	cudnnBackendDescriptor_t pack = create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);

	set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids);
	set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, places);
	set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &p->at);
	finalize(pack);
	DNN(cudnnBackendExecute(handle, p->plan, pack));
	destroy(pack);
}

#endif
