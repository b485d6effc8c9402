/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused operations: what a normalization makes of sums, in training and in inference; a
 * convolution of a scaled, shifted and clipped x with sums of its result; and its filter's
 * gradient.
 */
#include "tests/cudnn/check.h"

enum { N = 2, C = 32, K = 32, SIDE = 4, KERNEL = 3 };

struct fused {
	cudnnFusedOpsConstParamPack_t constants;
	cudnnFusedOpsVariantParamPack_t variants;
	cudnnFusedOpsPlan_t plan;
	size_t size;
	void *workspace;
};

static struct fused fused_new(cudnnFusedOps_t ops)
{
	struct fused f = {0};

	DNN(cudnnCreateFusedOpsConstParamPack(&f.constants, ops));
	DNN(cudnnCreateFusedOpsVariantParamPack(&f.variants, ops));
	DNN(cudnnCreateFusedOpsPlan(&f.plan, ops));
	return f;
}

static void fused_free(struct fused *f)
{
	if (f->workspace)
		device_free(f->workspace);
	DNN(cudnnDestroyFusedOpsPlan(f->plan));
	DNN(cudnnDestroyFusedOpsVariantParamPack(f->variants));
	DNN(cudnnDestroyFusedOpsConstParamPack(f->constants));
}

static void constant(struct fused *f, cudnnFusedOpsConstParamLabel_t label, const void *param)
{
	DNN(cudnnSetFusedOpsConstParamPackAttribute(f->constants, label, param));
}

static void tell_untold(void)
{
	static bool told;

	if (!told)
		TELL("pointers of a pack are not told");
	told = true;
}

/* A pointer, and that there is one, where the library tells: cuDNN 9.19 does not (H200,
 * 2026-11-23). */
static void pointer(struct fused *f, cudnnFusedOpsConstParamLabel_t place,
	cudnnFusedOpsVariantParamLabel_t label, void *device)
{
	cudnnFusedOpsPointerPlaceHolder_t aligned = CUDNN_PTR_16B_ALIGNED, got = CUDNN_PTR_NULL;
	void *there = NULL;
	int missing = 1, status;

	constant(f, place, &aligned);
	DNN(cudnnGetFusedOpsConstParamPackAttribute(f->constants, place, &got, &missing));
	if (missing || got != aligned)
		DIE("constant %d is %d", (int)place, (int)got);
	DNN(cudnnSetFusedOpsVariantParamPackAttribute(f->variants, label, device));
	status = (int)cudnnGetFusedOpsVariantParamPackAttribute(f->variants, label, &there);
	if (status == CUDNN_STATUS_BAD_PARAM)
		tell_untold();
	else
		DNN(status);
	if (!status && there != device)
		DIE("pointer %d is %p", (int)label, there);
}

static void variant(struct fused *f, cudnnFusedOpsVariantParamLabel_t label, void *value)
{
	DNN(cudnnSetFusedOpsVariantParamPackAttribute(f->variants, label, value));
}

/* False: not supported. */
static bool fused_run(struct fused *f)
{
	int status = (int)cudnnMakeFusedOpsPlan(handle, f->plan, f->constants, &f->size);

	if (not_supported(status))
		return false;
	DNN(status);
	f->workspace = device_new(f->size);
	variant(f, CUDNN_PTR_WORKSPACE, f->workspace);
	variant(f, CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES, &f->size);
	/* Twice: the second is posted. */
	DNN(cudnnFusedOpsExecute(handle, f->plan, f->variants));
	DNN(cudnnFusedOpsExecute(handle, f->plan, f->variants));
	return true;
}

/* ---- normalization ---- */

static bool finalize(bool training)
{
	enum { COUNT = 50 };
	struct fused f = fused_new(training ? CUDNN_FUSED_BN_FINALIZE_STATISTICS_TRAINING
					    : CUDNN_FUSED_BN_FINALIZE_STATISTICS_INFERENCE);
	const cudnnBatchNormMode_t mode = CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
	struct tensor t[10];
	struct tensor *const sum = &t[0], *const squares = &t[1], *const scale = &t[2];
	struct tensor *const bias = &t[3], *const mean = &t[4], *const inverse = &t[5];
	struct tensor *const running = &t[6], *const spread = &t[7], *const by = &t[8];
	struct tensor *const plus = &t[9];
	double factor = 1,
	       epsilon = 1e-3; /* run twice: the running values end as the last ones */
	int64_t count = COUNT;
	cudnnTensorDescriptor_t half;
	bool done;

	for (int i = 0; i < 10; i++)
		t[i] = TENSOR(i < 8 ? CUDNN_DATA_FLOAT : CUDNN_DATA_HALF, true, 1, C, 1, 1);
	for (int c = 0; c < C; c++) {
		put_at(squares->host, squares->type, (size_t)c, COUNT * (2 + c / 8.0));
		put_at(spread->host, spread->type, (size_t)c, 1 + c / 8.0);
	}
	to_there(squares);
	to_there(spread);
	half = by->descriptor;
	constant(&f, CUDNN_PARAM_BN_MODE, &mode);
	constant(&f, CUDNN_PARAM_BN_EQSCALEBIAS_DESC, half);
	constant(&f, CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC, scale->descriptor);
	pointer(&f, CUDNN_PARAM_BN_SCALE_PLACEHOLDER, CUDNN_PTR_BN_SCALE, scale->device);
	pointer(&f, CUDNN_PARAM_BN_BIAS_PLACEHOLDER, CUDNN_PTR_BN_BIAS, bias->device);
	pointer(&f, CUDNN_PARAM_BN_RUNNING_MEAN_PLACEHOLDER, CUDNN_PTR_BN_RUNNING_MEAN,
		running->device);
	pointer(&f, CUDNN_PARAM_BN_RUNNING_VAR_PLACEHOLDER, CUDNN_PTR_BN_RUNNING_VAR,
		spread->device);
	pointer(&f, CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER, CUDNN_PTR_BN_EQSCALE, by->device);
	pointer(&f, CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER, CUDNN_PTR_BN_EQBIAS, plus->device);
	variant(&f, CUDNN_SCALAR_DOUBLE_BN_EPSILON, &epsilon);
	if (training) {
		constant(&f, CUDNN_PARAM_YSTATS_DESC, sum->descriptor);
		pointer(&f, CUDNN_PARAM_YSUM_PLACEHOLDER, CUDNN_PTR_YSUM, sum->device);
		pointer(&f, CUDNN_PARAM_YSQSUM_PLACEHOLDER, CUDNN_PTR_YSQSUM, squares->device);
		pointer(&f, CUDNN_PARAM_BN_SAVED_MEAN_PLACEHOLDER, CUDNN_PTR_BN_SAVED_MEAN,
			mean->device);
		pointer(&f, CUDNN_PARAM_BN_SAVED_INVSTD_PLACEHOLDER, CUDNN_PTR_BN_SAVED_INVSTD,
			inverse->device);
		variant(&f, CUDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT, &count);
		variant(&f, CUDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR, &factor);
	}
	done = fused_run(&f);
	for (int c = 0; done && c < C; c++) {
		double m = training ? GET(sum, 0, c, 0, 0) / COUNT : GET(running, 0, c, 0, 0);
		double v = training ? GET(squares, 0, c, 0, 0) / COUNT - m * m
				    : GET(spread, 0, c, 0, 0);
		double i = 1 / sqrt(v + epsilon);

		PUT(by, GET(scale, 0, c, 0, 0) * i, 0, c, 0, 0);
		PUT(plus, GET(bias, 0, c, 0, 0) - GET(scale, 0, c, 0, 0) * i * m, 0, c, 0, 0);
		if (training) {
			PUT(mean, m, 0, c, 0, 0);
			PUT(inverse, i, 0, c, 0, 0);
			PUT(running, m, 0, c, 0, 0);
			PUT(spread, v * COUNT / (COUNT - 1), 0, c, 0, 0);
		}
	}
	for (int i = 4; done && i < 10; i++) {
		if (training || i >= 8)
			tensor_check(
				&t[i], training ? "statistics of training" : "of inference");
	}
	for (int i = 0; i < 10; i++)
		tensor_free(&t[i]);
	fused_free(&f);
	return done;
}

/* ---- convolution ---- */

static double input_at(const struct tensor *x, const struct tensor *by,
	const struct tensor *plus, int n, int c, int h, int w)
{
	double value;

	if (h < 0 || w < 0 || h >= SIDE || w >= SIDE)
		return 0;
	value = GET(x, n, c, h, w) * GET(by, 0, c, 0, 0) + GET(plus, 0, c, 0, 0);
	return value > 0 ? value : 0;
}

static bool convolve(bool back)
{
	struct fused f = fused_new(back ? CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD
					: CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS);
	const cudnnBatchNormMode_t mode = CUDNN_BATCHNORM_SPATIAL;
	struct tensor x = TENSOR(CUDNN_DATA_HALF, true, N, C, SIDE, SIDE);
	struct tensor y = TENSOR(CUDNN_DATA_HALF, true, N, K, SIDE, SIDE);
	struct tensor w = TENSOR(CUDNN_DATA_HALF, true, K, C, KERNEL, KERNEL);
	struct tensor by = TENSOR(CUDNN_DATA_HALF, true, 1, C, 1, 1);
	struct tensor plus = TENSOR(CUDNN_DATA_HALF, true, 1, C, 1, 1);
	struct tensor sum = TENSOR(CUDNN_DATA_FLOAT, true, 1, K, 1, 1);
	struct tensor squares = TENSOR(CUDNN_DATA_FLOAT, true, 1, K, 1, 1);
	cudnnFilterDescriptor_t filter;
	cudnnConvolutionDescriptor_t convolution;
	cudnnActivationDescriptor_t activation;
	bool done;

	DNN(cudnnCreateFilterDescriptor(&filter));
	DNN(cudnnSetFilter4dDescriptor(
		filter, CUDNN_DATA_HALF, CUDNN_TENSOR_NHWC, K, C, KERNEL, KERNEL));
	DNN(cudnnCreateConvolutionDescriptor(&convolution));
	DNN(cudnnSetConvolution2dDescriptor(
		convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
	DNN(cudnnSetConvolutionMathType(convolution, CUDNN_TENSOR_OP_MATH));
	DNN(cudnnCreateActivationDescriptor(&activation));
	DNN(cudnnSetActivationDescriptor(
		activation, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
	constant(&f, CUDNN_PARAM_XDESC, x.descriptor);
	constant(&f, CUDNN_PARAM_BN_MODE, &mode);
	constant(&f, CUDNN_PARAM_BN_EQSCALEBIAS_DESC, by.descriptor);
	constant(&f, CUDNN_PARAM_ACTIVATION_DESC, activation);
	constant(&f, CUDNN_PARAM_CONV_DESC, convolution);
	constant(&f, back ? CUDNN_PARAM_DWDESC : CUDNN_PARAM_WDESC, filter);
	constant(&f, back ? CUDNN_PARAM_DYDESC : CUDNN_PARAM_YDESC, y.descriptor);
	pointer(&f, CUDNN_PARAM_XDATA_PLACEHOLDER, CUDNN_PTR_XDATA, x.device);
	pointer(&f, CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER, CUDNN_PTR_BN_EQSCALE, by.device);
	pointer(&f, CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER, CUDNN_PTR_BN_EQBIAS, plus.device);
	if (back) {
		pointer(&f, CUDNN_PARAM_DWDATA_PLACEHOLDER, CUDNN_PTR_DWDATA, w.device);
		pointer(&f, CUDNN_PARAM_DYDATA_PLACEHOLDER, CUDNN_PTR_DYDATA, y.device);
	} else {
		pointer(&f, CUDNN_PARAM_WDATA_PLACEHOLDER, CUDNN_PTR_WDATA, w.device);
		pointer(&f, CUDNN_PARAM_YDATA_PLACEHOLDER, CUDNN_PTR_YDATA, y.device);
		constant(&f, CUDNN_PARAM_YSTATS_DESC, sum.descriptor);
		pointer(&f, CUDNN_PARAM_YSUM_PLACEHOLDER, CUDNN_PTR_YSUM, sum.device);
		pointer(&f, CUDNN_PARAM_YSQSUM_PLACEHOLDER, CUDNN_PTR_YSQSUM, squares.device);
	}
	done = fused_run(&f);
	for (int k = 0; done && k < K; k++) {
		double total = 0, total2 = 0;

		for (int i = 0; !back && i < N * SIDE * SIDE; i++) {
			int n = i / SIDE / SIDE, h = i / SIDE % SIDE, v = i % SIDE;
			double out = 0;

			for (int j = 0; j < C * KERNEL * KERNEL; j++) {
				int c = j / KERNEL / KERNEL, r = j / KERNEL % KERNEL,
				    s = j % KERNEL;

				out += input_at(&x, &by, &plus, n, c, h + r - 1, v + s - 1) *
				       GET(&w, k, c, r, s);
			}
			PUT(&y, out, n, k, h, v);
			total += out;
			total2 += out * out;
		}
		PUT(&sum, total, 0, k, 0, 0);
		PUT(&squares, total2, 0, k, 0, 0);
		for (int j = 0; back && j < C * KERNEL * KERNEL; j++) {
			int c = j / KERNEL / KERNEL, r = j / KERNEL % KERNEL, s = j % KERNEL;
			double slope = 0;

			for (int i = 0; i < N * SIDE * SIDE; i++) {
				int n = i / SIDE / SIDE, h = i / SIDE % SIDE, v = i % SIDE;

				slope += input_at(&x, &by, &plus, n, c, h + r - 1, v + s - 1) *
					 GET(&y, n, k, h, v);
			}
			PUT(&w, slope, k, c, r, s);
		}
	}
	if (done && back)
		compare(w.device, w.host, w.type, w.elements, 1e-2, "a fused gradient");
	else if (done) {
		compare(y.device, y.host, y.type, y.elements, 1e-2, "a fused convolution");
		compare(sum.device, sum.host, sum.type, K, 1e-2, "sums of its result");
		compare(squares.device, squares.host, squares.type, K, 1e-2, "of its squares");
	}
	for (struct tensor **t =
			(struct tensor *[]){&x, &y, &w, &by, &plus, &sum, &squares, NULL};
		*t; t++)
		tensor_free(*t);
	DNN(cudnnDestroyActivationDescriptor(activation));
	DNN(cudnnDestroyConvolutionDescriptor(convolution));
	DNN(cudnnDestroyFilterDescriptor(filter));
	fused_free(&f);
	return done;
}

/* What goes into a pack comes out of it again. */
static void packs(void)
{
	struct fused f = fused_new(CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS);
	struct tensor x = TENSOR(CUDNN_DATA_FLOAT, false, 1, 2, 3, 4);
	cudnnTensorDescriptor_t got;
	int type, count, dim[4], stride[4], missing = 0;

	DNN(cudnnCreateTensorDescriptor(&got));
	DNN(cudnnGetFusedOpsConstParamPackAttribute(
		f.constants, CUDNN_PARAM_XDESC, got, &missing));
	if (!missing)
		DIE("a pack has what was not put there");
	constant(&f, CUDNN_PARAM_XDESC, x.descriptor);
	DNN(cudnnGetFusedOpsConstParamPackAttribute(
		f.constants, CUDNN_PARAM_XDESC, got, &missing));
	DNN(cudnnGetTensorNdDescriptor(got, 4, (void *)&type, &count, dim, stride));
	if (missing || count != 4 || dim[3] != 4 || stride[1] != 12)
		DIE("a pack has another tensor: %d, %d dimensions", missing, count);
	DNN(cudnnDestroyTensorDescriptor(got));
	tensor_free(&x);
	fused_free(&f);
}

int main(void)
{
	begin();
	packs();
	if (!finalize(true))
		skipped("statistics of training");
	if (!finalize(false))
		skipped("statistics of inference");
	if (!convolve(false))
		skipped("a fused convolution");
	if (!convolve(true))
		skipped("a fused gradient");
	return end();
}
