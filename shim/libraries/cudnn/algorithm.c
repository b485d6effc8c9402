/* SPDX-License-Identifier: Apache-2.0
 *
 * Algorithms as objects, of cuDNN 7 and 8: numbers that a recurrent network is set by, and what
 * a search found out about one. No library need be asked; what is saved is read by this file
 * alone.
 */
#include <string.h>

#include "shim/libraries/cudnn/forms.h"

#define SAVED_MAGIC 0x6f676c41u

struct saved {
	uint32_t magic;
	int algo;
};

static cudnnStatus_t bad(const char *text)
{
	return cudnn_fault(CUDNN_STATUS_BAD_PARAM, text);
}

cudnnStatus_t hand_cudnnSetAlgorithmDescriptor(
	cudnnAlgorithmDescriptor_t algoDesc, cudnnAlgorithm_t algorithm)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(algoDesc, CUDNN_KIND_ALGORITHM);

	if (!d)
		return bad("no algorithm descriptor");
	d->word[0] = (uint32_t)algorithm.algo;
	d->words = 1;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetAlgorithmDescriptor(
	const cudnnAlgorithmDescriptor_t algoDesc, cudnnAlgorithm_t *algorithm)
{
	const struct cudnn_descriptor *d = cudnn_set_of(algoDesc, CUDNN_KIND_ALGORITHM);

	if (!d || !algorithm)
		return bad("no algorithm descriptor that was set");
	algorithm->algo = (int)d->word[0];
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnCopyAlgorithmDescriptor(
	const cudnnAlgorithmDescriptor_t src, cudnnAlgorithmDescriptor_t dest)
{
	cudnnAlgorithm_t algorithm = {0};
	cudnnStatus_t status = hand_cudnnGetAlgorithmDescriptor(src, &algorithm);

	return status ? status : hand_cudnnSetAlgorithmDescriptor(dest, algorithm);
}

cudnnStatus_t hand_cudnnSetRNNAlgorithmDescriptor(
	cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnAlgorithmDescriptor_t algoDesc)
{
	cudnnAlgorithm_t algorithm = {0};
	cudnnStatus_t status = hand_cudnnGetAlgorithmDescriptor(algoDesc, &algorithm);

	if (status)
		return status;
	if (!cudnn_find(handle) || algorithm.algo < 0 || algorithm.algo >= CUDNN_RNN_ALGO_COUNT)
		return bad("no handle of cuDNN, or no algorithm of recurrent networks");
	return cudnn_rnn_set(
		rnnDesc, offsetof(struct cudnn_rnn_words, algo), (uint32_t)algorithm.algo);
}

/* --- saved -------------------------------------------------------------------------------- */

cudnnStatus_t hand_cudnnGetAlgorithmSpaceSize(
	cudnnHandle_t handle, cudnnAlgorithmDescriptor_t algoDesc, size_t *algoSpaceSizeInBytes)
{
	if (!cudnn_find(handle) || !cudnn_set_of(algoDesc, CUDNN_KIND_ALGORITHM) ||
		!algoSpaceSizeInBytes)
		return bad("no handle of cuDNN, or no algorithm descriptor that was set");
	*algoSpaceSizeInBytes = sizeof(struct saved);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSaveAlgorithm(cudnnHandle_t handle, cudnnAlgorithmDescriptor_t algoDesc,
	void *algoSpace, size_t algoSpaceSizeInBytes)
{
	struct saved saved = {.magic = SAVED_MAGIC};
	cudnnAlgorithm_t algorithm = {0};
	cudnnStatus_t status = hand_cudnnGetAlgorithmDescriptor(algoDesc, &algorithm);

	if (status)
		return status;
	if (!cudnn_find(handle) || !algoSpace || algoSpaceSizeInBytes < sizeof(saved))
		return bad("no handle of cuDNN, or too little space");
	saved.algo = algorithm.algo;
	memcpy(algoSpace, &saved, sizeof(saved));
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnRestoreAlgorithm(cudnnHandle_t handle, void *algoSpace,
	size_t algoSpaceSizeInBytes, cudnnAlgorithmDescriptor_t algoDesc)
{
	struct saved saved;

	if (!cudnn_find(handle) || !algoSpace || algoSpaceSizeInBytes < sizeof(saved))
		return bad("no handle of cuDNN, or too little space");
	memcpy(&saved, algoSpace, sizeof(saved));
	if (saved.magic != SAVED_MAGIC)
		return bad("nothing that was saved");
	return hand_cudnnSetAlgorithmDescriptor(algoDesc, (cudnnAlgorithm_t){saved.algo});
}

/* --- what was found out ------------------------------------------------------------------- */

struct performance {
	uint32_t status, time, memory[2];
};

cudnnStatus_t hand_cudnnCreateAlgorithmPerformance(
	cudnnAlgorithmPerformance_t *algoPerf, int numberToCreate)
{
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
	int made = 0;

	if (!algoPerf || numberToCreate <= 0)
		return bad("nowhere to put what a search finds");
	while (!status && made < numberToCreate) {
		status = cudnn_descriptor_new((void **)&algoPerf[made], CUDNN_KIND_PERFORMANCE);
		if (!status)
			made++;
	}
	if (status)
		hand_cudnnDestroyAlgorithmPerformance(algoPerf, made);
	return status;
}

cudnnStatus_t hand_cudnnDestroyAlgorithmPerformance(
	cudnnAlgorithmPerformance_t *algoPerf, int numberToDestroy)
{
	if (!algoPerf && numberToDestroy)
		return bad("no array of what a search found");
	for (int i = 0; i < numberToDestroy; i++) {
		struct cudnn_descriptor *d =
			cudnn_descriptor_of(algoPerf[i], CUDNN_KIND_PERFORMANCE);

		if (!d)
			return bad("not what a search found");
		if (d->post) /* a search made it */
			cudnn_descriptor_free(d->post, CUDNN_KIND_ALGORITHM);
		cudnn_descriptor_free(d, CUDNN_KIND_PERFORMANCE);
	}
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSetAlgorithmPerformance(cudnnAlgorithmPerformance_t algoPerf,
	cudnnAlgorithmDescriptor_t algoDesc, cudnnStatus_t status, float time, size_t memory)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(algoPerf, CUDNN_KIND_PERFORMANCE);
	struct performance words = {.status = (uint32_t)status};
	uint64_t bytes = memory;

	if (!d || !cudnn_set_of(algoDesc, CUDNN_KIND_ALGORITHM))
		return bad("not what a search finds, or no algorithm that was set");
	memcpy(&words.time, &time, sizeof(time));
	memcpy(words.memory, &bytes, sizeof(bytes));
	memcpy(d->word, &words, sizeof(words));
	d->other = (struct cudnn_descriptor *)algoDesc;
	d->words = sizeof(words) / 4;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetAlgorithmPerformance(const cudnnAlgorithmPerformance_t algoPerf,
	cudnnAlgorithmDescriptor_t *algoDesc, cudnnStatus_t *status, float *time,
	size_t *memory)
{
	const struct cudnn_descriptor *d = cudnn_set_of(algoPerf, CUDNN_KIND_PERFORMANCE);
	struct performance words;

	if (!d)
		return bad("nothing that a search found");
	memcpy(&words, d->word, sizeof(words));
	if (algoDesc)
		*algoDesc = (cudnnAlgorithmDescriptor_t)d->other;
	if (status)
		*status = (cudnnStatus_t)words.status;
	if (time)
		memcpy(time, &words.time, sizeof(*time));
	if (memory)
		memcpy(memory, words.memory, sizeof(*memory));
	return CUDNN_STATUS_SUCCESS;
}
