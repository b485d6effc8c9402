/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of names and the checks that serve functions stand on.  The first violation in a
 * request marks it refused; everything after it sees harmless zeros, and the driver is not
 * called.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/handle.h"
#include "gpu-agent/worker/limits/limits.h"
#include "gpu-agent/worker/limits/quotas.h"
#include "gpu-agent/worker/worker_state.h"

/* What a refused run points to: as large as the largest body. */
static const unsigned char names_zeros[FRAME_BODY_MAX];

const void *worker_in(struct request *r, const struct wire_run *run, uint64_t need)
{
	/* Runs begin at multiples of 8 (shim_put): what they hold may be structs. */
	if (run->length != need || run->offset % 8 || run->offset > r->header.body ||
		run->length > r->header.body - run->offset) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return names_zeros;
	}
	return r->body + run->offset;
}

const char *worker_string(struct request *r, const struct wire_run *run)
{
	const char *text = worker_in(r, run, run->length);

	if (r->refused || !run->length || text[run->length - 1]) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return "";
	}
	return text;
}

void *worker_out(struct request *r, struct wire_run *run, uint64_t n)
{
	uint32_t at = (r->answer_bytes + 7) & ~7u;

	if (n > ANSWER_MAX || at > ANSWER_MAX - n) {
		/* Nothing is written where there is no room: the serve function still gets
		 * memory. */
		static unsigned char waste[FRAME_BODY_MAX];

		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return waste;
	}
	run->offset = at;
	run->length = (uint32_t)n;
	r->answer_bytes = at + (uint32_t)n;
	return r->answer + at;
}

struct name *handles_find(struct worker *w, uint64_t handle, enum handle_kind kind)
{
	uint32_t index = handle_index(handle);
	struct name *name;

	if (index >= w->name_count)
		return NULL;
	name = &w->names[index];
	if (!name->object || name->kind != kind || handle_kind(handle) != kind ||
		name->generation != handle_generation(handle))
		return NULL;
	return name;
}

void *worker_handle(struct worker *w, struct request *r, uint64_t handle, enum handle_kind kind)
{
	struct name *name = handles_find(w, handle, kind);

	if (!name) {
		worker_refuse(r, CUDA_ERROR_INVALID_HANDLE);
		return NULL;
	}
	return name->object;
}

struct worker_stream *worker_stream_object(struct worker *w, struct request *r, uint64_t handle)
{
	struct worker_stream *stream;

	if (handle <= 1) {
		if (r->header.context >= CONTEXT_MAX || !w->contexts[r->header.context]) {
			worker_refuse(r, CUDA_ERROR_INVALID_CONTEXT);
			return NULL;
		}
		stream = &w->streams.legacy[r->header.context];
	} else {
		stream = worker_handle(w, r, handle, KIND_CUstream);
	}
	if (stream && r->beside && !beside_uses(r->beside, stream)) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return NULL;
	}
	if (stream)
		limits_work(w, stream);
	return stream;
}

CUstream worker_stream(struct worker *w, struct request *r, uint64_t handle)
{
	struct worker_stream *stream = worker_stream_object(w, r, handle);

	return stream ? stream->stream : NULL;
}

void worker_bind(struct worker *w, struct request *r, uint64_t handle, enum handle_kind kind,
	void *object)
{
	uint32_t index = handle_index(handle);
	struct name *name;

	if (handle_kind(handle) != kind || !handle_generation(handle) ||
		index >= HANDLE_INDEX_MAX || !object) {
		worker_refuse(r, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	if (index >= w->name_count) {
		uint32_t room = w->name_count ? w->name_count : 1024;
		struct name *names;

		while (room <= index)
			room *= 2;
		names = realloc(w->names, room * sizeof(*names));
		if (!names) {
			worker_refuse(r, CUDA_ERROR_OUT_OF_MEMORY);
			return;
		}
		memset(names + w->name_count, 0, (room - w->name_count) * sizeof(*names));
		w->names = names;
		w->name_count = room;
	}
	name = &w->names[index];
	if (name->object || name->generation >= handle_generation(handle)) {
		/* In use, or an old number come again. */
		worker_refuse(r, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	if (!quotas_charge(w, QUOTA_HANDLES, 1)) {
		worker_refuse(r, CUDA_ERROR_OUT_OF_MEMORY);
		return;
	}
	name->generation = handle_generation(handle);
	name->kind = (uint8_t)kind;
	name->launched = false;
	/* Memory with a name is no context's, whichever was current: it outlives a reset. */
	name->context =
		kind == KIND_CUmemGenericAllocationHandle ? CONTEXT_NONE : r->header.context;
	name->owner = 0;
	name->bytes = 0;
	name->kept = NULL;
	name->object = object;
}

void worker_unbind(struct worker *w, struct request *r, uint64_t handle, enum handle_kind kind)
{
	struct name *name = handles_find(w, handle, kind);

	if (!name) {
		worker_refuse(r, CUDA_ERROR_INVALID_HANDLE);
		return;
	}
	handles_forget(w, name);
}

void handles_forget(struct worker *w, struct name *name)
{
	quotas_uncharge(w, QUOTA_HANDLES, 1);
	/* One that graphs keep is there. */
	if (name->kind == KIND_CUmodule && !(name->kept && name->kept->unloaded)) {
		quotas_uncharge(w, QUOTA_MODULES, 1);
		quotas_uncharge(w, QUOTA_MODULE_BYTES, name->bytes);
	}
	if (name->kind == KIND_CUevent && name->shared)
		ipc_event_gone(name->shared);
	name->shared = NULL;
	name->object = NULL;
	name->kept = NULL;
}

void handles_drop_context(struct worker *w, uint16_t context)
{
	for (uint32_t i = 0; i < w->name_count; i++)
		if (w->names[i].object && w->names[i].context == context)
			handles_forget(w, &w->names[i]);
}

void handles_own(struct worker *w, uint64_t handle, uint64_t owner)
{
	w->names[handle_index(handle)].owner = owner;
}

void handles_drop_owned(struct worker *w, uint64_t owner)
{
	for (uint32_t i = 0; i < w->name_count; i++)
		if (w->names[i].object && w->names[i].owner == owner)
			handles_forget(w, &w->names[i]);
}

void worker_know_range(struct worker *w, uint64_t address, uint64_t bytes)
{
	if (w->range_count == w->range_room) {
		uint32_t room = w->range_room ? 2 * w->range_room : 64;
		struct known_range *ranges = realloc(w->ranges, room * sizeof(*ranges));

		if (!ranges)
			return; /* copies to this global will be refused: never the other way
				   round */
		w->ranges = ranges;
		w->range_room = room;
	}
	w->ranges[w->range_count++] = (struct known_range){address, bytes};
}

static bool names_mapped(const struct worker_device *d, uint64_t address, uint64_t bytes)
{
	uint64_t first = (address - d->window) / d->granularity;
	uint64_t last = (address - d->window + bytes - 1) / d->granularity;

	for (uint64_t g = first; g <= last; g++) {
		if (!(g % 64) && last - g >= 63 && d->mapped[g / 64] == ~0ull) {
			g += 63;
			continue;
		}
		if (!(d->mapped[g / 64] >> g % 64 & 1))
			return false;
	}
	return true;
}

bool worker_owns(const struct worker *w, uint64_t address, uint64_t bytes)
{
	uint64_t end;

	if (__builtin_add_overflow(address, bytes, &end))
		return false;
	for (uint32_t i = 0; i < w->device_count; i++) {
		const struct worker_device *d = &w->devices[i];

		if (address >= d->window && end <= d->window + d->window_bytes)
			return !bytes || names_mapped(d, address, bytes);
	}
	if (mirror_owns(w, address, bytes))
		return true;
	for (uint32_t i = 0; i < w->range_count; i++)
		if (address >= w->ranges[i].address &&
			end <= w->ranges[i].address + w->ranges[i].bytes)
			return true;
	return false;
}

CUdeviceptr worker_range(struct worker *w, struct request *r, uint64_t address, uint64_t bytes)
{
	if (!worker_owns(w, address, bytes))
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	return address;
}
