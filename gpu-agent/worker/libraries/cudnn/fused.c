/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused operations: plans by content, with what they are made of, and executing them.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/libraries/cudnn/cudnn.h"

enum { CONSTANTS = CUDNN_PARAM_BN_DBIAS_PLACEHOLDER + 1, POINTERS = CUDNN_PTR_BN_DBIAS + 1 };

/* The library may keep descriptors by pointer: they go with the plan. */
struct cudnn_fused {
	cudnnFusedOpsPlan_t plan;
	cudnnFusedOpsConstParamPack_t constants;
	cudnnFusedOpsVariantParamPack_t variants;
	size_t workspace;
	struct {
		uint32_t kind;
		void *descriptor;
	} child[CONSTANTS];
	uint32_t children;
};

void cudnn_fused_free(const struct cudnn_library *l, void *made)
{
	struct cudnn_fused *fused = made;

	if (fused->plan)
		l->cudnnDestroyFusedOpsPlan(fused->plan);
	if (fused->variants)
		l->cudnnDestroyFusedOpsVariantParamPack(fused->variants);
	if (fused->constants)
		l->cudnnDestroyFusedOpsConstParamPack(fused->constants);
	for (uint32_t i = 0; i < fused->children; i++)
		cudnn_destroy(l, fused->child[i].kind, fused->child[i].descriptor);
	free(fused);
}

/* One constant of the pack: its label and words. */
static cudnnStatus_t fused_constant(struct library_frame *f, struct cudnn_fused *fused,
	uint32_t label, const uint32_t *word, uint32_t words)
{
	struct cudnn_content content = {
		.kind = cudnn_fused_kind(label), .words = words, .word = word};
	void *descriptor = NULL, *dropouts[2] = {NULL, NULL};
	cudnnStatus_t status;
	int value = (int)word[0];

	if (!content.kind)
		return words == 1 ? cudnn_of(f)->cudnnSetFusedOpsConstParamPackAttribute(
					    fused->constants, (int)label, &value)
				  : CUDNN_STATUS_BAD_PARAM;
	if (fused->children == CONSTANTS)
		return CUDNN_STATUS_BAD_PARAM;
	status = cudnn_make(f, &content, &descriptor, dropouts);
	if (descriptor) {
		fused->child[fused->children].kind = content.kind;
		fused->child[fused->children++].descriptor = descriptor;
	}
	if (status)
		return status;
	return cudnn_of(f)->cudnnSetFusedOpsConstParamPackAttribute(
		fused->constants, (int)label, descriptor);
}

cudnnStatus_t cudnn_set_fused(
	struct library_frame *f, const struct cudnn_content *c, void **made)
{
	const struct cudnn_library *l = f->library;
	struct cudnn_fused *fused;
	cudnnStatus_t status;
	int ops = (int)c->word[0];

	if (!l->cudnnMakeFusedOpsPlan || !l->cudnnCreateFusedOpsPlan ||
		!l->cudnnCreateFusedOpsConstParamPack ||
		!l->cudnnCreateFusedOpsVariantParamPack) {
		worker_lacks(f->w, "cudnnMakeFusedOpsPlan");
		return CUDNN_STATUS_NOT_SUPPORTED;
	}
	fused = *made = calloc(1, sizeof(*fused));
	if (!fused)
		return CUDNN_STATUS_ALLOC_FAILED;
	status = l->cudnnCreateFusedOpsConstParamPack(&fused->constants, ops);
	if (!status)
		status = l->cudnnCreateFusedOpsVariantParamPack(&fused->variants, ops);
	if (!status)
		status = l->cudnnCreateFusedOpsPlan(&fused->plan, ops);
	for (uint32_t at = 1; !status && at < c->words;) {
		uint32_t label = c->word[at] >> 16, words = c->word[at] & 0xffff;

		if (label >= CONSTANTS || !words || words > c->words - at - 1)
			return CUDNN_STATUS_BAD_PARAM;
		status = fused_constant(f, fused, label, c->word + at + 1, words);
		at += 1 + words;
	}
	if (!status)
		status = l->cudnnMakeFusedOpsPlan(
			f->handle, fused->plan, fused->constants, &fused->workspace);
	return status;
}

int run_cudnnMakeFusedOpsPlan(struct library_frame *f)
{
	const struct cudnn_fused *fused = library_get_descriptor(f, CUDNN_KIND_FUSED);

	if (!f->stopped && !fused)
		library_refuse(f, CUDNN_STATUS_BAD_PARAM);
	if (library_stop(f, !cudnn_of(f)->cudnnMakeFusedOpsPlan, "cudnnMakeFusedOpsPlan"))
		return f->status;
	f->answer->out[0] = fused->workspace;
	return CUDNN_STATUS_SUCCESS;
}

static void fused_scalars(const struct cudnn_library *l, cudnnFusedOpsVariantParamPack_t pack,
	const struct cudnn_fused_scalars *from)
{
	struct cudnn_fused_scalars s = *from;
	size_t workspace = s.workspace;
	const struct {
		int label;
		void *value;
	} scalars[] = {
		{CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES, &workspace},
		{CUDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT, &s.count},
		{CUDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR, &s.factor},
		{CUDNN_SCALAR_DOUBLE_BN_EPSILON, &s.epsilon},
	};

	/* One that the operation does not have is refused, and not needed. */
	for (size_t i = 0; i < sizeof(scalars) / sizeof(scalars[0]); i++)
		l->cudnnSetFusedOpsVariantParamPackAttribute(
			pack, scalars[i].label, scalars[i].value);
}

int run_cudnnFusedOpsExecute(struct library_frame *f)
{
	const struct cudnn_library *l = f->library;
	struct cudnn_fused *fused = library_get_descriptor(f, CUDNN_KIND_FUSED);
	const struct cudnn_fused_scalars *scalars;
	void *pointer[POINTERS];

	for (int i = 0; i < POINTERS; i++)
		pointer[i] = library_get_device(f);
	scalars = library_get_bytes(f, sizeof(*scalars));
	if (!f->stopped && !fused)
		library_refuse(f, CUDNN_STATUS_BAD_PARAM);
	if (library_stop(f, !l->cudnnFusedOpsExecute, "cudnnFusedOpsExecute"))
		return f->status;
	for (int i = 0; i < POINTERS; i++)
		l->cudnnSetFusedOpsVariantParamPackAttribute(fused->variants, i, pointer[i]);
	fused_scalars(l, fused->variants, scalars);
	return l->cudnnFusedOpsExecute(f->handle, fused->plan, fused->variants);
}
