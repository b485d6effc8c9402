/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory shared with other sessions.  Memory is made without the means to share it; what an app
 * gives away is moved, at its address, into memory that has them, once.  The front names it and
 * passes its descriptor on; whoever maps it keeps it alive, and has it counted as its own too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/ipc/ipc.h"
#include "gpu-agent/worker/driver/ipc/ipc_event.h"
#include "gpu-agent/worker/driver/memory/memory.h"
#include "gpu-agent/worker/driver/memory/vmm.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/worker_state.h"

/* A session's names, and with the front's limit its descriptors there. */
#define IPC_SHARES_MAX 256u

/* What w->ipc waits for, as it was asked. */
static struct {
	struct handoff message;
	int fd; /* -1: none goes with it */
} asked = {.fd = -1};

static void close_asked(void)
{
	if (asked.fd >= 0)
		close(asked.fd);
	asked.fd = -1;
}

static int ipc_say(struct worker *w, struct handoff *ask, int fd)
{
	int ret;

	ask->version = HANDOFF_VERSION;
	ret = descriptors_send(w->handoff, ask, sizeof(*ask), &fd, fd >= 0, 0);
	if (ret)
		log_warn("worker.share", "error=\"%s\"", strerror(-ret));
	return ret;
}

CUresult ipc_ask(struct worker *w, struct request *r, const struct handoff *ask, int fd)
{
	asked.message = *ask;
	asked.fd = fd;
	if (ipc_say(w, &asked.message, fd)) {
		close_asked();
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	w->ipc.tag = r->header.tag;
	r->later = true;
	return CUDA_SUCCESS;
}

void ipc_ask_again(struct worker *w)
{
	if (w->ipc.tag >= 0)
		ipc_say(w, &asked.message, asked.fd);
}

static struct ipc_share *ipc_find(struct worker *w, uint32_t device, uint64_t address)
{
	for (uint32_t i = 0; i < w->share_count; i++)
		if (w->shares[i].device == device && w->shares[i].address == address)
			return &w->shares[i];
	return NULL;
}

void ipc_unname(struct worker *w, const uint8_t name[16])
{
	static struct handoff ask;

	ask = (struct handoff){.what = HANDOFF_UNSHARE};
	memcpy(ask.session, name, 16);
	ipc_say(w, &ask, -1);
}

void ipc_forget(struct worker *w, uint32_t device, uint64_t address)
{
	struct ipc_share *share = ipc_find(w, device, address);

	if (!share)
		return;
	ipc_unname(w, share->name);
	*share = w->shares[--w->share_count];
}

/* A copy of the memory at `from` in `to`, by way of an address of its own. */
static CUresult ipc_copy(struct worker *w, const struct worker_device *d, uint64_t from,
	uint64_t bytes, CUmemGenericAllocationHandle to)
{
	CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d->device},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUdeviceptr at;
	CUresult status = w->cuda.cuMemAddressReserve(&at, bytes, 0, 0, 0);

	if (status)
		return status;
	status = w->cuda.cuMemMap(at, bytes, 0, to, 0);
	if (!status) {
		status = w->cuda.cuMemSetAccess(at, bytes, &access, 1);
		if (!status)
			status = w->cuda.cuMemcpyDtoD_v2(at, from, bytes);
		if (!status)
			status = w->cuda.cuCtxSynchronize();
		w->cuda.cuMemUnmap(at, bytes);
	}
	w->cuda.cuMemAddressFree(at, bytes);
	return status;
}

/* Moves the mapping that begins at granule FIRST into memory that can be shared. */
static CUresult ipc_move(
	struct worker *w, struct worker_device *d, uint32_t device, uint64_t first)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d->device},
	};
	CUmemGenericAllocationHandle fresh;
	uint64_t bytes = d->mappings[first].granules * d->granularity;
	uint64_t address = d->window + first * d->granularity;
	CUresult status;

	/* cuMemCreate's: it is shared by cuMemExportToShareableHandle, if at all. */
	if (d->mappings[first].of)
		return CUDA_ERROR_INVALID_VALUE;
	status = worker_drain(w);
	if (!status)
		status = worker_use(w, (uint16_t)CONTEXT_PRIMARY(device));
	if (status)
		return status;
	status = w->cuda.cuMemCreate(&fresh, bytes, &prop, 0);
	if (status)
		return status;
	status = ipc_copy(w, d, address, bytes, fresh);
	if (status) {
		w->cuda.cuMemRelease(fresh);
		return status;
	}
	status = w->cuda.cuMemUnmap(address, bytes);
	if (!status) {
		memory_unmapped(w, device, first);
		status = memory_put(w, device, address, bytes, fresh, NULL);
		/* Nothing is there now: the session cannot go on. */
		if (status)
			worker_end(
				w, status, "memory that was to be shared could not be mapped");
		if (status)
			w->cuda.cuMemRelease(fresh);
		else
			d->used += bytes;
	} else {
		w->cuda.cuMemRelease(fresh);
	}
	return status;
}

/* The first granule of the mapping that has GRANULE; false: none has. */
static bool ipc_mapping(const struct worker_device *d, uint64_t granule, uint64_t *first)
{
	if (!(d->mapped[granule / 64] >> granule % 64 & 1))
		return false;
	*first = granule;
	while (*first && !d->mappings[*first].granules)
		--*first;
	return d->mappings[*first].granules > granule - *first;
}

CUresult ipc_idle(const struct worker *w)
{
	return w->ipc.tag < 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* Asks the front to name MEMORY, WAIT's. */
static CUresult ipc_export(struct worker *w, struct request *r, const struct ipc_wait *wait,
	CUmemGenericAllocationHandle memory)
{
	static struct handoff ask;
	CUresult status;
	int fd;

	status = w->cuda.cuMemExportToShareableHandle(
		&fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (status)
		return status;
	ask = (struct handoff){
		.what = HANDOFF_SHARE, .device = wait->device, .bytes = wait->bytes};
	w->ipc = *wait;
	return ipc_ask(w, r, &ask, fd);
}

/* Asks the front for the memory of this name, which becomes WAIT's. */
static CUresult ipc_import(struct worker *w, struct request *r, const struct ipc_wait *wait,
	const uint8_t name[16])
{
	const struct worker_device *d = &w->devices[wait->device];
	static struct handoff ask;
	CUresult status = ipc_idle(w);

	if (wait->bytes > d->lease - d->used)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (status)
		return status;
	if (!w->cuda.cuMemImportFromShareableHandle)
		return worker_lacks(w, "cuMemImportFromShareableHandle");
	ask = (struct handoff){.what = HANDOFF_WANT, .device = wait->device};
	memcpy(ask.session, name, sizeof(ask.session));
	w->ipc = *wait;
	return ipc_ask(w, r, &ask, -1);
}

/* The front's word on what ipc_import asked for: a handle that is the caller's. */
static CUresult ipc_imported(
	struct worker *w, const struct handoff *h, int fd, CUmemGenericAllocationHandle *memory)
{
	const struct worker_device *d = &w->devices[w->ipc.device];
	CUresult status;

	if (h->status || fd < 0)
		return h->status ? (CUresult)h->status : CUDA_ERROR_INVALID_VALUE;
	if (h->bytes != w->ipc.bytes)
		return CUDA_ERROR_INVALID_VALUE;
	/* Frames were served since it was asked. */
	if (w->ipc.bytes > d->lease - d->used)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = worker_use(w, (uint16_t)CONTEXT_PRIMARY(w->ipc.device));
	return status ? status
		      : w->cuda.cuMemImportFromShareableHandle(memory, (void *)(intptr_t)fd,
				CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

CUresult serve_vcudaIpcExport(struct worker *w, struct request *r)
{
	const struct wire_vcudaIpcExport *req = (const void *)r->body;
	struct wire_vcudaIpcExport_reply *answer = (void *)r->answer;
	struct worker_device *d;
	struct ipc_share *share;
	struct ipc_wait wait;
	uint64_t first;
	CUresult status;

	if (req->device < 0 || (uint32_t)req->device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	d = &w->devices[req->device];
	if (req->address < d->window || req->address - d->window >= d->window_bytes ||
		!ipc_mapping(d, (req->address - d->window) / d->granularity, &first))
		return CUDA_ERROR_INVALID_VALUE;
	answer->base = d->window + first * d->granularity;
	answer->bytes = d->mappings[first].granules * d->granularity;
	share = ipc_find(w, (uint32_t)req->device, answer->base);
	if (share) {
		memcpy(worker_out(r, &answer->name, sizeof(share->name)), share->name,
			sizeof(share->name));
		return CUDA_SUCCESS;
	}
	status = ipc_idle(w);
	if (status)
		return status;
	if (w->share_count == IPC_SHARES_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!w->cuda.cuMemExportToShareableHandle)
		return worker_lacks(w, "cuMemExportToShareableHandle");
	status = ipc_move(w, d, (uint32_t)req->device, first);
	if (status)
		return status;
	wait = (struct ipc_wait){.tag = -1,
		.device = (uint32_t)req->device,
		.address = answer->base,
		.bytes = answer->bytes};
	return ipc_export(w, r, &wait, d->mappings[first].memory);
}

CUresult serve_vcudaIpcImport(struct worker *w, struct request *r)
{
	const struct wire_vcudaIpcImport *req = (const void *)r->body;
	const uint8_t *name = worker_in(r, &req->name, 16);
	struct ipc_wait wait = {.tag = -1,
		.import = true,
		.device = (uint32_t)req->device,
		.address = req->address,
		.bytes = req->bytes};

	if (worker_refused(r))
		return r->refused;
	if (req->device < 0 || (uint32_t)req->device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!memory_vacant(&w->devices[req->device], req->address, req->bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return ipc_import(w, r, &wait, name);
}

/* ---- memory with a name ---- */

CUresult serve_vcudaVmmExport(struct worker *w, struct request *r)
{
	const struct wire_vcudaVmmExport *req = (const void *)r->body;
	struct wire_vcudaVmmExport_reply *answer = (void *)r->answer;
	struct vmm *m = worker_handle(w, r, req->memory, KIND_CUmemGenericAllocationHandle);
	struct ipc_wait wait = {.tag = -1, .memory = req->memory};
	CUresult status = ipc_idle(w);

	if (!m)
		return r->refused;
	if (!m->shareable)
		return CUDA_ERROR_INVALID_VALUE;
	if (m->named) {
		memcpy(worker_out(r, &answer->name, sizeof(m->name)), m->name, sizeof(m->name));
		return CUDA_SUCCESS;
	}
	if (status)
		return status;
	if (!w->cuda.cuMemExportToShareableHandle)
		return worker_lacks(w, "cuMemExportToShareableHandle");
	wait.device = m->device;
	wait.bytes = m->bytes;
	return ipc_export(w, r, &wait, m->memory);
}

CUresult serve_vcudaVmmImport(struct worker *w, struct request *r)
{
	const struct wire_vcudaVmmImport *req = (const void *)r->body;
	const uint8_t *name = worker_in(r, &req->name, 16);
	struct ipc_wait wait = {.tag = -1,
		.import = true,
		.device = (uint32_t)req->device,
		.bytes = req->bytes,
		.memory = req->memory};

	if (worker_refused(r))
		return r->refused;
	if (req->device < 0 || (uint32_t)req->device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!req->memory || !req->bytes || req->bytes % w->devices[req->device].granularity)
		return CUDA_ERROR_INVALID_VALUE;
	return ipc_import(w, r, &wait, name);
}

/* The front's word on the import of memory with a name. */
static CUresult vmm_import(struct worker *w, const struct handoff *h, int fd)
{
	CUmemGenericAllocationHandle memory;
	struct request r = {.refused = CUDA_SUCCESS};
	CUresult status = ipc_imported(w, h, fd, &memory);

	if (status)
		return status;
	status = vmm_adopt(w, &r, w->ipc.memory, w->ipc.device, memory, w->ipc.bytes);
	if (status)
		w->cuda.cuMemRelease(memory);
	return status;
}

/* The front's word on the export of memory with a name, which may be gone since it was asked.
 */
static CUresult vmm_shared(struct worker *w, const struct handoff *h)
{
	struct name *name = handles_find(w, w->ipc.memory, KIND_CUmemGenericAllocationHandle);
	struct vmm *m = name ? name->object : NULL;

	if (h->status)
		return (CUresult)h->status;
	if (!m) {
		ipc_unname(w, h->session);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	m->named = true;
	memcpy(m->name, h->session, sizeof(m->name));
	return CUDA_SUCCESS;
}

/* The front's word on an import. */
static CUresult ipc_import_memory(struct worker *w, const struct handoff *h, int fd)
{
	struct worker_device *d = &w->devices[w->ipc.device];
	CUmemGenericAllocationHandle memory;
	CUresult status;

	/* Frames were served since it was asked. */
	if (!h->status && !memory_vacant(d, w->ipc.address, w->ipc.bytes))
		return CUDA_ERROR_INVALID_VALUE;
	status = ipc_imported(w, h, fd, &memory);
	if (status)
		return status;
	status = memory_put(w, w->ipc.device, w->ipc.address, w->ipc.bytes, memory, NULL);
	if (status)
		w->cuda.cuMemRelease(memory);
	else
		d->used += w->ipc.bytes;
	return status;
}

/* The front's word on an export. */
static CUresult ipc_shared(struct worker *w, const struct handoff *h)
{
	if (h->status)
		return (CUresult)h->status;
	if (w->share_count == w->share_room) {
		uint32_t room = w->share_room ? 2 * w->share_room : 16;
		struct ipc_share *shares = realloc(w->shares, room * sizeof(*shares));

		if (!shares)
			return CUDA_ERROR_OUT_OF_MEMORY;
		w->shares = shares;
		w->share_room = room;
	}
	w->shares[w->share_count] = (struct ipc_share){
		.device = w->ipc.device, .address = w->ipc.address, .bytes = w->ipc.bytes};
	memcpy(w->shares[w->share_count++].name, h->session, 16);
	return CUDA_SUCCESS;
}

/* An export's reply, with the name that the front made. */
static void ipc_reply(struct worker *w, const struct handoff *h, CUresult status)
{
	union {
		struct wire_vcudaIpcExport_reply memory;
		struct wire_vcudaVmmExport_reply vmm;
		unsigned char bytes[sizeof(struct wire_vcudaIpcExport_reply) + 16];
	} reply = {.memory = {.base = w->ipc.address, .bytes = w->ipc.bytes}};
	uint32_t fixed = sizeof(reply.memory);

	if (w->ipc.memory) {
		fixed = sizeof(reply.vmm);
		reply.vmm = (struct wire_vcudaVmmExport_reply){.name = {sizeof(reply.vmm), 16}};
	} else {
		reply.memory.name = (__typeof__(reply.memory.name)){sizeof(reply.memory), 16};
	}
	memcpy(reply.bytes + fixed, h->session, 16);
	reply_send(w, (uint16_t)w->ipc.tag, status, &reply, fixed + 16);
}

static void ipc_memory_answer(struct worker *w, const struct handoff *h, int fd)
{
	CUresult status;

	if (w->ipc.import) {
		status = w->ipc.memory ? vmm_import(w, h, fd) : ipc_import_memory(w, h, fd);
		reply_send(w, (uint16_t)w->ipc.tag, status, NULL, 0);
	} else {
		status = w->ipc.memory ? vmm_shared(w, h) : ipc_shared(w, h);
		ipc_reply(w, h, status);
	}
}

void ipc_answer(struct worker *w, const struct handoff *h, int fd)
{
	if (w->ipc.tag >= 0 && w->ipc.import == (h->what == HANDOFF_GIVEN)) {
		if (w->ipc.event)
			ipc_event_answer(w, h, w->ipc.import ? &fd : &asked.fd);
		else
			ipc_memory_answer(w, h, fd);
		w->ipc.tag = -1;
		close_asked();
	}
	if (fd >= 0)
		close(fd);
}
