/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters of the agent's NCCL: they are read, and stay as they are as long as it runs.
 */
#include <stdio.h>
#include <string.h>

#include "gpu-agent/worker/libraries/nccl/nccl.h"

/* What lacks is answered, and noted. */
static bool lacks(
	const struct nccl_library *l, bool is, const char *name, struct library_reply *plain)
{
	char text[NCCL_TEXT];

	if (is)
		return false;
	plain->status = (uint32_t)nccl_lacks(l, name, text);
	nccl_note_text(text);
	return true;
}

/* Which of the typed getters takes it: the library tells its type in no other way. */
static enum nccl_param param_type(const struct nccl_library *l, ncclParamHandle_t h)
{
	const char *text;
	uint64_t value;

#define TRY(TYPE, GETTER)                                                                      \
	if (l->GETTER && !l->GETTER(h, (void *)&value))                                        \
		return TYPE;
	TRY(NCCL_PARAM_I64, ncclParamGetI64)
	TRY(NCCL_PARAM_I32, ncclParamGetI32)
	TRY(NCCL_PARAM_I16, ncclParamGetI16)
	TRY(NCCL_PARAM_I8, ncclParamGetI8)
	TRY(NCCL_PARAM_U64, ncclParamGetU64)
	TRY(NCCL_PARAM_U32, ncclParamGetU32)
	TRY(NCCL_PARAM_U16, ncclParamGetU16)
	TRY(NCCL_PARAM_U8, ncclParamGetU8)
#undef TRY
	return l->ncclParamGetStr && !l->ncclParamGetStr(h, &text) ? NCCL_PARAM_TEXT
								   : NCCL_PARAM_OTHER;
}

static void param_read(const struct nccl_library *l, const char *key, ncclParamHandle_t h,
	struct wire_ncclParamBind_reply *answer)
{
	const char *text = NULL;
	int bytes = 0, length;

	answer->type = param_type(l, h);
	if (l->ncclParamGet && !l->ncclParamGet(h, answer->value, NCCL_TEXT, &bytes) &&
		bytes > 0 && bytes <= NCCL_TEXT)
		answer->bytes = (uint32_t)bytes;
	if (l->ncclParamGetParameter && !l->ncclParamGetParameter(key, &text, &length) && text)
		snprintf(answer->text, NCCL_TEXT, "%s", text);
}

CUresult serve_ncclParamBind(struct worker *w, struct request *r)
{
	const struct wire_ncclParamBind *req = (const void *)r->body;
	struct wire_ncclParamBind_reply *answer = (void *)r->answer;
	const struct nccl_library *l = nccl_open(w, r, req->major);
	ncclParamHandle_t h = NULL;
	char text[NCCL_TEXT];

	if (!l)
		return r->refused;
	if (req->key[NCCL_KEY - 1])
		return CUDA_ERROR_INVALID_VALUE;
	if (lacks(l, l->ncclParamBind, "ncclParamBind", &answer->plain))
		return CUDA_SUCCESS;
	answer->plain.status = (uint32_t)l->ncclParamBind(&h, req->key);
	if (!answer->plain.status) {
		param_read(l, req->key, h, answer);
	} else {
		snprintf(text, sizeof(text), "the agent's NCCL has no parameter %s", req->key);
		nccl_note_text(text);
	}
	return CUDA_SUCCESS;
}

CUresult serve_ncclParamGetAllParameterKeys(struct worker *w, struct request *r)
{
	const struct wire_ncclParamGetAllParameterKeys *req = (const void *)r->body;
	struct wire_ncclParamGetAllParameterKeys_reply *answer = (void *)r->answer;
	const struct nccl_library *l = nccl_open(w, r, req->major);
	const char **keys = NULL;
	size_t used = 0, length;
	int count = 0;

	if (!l)
		return r->refused;
	if (lacks(l, l->ncclParamGetAllParameterKeys, "ncclParamGetAllParameterKeys",
		    &answer->plain))
		return CUDA_SUCCESS;
	answer->plain.status = (uint32_t)l->ncclParamGetAllParameterKeys(&keys, &count);
	if (answer->plain.status || count < 0)
		return CUDA_SUCCESS;
	answer->count = (uint32_t)count;
	for (uint32_t i = req->from; i < answer->count; i++) {
		length = strlen(keys[i]) + 1;
		if (length > NCCL_KEYS_BYTES - used)
			break;
		memcpy(answer->keys + used, keys[i], length);
		used += length;
		answer->here++;
	}
	return CUDA_SUCCESS;
}
