/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused operations: packs of constant parameters, which a plan is made of and which travel with
 * it as content; packs of pointers and scalars, which an execution takes.
 */
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/cudnn_ops.h"
#include "shim/generated/cuda_calls.h"
#include "shim/libraries/cudnn/forms.h"

enum { CONSTANTS = CUDNN_PARAM_BN_DBIAS_PLACEHOLDER + 1, POINTERS = CUDNN_PTR_BN_DBIAS + 1 };
#define OPS_LAST CUDNN_FUSED_DACTIVATION_FORK_DBATCHNORM
#define MAGIC_CONSTANT 0x43736646u
#define MAGIC_VARIANT 0x56736646u
#define MAGIC_PLAN 0x50736646u

/* What is set: as many words as the descriptor has, or one; none: it is not. */
struct constant {
	uint32_t words;
	uint32_t word[CUDNN_DESCRIPTOR_WORDS];
};

struct cudnnFusedOpsConstParamStruct {
	uint32_t magic, ops;
	struct constant constant[CONSTANTS];
};

struct cudnnFusedOpsVariantParamStruct {
	uint32_t magic, ops;
	const void *pointer[POINTERS];
	struct cudnn_fused_scalars scalars;
};

struct cudnnFusedOpsPlanStruct {
	uint32_t magic, ops;
	uint32_t words; /* 0: not made yet */
	uint32_t word[CUDNN_FUSED_WORDS];
};

static cudnnStatus_t bad(const char *text)
{
	return cudnn_fault(CUDNN_STATUS_BAD_PARAM, text);
}

/* One of these objects, which begin alike: its magic number and operations. */
static cudnnStatus_t object_new(void *at, size_t bytes, uint32_t magic, cudnnFusedOps_t ops)
{
	uint32_t *made;

	if (!at || ops < 0 || ops > OPS_LAST)
		return bad("nowhere to put it, or no fused operation");
	made = calloc(1, bytes);
	if (!made)
		return CUDNN_STATUS_ALLOC_FAILED;
	made[0] = magic;
	made[1] = (uint32_t)ops;
	memcpy(at, &made, sizeof(made));
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t object_free(void *object, uint32_t magic)
{
	uint32_t *begins = object;

	if (!object)
		return CUDNN_STATUS_SUCCESS;
	if (begins[0] != magic)
		return bad("an object of another kind");
	begins[0] = 0;
	free(object);
	return CUDNN_STATUS_SUCCESS;
}

/* --- constants ---------------------------------------------------------------------------- */

cudnnStatus_t hand_cudnnCreateFusedOpsConstParamPack(
	cudnnFusedOpsConstParamPack_t *constPack, cudnnFusedOps_t ops)
{
	return object_new(constPack, sizeof(**constPack), MAGIC_CONSTANT, ops);
}

cudnnStatus_t hand_cudnnDestroyFusedOpsConstParamPack(cudnnFusedOpsConstParamPack_t constPack)
{
	return object_free(constPack, MAGIC_CONSTANT);
}

static bool constant_is(
	cudnnFusedOpsConstParamPack_t pack, cudnnFusedOpsConstParamLabel_t label)
{
	return pack && pack->magic == MAGIC_CONSTANT && label >= 0 && label < CONSTANTS;
}

cudnnStatus_t hand_cudnnSetFusedOpsConstParamPackAttribute(
	cudnnFusedOpsConstParamPack_t constPack, cudnnFusedOpsConstParamLabel_t paramLabel,
	const void *param)
{
	const struct cudnn_descriptor *d;
	struct constant *to;
	uint32_t kind;

	if (!constant_is(constPack, paramLabel))
		return bad("no pack of constants, or no such parameter");
	to = &constPack->constant[paramLabel];
	kind = cudnn_fused_kind((uint32_t)paramLabel);
	*to = (struct constant){0};
	if (!param)
		return CUDNN_STATUS_SUCCESS;
	if (!kind) {
		to->words = 1;
		memcpy(to->word, param, sizeof(to->word[0]));
		return CUDNN_STATUS_SUCCESS;
	}
	d = cudnn_set_of(param, kind);
	if (!d)
		return bad("a descriptor that was never set, or is of another kind");
	to->words = d->words;
	memcpy(to->word, d->word, sizeof(to->word));
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetFusedOpsConstParamPackAttribute(
	const cudnnFusedOpsConstParamPack_t constPack,
	cudnnFusedOpsConstParamLabel_t paramLabel, void *param, int *isNULL)
{
	const struct constant *from;
	struct cudnn_descriptor *d;
	uint32_t kind;

	if (!constant_is(constPack, paramLabel) || !param || !isNULL)
		return bad("no pack of constants, or no such parameter");
	from = &constPack->constant[paramLabel];
	kind = cudnn_fused_kind((uint32_t)paramLabel);
	*isNULL = !from->words;
	if (*isNULL)
		return CUDNN_STATUS_SUCCESS;
	if (!kind) {
		memcpy(param, from->word, sizeof(from->word[0]));
		return CUDNN_STATUS_SUCCESS;
	}
	d = cudnn_descriptor_of(param, kind);
	if (!d)
		return bad("a descriptor of another kind");
	d->words = (uint16_t)from->words;
	memcpy(d->word, from->word, sizeof(from->word));
	return CUDNN_STATUS_SUCCESS;
}

/* --- variants ----------------------------------------------------------------------------- */

cudnnStatus_t hand_cudnnCreateFusedOpsVariantParamPack(
	cudnnFusedOpsVariantParamPack_t *varPack, cudnnFusedOps_t ops)
{
	return object_new(varPack, sizeof(**varPack), MAGIC_VARIANT, ops);
}

cudnnStatus_t hand_cudnnDestroyFusedOpsVariantParamPack(cudnnFusedOpsVariantParamPack_t varPack)
{
	return object_free(varPack, MAGIC_VARIANT);
}

/* A scalar's place, eight bytes each; NULL: no such label. */
static void *scalar_at(
	cudnnFusedOpsVariantParamPack_t pack, cudnnFusedOpsVariantParamLabel_t label)
{
	switch (label) {
	case CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES: return &pack->scalars.workspace;
	case CUDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT: return &pack->scalars.count;
	case CUDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR: return &pack->scalars.factor;
	case CUDNN_SCALAR_DOUBLE_BN_EPSILON: return &pack->scalars.epsilon;
	default: return NULL;
	}
}

cudnnStatus_t hand_cudnnSetFusedOpsVariantParamPackAttribute(
	cudnnFusedOpsVariantParamPack_t varPack, cudnnFusedOpsVariantParamLabel_t paramLabel,
	void *ptr)
{
	void *scalar;

	if (!varPack || varPack->magic != MAGIC_VARIANT)
		return bad("no pack of variants");
	if (paramLabel >= 0 && paramLabel < POINTERS) {
		varPack->pointer[paramLabel] = ptr;
		return CUDNN_STATUS_SUCCESS;
	}
	scalar = scalar_at(varPack, paramLabel);
	if (!scalar || !ptr)
		return bad("no such parameter, or no value");
	memcpy(scalar, ptr, 8);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetFusedOpsVariantParamPackAttribute(
	const cudnnFusedOpsVariantParamPack_t varPack,
	cudnnFusedOpsVariantParamLabel_t paramLabel, void *ptr)
{
	const void *scalar;

	if (!varPack || varPack->magic != MAGIC_VARIANT || !ptr)
		return bad("no pack of variants, or nowhere to put a value");
	if (paramLabel >= 0 && paramLabel < POINTERS) {
		memcpy(ptr, &varPack->pointer[paramLabel], sizeof(void *));
		return CUDNN_STATUS_SUCCESS;
	}
	scalar = scalar_at(varPack, paramLabel);
	if (!scalar)
		return bad("no such parameter");
	memcpy(ptr, scalar, 8);
	return CUDNN_STATUS_SUCCESS;
}

/* --- plans -------------------------------------------------------------------------------- */

cudnnStatus_t hand_cudnnCreateFusedOpsPlan(cudnnFusedOpsPlan_t *plan, cudnnFusedOps_t ops)
{
	return object_new(plan, sizeof(**plan), MAGIC_PLAN, ops);
}

cudnnStatus_t hand_cudnnDestroyFusedOpsPlan(cudnnFusedOpsPlan_t plan)
{
	return object_free(plan, MAGIC_PLAN);
}

/* The pack as words; how many, 0 where there is no room. */
static uint32_t pack_words(const struct cudnnFusedOpsConstParamStruct *pack, uint32_t *word)
{
	uint32_t used = 1;

	word[0] = pack->ops;
	for (uint32_t label = 0; label < CONSTANTS; label++) {
		const struct constant *c = &pack->constant[label];

		if (!c->words)
			continue;
		if (c->words >= CUDNN_FUSED_WORDS - used)
			return 0;
		word[used++] = label << 16 | c->words;
		memcpy(word + used, c->word, c->words * sizeof(*word));
		used += c->words;
	}
	return used;
}

static void put_plan(struct library_items *items, const uint32_t *word, uint32_t words)
{
	void *to = library_put_content(items, CUDNN_KIND_FUSED, words);

	if (to)
		memcpy(to, word, words * sizeof(*word));
}

cudnnStatus_t hand_cudnnMakeFusedOpsPlan(cudnnHandle_t handle, cudnnFusedOpsPlan_t plan,
	const cudnnFusedOpsConstParamPack_t constPack, size_t *workspaceSizeInBytes)
{
	struct library_items items;
	struct library_answer reply;
	uint32_t words;

	if (!plan || plan->magic != MAGIC_PLAN || !constPack ||
		constPack->magic != MAGIC_CONSTANT || plan->ops != constPack->ops ||
		!workspaceSizeInBytes)
		return bad("no plan or pack, or of different operations");
	plan->words = 0;
	words = pack_words(constPack, plan->word);
	if (!words)
		return cudnn_fault(
			CUDNN_STATUS_NOT_SUPPORTED, "a pack with too many dimensions");
	library_begin(&items, &cudnn_front, FRONT_COUNTED, OP_cudnnMakeFusedOpsPlan,
		LIBRARY_CACHED, handle);
	put_plan(&items, plan->word, words);
	if (library_exchange(&items, &reply, sizeof(reply)))
		return items.status;
	plan->words = words;
	*workspaceSizeInBytes = reply.out[0];
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnFusedOpsExecute(cudnnHandle_t handle, const cudnnFusedOpsPlan_t plan,
	cudnnFusedOpsVariantParamPack_t varPack)
{
	struct library_items items;
	struct library_answer reply;

	if (!plan || plan->magic != MAGIC_PLAN || !plan->words || !varPack ||
		varPack->magic != MAGIC_VARIANT || varPack->ops != plan->ops)
		return bad("no plan that was made or no pack, or of different operations");
	library_begin(&items, &cudnn_front, FRONT_COUNTED, OP_cudnnFusedOpsExecute,
		LIBRARY_LEARNED, handle);
	put_plan(&items, plan->word, plan->words);
	for (int i = 0; i < POINTERS; i++)
		library_put_device(&items, varPack->pointer[i]);
	library_put_bytes(&items, &varPack->scalars, sizeof(varPack->scalars));
	library_exchange(&items, &reply, sizeof(reply));
	return items.status;
}
