/* SPDX-License-Identifier: Apache-2.0
 *
 * Linking: the driver's link state under the shim's name, its inputs by digest as images are,
 * and the result read in pieces.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/driver/module/module.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/worker_state.h"

#define LINK_INPUT_MAX (256ull << 20)

/* The driver keeps the addresses of the logs, of the variables' names and of the values, where
 * it tells the logs' lengths, until the state is destroyed. */
struct link_served {
	CUlinkState state;
	CUjit_option options[MODULE_LOG_OPTIONS + MODULE_JIT_OPTIONS + MODULE_SYMBOL_OPTIONS];
	void *values[MODULE_LOG_OPTIONS + MODULE_JIT_OPTIONS + MODULE_SYMBOL_OPTIONS];
	struct module_symbols symbols;
	void *result; /* the driver's, until the state is destroyed */
	uint64_t size;
	struct module_logs logs;
};

static void link_free(struct link_served *served)
{
	module_symbols_free(&served->symbols);
	free(served);
}

CUresult serve_vcudaLinkCreate(struct worker *w, struct request *r)
{
	const struct wire_vcudaLinkCreate *req = (const void *)r->body;
	const struct image_option *jit = worker_in(r, &req->jit, req->jit_bytes);
	struct link_served *served;
	unsigned n;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (!module_options_right(req->jit_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!w->cuda.cuLinkCreate_v2)
		return worker_lacks(w, "cuLinkCreate");
	served = calloc(1, sizeof(*served));
	if (!served)
		return CUDA_ERROR_OUT_OF_MEMORY;
	n = module_log_options(&served->logs, served->options, served->values);
	n += module_jit(jit, req->jit_bytes, served->options + n, served->values + n);
	status = module_symbols_read(&served->symbols, jit, req->jit_bytes);
	n += module_symbol_options(&served->symbols, served->options + n, served->values + n);
	if (!status)
		status = w->cuda.cuLinkCreate_v2(
			n, served->options, served->values, &served->state);
	if (!status) {
		worker_bind(w, r, req->state, KIND_CUlinkState, served);
		if (!worker_refused(r))
			return CUDA_SUCCESS;
		w->cuda.cuLinkDestroy(served->state);
		status = r->refused;
	}
	link_free(served);
	return status;
}

CUresult serve_vcudaLinkAdd(struct worker *w, struct request *r)
{
	const struct wire_vcudaLinkAdd *req = (const void *)r->body;
	struct wire_vcudaLinkAdd_reply *answer = (void *)r->answer;
	struct link_served *served = worker_handle(w, r, req->state, KIND_CUlinkState);
	const uint8_t *digest = worker_in(r, &req->digest, 32);
	const struct image_option *jit = worker_in(r, &req->jit, req->jit_bytes);
	const char *name = worker_string(r, &req->name);
	CUjit_option options[MODULE_JIT_OPTIONS];
	void *values[MODULE_JIT_OPTIONS];
	unsigned char *input;
	unsigned n;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (!req->size || req->size > LINK_INPUT_MAX || !module_jit_right(req->jit_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	input = module_image(w, digest, req->size, &status);
	if (!input) {
		answer->needed = !status;
		return status;
	}
	n = module_jit(jit, req->jit_bytes, options, values);
	status = w->cuda.cuLinkAddData_v2(served->state, (CUjitInputType)req->type, input,
		req->size, name[0] ? name : NULL, n, options, values);
	free(input);
	module_log(r, &answer->log, &served->logs);
	return status;
}

CUresult serve_vcudaLinkComplete(struct worker *w, struct request *r)
{
	const struct wire_vcudaLinkComplete *req = (const void *)r->body;
	struct wire_vcudaLinkComplete_reply *answer = (void *)r->answer;
	struct link_served *served = worker_handle(w, r, req->state, KIND_CUlinkState);
	size_t size = 0;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	status = w->cuda.cuLinkComplete(served->state, &served->result, &size);
	module_log(r, &answer->log, &served->logs);
	served->size = status ? 0 : size;
	answer->size = served->size;
	return status;
}

CUresult serve_vcudaLinkRead(struct worker *w, struct request *r)
{
	const struct wire_vcudaLinkRead *req = (const void *)r->body;
	struct link_served *served = worker_handle(w, r, req->state, KIND_CUlinkState);
	struct staging_range *range;
	unsigned char *bytes;

	if (worker_refused(r))
		return r->refused;
	if (!req->bytes || req->bytes > FRAME_CHUNK || req->offset > served->size ||
		req->bytes > served->size - req->offset)
		return CUDA_ERROR_INVALID_VALUE;
	range = staging_alloc(w, &w->out, (uint32_t)req->bytes, &bytes);
	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(bytes, (const char *)served->result + req->offset, req->bytes);
	reply_payload(w, FRAME_REPLY, r->header.tag, CUDA_SUCCESS, &req->destination, bytes,
		(uint32_t)req->bytes, range);
	r->later = true;
	return CUDA_SUCCESS;
}

CUresult serve_vcudaLinkDestroy(struct worker *w, struct request *r)
{
	const struct wire_vcudaLinkDestroy *req = (const void *)r->body;
	struct link_served *served = worker_handle(w, r, req->state, KIND_CUlinkState);
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	worker_unbind(w, r, req->state, KIND_CUlinkState);
	status = w->cuda.cuLinkDestroy(served->state);
	link_free(served);
	return status;
}
