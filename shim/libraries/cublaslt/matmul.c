/* SPDX-License-Identifier: Apache-2.0
 *
 * Products and transforms: descriptors become content, scalars become bytes or an address as
 * the pointer mode says, and all of it one frame.
 */
#include <string.h>

#include "shim/generated/cublaslt_hand.h"
#include "protocol/generated/cublaslt_ops.h"
#include "shim/libraries/cublaslt/cublaslt.h"

/* What a scalar of a pointer mode is. */
enum place { NOTHING, ON_HOST, ON_DEVICE };

static enum place alpha_place(int32_t mode)
{
	return mode == CUBLASLT_POINTER_MODE_HOST ? ON_HOST : ON_DEVICE;
}

static enum place beta_place(int32_t mode)
{
	switch (mode) {
	case CUBLASLT_POINTER_MODE_HOST:
	case CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST: return ON_HOST;
	case CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO: return NOTHING;
	default: return ON_DEVICE;
	}
}

static cublasStatus_t scalar(
	uint64_t words[2], const void *value, enum place place, int32_t type)
{
	uint32_t bytes = cublas_data_bytes((cudaDataType)type);

	if (place == NOTHING)
		return CUBLAS_STATUS_SUCCESS;
	if (!value)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (place == ON_DEVICE)
		words[0] = (uint64_t)(uintptr_t)value;
	else if (bytes)
		memcpy(words, value, bytes);
	else
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublaslt_problem(struct cublaslt_problem *problem, cublasLtMatmulDesc_t desc,
	const cublasLtMatrixLayout_t *layouts)
{
	const struct cublaslt_matmul_desc *d = cublaslt_matmul_of(desc);

	if (!d)
		return CUBLAS_STATUS_INVALID_VALUE;
	problem->major = VCUDA_ABI;
	problem->desc = d->content;
	for (int i = 0; i < CUBLASLT_MATRICES; i++) {
		const struct cublaslt_layout_desc *layout = cublaslt_layout_of(layouts[i]);

		if (layout) {
			problem->layout[i] = layout->content;
			problem->layouts |= 1u << i;
		} else if (layouts[i] || i != CUBLASLT_C) {
			return CUBLAS_STATUS_INVALID_VALUE;
		}
	}
	if (d->emulation) {
		if (d->emulation->kind != CUBLASLT_EMULATION)
			return CUBLAS_STATUS_INVALID_VALUE;
		problem->emulation = d->emulation->content;
		problem->emulation.present = 1;
		problem->emulation.bit_count =
			cublaslt_alignment(d->emulation->content.bit_count);
	}
	return CUBLAS_STATUS_SUCCESS;
}

/* One alignment after the other. */
static uint8_t *align(uint8_t *to, const uint64_t *addresses, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		*to++ = cublaslt_alignment(addresses[i]);
	return to;
}

static cublasStatus_t send(uint16_t op, const void *body, size_t body_bytes, uint32_t key_from,
	uint32_t stream_at, CUstream stream)
{
	struct front_frame frame = {
		.call = FRONT_COUNTED,
		.op = op,
		.learned = true,
		.key_from = key_from,
		.body = body,
		.body_bytes = (uint32_t)body_bytes,
		.stream_at = stream_at,
		.stream = stream,
	};

	return vcuda_library_frame(&cublaslt_front, &frame);
}

cublasStatus_t hand_cublasLtMatmul(cublasLtHandle_t lightHandle,
	cublasLtMatmulDesc_t computeDesc, const void *alpha, const void *A,
	cublasLtMatrixLayout_t Adesc, const void *B, cublasLtMatrixLayout_t Bdesc,
	const void *beta, const void *C, cublasLtMatrixLayout_t Cdesc, void *D,
	cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t *algo, void *workspace,
	size_t workspaceSizeInBytes, cudaStream_t stream)
{
	const cublasLtMatrixLayout_t layouts[] = {Adesc, Bdesc, Cdesc, Ddesc};
	const struct cublaslt_matmul_desc *d;
	struct wire_cublasLtMatmul body = {
		.matrix = {(uint64_t)(uintptr_t)A, (uint64_t)(uintptr_t)B,
			(uint64_t)(uintptr_t)C, (uint64_t)(uintptr_t)D},
		.workspace = (uint64_t)(uintptr_t)workspace,
		.workspace_bytes = workspaceSizeInBytes,
		.has_algo = algo != NULL,
	};
	cublasStatus_t status;
	uint8_t *at;

	if (!vcuda_library_find(&cublaslt_front, lightHandle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	status = cublaslt_problem(&body.problem, computeDesc, layouts);
	if (status)
		return status;
	d = cublaslt_matmul_of(computeDesc);
	status = scalar(
		body.alpha, alpha, alpha_place(d->content.pointer_mode), d->content.scale);
	if (!status)
		status = scalar(
			body.beta, beta, beta_place(d->content.pointer_mode), d->content.scale);
	if (status)
		return status;
	memcpy(body.pointers, d->pointers, sizeof(body.pointers));
	if (d->emulation)
		body.bit_count = d->emulation->content.bit_count;
	at = align(body.alignments, body.matrix, CUBLASLT_MATRICES);
	at = align(at, &body.workspace, 1);
	at = align(at, body.pointers, CUBLASLT_POINTERS);
	*at = C == D;
	if (algo)
		memcpy(body.algo, algo, sizeof(body.algo));
	return send(OP_cublasLtMatmul, &body, sizeof(body), KEY_FROM_cublasLtMatmul,
		offsetof(struct wire_cublasLtMatmul, stream), stream);
}

cublasStatus_t hand_cublasLtMatrixTransform(cublasLtHandle_t lightHandle,
	cublasLtMatrixTransformDesc_t transformDesc, const void *alpha, const void *A,
	cublasLtMatrixLayout_t Adesc, const void *beta, const void *B,
	cublasLtMatrixLayout_t Bdesc, void *C, cublasLtMatrixLayout_t Cdesc,
	cudaStream_t stream)
{
	const struct cublaslt_transform_desc *d = cublaslt_transform_of(transformDesc);
	const cublasLtMatrixLayout_t layouts[] = {Adesc, Bdesc, Cdesc};
	struct wire_cublasLtMatrixTransform body = {
		.matrix = {(uint64_t)(uintptr_t)A, (uint64_t)(uintptr_t)B,
			(uint64_t)(uintptr_t)C},
		.major = VCUDA_ABI,
	};
	cublasStatus_t status;

	if (!vcuda_library_find(&cublaslt_front, lightHandle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!d || !Cdesc || (A && !Adesc) || (B && !Bdesc))
		return CUBLAS_STATUS_INVALID_VALUE;
	body.desc = d->content;
	for (int i = 0; i < 3; i++) {
		const struct cublaslt_layout_desc *layout = cublaslt_layout_of(layouts[i]);

		if (layouts[i] && !layout)
			return CUBLAS_STATUS_INVALID_VALUE;
		if (layout) {
			body.layout[i] = layout->content;
			body.layouts |= 1u << i;
		}
	}
	status = scalar(
		body.alpha, alpha, alpha_place(d->content.pointer_mode), d->content.scale);
	/* Where there is no B, beta is not looked at. */
	if (!status && (beta || B))
		status = scalar(
			body.beta, beta, beta_place(d->content.pointer_mode), d->content.scale);
	if (status)
		return status;
	align(body.alignments, body.matrix, 3);
	return send(OP_cublasLtMatrixTransform, &body, sizeof(body),
		KEY_FROM_cublasLtMatrixTransform,
		offsetof(struct wire_cublasLtMatrixTransform, stream), stream);
}
