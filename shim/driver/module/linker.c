/* SPDX-License-Identifier: Apache-2.0
 *
 * Linking, on the agent: inputs go there by digest as images do, the result comes back whole
 * and belongs to the state, as the driver's does.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/context/context.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/module/module.h"
#include "shim/engine/session.h"
#include "shim/engine/sha256.h"
#include "shim/engine/status.h"

#define LINK_NAME_MAX 512	     /* an input's name in the log; the rest is cut */
#define LINK_RESULT_MAX (256u << 20) /* larger than any image that could be loaded */

struct link {
	uint64_t handle;
	struct jit jit; /* whose buffers get the log */
	unsigned char *result;
	size_t size;
};

static struct link *link_of(CUlinkState state)
{
	return shim_object_of((uint64_t)(uintptr_t)state, KIND_CUlinkState);
}

/* The reply, also of a call that failed: the log matters most then. */
static const void *reply_of(struct shim_call *call, const void *reply, size_t bytes)
{
	return reply || !call->slot || call->reply_bytes < bytes ? reply : call->reply;
}

static void tell(struct link *link, struct shim_call *call, const struct wire_run *run)
{
	size_t n = 0;
	const char *log = shim_run(call, run, &n);

	image_jit_tell(&link->jit, log, n);
}

CUresult hand_cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options,
	void **optionValues, CUlinkState *stateOut)
{
	const struct image_option *jit;
	struct link *link;
	uint32_t bytes;
	CUresult status;

	if (!stateOut)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	link = calloc(1, sizeof(*link));
	if (!link)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = image_jit_read_linker(&link->jit, numOptions, options, optionValues);
	if (!status) {
		link->handle = shim_mint(KIND_CUlinkState, link);
		status = link->handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (status) {
		image_jit_free(&link->jit);
		free(link);
		return status;
	}
	jit = jit_options(&link->jit, &bytes);
	status = send_vcudaLinkCreate(link->handle, jit, bytes);
	image_jit_free(&link->jit);
	if (status) {
		shim_unmint(link->handle);
		free(link);
		return status;
	}
	*stateOut = (CUlinkState)(uintptr_t)link->handle;
	return CUDA_SUCCESS;
}

static CUresult add_once(struct link *link, const struct image *input, const uint8_t digest[32],
	const char *name, const struct jit *jit, bool *needed)
{
	struct shim_call call;
	struct wire_vcudaLinkAdd *body;
	const struct wire_vcudaLinkAdd_reply *reply;
	char cut[LINK_NAME_MAX];

	strncpy(cut, name ? name : "", sizeof(cut) - 1);
	cut[sizeof(cut) - 1] = 0;
	*needed = false;
	image_jit_begin(&link->jit);
	body = shim_begin(&call, OP_vcudaLinkAdd, sizeof(*body));
	body->state = link->handle;
	body->size = input->size;
	body->type = input->kind;
	shim_put(&call, &body->digest, digest, 32);
	shim_put_string(&call, &body->name, cut);
	body->jit_bytes = (uint32_t)(jit->count * sizeof(jit->options[0]));
	shim_put(&call, &body->jit, jit->options, body->jit_bytes);
	reply = reply_of(&call, shim_wait(&call, sizeof(*reply)), sizeof(*reply));
	if (reply) {
		*needed = !call.status && reply->needed;
		tell(link, &call, &reply->log);
	}
	return shim_end(&call);
}

/* cuda.h: code for a device takes no options; that it got some is told before its file is read.
 */
static bool options_fit(CUjitInputType type, unsigned int options)
{
	return type != CU_JIT_INPUT_CUBIN || !options;
}

CUresult hand_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
	const char *name, unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	struct image input = {.kind = (uint32_t)type, .bytes = data, .size = size};
	struct link *link = link_of(state);
	uint8_t digest[32];
	struct jit jit;
	CUresult status;
	bool needed;

	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data || !size || link->result || !options_fit(type, numOptions))
		return CUDA_ERROR_INVALID_VALUE;
	status = image_jit_read_linker(&jit, numOptions, options, optionValues);
	/* They are the whole link's. */
	if (!status && jit.symbols)
		status = CUDA_ERROR_NOT_SUPPORTED;
	image_jit_free(&jit);
	if (status)
		return status;
	sha256(data, size, digest);
	status = add_once(link, &input, digest, name, &jit, &needed);
	for (int n = 0; !status && needed && n < IMAGE_TRIES; n++) {
		status = module_send_image(&input, digest);
		if (!status)
			status = add_once(link, &input, digest, name, &jit, &needed);
	}
	return status || !needed ? status : status_of(CAUSE_VIOLATION);
}

CUresult hand_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
	unsigned int numOptions, CUjit_option *options, void **optionValues)
{
	void *bytes;
	size_t size;
	CUresult status;

	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	if (!link_of(state))
		return CUDA_ERROR_INVALID_HANDLE;
	if (link_of(state)->result || !options_fit(type, numOptions))
		return CUDA_ERROR_INVALID_VALUE;
	status = image_read(path, &bytes, &size);
	if (status)
		return status;
	/* A text ends with a NUL. */
	if (type == CU_JIT_INPUT_PTX)
		size++;
	status = hand_cuLinkAddData_v2(
		state, type, bytes, size, path, numOptions, options, optionValues);
	free(bytes);
	return status;
}

static CUresult complete(struct link *link, uint64_t *size)
{
	struct shim_call call;
	struct wire_vcudaLinkComplete *body;
	const struct wire_vcudaLinkComplete_reply *reply;

	image_jit_begin(&link->jit);
	body = shim_begin(&call, OP_vcudaLinkComplete, sizeof(*body));
	body->state = link->handle;
	reply = reply_of(&call, shim_wait(&call, sizeof(*reply)), sizeof(*reply));
	if (reply) {
		*size = reply->size;
		tell(link, &call, &reply->log);
	}
	return shim_end(&call);
}

static CUresult read_piece(struct link *link, size_t at, size_t n)
{
	struct shim_call call;
	struct wire_vcudaLinkRead *body;
	uint64_t bounce;
	CUresult status = shim_bounce_get(n, &bounce);

	if (status)
		return status;
	body = shim_begin(&call, OP_vcudaLinkRead, sizeof(*body));
	body->state = link->handle;
	body->offset = at;
	body->bytes = n;
	body->destination.offset = bounce;
	return shim_bounce_read(&call, bounce, n, link->result + at);
}

CUresult hand_cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
	struct link *link = link_of(state);
	uint64_t size = 0;
	CUresult status;

	if (!link)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!cubinOut)
		return CUDA_ERROR_INVALID_VALUE;
	if (link->result)
		return CUDA_ERROR_INVALID_HANDLE; /* it is complete */
	status = complete(link, &size);
	if (status)
		return status;
	if (!size || size > LINK_RESULT_MAX)
		return status_of(CAUSE_VIOLATION);
	link->result = calloc(1, size + 1);
	if (!link->result)
		return CUDA_ERROR_OUT_OF_MEMORY;
	link->size = size;
	for (size_t at = 0, n; !status && at < size; at += n) {
		n = size - at < FRAME_CHUNK ? size - at : FRAME_CHUNK;
		status = read_piece(link, at, n);
	}
	if (status) {
		free(link->result);
		link->result = NULL;
		return status;
	}
	*cubinOut = link->result;
	if (sizeOut)
		*sizeOut = link->size;
	return CUDA_SUCCESS;
}

CUresult hand_cuLinkDestroy(CUlinkState state)
{
	struct link *link = link_of(state);
	uint64_t handle;

	if (!link || !handle_release((uint64_t)(uintptr_t)state))
		return CUDA_ERROR_INVALID_HANDLE;
	handle = link->handle;
	free(link->result);
	free(link);
	return send_vcudaLinkDestroy(handle);
}

CUresult linker_parts(const void *const *parts, int device, struct image *out)
{
	char log[512] = "";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log)};
	void *linked;
	CUlinkState state;
	CUresult status = hand_cuLinkCreate_v2(2, options, values, &state);

	if (status)
		return status;
	for (; !status && *parts; parts++) {
		struct image part;

		status = image_extract(*parts, device, &part);
		if (status)
			break;
		status = hand_cuLinkAddData_v2(state, CU_JIT_INPUT_FATBINARY, part.bytes,
			part.size, NULL, 0, NULL, NULL);
		free(part.bytes);
	}
	if (!status)
		status = hand_cuLinkComplete(state, &linked, NULL);
	if (!status)
		status = image_extract(linked, device, out);
	if (status)
		session_debug("linking device code: error %d: %s", status, log);
	hand_cuLinkDestroy(state);
	return status;
}
