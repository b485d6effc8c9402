/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's half of the vcudaProfile calls.  CUPTI is opened with the first of them, since
 * few sessions are profiled, and is this process's: see profile.h.
 *
 * CUPTI tells the frame of an API call where it records that call.  So all of the driver's and
 * the runtime's (cuBLAS and others have one of their own) are recorded and passed over, but for
 * those by which the loop looks whether something is done, over and over.
 */
#include <string.h>

#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/libraries/cupti/profile.h"
#include "gpu-agent/worker/profiler.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/warm.h"
#include "gpu-agent/worker/worker_state.h"

#define OUR_KIND CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2

static const CUpti_ActivityKind kinds[PROFILE_KINDS] = {
	[PROFILE_KERNEL] = CUPTI_ACTIVITY_KIND_KERNEL,
	[PROFILE_CONCURRENT_KERNEL] = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
	[PROFILE_COPY] = CUPTI_ACTIVITY_KIND_MEMCPY,
	[PROFILE_FILL] = CUPTI_ACTIVITY_KIND_MEMSET,
	[PROFILE_PEER_COPY] = CUPTI_ACTIVITY_KIND_MEMCPY2,
	[PROFILE_GRAPH] = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
};

/* Which frame a call was for. */
static const CUpti_ActivityKind frame_kinds[] = {
	CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
	CUPTI_ACTIVITY_KIND_DRIVER,
	CUPTI_ACTIVITY_KIND_RUNTIME,
};
#define FRAME_KINDS (sizeof(frame_kinds) / sizeof(frame_kinds[0]))

/* CUPTI's numbers of cuEventQuery, cuStreamQuery, cuStreamQuery_ptsz. */
static const CUpti_CallbackId looks[] = {120, 125, 439};

static struct {
	const struct cupti_library *library;
	bool tried;
	uint32_t version;
	uint32_t on; /* of the kinds that were asked for */
	bool frames; /* frame_kinds are */
} profile;

/* Nothing is opened before a session: few are profiled. */
void cupti_warm(const struct worker *w, uint32_t major)
{
	(void)w, (void)major;
}

void cupti_forget(uint16_t context)
{
	(void)context;
}

/* --- the library -------------------------------------------------------------------------- */

static const char *result_text(const struct cupti_library *library, CUptiResult result)
{
	const char *text = NULL;

	if (!library->cuptiGetResultString || library->cuptiGetResultString(result, &text))
		return "";
	return text ? text : "";
}

static bool library_begin(const struct cupti_library *library)
{
	CUptiResult result;

	if (!library->cuptiGetVersion || library->cuptiGetVersion(&profile.version))
		profile.version = 0;
	result = profile_buffers_open(library, profile.version);
	if (result)
		log_error("profile.buffers",
			"result=%d text=\"%s\" version=%u reason=\"CUPTI takes no buffers: it "
			"is "
			"for a newer driver, or another profiler has this process\"",
			result, result_text(library, result), profile.version);
	return !result;
}

/* A CUPTI is for drivers of its CUDA version and newer. */
static const struct cupti_library *library_find(const struct worker *w)
{
	const struct library_family *family = library_family(LIBRARY_CUPTI);
	const struct cupti_library *library;
	int version = 0;

	if (w->cuda.cuDriverGetVersion)
		w->cuda.cuDriverGetVersion(&version);
	for (uint32_t major = family->newest; major >= family->oldest; major--) {
		if (version < (int)major * 1000 && major > family->oldest)
			continue;
		library = cupti_library_of(w->config, major);
		if (library && library_begin(library))
			return library;
	}
	return NULL;
}

static CUresult profile_open(const struct worker *w)
{
	if (!profile.tried) {
		profile.tried = true;
		for (uint32_t i = 0; i < PROFILE_DEVICES; i++)
			profile_buffers_device(i, i);
		for (uint32_t i = 0; i < w->device_count; i++)
			profile_buffers_device((uint32_t)w->devices[i].device, i);
		profile.library = library_find(w);
	}
	return profile.library ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static uint64_t profile_now(void)
{
	uint64_t now = 0;

	return profile.library && !profile.library->cuptiGetTimestamp(&now) ? now : 0;
}

/* --- what is recorded --------------------------------------------------------------------- */

static void frame_begin(uint64_t seq)
{
	profile.library->cuptiActivityPushExternalCorrelationId(OUR_KIND, seq);
}

static void frame_end(void)
{
	uint64_t seq;

	profile.library->cuptiActivityPopExternalCorrelationId(OUR_KIND, &seq);
}

static const struct profiler profiler = {frame_begin, frame_end};

static CUresult kind_status(CUpti_ActivityKind kind, CUptiResult result)
{
	if (!result)
		return CUDA_SUCCESS;
	log_warn("profile.kind", "kind=%d result=%d text=\"%s\" version=%u", kind, result,
		result_text(profile.library, result), profile.version);
	return result == CUPTI_ERROR_OUT_OF_MEMORY ? CUDA_ERROR_OUT_OF_MEMORY
						   : CUDA_ERROR_NOT_SUPPORTED;
}

static void frames_disable(void)
{
	for (size_t i = FRAME_KINDS; i--;)
		profile.library->cuptiActivityDisable(frame_kinds[i]);
	profile.frames = false;
}

/* Without them no record would be anybody's. */
static CUresult frames_enable(void)
{
	const struct cupti_library *l = profile.library;
	CUresult status = CUDA_SUCCESS;

	if (profile.frames)
		return CUDA_SUCCESS;
	for (size_t i = 0; i < FRAME_KINDS && !status; i++)
		status = kind_status(frame_kinds[i], l->cuptiActivityEnable(frame_kinds[i]));
	profile.frames = true;
	if (status)
		frames_disable();
	/* Behind the kinds, which would turn them on again. Where it cannot be said (CUDA 12.1)
	 * the looks are recorded, too. */
	for (size_t i = 0; !status && i < sizeof(looks) / sizeof(looks[0]); i++)
		if (l->cuptiActivityEnableDriverApi)
			l->cuptiActivityEnableDriverApi(looks[i], 0);
	return status;
}

/* The first failure; the kinds that can be are as they should be. */
static CUresult kinds_set(uint32_t wanted)
{
	const struct cupti_library *l = profile.library;
	CUresult status = wanted ? frames_enable() : CUDA_SUCCESS, one;

	if (status)
		wanted = 0;
	for (int i = 0; i < PROFILE_KINDS; i++)
		if (profile.on & ~wanted & 1u << i)
			l->cuptiActivityDisable(kinds[i]);
	profile.on &= wanted;
	for (int i = 0; i < PROFILE_KINDS; i++) {
		if (!(wanted & ~profile.on & 1u << i))
			continue;
		one = kind_status(kinds[i], l->cuptiActivityEnable(kinds[i]));
		if (!one)
			profile.on |= 1u << i;
		else if (!status)
			status = one;
	}
	if (!profile.on && profile.frames)
		frames_disable();
	return status;
}

/* --- the calls ---------------------------------------------------------------------------- */

CUresult serve_vcudaProfileEnable(struct worker *w, struct request *r)
{
	const struct wire_vcudaProfileEnable *req = (const void *)r->body;
	struct wire_vcudaProfileEnable_reply *answer = (void *)r->answer;
	CUresult status;

	if (req->kinds >> PROFILE_KINDS)
		return CUDA_ERROR_INVALID_VALUE;
	status = profile_open(w);
	if (status)
		return status;
	status = kinds_set(req->kinds);
	w->profiler = profile.on ? &profiler : NULL;
	if (!profile.on) {
		profile_store_rest(profile_store_get());
		profile_store_put();
	}
	answer->now = profile_now();
	answer->version = profile.version;
	return status;
}

CUresult serve_vcudaProfileFlush(struct worker *w, struct request *r)
{
	const struct wire_vcudaProfileFlush *req = (const void *)r->body;
	struct wire_vcudaProfileFlush_reply *answer = (void *)r->answer;
	const bool all = req->flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED;
	struct profile_store *store;

	(void)w;
	if (!profile.library)
		return CUDA_ERROR_NOT_FOUND;
	profile.library->cuptiActivityFlushAll(all ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
	store = profile_store_get();
	answer->bytes = profile_store_batch(store, all);
	answer->dropped = store->dropped;
	profile_store_put();
	answer->now = profile_now();
	return CUDA_SUCCESS;
}

CUresult serve_vcudaProfileRead(struct worker *w, struct request *r)
{
	const struct wire_vcudaProfileRead *req = (const void *)r->body;
	struct staging_range *range;
	unsigned char *bytes;
	bool there;

	if (!req->bytes || req->bytes > FRAME_CHUNK)
		return CUDA_ERROR_INVALID_VALUE;
	range = staging_alloc(w, &w->out, (uint32_t)req->bytes, &bytes);
	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	there = profile_store_read(profile_store_get(), req->offset, req->bytes, bytes);
	profile_store_put();
	if (!there) {
		staging_done(range);
		return CUDA_ERROR_INVALID_VALUE;
	}
	reply_payload(w, FRAME_REPLY, r->header.tag, CUDA_SUCCESS, &req->destination, bytes,
		(uint32_t)req->bytes, range);
	r->later = true;
	return CUDA_SUCCESS;
}

static CUptiResult id_stream(struct worker *w, struct request *r, uint64_t handle, uint32_t *id)
{
	const struct cupti_library *l = profile.library;
	const struct worker_stream *stream =
		handle <= 1 ? &w->streams.legacy[r->header.context]
			    : worker_handle(w, r, handle, KIND_CUstream);

	if (!stream || !l->cuptiGetStreamIdEx)
		return CUPTI_ERROR_NOT_SUPPORTED;
	return l->cuptiGetStreamIdEx(w->contexts[stream->context], stream->stream, 0, id);
}

static CUptiResult id_graph(struct worker *w, struct request *r, uint64_t handle, uint32_t *id)
{
	CUgraph graph = graph_object(w, r, handle);

	return graph && profile.library->cuptiGetGraphId
		       ? profile.library->cuptiGetGraphId(graph, id)
		       : CUPTI_ERROR_NOT_SUPPORTED;
}

static CUptiResult id_graph_exec(
	struct worker *w, struct request *r, uint64_t handle, uint32_t *id)
{
	CUgraphExec exec = graph_exec_object(w, r, handle);

	return exec && profile.library->cuptiGetGraphExecId
		       ? profile.library->cuptiGetGraphExecId(exec, id)
		       : CUPTI_ERROR_NOT_SUPPORTED;
}

CUresult serve_vcudaProfileId(struct worker *w, struct request *r)
{
	const struct wire_vcudaProfileId *req = (const void *)r->body;
	struct wire_vcudaProfileId_reply *answer = (void *)r->answer;
	CUptiResult result = CUPTI_ERROR_NOT_SUPPORTED;
	CUresult status = profile_open(w);
	uint32_t id = 0;

	if (status)
		return status;
	if (req->what >= PROFILE_IDS)
		return CUDA_ERROR_INVALID_VALUE;
	if (r->header.context == CONTEXT_NONE)
		return CUDA_ERROR_INVALID_CONTEXT;
	switch ((enum profile_id)req->what) {
	case PROFILE_ID_CONTEXT:
		if (profile.library->cuptiGetContextId)
			result = profile.library->cuptiGetContextId(
				w->contexts[r->header.context], &id);
		break;
	case PROFILE_ID_STREAM: result = id_stream(w, r, req->handle, &id); break;
	case PROFILE_ID_GRAPH: result = id_graph(w, r, req->handle, &id); break;
	default: result = id_graph_exec(w, r, req->handle, &id); break;
	}
	if (worker_refused(r))
		return r->refused;
	answer->id = result ? 0 : id;
	return result ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}
