/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of cudnn.api whose items need a look beyond the table: host arrays whose length
 * another array says, states that are filled, and where a network's weights lie.
 */
#include <string.h>

#include "gpu-agent/worker/libraries/cudnn/cudnn.h"

/* Fills the generators' states on the GPU; the descriptor that is used is restored later. */
int run_cudnnSetDropoutDescriptor(struct library_frame *f)
{
	const struct cudnn_library *l = f->library;
	uint32_t head = library_get_int(f);
	const uint32_t *word = library_get_words(f, sizeof(struct cudnn_dropout_words) / 4);
	struct cudnn_dropout_words words;
	cudnnDropoutDescriptor_t descriptor = NULL;
	uint64_t states, bytes, seed;
	float dropout;
	cudnnStatus_t status;

	if (head != (CUDNN_KIND_DROPOUT << 16 | sizeof(words) / 4))
		library_refuse(f, CUDNN_STATUS_BAD_PARAM);
	if (library_stop(f, !l->cudnnSetDropoutDescriptor, "cudnnSetDropoutDescriptor"))
		return f->status;
	memcpy(&words, word, sizeof(words));
	memcpy(&dropout, &words.dropout, sizeof(dropout));
	memcpy(&states, words.states, sizeof(states));
	memcpy(&bytes, words.bytes, sizeof(bytes));
	memcpy(&seed, words.seed, sizeof(seed));
	worker_range(f->w, f->r, states, bytes);
	if (worker_refused(f->r))
		return CUDNN_STATUS_BAD_PARAM;
	status = l->cudnnCreateDropoutDescriptor(&descriptor);
	if (!status)
		status = l->cudnnSetDropoutDescriptor(
			descriptor, f->handle, dropout, (void *)(uintptr_t)states, bytes, seed);
	if (descriptor)
		l->cudnnDestroyDropoutDescriptor(descriptor);
	return status;
}

/* --- CTC: labels, as many as the label lengths add up to ---------------------------------- */

struct ctc {
	const int *labels, *label_lengths, *input_lengths;
	uint32_t label_count, label_length_count, input_length_count;
};

static void cudnn_get_ctc(struct library_frame *f, bool key, struct ctc *ctc)
{
	ctc->labels = library_get_ints(f, key, &ctc->label_count);
	ctc->label_lengths = library_get_ints(f, key, &ctc->label_length_count);
	ctc->input_lengths = library_get_ints(f, key, &ctc->input_length_count);
}

/* The library reads as many lengths as there are sequences, and labels as they say. */
static void cudnn_check_ctc(
	struct library_frame *f, cudnnTensorDescriptor_t probabilities, const struct ctc *ctc)
{
	uint32_t words[3 + 2 * CUDNN_DIM_MAX], batch;
	uint64_t sum = 0;

	if (f->stopped || !probabilities)
		return;
	batch = cudnn_words_of_tensor(
			f->library, probabilities, words, 3 + 2 * CUDNN_DIM_MAX) &&
				words[2] >= 3
			? words[4]
			: 0;
	for (uint32_t i = 0; ctc->label_lengths && i < ctc->label_length_count; i++)
		sum += ctc->label_lengths[i] > 0 ? (uint32_t)ctc->label_lengths[i] : 0;
	if (!batch || !ctc->labels || ctc->label_length_count != batch ||
		ctc->input_length_count != batch || sum > ctc->label_count)
		library_refuse(f, CUDNN_STATUS_BAD_PARAM);
}

int run_cudnnCTCLoss(struct library_frame *f)
{
	cudnnTensorDescriptor_t probabilities = library_get_descriptor(f, CUDNN_KIND_TENSOR);
	void *probs = library_get_device(f);
	struct ctc ctc = {0};
	cudnnTensorDescriptor_t gradientsDesc;
	cudnnCTCLossDescriptor_t ctcLossDesc;
	void *costs, *gradients, *workspace;
	size_t bytes;
	int algo;

	cudnn_get_ctc(f, false, &ctc);
	costs = library_get_device(f);
	gradientsDesc = library_get_descriptor(f, CUDNN_KIND_TENSOR);
	gradients = library_get_device(f);
	algo = (int)library_get_int(f);
	ctcLossDesc = library_get_descriptor(f, CUDNN_KIND_CTC);
	workspace = library_get_device(f);
	bytes = library_get_long(f);
	cudnn_check_ctc(f, probabilities, &ctc);
	if (library_stop(f, !cudnn_of(f)->cudnnCTCLoss, "cudnnCTCLoss"))
		return f->status;
	return cudnn_of(f)->cudnnCTCLoss(f->handle, probabilities, probs, ctc.labels,
		ctc.label_lengths, ctc.input_lengths, costs, gradientsDesc, gradients, algo,
		ctcLossDesc, workspace, bytes);
}

int run_cudnnGetCTCLossWorkspaceSize(struct library_frame *f)
{
	cudnnTensorDescriptor_t probabilities = library_get_descriptor(f, CUDNN_KIND_TENSOR);
	cudnnTensorDescriptor_t gradientsDesc = library_get_descriptor(f, CUDNN_KIND_TENSOR);
	struct ctc ctc = {0};
	cudnnCTCLossDescriptor_t ctcLossDesc;
	size_t *bytes;
	int algo;

	cudnn_get_ctc(f, true, &ctc);
	algo = (int)library_get_int(f);
	ctcLossDesc = library_get_descriptor(f, CUDNN_KIND_CTC);
	bytes = library_get_out(f);
	cudnn_check_ctc(f, probabilities, &ctc);
	if (library_stop(f, !cudnn_of(f)->cudnnGetCTCLossWorkspaceSize,
		    "cudnnGetCTCLossWorkspaceSize"))
		return f->status;
	return cudnn_of(f)->cudnnGetCTCLossWorkspaceSize(f->handle, probabilities,
		gradientsDesc, ctc.labels, ctc.label_lengths, ctc.input_lengths, algo,
		ctcLossDesc, bytes);
}

/* --- weights: 1 + the distance from their start, or 0; then the words of the descriptor ----
 */

uint64_t cudnn_distance(const void *address, const void *start)
{
	if (!address)
		return 0;
	return 1 + (uint64_t)((uintptr_t)address - (uintptr_t)start);
}

int run_cudnnGetRNNWeightParams(struct library_frame *f)
{
	const struct cudnn_library *l = f->library;
	cudnnRNNDescriptor_t rnn = library_get_descriptor(f, CUDNN_KIND_RNN);
	int layer = (int)library_get_int(f);
	uint64_t bytes = library_get_long(f);
	void *start = library_get_device(f);
	int id = (int)library_get_int(f);
	cudnnTensorDescriptor_t matrix = NULL, bias = NULL;
	void *matrix_at = NULL, *bias_at = NULL;
	uint64_t *out = f->answer->out;
	cudnnStatus_t status;

	if (library_stop(f, !l->cudnnGetRNNWeightParams, "cudnnGetRNNWeightParams"))
		return f->status;
	status = l->cudnnCreateTensorDescriptor(&matrix);
	if (!status)
		status = l->cudnnCreateTensorDescriptor(&bias);
	if (!status)
		status = l->cudnnGetRNNWeightParams(f->handle, rnn, layer, bytes, start, id,
			matrix, &matrix_at, bias, &bias_at);
	if (!status) {
		out[0] = cudnn_distance(matrix_at, start);
		out[1] = cudnn_distance(bias_at, start);
		out[2] = matrix_at ? cudnn_words_of_tensor(l, matrix, (uint32_t *)(out + 3), 20)
				   : 0;
		out[13] = bias_at ? cudnn_words_of_tensor(l, bias, (uint32_t *)(out + 14), 20)
				  : 0;
	}
	if (matrix)
		l->cudnnDestroyTensorDescriptor(matrix);
	if (bias)
		l->cudnnDestroyTensorDescriptor(bias);
	return status;
}

typedef cudnnStatus_t (*layer_function)(cudnnHandle_t handle, const cudnnRNNDescriptor_t rnn,
	const int layer, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
	const void *weights, const int id, cudnnFilterDescriptor_t place, void **address);

static cudnnStatus_t cudnn_layer(
	struct library_frame *f, layer_function function, const char *name)
{
	const struct cudnn_library *l = f->library;
	cudnnRNNDescriptor_t rnn = library_get_descriptor(f, CUDNN_KIND_RNN);
	int layer = (int)library_get_int(f);
	cudnnTensorDescriptor_t x = library_get_descriptor(f, CUDNN_KIND_TENSOR);
	cudnnFilterDescriptor_t w = library_get_descriptor(f, CUDNN_KIND_FILTER);
	void *start = library_get_device(f);
	int id = (int)library_get_int(f);
	cudnnFilterDescriptor_t place = NULL;
	void *address = NULL;
	uint64_t *out = f->answer->out;
	cudnnStatus_t status;

	if (library_stop(f, !function, name))
		return f->status;
	status = l->cudnnCreateFilterDescriptor(&place);
	if (!status)
		status = function(f->handle, rnn, layer, x, w, start, id, place, &address);
	if (!status) {
		out[0] = cudnn_distance(address, start);
		out[2] = address ? cudnn_words_of_filter(l, place, (uint32_t *)(out + 3), 20)
				 : 0;
	}
	if (place)
		l->cudnnDestroyFilterDescriptor(place);
	return status;
}

int run_cudnnGetRNNLinLayerMatrixParams(struct library_frame *f)
{
	return cudnn_layer(f, cudnn_of(f)->cudnnGetRNNLinLayerMatrixParams,
		"cudnnGetRNNLinLayerMatrixParams");
}

int run_cudnnGetRNNLinLayerBiasParams(struct library_frame *f)
{
	return cudnn_layer(
		f, cudnn_of(f)->cudnnGetRNNLinLayerBiasParams, "cudnnGetRNNLinLayerBiasParams");
}
