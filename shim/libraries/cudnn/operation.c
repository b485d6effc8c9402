/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of simple operations: activation, normalization across channels, spatial
 * transformers, arithmetic of tensors, reductions, CTC losses; and the shapes that batch
 * normalization derives.
 */
#include <string.h>

#include "shim/libraries/cudnn/forms.h"
#include "shim/generated/cudnn_hand.h"
#include "shim/libraries/cudnn/cudnn.h"

static cudnnStatus_t bad(const char *text)
{
	return cudnn_fault(CUDNN_STATUS_BAD_PARAM, text);
}

static void put_double(uint32_t *words, double value)
{
	memcpy(words, &value, sizeof(value));
}

static void get_double(const uint32_t *words, double *value)
{
	if (value)
		memcpy(value, words, sizeof(*value));
}

static void get_int(uint32_t word, int *value)
{
	if (value)
		*value = (int)word;
}

cudnnStatus_t hand_cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activationDesc,
	cudnnActivationMode_t mode, cudnnNanPropagation_t reluNanOpt, double coef)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(activationDesc, CUDNN_KIND_ACTIVATION);

	if (!d || mode < 0 || mode > CUDNN_ACTIVATION_SWISH || reluNanOpt < 0 ||
		reluNanOpt > CUDNN_PROPAGATE_NAN)
		return bad("no activation descriptor, or an unknown mode");
	d->word[0] = (uint32_t)mode;
	d->word[1] = (uint32_t)reluNanOpt;
	put_double(d->word + 2, coef);
	put_double(d->word + 4, 1.0);
	d->words = 6;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetActivationDescriptor(
	const cudnnActivationDescriptor_t activationDesc, cudnnActivationMode_t *mode,
	cudnnNanPropagation_t *reluNanOpt, double *coef)
{
	const struct cudnn_descriptor *d = cudnn_set_of(activationDesc, CUDNN_KIND_ACTIVATION);

	if (!d)
		return bad("no activation descriptor that was set");
	get_int(d->word[0], mode);
	get_int(d->word[1], reluNanOpt);
	get_double(d->word + 2, coef);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSetActivationDescriptorSwishBeta(
	cudnnActivationDescriptor_t activationDesc, double swish_beta)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(activationDesc, CUDNN_KIND_ACTIVATION);

	if (!d)
		return bad("no activation descriptor");
	put_double(d->word + 4, swish_beta);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetActivationDescriptorSwishBeta(
	cudnnActivationDescriptor_t activationDesc, double *swish_beta)
{
	const struct cudnn_descriptor *d = cudnn_set_of(activationDesc, CUDNN_KIND_ACTIVATION);

	if (!d || !swish_beta)
		return bad("no activation descriptor that was set");
	get_double(d->word + 4, swish_beta);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSetLRNDescriptor(cudnnLRNDescriptor_t normDesc, unsigned lrnN,
	double lrnAlpha, double lrnBeta, double lrnK)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(normDesc, CUDNN_KIND_LRN);

	if (!d || lrnN < CUDNN_LRN_MIN_N || lrnN > CUDNN_LRN_MAX_N || lrnK < CUDNN_LRN_MIN_K ||
		lrnBeta < CUDNN_LRN_MIN_BETA)
		return bad("no LRN descriptor, or a value out of range");
	d->word[0] = lrnN;
	put_double(d->word + 1, lrnAlpha);
	put_double(d->word + 3, lrnBeta);
	put_double(d->word + 5, lrnK);
	d->words = 7;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetLRNDescriptor(cudnnLRNDescriptor_t normDesc, unsigned *lrnN,
	double *lrnAlpha, double *lrnBeta, double *lrnK)
{
	const struct cudnn_descriptor *d = cudnn_set_of(normDesc, CUDNN_KIND_LRN);

	if (!d)
		return bad("no LRN descriptor that was set");
	if (lrnN)
		*lrnN = d->word[0];
	get_double(d->word + 1, lrnAlpha);
	get_double(d->word + 3, lrnBeta);
	get_double(d->word + 5, lrnK);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSetSpatialTransformerNdDescriptor(
	cudnnSpatialTransformerDescriptor_t stDesc, cudnnSamplerType_t samplerType,
	cudnnDataType_t dataType, const int nbDims, const int dimA[])
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(stDesc, CUDNN_KIND_SPATIAL);

	if (!d || !dimA || nbDims < 1 || nbDims > CUDNN_DIM_MAX ||
		samplerType != CUDNN_SAMPLER_BILINEAR)
		return bad("no spatial transformer, or its sizes");
	d->word[0] = (uint32_t)samplerType;
	d->word[1] = (uint32_t)dataType;
	d->word[2] = (uint32_t)nbDims;
	memcpy(d->word + 3, dimA, (size_t)nbDims * 4);
	d->words = (uint16_t)(3 + nbDims);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t opTensorDesc,
	cudnnOpTensorOp_t opTensorOp, cudnnDataType_t opTensorCompType,
	cudnnNanPropagation_t opTensorNanOpt)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(opTensorDesc, CUDNN_KIND_OP_TENSOR);

	if (!d || opTensorOp < 0 || opTensorOp > CUDNN_OP_TENSOR_NOT)
		return bad("no op tensor descriptor, or an unknown operation");
	d->word[0] = (uint32_t)opTensorOp;
	d->word[1] = (uint32_t)opTensorCompType;
	d->word[2] = (uint32_t)opTensorNanOpt;
	d->words = 3;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetOpTensorDescriptor(const cudnnOpTensorDescriptor_t opTensorDesc,
	cudnnOpTensorOp_t *opTensorOp, cudnnDataType_t *opTensorCompType,
	cudnnNanPropagation_t *opTensorNanOpt)
{
	const struct cudnn_descriptor *d = cudnn_set_of(opTensorDesc, CUDNN_KIND_OP_TENSOR);

	if (!d)
		return bad("no op tensor descriptor that was set");
	get_int(d->word[0], opTensorOp);
	get_int(d->word[1], opTensorCompType);
	get_int(d->word[2], opTensorNanOpt);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSetReduceTensorDescriptor(
	cudnnReduceTensorDescriptor_t reduceTensorDesc, cudnnReduceTensorOp_t reduceTensorOp,
	cudnnDataType_t reduceTensorCompType, cudnnNanPropagation_t reduceTensorNanOpt,
	cudnnReduceTensorIndices_t reduceTensorIndices,
	cudnnIndicesType_t reduceTensorIndicesType)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(reduceTensorDesc, CUDNN_KIND_REDUCE);

	if (!d || reduceTensorOp < 0 || reduceTensorOp > CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS)
		return bad("no reduction descriptor, or an unknown operation");
	d->word[0] = (uint32_t)reduceTensorOp;
	d->word[1] = (uint32_t)reduceTensorCompType;
	d->word[2] = (uint32_t)reduceTensorNanOpt;
	d->word[3] = (uint32_t)reduceTensorIndices;
	d->word[4] = (uint32_t)reduceTensorIndicesType;
	d->words = 5;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetReduceTensorDescriptor(
	const cudnnReduceTensorDescriptor_t reduceTensorDesc,
	cudnnReduceTensorOp_t *reduceTensorOp, cudnnDataType_t *reduceTensorCompType,
	cudnnNanPropagation_t *reduceTensorNanOpt,
	cudnnReduceTensorIndices_t *reduceTensorIndices,
	cudnnIndicesType_t *reduceTensorIndicesType)
{
	const struct cudnn_descriptor *d = cudnn_set_of(reduceTensorDesc, CUDNN_KIND_REDUCE);

	if (!d)
		return bad("no reduction descriptor that was set");
	get_int(d->word[0], reduceTensorOp);
	get_int(d->word[1], reduceTensorCompType);
	get_int(d->word[2], reduceTensorNanOpt);
	get_int(d->word[3], reduceTensorIndices);
	get_int(d->word[4], reduceTensorIndicesType);
	return CUDNN_STATUS_SUCCESS;
}

/* --- CTC losses --------------------------------------------------------------------------- */

cudnnStatus_t cudnn_ctc_set(cudnnCTCLossDescriptor_t ctc, enum cudnn_ctc_form form,
	cudnnDataType_t type, int normalization, int gradient, int longest)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(ctc, CUDNN_KIND_CTC);

	if (!d || type != CUDNN_DATA_FLOAT || normalization < 0 ||
		normalization > CUDNN_LOSS_NORMALIZATION_SOFTMAX || gradient < 0 ||
		gradient > 1 || longest < 0)
		return bad("no CTC descriptor, or a value out of range");
	d->word[0] = form;
	d->word[1] = (uint32_t)type;
	d->word[2] = (uint32_t)normalization;
	d->word[3] = (uint32_t)gradient;
	d->word[4] = (uint32_t)longest;
	d->words = 5;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_ctc_get(cudnnCTCLossDescriptor_t ctc, cudnnDataType_t *type,
	int *normalization, int *gradient, int *longest)
{
	const struct cudnn_descriptor *d = cudnn_set_of(ctc, CUDNN_KIND_CTC);

	if (!d)
		return bad("no CTC descriptor that was set");
	get_int(d->word[1], type);
	get_int(d->word[2], normalization);
	get_int(d->word[3], gradient);
	get_int(d->word[4], longest);
	return CUDNN_STATUS_SUCCESS;
}

/* --- shapes that are derived -------------------------------------------------------------- */

/* One value a channel, or one a channel and place: in float where x is narrower. */
static cudnnStatus_t derive(
	cudnnTensorDescriptor_t derived, const struct cudnn_descriptor *x, bool per_place)
{
	int dims[CUDNN_DIM_MAX];
	int type = (int)x->word[0];
	int n = (int)x->word[2];

	for (int i = 0; i < n; i++)
		dims[i] = i == 1 || (per_place && i > 1) ? (int)x->word[3 + i] : 1;
	if (type != CUDNN_DATA_DOUBLE)
		type = CUDNN_DATA_FLOAT;
	return hand_cudnnSetTensorNdDescriptorEx(derived, CUDNN_TENSOR_NCHW, type, n, dims);
}

cudnnStatus_t hand_cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derivedBnDesc,
	const cudnnTensorDescriptor_t xDesc, cudnnBatchNormMode_t mode)
{
	const struct cudnn_descriptor *x = cudnn_set_of(xDesc, CUDNN_KIND_TENSOR);

	if (!x || x->word[2] < 4 || x->word[2] > 5 || mode < 0 ||
		mode > CUDNN_BATCHNORM_SPATIAL_PERSISTENT)
		return bad("no tensor of 4 or 5 dimensions, or an unknown mode");
	return derive(derivedBnDesc, x, mode == CUDNN_BATCHNORM_PER_ACTIVATION);
}

cudnnStatus_t hand_cudnnDeriveNormTensorDescriptor(
	cudnnTensorDescriptor_t derivedNormScaleBiasDesc,
	cudnnTensorDescriptor_t derivedNormMeanVarDesc, const cudnnTensorDescriptor_t xDesc,
	cudnnNormMode_t mode, int groupCnt)
{
	const struct cudnn_descriptor *x = cudnn_set_of(xDesc, CUDNN_KIND_TENSOR);
	cudnnStatus_t status;

	if (!x || groupCnt != 1 || mode < 0 || mode > CUDNN_NORM_PER_CHANNEL)
		return bad("no tensor, an unknown mode, or groups");
	status = derive(derivedNormScaleBiasDesc, x, mode == CUDNN_NORM_PER_ACTIVATION);
	if (!status)
		status = derive(derivedNormMeanVarDesc, x, mode == CUDNN_NORM_PER_ACTIVATION);
	return status;
}
