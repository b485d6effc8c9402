/* SPDX-License-Identifier: Apache-2.0
 *
 * The backend API as cudnn_frontend uses it: tensors, operations, an operation graph, engine
 * configurations from the heuristics, the first of them that makes a plan, a variant pack.
 * Convolutions forward and back, one with bias and ReLU, a matrix product with a scalar passed
 * by value, and a reduction.
 */
#include "tests/cudnn/graph.h"

/* ---- convolutions ---- */

enum { X = 'x', W = 'w', Y = 'y', BIAS = 'b', SUM = 's', ACTIVE = 'a' };
enum way { FORWARD, DATA, FILTER, FUSED };

static const char *const ways[] = {
	"forward", "gradient of the data", "gradient of the filter", "bias and ReLU"};
static const char *const modes[] = {"INSTANT", "B", "FALLBACK"};

struct problem {
	int type;
	bool last;
	int n, c, k, size, kernel, pad, stride;
};

static const struct problem problems[] = {
	{CUDNN_DATA_FLOAT, false, 2, 4, 8, 8, 3, 1, 1},
	{CUDNN_DATA_FLOAT, true, 2, 8, 16, 9, 3, 1, 2},
	{CUDNN_DATA_HALF, true, 2, 16, 8, 8, 3, 1, 1},
	{CUDNN_DATA_BFLOAT16, true, 1, 8, 32, 6, 1, 0, 1},
};

static cudnnBackendDescriptor_t operation(enum way way, int type, cudnnBackendDescriptor_t conv,
	cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t w, cudnnBackendDescriptor_t y)
{
	cudnnBackendDescriptor_t d;

	switch (way) {
	case DATA:
		d = create(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
		set_nested(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, conv);
		set_nested(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, x);
		set_nested(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, w);
		set_nested(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, y);
		set_real(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 1, type);
		set_real(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 0, type);
		break;
	case FILTER:
		d = create(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
		set_nested(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, conv);
		set_nested(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, x);
		set_nested(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, w);
		set_nested(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, y);
		set_real(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 1, type);
		set_real(d, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 0, type);
		break;
	default:
		d = create(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
		set_nested(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, conv);
		set_nested(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
		set_nested(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
		set_nested(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
		set_real(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1, type);
		set_real(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0, type);
	}
	finalize(d);
	return d;
}

/* What the way writes, by plain loops, into the host's copy of that tensor. */
static void expect(const struct problem *p, enum way way, struct tensor *x, struct tensor *w,
	struct tensor *y, const struct tensor *bias)
{
	struct tensor *to = way == DATA ? x : way == FILTER ? w : y;
	double *sums = calloc(to->elements, sizeof(*sums));
	int o[MOST] = {0}, t[MOST] = {0};
	struct tensor taps = *w;

	taps.dim[0] = 1;
	do
		do {
			int i[] = {o[0], t[1], o[2] * p->stride - p->pad + t[2],
				o[3] * p->stride - p->pad + t[3]};
			int tap[] = {o[1], t[1], t[2], t[3]};

			if (i[2] < 0 || i[3] < 0 || i[2] >= p->size || i[3] >= p->size)
				continue;
			if (way == DATA)
				sums[offset(x, i)] += get(w, tap) * get(y, o);
			else if (way == FILTER)
				sums[offset(w, tap)] += get(x, i) * get(y, o);
			else
				sums[offset(y, o)] += get(x, i) * get(w, tap);
		} while (next(&taps, t));
	while (next(y, o));
	if (way == FUSED)
		do {
			double *sum = &sums[offset(y, o)];

			*sum += GET(bias, 0, o[1], 0, 0);
			*sum = *sum > 0 ? *sum : 0;
		} while (next(y, o));
	for (size_t i = 0; i < to->elements; i++)
		put_at(to->host, to->type, i, sums[i]);
	free(sums);
}

/* 1: passed; 0: nothing makes a plan of it in this mode. */
static int convolution(const struct problem *p, enum way way, int mode)
{
	int out = (p->size + 2 * p->pad - p->kernel) / p->stride + 1;
	int type = p->type == CUDNN_DATA_DOUBLE ? p->type : CUDNN_DATA_FLOAT;
	struct tensor x = TENSOR(p->type, p->last, p->n, p->c, p->size, p->size);
	struct tensor w = TENSOR(p->type, p->last, p->k, p->c, p->kernel, p->kernel);
	struct tensor y = TENSOR(p->type, p->last, p->n, p->k, out, out);
	struct tensor bias = TENSOR(p->type, p->last, 1, p->k, 1, 1);
	const int64_t ids[] = {X, W, Y, BIAS};
	void *const places[] = {x.device, w.device, y.device, bias.device};
	cudnnBackendDescriptor_t conv = convolution_of(type, p->pad, p->stride);
	cudnnBackendDescriptor_t xd = tensor_of(&x, X, REAL), wd = tensor_of(&w, W, REAL);
	cudnnBackendDescriptor_t yd = tensor_of(&y, Y, REAL), bd = tensor_of(&bias, BIAS, REAL);
	cudnnBackendDescriptor_t cd = between(&y, SUM), sd = between(&y, ACTIVE);
	cudnnBackendDescriptor_t operations[3];
	int64_t count = 1;
	struct plan plan;
	char what[96];
	int passed = 0;

	operations[0] = operation(way, type, conv, xd, wd, way == FUSED ? cd : yd);
	if (way == FUSED) {
		operations[count++] = pointwise(CUDNN_POINTWISE_ADD, cd, bd, sd);
		operations[count++] = pointwise(CUDNN_POINTWISE_RELU_FWD, sd, NULL, yd);
	}
	/* What is in it is written over, from a plan made once and one made again. */
	for (int times = 0; times < 2 && plan_new(&plan, mode, count, operations); times++) {
		execute(&plan, way == FUSED ? 4 : 3, ids, places);
		execute(&plan, way == FUSED ? 4 : 3, ids, places);
		expect(p, way, &x, &w, &y, &bias);
		snprintf(what, sizeof(what), "%s, %s, problem %d", ways[way], modes[mode],
			(int)(p - problems));
		tensor_check(way == DATA ? &x : way == FILTER ? &w : &y, what);
		plan_free(&plan);
		passed = 1;
	}
	for (int64_t i = 0; i < count; i++)
		destroy(operations[i]);
	destroy(conv);
	destroy(xd);
	destroy(wd);
	destroy(yd);
	destroy(bd);
	destroy(cd);
	destroy(sd);
	tensor_free(&x);
	tensor_free(&w);
	tensor_free(&y);
	tensor_free(&bias);
	return passed;
}

/* Every way of every problem must have a plan in one mode at least. */
static void convolutions(void)
{
	const int served[] = {
		CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK};

	for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++)
		for (int way = FORWARD; way <= FUSED; way++) {
			int passed = 0;
			char what[96];

			for (size_t m = 0; m < 3; m++)
				passed += convolution(&problems[i], way, served[m]);
			snprintf(what, sizeof(what), "%s of problem %zu", ways[way], i);
			/* Fusion is made for halves with channels last. */
			if (!passed && way == FUSED)
				skipped(what);
			else if (!passed)
				DIE("%s: no plan in any mode", what);
		}
}

/* ---- c = scale * (a b), the scale passed by value; then the sum of each row ---- */

/* The knobs of an engine, each read into a descriptor that was made for it, as XLA reads them.
 */
static void knobs_of(cudnnBackendDescriptor_t config)
{
	enum { KNOBS = 40 };
	cudnnBackendDescriptor_t engine = create(CUDNN_BACKEND_ENGINE_DESCRIPTOR), knob[KNOBS];
	int64_t count = -1;

	for (int i = 0; i < KNOBS; i++)
		knob[i] = create(CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR);
	DNN(cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
		CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine));
	DNN(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_KNOB_INFO,
		CUDNN_TYPE_BACKEND_DESCRIPTOR, KNOBS, &count, knob));
	if (count < 0 || count > KNOBS)
		DIE("an engine has %lld knobs", (long long)count);
	for (int i = 0; i < KNOBS; i++)
		destroy(knob[i]);
	destroy(engine);
}

static bool product(int type, bool reduced)
{
	enum { M = 16, N = 24, K = 8, BATCH = 3 };
	struct tensor a = TENSOR(type, false, BATCH, M, K),
		      b = TENSOR(type, false, BATCH, K, N);
	struct tensor c =
		TENSOR(reduced ? CUDNN_DATA_FLOAT : type, false, BATCH, M, reduced ? 1 : N);
	struct tensor whole = TENSOR(type, false, BATCH, M, N);
	struct tensor one = TENSOR(CUDNN_DATA_FLOAT, false, 1, 1, 1);
	cudnnBackendDescriptor_t matmul = create(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
	cudnnBackendDescriptor_t reduction = create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
	cudnnBackendDescriptor_t ad = tensor_of(&a, 1, REAL), bd = tensor_of(&b, 2, REAL);
	cudnnBackendDescriptor_t cd = tensor_of(&c, 3, REAL), od = tensor_of(&one, 4, BY_VALUE);
	cudnnBackendDescriptor_t sd = between(&whole, 5), td = between(&whole, 6);
	cudnnBackendDescriptor_t ops[3] = {create(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)};
	float scale = 0.25f;
	const int64_t ids[] = {1, 2, 3, 4};
	void *const places[] = {a.device, b.device, c.device, &scale};
	int64_t count = 2;
	struct plan plan;
	bool made;

	set_number(matmul, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
	finalize(matmul);
	set_nested(ops[0], CUDNN_ATTR_OPERATION_MATMUL_DESC, matmul);
	set_nested(ops[0], CUDNN_ATTR_OPERATION_MATMUL_ADESC, ad);
	set_nested(ops[0], CUDNN_ATTR_OPERATION_MATMUL_BDESC, bd);
	set_nested(ops[0], CUDNN_ATTR_OPERATION_MATMUL_CDESC, sd);
	finalize(ops[0]);
	ops[1] = pointwise(CUDNN_POINTWISE_MUL, sd, od, reduced ? td : cd);
	if (reduced) {
		set_number(reduction, CUDNN_ATTR_REDUCTION_OPERATOR,
			CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, CUDNN_REDUCE_TENSOR_ADD);
		set_number(reduction, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
			CUDNN_DATA_FLOAT);
		finalize(reduction);
		ops[count] = create(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
		set_nested(ops[count], CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction);
		set_nested(ops[count], CUDNN_ATTR_OPERATION_REDUCTION_XDESC, td);
		set_nested(ops[count], CUDNN_ATTR_OPERATION_REDUCTION_YDESC, cd);
		finalize(ops[count++]);
	}
	made = plan_new(&plan, CUDNN_HEUR_MODE_INSTANT, count, ops);
	for (int times = 0; made && times < 3; times++) {
		int at[3] = {0};

		/* Read when the plan is executed: it changes from one to the next. */
		scale = 0.25f * (float)(times + 1);
		execute(&plan, 4, ids, places);
		scale = -77;
		do {
			double sum = 0;

			for (int j = reduced ? 0 : at[2]; j < (reduced ? N : at[2] + 1); j++)
				for (int k = 0; k < K; k++)
					sum += GET(&a, at[0], at[1], k) * GET(&b, at[0], k, j);
			put(&c, at, 0.25 * (times + 1) * sum);
		} while (next(&c, at));
		tensor_check(&c, reduced ? "a scaled product's rows" : "a scaled product");
	}
	if (made) {
		knobs_of(plan.config);
		plan_free(&plan);
	}
	for (int64_t i = 0; i < count; i++)
		destroy(ops[i]);
	for (cudnnBackendDescriptor_t *d = (cudnnBackendDescriptor_t[]){matmul, reduction, ad,
		     bd, cd, od, sd, td, NULL};
		*d; d++)
		destroy(*d);
	tensor_free(&a);
	tensor_free(&b);
	tensor_free(&c);
	tensor_free(&whole);
	tensor_free(&one);
	return made;
}

/* ---- what makes no sense ---- */

static void refused(void)
{
	cudnnBackendDescriptor_t d = create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	int64_t dim[] = {1, 2, 3}, stride[] = {6, 3, 1}, count = 0;
	int type = CUDNN_DATA_FLOAT;

	/* Of the wrong type. */
	if (!cudnnBackendSetAttribute(
		    d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_FLOAT, 3, dim))
		DIE("dimensions that are floats were taken");
	/* Not of this kind of descriptor. */
	if (!cudnnBackendSetAttribute(
		    d, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type))
		DIE("a tensor took a matrix product's attribute");
	/* Not finalized, and without what it needs. */
	if (!cudnnBackendGetAttribute(
		    d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 3, &count, dim))
		DIE("an attribute of a tensor that was not finalized");
	if (!cudnnBackendFinalize(d))
		DIE("a tensor without dimensions was finalized");
	set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 3, dim);
	set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 3, stride);
	set_number(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
	set_integer(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, 1);
	set_integer(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 16);
	finalize(d);
	if (!cudnnBackendSetAttribute(
		    d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 3, dim))
		DIE("a finalized tensor was changed");
	dim[1] = 0;
	DNN(cudnnBackendGetAttribute(
		d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 3, &count, dim));
	if (count != 3 || dim[1] != 2)
		DIE("a tensor's dimensions are %lld, the second %lld", (long long)count,
			(long long)dim[1]);
	destroy(d);
}

int main(void)
{
	begin();
	convolutions();
	if (!product(CUDNN_DATA_HALF, false))
		skipped("a scaled product of halves");
	if (!product(CUDNN_DATA_FLOAT, false))
		skipped("a scaled product of floats");
	if (!product(CUDNN_DATA_HALF, true))
		skipped("a product and a reduction");
	refused();
	return end();
}
