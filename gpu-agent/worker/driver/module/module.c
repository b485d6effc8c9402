/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules: an image is asked for by its digest first, so that bytes travel once in the agent's
 * life.  A function comes back with all that the app could ask of it.
 */
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/driver/graph/graph_modules.h"
#include "gpu-agent/worker/driver/module/module.h"
#include "gpu-agent/worker/handle.h"
#include "gpu-agent/worker/images.h"
#include "gpu-agent/worker/limits/quotas.h"
#include "gpu-agent/worker/worker_state.h"

#define IMAGE_MAX (256ull << 20)
/* Images on their way in a session. */
#define UPLOADS 64
#define UPLOADS_BYTES (2 * IMAGE_MAX)

/* An image on its way. Several threads may send some at once, or the same one. */
struct upload {
	uint8_t digest[32];
	uint64_t size, have;
	unsigned char *bytes;
	struct upload *next;
};

static struct upload **upload_find(struct worker *w, const uint8_t *digest, uint64_t size)
{
	struct upload **at = &w->uploads.first;

	while (*at && ((*at)->size != size || memcmp((*at)->digest, digest, 32)))
		at = &(*at)->next;
	return at;
}

/* Takes it out of the list; its bytes are the caller's. */
static unsigned char *upload_pop(struct worker *w, struct upload **at)
{
	struct upload *upload = *at;
	unsigned char *bytes = upload->bytes;

	*at = upload->next;
	w->uploads.count--;
	w->uploads.bytes -= upload->size;
	free(upload);
	return bytes;
}

/* At the end of the list; the oldest go where there are too many. NULL: no memory. */
static struct upload *upload_new(
	struct worker *w, struct upload **at, const uint8_t *digest, uint64_t size)
{
	struct upload *upload = calloc(1, sizeof(*upload));

	if (!upload)
		return NULL;
	upload->bytes = malloc(size + 1);
	if (!upload->bytes) {
		free(upload);
		return NULL;
	}
	upload->bytes[size] = 0;
	upload->size = size;
	memcpy(upload->digest, digest, 32);
	*at = upload;
	w->uploads.count++;
	w->uploads.bytes += size;
	while (w->uploads.count > UPLOADS || w->uploads.bytes > UPLOADS_BYTES)
		free(upload_pop(w, &w->uploads.first));
	return upload;
}

/* A piece that is there already came of another thread's sending; one that does not fit belongs
 * to an image that is loaded or was dropped: whoever needs that still is told so by its load.
 */
CUresult serve_vcudaModuleData(struct worker *w, struct request *r)
{
	const struct wire_vcudaModuleData *req = (const void *)r->body;
	const uint8_t *digest = worker_in(r, &req->digest, 32);
	struct upload **at, *upload;
	uint64_t known;

	if (worker_refused(r))
		return r->refused;
	if (!req->size || req->size > IMAGE_MAX || req->offset > req->size ||
		r->payload_bytes > req->size - req->offset)
		return CUDA_ERROR_INVALID_VALUE;
	at = upload_find(w, digest, req->size);
	upload = *at;
	if (!upload && !req->offset) {
		upload = upload_new(w, at, digest, req->size);
		if (!upload)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!upload || req->offset > upload->have)
		return CUDA_SUCCESS;
	known = upload->have - req->offset;
	if (known >= r->payload_bytes)
		return CUDA_SUCCESS;
	memcpy(upload->bytes + upload->have, r->payload + known, r->payload_bytes - known);
	upload->have += r->payload_bytes - known;
	return CUDA_SUCCESS;
}

unsigned char *module_image(
	struct worker *w, const uint8_t *digest, uint64_t size, CUresult *status)
{
	struct upload **at = upload_find(w, digest, size);
	unsigned char found[32], *image;

	*status = CUDA_SUCCESS;
	if (!*at || (*at)->have != size)
		return images_want(w, digest, size);
	image = upload_pop(w, at);
	if (memcmp(SHA256(image, size, found), digest, 32)) {
		free(image);
		*status = CUDA_ERROR_INVALID_IMAGE;
		return NULL;
	}
	images_put(w, digest, image, size);
	return image;
}

/* One more module, whose image has so many bytes; the name gives them back (handles_forget). */
static bool module_admit(struct worker *w, uint64_t bytes)
{
	if (!quotas_charge(w, QUOTA_MODULES, 1))
		return false;
	if (quotas_charge(w, QUOTA_MODULE_BYTES, bytes))
		return true;
	quotas_uncharge(w, QUOTA_MODULES, 1);
	return false;
}

void module_dismiss(struct worker *w, uint64_t bytes)
{
	quotas_uncharge(w, QUOTA_MODULES, 1);
	quotas_uncharge(w, QUOTA_MODULE_BYTES, bytes);
}

/* Leaves the loop's place while the driver loads it. */
static CUresult module_make(struct worker *w, const struct request *r, const void *image,
	const struct image_option *jit, uint32_t jit_bytes, struct module_logs *logs,
	CUmodule *module)
{
	CUjit_option options[MODULE_LOG_OPTIONS + MODULE_JIT_OPTIONS + MODULE_SYMBOL_OPTIONS];
	void *values[MODULE_LOG_OPTIONS + MODULE_JIT_OPTIONS + MODULE_SYMBOL_OPTIONS];
	unsigned n = module_log_options(logs, options, values);
	const uint64_t library = module_library_number(jit, jit_bytes);
	struct module_symbols symbols;
	CUresult status = module_symbols_read(&symbols, jit, jit_bytes);

	n += module_jit(jit, jit_bytes, options + n, values + n);
	n += module_symbol_options(&symbols, options + n, values + n);
	if (!status && library && !symbols.count) {
		/* The driver may compile again in another context, where the logs are gone. */
		const struct module_source source = {image, options + MODULE_LOG_OPTIONS,
			values + MODULE_LOG_OPTIONS, n - MODULE_LOG_OPTIONS};

		status = module_library_load(w, r, &source, library, module);
	} else if (!status) {
		beside_leave(r);
		status = w->cuda.cuModuleLoadDataEx(module, image, n, options, values);
		beside_enter(r);
	}
	module_symbols_free(&symbols);
	return status;
}

CUresult serve_vcudaModuleLoad(struct worker *w, struct request *r)
{
	const struct wire_vcudaModuleLoad *req = (const void *)r->body;
	struct wire_vcudaModuleLoad_reply *answer = (void *)r->answer;
	const uint8_t *digest = worker_in(r, &req->digest, 32);
	const struct image_option *jit = worker_in(r, &req->jit, req->jit_bytes);
	struct module_logs logs = {.error = "", .info = ""};
	unsigned char *image;
	CUmodule module;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (!req->size || req->size > IMAGE_MAX || !module_options_right(req->jit_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	/* The driver waits for what runs in the context, and where there are several GPUs that
	 * may wait for work on another which another thread has yet to send: a barrier. */
	if (w->device_count > 1 && beside_serve(w, r, serve_vcudaModuleLoad))
		return CUDA_SUCCESS;
	if (!module_admit(w, req->size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	image = module_image(w, digest, req->size, &status);
	if (!image) {
		module_dismiss(w, req->size);
		answer->needed = !status;
		return status;
	}
	status = module_make(w, r, image, jit, req->jit_bytes, &logs, &module);
	free(image);
	module_log(r, &answer->log, &logs);
	if (status) {
		module_dismiss(w, req->size);
		return status;
	}
	worker_bind(w, r, req->module, KIND_CUmodule, module);
	if (worker_refused(r)) {
		worker_module_unload(w, module);
		module_dismiss(w, req->size);
		return r->refused;
	}
	handles_find(w, req->module, KIND_CUmodule)->bytes = req->size;
	return CUDA_SUCCESS;
}

struct module_closing {
	CUmodule module;
	uint16_t context;
};

/* Kernels of it may be running: the driver waits for them. */
static CUresult module_close(struct worker *w, void *object)
{
	struct module_closing *closing = object;
	CUresult status = worker_use(w, closing->context);

	if (!status)
		status = worker_module_unload(w, closing->module);
	free(closing);
	return status;
}

CUresult serve_vcudaModuleUnload(struct worker *w, struct request *r)
{
	const struct wire_vcudaModuleUnload *req = (const void *)r->body;
	CUmodule module = worker_handle(w, r, req->module, KIND_CUmodule);
	struct name *name = handles_find(w, req->module, KIND_CUmodule);
	struct module_closing *closing;
	bool kept = name && graph_modules_keep(name);

	worker_unbind(w, r, req->module, KIND_CUmodule);
	if (worker_refused(r))
		return r->refused;
	handles_drop_owned(w, req->module);
	if (kept)
		return CUDA_SUCCESS;
	closing = malloc(sizeof(*closing));
	if (!closing)
		return CUDA_ERROR_OUT_OF_MEMORY; /* it stays until the session ends */
	*closing = (struct module_closing){module, r->header.context};
	return closing_do(w, module_close, closing);
}

void module_function_info(struct worker *w, CUfunction function, struct function_info *info,
	struct function_param *params)
{
	size_t offset, size;

	if (w->cuda.cuFuncGetParamInfo)
		while (info->param_count < FUNCTION_PARAMS_ALL &&
			!w->cuda.cuFuncGetParamInfo(
				function, info->param_count, &offset, &size)) {
			if (params && info->param_count < FUNCTION_PARAMS_MAX) {
				params[info->param_count].offset = (uint32_t)offset;
				params[info->param_count].size = (uint32_t)size;
			}
			if (offset + size > info->param_bytes)
				info->param_bytes = (uint32_t)(offset + size);
			info->param_count++;
		}
	for (int a = 0; a < FUNCTION_ATTRIBUTES; a++)
		if (!w->cuda.cuFuncGetAttribute(
			    &info->attributes[a], (CUfunction_attribute)a, function))
			info->attribute_known |= 1u << a;
}

static void function_answer(struct worker *w, struct request *r, CUfunction function,
	struct wire_vcudaFunctionGet_reply *answer)
{
	struct function_param params[FUNCTION_PARAMS_MAX];
	uint32_t kept;

	module_function_info(w, function, &answer->info, params);
	kept = answer->info.param_count < FUNCTION_PARAMS_MAX ? answer->info.param_count
							      : FUNCTION_PARAMS_MAX;
	if (kept)
		memcpy(worker_out(r, &answer->layout, kept * sizeof(params[0])), params,
			kept * sizeof(params[0]));
}

CUresult serve_vcudaFunctionGet(struct worker *w, struct request *r)
{
	const struct wire_vcudaFunctionGet *req = (const void *)r->body;
	CUmodule module = worker_handle(w, r, req->module, KIND_CUmodule);
	const char *name = worker_string(r, &req->name);
	CUfunction function;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	status = w->cuda.cuModuleGetFunction(&function, module, name);
	if (status)
		return status;
	worker_bind(w, r, req->function, KIND_CUfunction, function);
	if (worker_refused(r))
		return r->refused;
	handles_own(w, req->function, req->module);
	function_answer(w, r, function, (void *)r->answer);
	return r->refused;
}

CUresult serve_vcudaFunctionLayout(struct worker *w, struct request *r)
{
	const struct wire_vcudaFunctionLayout *req = (const void *)r->body;
	struct wire_vcudaFunctionLayout_reply *answer = (void *)r->answer;
	CUfunction function = worker_handle(w, r, req->function, KIND_CUfunction);
	struct function_param params[FUNCTION_PARAMS_MAX];
	size_t offset, size;
	uint32_t n = 0;

	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuFuncGetParamInfo)
		return worker_lacks(w, "cuFuncGetParamInfo");
	while (n < FUNCTION_PARAMS_MAX && req->first < FUNCTION_PARAMS_ALL - n &&
		!w->cuda.cuFuncGetParamInfo(function, req->first + n, &offset, &size))
		params[n++] = (struct function_param){(uint32_t)offset, (uint32_t)size};
	answer->count = n;
	if (n)
		memcpy(worker_out(r, &answer->layout, n * sizeof(params[0])), params,
			n * sizeof(params[0]));
	return r->refused;
}

CUresult serve_vcudaGlobalGet(struct worker *w, struct request *r)
{
	const struct wire_vcudaGlobalGet *req = (const void *)r->body;
	struct wire_vcudaGlobalGet_reply *answer = (void *)r->answer;
	CUmodule module = worker_handle(w, r, req->module, KIND_CUmodule);
	const char *name = worker_string(r, &req->name);
	CUdeviceptr address;
	size_t bytes;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	status = w->cuda.cuModuleGetGlobal(&address, &bytes, module, name);
	if (status)
		return status;
	answer->address = address;
	answer->bytes = bytes;
	if (!worker_owns(w, address, bytes))
		worker_know_range(w, address, bytes);
	return CUDA_SUCCESS;
}

CUresult serve_vcudaGlobalManaged(struct worker *w, struct request *r)
{
	const struct wire_vcudaGlobalManaged *req = (const void *)r->body;
	struct wire_vcudaGlobalManaged_reply *answer = (void *)r->answer;
	CUmodule module = worker_handle(w, r, req->module, KIND_CUmodule);
	const char *name = worker_string(r, &req->name);
	CUdeviceptr address;
	bool managed = false;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuPointerGetAttribute)
		return worker_lacks(w, "cuPointerGetAttribute");
	status = w->cuda.cuModuleGetGlobal(&address, NULL, module, name);
	if (!status)
		status = w->cuda.cuPointerGetAttribute(
			&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
	answer->managed = managed;
	return status;
}

CUresult serve_vcudaModuleNames(struct worker *w, struct request *r)
{
	enum { FUNCTIONS = 65536 };
	const struct wire_vcudaModuleNames *req = (const void *)r->body;
	struct wire_vcudaModuleNames_reply *answer = (void *)r->answer;
	CUmodule module = worker_handle(w, r, req->module, KIND_CUmodule);
	CUfunction *functions;
	char names[1900];
	size_t used = 0;
	unsigned total = 0;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuModuleGetFunctionCount || !w->cuda.cuModuleEnumerateFunctions ||
		!w->cuda.cuFuncGetName)
		return worker_lacks(w, "cuModuleEnumerateFunctions");
	status = w->cuda.cuModuleGetFunctionCount(&total, module);
	if (status)
		return status;
	if (total > FUNCTIONS)
		return CUDA_ERROR_NOT_SUPPORTED;
	functions = calloc(total + 1, sizeof(CUfunction));
	if (!functions)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = w->cuda.cuModuleEnumerateFunctions(functions, total, module);
	answer->total = total;
	for (uint32_t i = req->first; !status && i < total; i++) {
		const char *name;
		size_t n;

		status = w->cuda.cuFuncGetName(&name, functions[i]);
		if (status)
			break;
		n = strlen(name) + 1;
		if (n > sizeof(names) - used)
			break;
		memcpy(names + used, name, n);
		used += n;
		answer->count++;
	}
	free(functions);
	if (!status && used)
		memcpy(worker_out(r, &answer->names, used), names, used);
	return status;
}
