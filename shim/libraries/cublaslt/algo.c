/* SPDX-License-Identifier: Apache-2.0
 *
 * Algorithms: all that is asked about them is answered by the agent's library, once for each
 * question.  An algorithm itself is 64 opaque bytes, the library's own.
 */
#include <string.h>

#include "shim/libraries/cublaslt/forms.h"
#include "shim/generated/cublaslt_hand.h"
#include "protocol/generated/cublaslt_ops.h"
#include "shim/libraries/cublaslt/cublaslt.h"

cublasStatus_t cublaslt_ask(uint16_t op, const void *body, size_t body_bytes, void *reply,
	size_t bytes, size_t most, uint32_t *got)
{
	struct front_frame frame = {
		.call = FRONT_COUNTED,
		.op = op,
		.cached = true,
		.body = body,
		.body_bytes = (uint32_t)body_bytes,
		.stream_at = FRONT_NO_STREAM,
		.reply = reply,
		.reply_bytes = bytes,
		.reply_most = most,
		.reply_got = got,
	};
	CUresult status = vcuda_front_context();

	return status ? front_status(&cublaslt_front, status)
		      : vcuda_library_frame(&cublaslt_front, &frame);
}

/* The alignments that a product's pointers have. */
static void pointers_of(uint8_t *to, cublasLtMatmulDesc_t desc)
{
	const struct cublaslt_matmul_desc *d = cublaslt_matmul_of(desc);

	for (int i = 0; i < CUBLASLT_POINTERS; i++)
		to[i] = library_alignment(d->pointers[i]);
}

/* What a question says that older agents do not know; false: nothing. */
static bool more_of(struct cublaslt_more *more, cublasLtMatmulDesc_t desc,
	const cublasLtMatrixLayout_t *layouts, const struct cublaslt_preference_desc *pref)
{
	const struct cublaslt_matmul_desc *d = cublaslt_matmul_of(desc);
	bool any = cublaslt_says_more(d);

	more->stream = CUBLASLT_NO_STREAM;
	more->desc = d->more;
	for (int i = 0; i < CUBLASLT_MATRICES; i++) {
		const struct cublaslt_layout_desc *layout = cublaslt_layout_of(layouts[i]);

		if (!layout || layout->kind != CUBLASLT_GROUPED_LAYOUT)
			continue;
		any = true;
		more->grouped |= 1u << i;
		more->group[i] = layout->group;
		for (int at = 0; at < 3; at++)
			more->group[i].at[at] = library_alignment(layout->group.at[at]);
	}
	if (pref && pref->kind == CUBLASLT_GROUPED_PREFERENCE) {
		any = true;
		more->preference = pref->more;
	}
	return any;
}

/* A question and its answer: as it was before there was more to say, where there is nothing
 * more. */
struct question {
	uint16_t op, more_op;
	const char *call;
	void *body; /* of the longer one, which begins with the shorter */
	size_t body_bytes, more_at;
	const CUstream *stream; /* of a part of the device, or NULL */
};

static cublasStatus_t question_ask(const struct question *q, bool more, void *reply,
	size_t bytes, size_t most, uint32_t *got)
{
	struct front_frame frame = {
		.call = FRONT_COUNTED,
		.op = q->more_op,
		.cached = !q->stream, /* a stream may come again with another part */
		.body = q->body,
		.body_bytes = (uint32_t)q->body_bytes,
		.stream_at = q->stream ? (uint32_t)(q->more_at +
						    offsetof(struct cublaslt_more, stream))
				       : FRONT_NO_STREAM,
		.stream = q->stream ? *q->stream : NULL,
		.reply = reply,
		.reply_bytes = bytes,
		.reply_most = most,
		.reply_got = got,
	};
	CUresult status;

	if (!more && !q->stream)
		return cublaslt_ask(q->op, q->body, q->more_at, reply, bytes, most, got);
	if (!cublaslt_agent_knows(q->call))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	status = vcuda_front_context();
	return status ? front_status(&cublaslt_front, status)
		      : vcuda_library_frame(&cublaslt_front, &frame);
}

static cublasStatus_t heuristic(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t desc,
	const cublasLtMatrixLayout_t *layouts, cublasLtMatmulPreference_t preference,
	int wanted, cublasLtMatmulHeuristicResult_t *results, int *count,
	const CUstream *stream)
{
	const struct cublaslt_preference_desc *pref = cublaslt_preference_of(preference);
	struct wire_cublasLtMatmulAlgoGetHeuristicForStream body = {
		.plain.preference = CUBLASLT_PREFERENCE_DEFAULTS};
	struct question question = {OP_cublasLtMatmulAlgoGetHeuristic,
		OP_cublasLtMatmulAlgoGetHeuristicForStream, "cublasLtMatmulAlgoGetHeuristic",
		&body, sizeof(body),
		offsetof(struct wire_cublasLtMatmulAlgoGetHeuristicForStream, more), stream};
	struct {
		struct wire_cublasLtMatmulAlgoGetHeuristic_reply head;
		cublasLtMatmulHeuristicResult_t results[CUBLASLT_RESULTS_MAX];
	} reply;
	cublasStatus_t status;
	uint32_t got = 0;

	if (!vcuda_library_find(&cublaslt_front, lightHandle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (wanted <= 0 || !results || !count || (preference && !pref))
		return CUBLAS_STATUS_INVALID_VALUE;
	*count = 0;
	status = cublaslt_problem(&body.plain.problem, desc, layouts);
	if (status)
		return status;
	if (pref)
		body.plain.preference = pref->content;
	pointers_of(body.plain.pointers, desc);
	body.plain.wanted =
		wanted < CUBLASLT_RESULTS_MAX ? (uint32_t)wanted : CUBLASLT_RESULTS_MAX;
	if (body.plain.preference.search_mode == CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID)
		memcpy(body.plain.algo, &results[0].algo, sizeof(body.plain.algo));
	status = question_ask(&question, more_of(&body.more, desc, layouts, pref), &reply,
		sizeof(reply.head), sizeof(reply), &got);
	if (status)
		return status;
	if (reply.head.count > body.plain.wanted ||
		got < sizeof(reply.head) + reply.head.count * sizeof(reply.results[0]))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	memcpy(results, reply.results, reply.head.count * sizeof(reply.results[0]));
	*count = (int)reply.head.count;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t desc,
	const cublasLtMatrixLayout_t *layouts, const cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulHeuristicResult_t *result, const CUstream *stream)
{
	struct wire_cublasLtMatmulAlgoCheckForStream body = {0};
	struct question question = {OP_cublasLtMatmulAlgoCheck,
		OP_cublasLtMatmulAlgoCheckForStream, "cublasLtMatmulAlgoCheck", &body,
		sizeof(body), offsetof(struct wire_cublasLtMatmulAlgoCheckForStream, more),
		stream};
	struct wire_cublasLtMatmulAlgoCheck_reply reply;
	cublasStatus_t status;

	if (!vcuda_library_find(&cublaslt_front, lightHandle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!algo || !result)
		return CUBLAS_STATUS_INVALID_VALUE;
	status = cublaslt_problem(&body.plain.problem, desc, layouts);
	if (status)
		return status;
	pointers_of(body.plain.pointers, desc);
	memcpy(body.plain.algo, algo, sizeof(body.plain.algo));
	status = question_ask(&question, more_of(&body.more, desc, layouts, NULL), &reply,
		sizeof(reply), 0, NULL);
	if (status)
		return status;
	/* cublasLt.h says that the algorithm in it is never updated; cuTENSOR takes it from
	 * there, and runs with it. */
	reply.result.algo = *algo;
	*result = reply.result;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t lightHandle,
	cublasLtMatmulDesc_t operationDesc, cublasLtMatrixLayout_t Adesc,
	cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc,
	cublasLtMatrixLayout_t Ddesc, cublasLtMatmulPreference_t preference,
	int requestedAlgoCount, cublasLtMatmulHeuristicResult_t heuristicResultsArray[],
	int *returnAlgoCount)
{
	const cublasLtMatrixLayout_t layouts[] = {Adesc, Bdesc, Cdesc, Ddesc};

	return heuristic(lightHandle, operationDesc, layouts, preference, requestedAlgoCount,
		heuristicResultsArray, returnAlgoCount, NULL);
}

cublasStatus_t hand_cublasLtMatmulAlgoCheck(cublasLtHandle_t lightHandle,
	cublasLtMatmulDesc_t operationDesc, cublasLtMatrixLayout_t Adesc,
	cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc,
	cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulHeuristicResult_t *result)
{
	const cublasLtMatrixLayout_t layouts[] = {Adesc, Bdesc, Cdesc, Ddesc};

	return check(lightHandle, operationDesc, layouts, algo, result, NULL);
}

#if VCUDA_ABI == 13

/* A stream says which part of the device works: all of it, for which the answer is that of the
 * question without a stream, unless its context is a green one. */
static cublasStatus_t part_of(const cudaStream_t *stream, const CUstream **part)
{
	CUgreenCtx green = NULL;
	CUresult status = vcuda_front_context();

	*part = NULL;
	if (status)
		return front_status(&cublaslt_front, status);
	if (cuStreamGetGreenCtx(*stream, &green))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (green)
		*part = stream;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtMatmulAlgoGetHeuristicForStream(cublasLtHandle_t lightHandle,
	cublasLtMatmulDesc_t operationDesc, cublasLtMatrixLayout_t Adesc,
	cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc,
	cublasLtMatrixLayout_t Ddesc, cublasLtMatmulPreference_t preference,
	int requestedAlgoCount, cublasLtMatmulHeuristicResult_t heuristicResultsArray[],
	int *returnAlgoCount, cudaStream_t stream)
{
	const cublasLtMatrixLayout_t layouts[] = {Adesc, Bdesc, Cdesc, Ddesc};
	const CUstream *part;
	cublasStatus_t status = part_of(&stream, &part);

	return status ? status
		      : heuristic(lightHandle, operationDesc, layouts, preference,
				requestedAlgoCount, heuristicResultsArray, returnAlgoCount,
				part);
}

cublasStatus_t hand_cublasLtMatmulAlgoCheckForStream(cublasLtHandle_t lightHandle,
	cublasLtMatmulDesc_t operationDesc, cublasLtMatrixLayout_t Adesc,
	cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc,
	cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulHeuristicResult_t *result, cudaStream_t stream)
{
	const cublasLtMatrixLayout_t layouts[] = {Adesc, Bdesc, Cdesc, Ddesc};
	const CUstream *part;
	cublasStatus_t status = part_of(&stream, &part);

	return status ? status : check(lightHandle, operationDesc, layouts, algo, result, part);
}

#endif

cublasStatus_t hand_cublasLtMatmulAlgoGetIds(cublasLtHandle_t lightHandle,
	cublasComputeType_t computeType, cudaDataType_t scaleType, cudaDataType_t Atype,
	cudaDataType_t Btype, cudaDataType_t Ctype, cudaDataType_t Dtype,
	int requestedAlgoCount, int algoIdsArray[], int *returnAlgoCount)
{
	struct wire_cublasLtMatmulAlgoGetIds body = {
		.major = VCUDA_ABI,
		.compute = computeType,
		.scale = (int32_t)scaleType,
		.a = (int32_t)Atype,
		.b = (int32_t)Btype,
		.c = (int32_t)Ctype,
		.d = (int32_t)Dtype,
	};
	struct {
		struct wire_cublasLtMatmulAlgoGetIds_reply head;
		int ids[CUBLASLT_IDS_MAX];
	} reply;
	cublasStatus_t status;
	uint32_t got = 0;

	if (!vcuda_library_find(&cublaslt_front, lightHandle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (requestedAlgoCount <= 0 || !algoIdsArray || !returnAlgoCount)
		return CUBLAS_STATUS_INVALID_VALUE;
	body.wanted = requestedAlgoCount < CUBLASLT_IDS_MAX ? (uint32_t)requestedAlgoCount
							    : CUBLASLT_IDS_MAX;
	status = cublaslt_ask(OP_cublasLtMatmulAlgoGetIds, &body, sizeof(body), &reply,
		sizeof(reply.head), sizeof(reply), &got);
	if (status)
		return status;
	if (reply.head.count > body.wanted ||
		got < sizeof(reply.head) + reply.head.count * sizeof(reply.ids[0]))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	memcpy(algoIdsArray, reply.ids, reply.head.count * sizeof(reply.ids[0]));
	*returnAlgoCount = (int)reply.head.count;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtMatmulAlgoInit(cublasLtHandle_t lightHandle,
	cublasComputeType_t computeType, cudaDataType_t scaleType, cudaDataType_t Atype,
	cudaDataType_t Btype, cudaDataType_t Ctype, cudaDataType_t Dtype, int algoId,
	cublasLtMatmulAlgo_t *algo)
{
	struct wire_cublasLtMatmulAlgoInit body = {
		.major = VCUDA_ABI,
		.compute = computeType,
		.scale = (int32_t)scaleType,
		.a = (int32_t)Atype,
		.b = (int32_t)Btype,
		.c = (int32_t)Ctype,
		.d = (int32_t)Dtype,
		.id = algoId,
	};
	struct wire_cublasLtMatmulAlgoInit_reply reply;
	cublasStatus_t status;

	if (!vcuda_library_find(&cublaslt_front, lightHandle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!algo)
		return CUBLAS_STATUS_INVALID_VALUE;
	status = cublaslt_ask(
		OP_cublasLtMatmulAlgoInit, &body, sizeof(body), &reply, sizeof(reply), 0, NULL);
	if (status)
		return status;
	memcpy(algo, reply.algo, sizeof(*algo));
	return CUBLAS_STATUS_SUCCESS;
}

/* Lists may be longer than an answer: they come in slices. */
cublasStatus_t cublaslt_algo_attribute(uint16_t op, const cublasLtMatmulAlgo_t *algo, int attr,
	void *buf, size_t room, size_t *written)
{
	struct wire_cublasLtMatmulAlgoCapGetAttribute body = {
		.major = VCUDA_ABI,
		.attribute = attr,
		.bytes =
			room < CUBLASLT_ATTRIBUTE_MAX ? (uint32_t)room : CUBLASLT_ATTRIBUTE_MAX,
	};
	struct {
		struct wire_cublasLtMatmulAlgoCapGetAttribute_reply head;
		unsigned char bytes[CUBLASLT_SLICE];
	} reply;
	cublasStatus_t status;
	uint32_t got;

	if (!algo || (room ? !buf : !written))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(body.algo, algo, sizeof(body.algo));
	do {
		got = 0;
		status = cublaslt_ask(op, &body, sizeof(body), &reply, sizeof(reply.head),
			sizeof(reply), &got);
		if (status)
			return status;
		if (got < sizeof(reply.head) || reply.head.bytes > got - sizeof(reply.head) ||
			reply.head.bytes > room - body.from)
			return CUBLAS_STATUS_INTERNAL_ERROR;
		memcpy((char *)buf + body.from, reply.bytes, reply.head.bytes);
		body.from += reply.head.bytes;
	} while (room && reply.head.bytes && body.from < reply.head.written &&
		 body.from < body.bytes);
	if (written)
		*written = reply.head.written;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo,
	cublasLtMatmulAlgoConfigAttributes_t attr, const void *buf, size_t sizeInBytes)
{
	struct wire_cublasLtMatmulAlgoConfigSetAttribute body = {
		.major = VCUDA_ABI, .attribute = attr, .bytes = sizeInBytes};
	struct wire_cublasLtMatmulAlgoConfigSetAttribute_reply reply;
	cublasStatus_t status;

	if (!algo || !buf || !sizeInBytes || sizeInBytes > sizeof(body.value))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(body.algo, algo, sizeof(body.algo));
	memcpy(body.value, buf, sizeInBytes);
	status = cublaslt_ask(OP_cublasLtMatmulAlgoConfigSetAttribute, &body, sizeof(body),
		&reply, sizeof(reply), 0, NULL);
	if (status)
		return status;
	memcpy(algo, reply.algo, sizeof(*algo));
	return CUBLAS_STATUS_SUCCESS;
}
