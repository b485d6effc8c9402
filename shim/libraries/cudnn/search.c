/* SPDX-License-Identifier: Apache-2.0
 *
 * The search for a recurrent network's algorithm, of cuDNN 8: each is set, run and measured
 * from here, by the calls that the program would make; the network keeps the algorithm that it
 * had.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "protocol/generated/cudnn_api.h"
#include "shim/libraries/common/driver_front.h"
#include "shim/libraries/cudnn/forms.h"

#if VCUDA_ABI == 8 /* 9 has neither the calls nor the search */

struct candidate {
	int algo;
	cudnnStatus_t status;
	float time; /* milliseconds */
	size_t memory;
};

/* What is measured: one call, whose arguments are its own. */
struct search {
	cudnnHandle_t handle;
	cudnnRNNDescriptor_t rnn;
	int steps;
	const cudnnTensorDescriptor_t *x;
	cudnnStatus_t (*run)(const void *of);
	const void *of;
	int requested;
	int *returned;
	cudnnAlgorithmPerformance_t *found;
};

static cudnnStatus_t bad(const char *text)
{
	return cudnn_fault(CUDNN_STATUS_BAD_PARAM, text);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Once to have it ready, once to measure it. */
static void measure(const struct search *s, CUstream stream, struct candidate *c)
{
	double begin;

	c->status = cudnn_rnn_set(
		s->rnn, offsetof(struct cudnn_rnn_words, algo), (uint32_t)c->algo);
	if (!c->status)
		c->status =
			cudnnGetRNNWorkspaceSize(s->handle, s->rnn, s->steps, s->x, &c->memory);
	if (!c->status)
		c->status = s->run(s->of);
	if (c->status || cuStreamSynchronize(stream))
		return;
	begin = now();
	c->status = s->run(s->of);
	cuStreamSynchronize(stream);
	c->time = (float)(now() - begin);
}

/* The fastest first, behind all those that failed. */
static int faster(const void *a, const void *b)
{
	const struct candidate *one = a, *two = b;

	if (!one->status != !two->status)
		return one->status ? 1 : -1;
	return (one->time > two->time) - (one->time < two->time);
}

static cudnnStatus_t report(cudnnAlgorithmPerformance_t to, const struct candidate *c)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(to, CUDNN_KIND_PERFORMANCE);
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
	void *algorithm = NULL;

	if (!d)
		return bad("nothing that a search can fill");
	algorithm = d->post;
	if (!algorithm)
		status = cudnn_descriptor_new(&algorithm, CUDNN_KIND_ALGORITHM);
	if (status)
		return status;
	d->post = algorithm;
	status = hand_cudnnSetAlgorithmDescriptor(algorithm, (cudnnAlgorithm_t){c->algo});
	return status ? status
		      : hand_cudnnSetAlgorithmPerformance(
				to, algorithm, c->status, c->time, c->memory);
}

static cudnnStatus_t search(const struct search *s)
{
	struct candidate c[CUDNN_RNN_ALGO_COUNT];
	struct library_handle *handle = cudnn_find(s->handle);
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
	int before;

	if (!handle || !s->returned || !s->found || s->requested <= 0)
		return bad("no handle of cuDNN, or nowhere to put what is found");
	status = cudnn_rnn_get(s->rnn, offsetof(struct cudnn_rnn_words, algo), &before);
	if (status)
		return status;
	for (int i = 0; i < CUDNN_RNN_ALGO_COUNT; i++) {
		c[i] = (struct candidate){.algo = i, .time = -1};
		measure(s, handle->stream, &c[i]);
	}
	cudnn_rnn_set(s->rnn, offsetof(struct cudnn_rnn_words, algo), (uint32_t)before);
	qsort(c, CUDNN_RNN_ALGO_COUNT, sizeof(c[0]), faster);
	*s->returned =
		s->requested < CUDNN_RNN_ALGO_COUNT ? s->requested : CUDNN_RNN_ALGO_COUNT;
	for (int i = 0; !status && i < *s->returned; i++)
		status = report(s->found[i], &c[i]);
	return status;
}

cudnnStatus_t cudnn_rnn_algorithms(
	cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int *count)
{
	if (!cudnn_find(handle) || !cudnn_set_of(rnnDesc, CUDNN_KIND_RNN) || !count)
		return bad("no handle of cuDNN, or no RNN descriptor that was set");
	*count = CUDNN_RNN_ALGO_COUNT;
	return CUDNN_STATUS_SUCCESS;
}

/* --- the four calls ----------------------------------------------------------------------- */

struct forward {
	cudnnHandle_t handle;
	cudnnRNNDescriptor_t rnn;
	int steps;
	const cudnnTensorDescriptor_t *x_desc, *y_desc;
	cudnnTensorDescriptor_t hx_desc, cx_desc, hy_desc, cy_desc;
	cudnnFilterDescriptor_t w_desc;
	const void *x, *hx, *cx, *w;
	void *y, *hy, *cy, *workspace, *reserve;
	size_t workspace_bytes, reserve_bytes;
};

static cudnnStatus_t run_inference(const void *of)
{
	const struct forward *f = of;

	return cudnnRNNForwardInference(f->handle, f->rnn, f->steps, f->x_desc, f->x,
		f->hx_desc, f->hx, f->cx_desc, f->cx, f->w_desc, f->w, f->y_desc, f->y,
		f->hy_desc, f->hy, f->cy_desc, f->cy, f->workspace, f->workspace_bytes);
}

static cudnnStatus_t run_training(const void *of)
{
	const struct forward *f = of;

	return cudnnRNNForwardTraining(f->handle, f->rnn, f->steps, f->x_desc, f->x, f->hx_desc,
		f->hx, f->cx_desc, f->cx, f->w_desc, f->w, f->y_desc, f->y, f->hy_desc, f->hy,
		f->cy_desc, f->cy, f->workspace, f->workspace_bytes, f->reserve,
		f->reserve_bytes);
}

cudnnStatus_t hand_cudnnFindRNNForwardInferenceAlgorithmEx(cudnnHandle_t handle,
	const cudnnRNNDescriptor_t rnnDesc, const int seqLength,
	const cudnnTensorDescriptor_t *xDesc, const void *x,
	const cudnnTensorDescriptor_t hxDesc, const void *hx,
	const cudnnTensorDescriptor_t cxDesc, const void *cx,
	const cudnnFilterDescriptor_t wDesc, const void *w,
	const cudnnTensorDescriptor_t *yDesc, void *y, const cudnnTensorDescriptor_t hyDesc,
	void *hy, const cudnnTensorDescriptor_t cyDesc, void *cy, const float findIntensity,
	const int requestedAlgoCount, int *returnedAlgoCount,
	cudnnAlgorithmPerformance_t *perfResults, void *workspace, size_t workSpaceSizeInBytes)
{
	const struct forward f = {handle, rnnDesc, seqLength, xDesc, yDesc, hxDesc, cxDesc,
		hyDesc, cyDesc, wDesc, x, hx, cx, w, y, hy, cy, workspace, NULL,
		workSpaceSizeInBytes, 0};

	(void)findIntensity; /* all are tried */
	return search(&(struct search){handle, rnnDesc, seqLength, xDesc, run_inference, &f,
		requestedAlgoCount, returnedAlgoCount, perfResults});
}

cudnnStatus_t hand_cudnnFindRNNForwardTrainingAlgorithmEx(cudnnHandle_t handle,
	const cudnnRNNDescriptor_t rnnDesc, const int seqLength,
	const cudnnTensorDescriptor_t *xDesc, const void *x,
	const cudnnTensorDescriptor_t hxDesc, const void *hx,
	const cudnnTensorDescriptor_t cxDesc, const void *cx,
	const cudnnFilterDescriptor_t wDesc, const void *w,
	const cudnnTensorDescriptor_t *yDesc, void *y, const cudnnTensorDescriptor_t hyDesc,
	void *hy, const cudnnTensorDescriptor_t cyDesc, void *cy, const float findIntensity,
	const int requestedAlgoCount, int *returnedAlgoCount,
	cudnnAlgorithmPerformance_t *perfResults, void *workspace, size_t workSpaceSizeInBytes,
	void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
	const struct forward f = {handle, rnnDesc, seqLength, xDesc, yDesc, hxDesc, cxDesc,
		hyDesc, cyDesc, wDesc, x, hx, cx, w, y, hy, cy, workspace, reserveSpace,
		workSpaceSizeInBytes, reserveSpaceSizeInBytes};

	(void)findIntensity;
	return search(&(struct search){handle, rnnDesc, seqLength, xDesc, run_training, &f,
		requestedAlgoCount, returnedAlgoCount, perfResults});
}

struct back {
	cudnnHandle_t handle;
	cudnnRNNDescriptor_t rnn;
	int steps;
	const cudnnTensorDescriptor_t *x_desc, *y_desc, *dx_desc, *dy_desc;
	cudnnTensorDescriptor_t dhy_desc, dcy_desc, hx_desc, cx_desc, dhx_desc, dcx_desc;
	cudnnFilterDescriptor_t w_desc;
	const void *x, *y, *dy, *dhy, *dcy, *w, *hx, *cx;
	void *dx, *dhx, *dcx, *dw, *workspace, *reserve;
	size_t workspace_bytes, reserve_bytes;
};

static cudnnStatus_t run_back_data(const void *of)
{
	const struct back *b = of;

	return cudnnRNNBackwardData(b->handle, b->rnn, b->steps, b->y_desc, b->y, b->dy_desc,
		b->dy, b->dhy_desc, b->dhy, b->dcy_desc, b->dcy, b->w_desc, b->w, b->hx_desc,
		b->hx, b->cx_desc, b->cx, b->dx_desc, b->dx, b->dhx_desc, b->dhx, b->dcx_desc,
		b->dcx, b->workspace, b->workspace_bytes, b->reserve, b->reserve_bytes);
}

static cudnnStatus_t run_back_weights(const void *of)
{
	const struct back *b = of;

	return cudnnRNNBackwardWeights(b->handle, b->rnn, b->steps, b->x_desc, b->x, b->hx_desc,
		b->hx, b->y_desc, b->y, b->workspace, b->workspace_bytes, b->w_desc, b->dw,
		b->reserve, b->reserve_bytes);
}

cudnnStatus_t hand_cudnnFindRNNBackwardDataAlgorithmEx(cudnnHandle_t handle,
	const cudnnRNNDescriptor_t rnnDesc, const int seqLength,
	const cudnnTensorDescriptor_t *yDesc, const void *y,
	const cudnnTensorDescriptor_t *dyDesc, const void *dy,
	const cudnnTensorDescriptor_t dhyDesc, const void *dhy,
	const cudnnTensorDescriptor_t dcyDesc, const void *dcy,
	const cudnnFilterDescriptor_t wDesc, const void *w,
	const cudnnTensorDescriptor_t hxDesc, const void *hx,
	const cudnnTensorDescriptor_t cxDesc, const void *cx,
	const cudnnTensorDescriptor_t *dxDesc, void *dx, const cudnnTensorDescriptor_t dhxDesc,
	void *dhx, const cudnnTensorDescriptor_t dcxDesc, void *dcx, const float findIntensity,
	const int requestedAlgoCount, int *returnedAlgoCount,
	cudnnAlgorithmPerformance_t *perfResults, void *workspace, size_t workSpaceSizeInBytes,
	void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
	const struct back b = {.handle = handle,
		.rnn = rnnDesc,
		.steps = seqLength,
		.y_desc = yDesc,
		.y = y,
		.dy_desc = dyDesc,
		.dy = dy,
		.dhy_desc = dhyDesc,
		.dhy = dhy,
		.dcy_desc = dcyDesc,
		.dcy = dcy,
		.w_desc = wDesc,
		.w = w,
		.hx_desc = hxDesc,
		.hx = hx,
		.cx_desc = cxDesc,
		.cx = cx,
		.dx_desc = dxDesc,
		.dx = dx,
		.dhx_desc = dhxDesc,
		.dhx = dhx,
		.dcx_desc = dcxDesc,
		.dcx = dcx,
		.workspace = workspace,
		.workspace_bytes = workSpaceSizeInBytes,
		.reserve = reserveSpace,
		.reserve_bytes = reserveSpaceSizeInBytes};

	(void)findIntensity;
	return search(&(struct search){handle, rnnDesc, seqLength, dxDesc, run_back_data, &b,
		requestedAlgoCount, returnedAlgoCount, perfResults});
}

cudnnStatus_t hand_cudnnFindRNNBackwardWeightsAlgorithmEx(cudnnHandle_t handle,
	const cudnnRNNDescriptor_t rnnDesc, const int seqLength,
	const cudnnTensorDescriptor_t *xDesc, const void *x,
	const cudnnTensorDescriptor_t hxDesc, const void *hx,
	const cudnnTensorDescriptor_t *yDesc, const void *y, const float findIntensity,
	const int requestedAlgoCount, int *returnedAlgoCount,
	cudnnAlgorithmPerformance_t *perfResults, const void *workspace,
	size_t workSpaceSizeInBytes, const cudnnFilterDescriptor_t dwDesc, void *dw,
	const void *reserveSpace, size_t reserveSpaceSizeInBytes)
{
	const struct back b = {.handle = handle,
		.rnn = rnnDesc,
		.steps = seqLength,
		.x_desc = xDesc,
		.x = x,
		.hx_desc = hxDesc,
		.hx = hx,
		.y_desc = yDesc,
		.y = y,
		.w_desc = dwDesc,
		.dw = dw,
		.workspace = (void *)(uintptr_t)workspace,
		.workspace_bytes = workSpaceSizeInBytes,
		.reserve = (void *)(uintptr_t)reserveSpace,
		.reserve_bytes = reserveSpaceSizeInBytes};

	(void)findIntensity;
	return search(&(struct search){handle, rnnDesc, seqLength, xDesc, run_back_weights, &b,
		requestedAlgoCount, returnedAlgoCount, perfResults});
}

#endif
