/* SPDX-License-Identifier: Apache-2.0
 *
 * Algorithms as objects, of cuDNN 8 alone: set, copied, saved and restored; what a search found
 * out; and a recurrent network that takes one, or a plan.
 */
#include "tests/cudnn/check.h"

static void objects(void)
{
	cudnnAlgorithmDescriptor_t first, second;
	cudnnAlgorithm_t algorithm = {CUDNN_RNN_ALGO_PERSIST_STATIC};
	size_t size;
	char *saved;

	DNN(cudnnCreateAlgorithmDescriptor(&first));
	DNN(cudnnCreateAlgorithmDescriptor(&second));
	DNN(cudnnSetAlgorithmDescriptor(first, algorithm));
	DNN(cudnnCopyAlgorithmDescriptor(first, second));
	algorithm.algo = -1;
	DNN(cudnnGetAlgorithmDescriptor(second, &algorithm));
	if (algorithm.algo != CUDNN_RNN_ALGO_PERSIST_STATIC)
		DIE("the copy is algorithm %d", algorithm.algo);

	DNN(cudnnGetAlgorithmSpaceSize(handle, first, &size));
	saved = malloc(size);
	DNN(cudnnSaveAlgorithm(handle, first, saved, size));
	algorithm.algo = CUDNN_RNN_ALGO_STANDARD;
	DNN(cudnnSetAlgorithmDescriptor(first, algorithm));
	DNN(cudnnRestoreAlgorithm(handle, saved, size, first));
	DNN(cudnnGetAlgorithmDescriptor(first, &algorithm));
	if (algorithm.algo != CUDNN_RNN_ALGO_PERSIST_STATIC)
		DIE("what was saved comes back as algorithm %d", algorithm.algo);
	DNN_IS(cudnnSaveAlgorithm(handle, first, saved, 0), CUDNN_STATUS_BAD_PARAM);
	free(saved);
	DNN(cudnnDestroyAlgorithmDescriptor(first));
	DNN(cudnnDestroyAlgorithmDescriptor(second));
}

static void performance(void)
{
	cudnnAlgorithmDescriptor_t algorithm, got;
	cudnnAlgorithmPerformance_t found[2];
	cudnnStatus_t status;
	size_t memory;
	float time;

	DNN(cudnnCreateAlgorithmDescriptor(&algorithm));
	DNN(cudnnSetAlgorithmDescriptor(
		algorithm, (cudnnAlgorithm_t){CUDNN_RNN_ALGO_STANDARD}));
	DNN(cudnnCreateAlgorithmPerformance(found, 2));
	DNN(cudnnSetAlgorithmPerformance(
		found[1], algorithm, CUDNN_STATUS_EXECUTION_FAILED, 2.5f, (size_t)5 << 32));
	DNN(cudnnGetAlgorithmPerformance(found[1], &got, &status, &time, &memory));
	if (got != algorithm || status != CUDNN_STATUS_EXECUTION_FAILED || time != 2.5f ||
		memory != (size_t)5 << 32)
		DIE("what was found is status %d, %g ms, %zu bytes", (int)status, time, memory);
	DNN(cudnnDestroyAlgorithmPerformance(found, 2));
	DNN(cudnnDestroyAlgorithmDescriptor(algorithm));
}

static void network(void)
{
	cudnnAlgorithmDescriptor_t algorithm;
	cudnnPersistentRNNPlan_t plan;
	cudnnRNNDescriptor_t rnn;
	cudnnDropoutDescriptor_t dropout;
	int algo = -1, hidden;

	DNN(cudnnCreateDropoutDescriptor(&dropout));
	DNN(cudnnSetDropoutDescriptor(dropout, handle, 0, NULL, 0, 0));
	DNN(cudnnCreateRNNDescriptor(&rnn));
	DNN(cudnnSetRNNDescriptor_v6(handle, rnn, 8, 1, dropout, CUDNN_LINEAR_INPUT,
		CUDNN_UNIDIRECTIONAL, CUDNN_LSTM, CUDNN_RNN_ALGO_STANDARD, CUDNN_DATA_FLOAT));
	DNN(cudnnCreateAlgorithmDescriptor(&algorithm));
	DNN(cudnnSetAlgorithmDescriptor(
		algorithm, (cudnnAlgorithm_t){CUDNN_RNN_ALGO_PERSIST_DYNAMIC}));
	DNN(cudnnSetRNNAlgorithmDescriptor(handle, rnn, algorithm));
	DNN(cudnnGetRNNDescriptor_v6(
		handle, rnn, &hidden, NULL, NULL, NULL, NULL, NULL, (void *)&algo, NULL));
	if (algo != CUDNN_RNN_ALGO_PERSIST_DYNAMIC || hidden != 8)
		DIE("the network has algorithm %d", algo);
	DNN(cudnnCreatePersistentRNNPlan(rnn, 4, CUDNN_DATA_FLOAT, &plan));
	DNN(cudnnSetPersistentRNNPlan(rnn, plan));
	DNN(cudnnDestroyPersistentRNNPlan(plan));
	DNN(cudnnDestroyAlgorithmDescriptor(algorithm));
	DNN(cudnnDestroyRNNDescriptor(rnn));
	DNN(cudnnDestroyDropoutDescriptor(dropout));
}

int main(void)
{
	begin();
	objects();
	performance();
	network();
	return end();
}
