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
#include "gpu-agent/worker/driver/ipc.h"
#include "gpu-agent/worker/driver/memory.h"
#include "gpu-agent/worker/driver/vmm.h"
#include "gpu-agent/worker/reply.h"
#include "gpu-agent/worker/worker_state.h"

/* A session's names, and with the front's limit its descriptors there. */
#define IPC_SHARES_MAX 256u

static CUresult ipc_ask(struct worker *w, struct request *r, struct handoff *ask, int fd)
{
	int ret;

	ask->version = HANDOFF_VERSION;
	ret = descriptors_send(w->handoff, ask, sizeof(*ask), &fd, fd >= 0, 0);
	if (ret) {
		log_warn("worker.share", "error=\"%s\"", strerror(-ret));
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	if (r) {
		w->ipc.tag = r->header.tag;
		r->later = true;
	}
	return CUDA_SUCCESS;
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
	ipc_ask(w, NULL, &ask, -1);
}

void ipc_forget(struct worker *w, uint32_t device, uint64_t address)
{
	struct ipc_share *share = ipc_find(w, device, address);

	if (!share)
		return;
	ipc_unname(w, share->name);
	*share = w->shares[--w->share_count];
}

/* Everything that may touch the session's memory is done. */
static CUresult ipc_drain(struct worker *w)
{
	CUresult status = CUDA_SUCCESS;

	for (uint16_t c = 1; c < CONTEXT_MAX && !status; c++) {
		if (!w->contexts[c])
			continue;
		status = worker_use(w, c);
		if (!status)
			status = w->cuda.cuCtxSynchronize();
	}
	return status;
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
	status = ipc_drain(w);
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

CUresult serve_vcudaIpcExport(struct worker *w, struct request *r)
{
	const struct wire_vcudaIpcExport *req = (const void *)r->body;
	struct wire_vcudaIpcExport_reply *answer = (void *)r->answer;
	static struct handoff ask;
	struct worker_device *d;
	struct ipc_share *share;
	uint64_t first;
	CUresult status;
	int fd;

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
	if (w->ipc.tag >= 0)
		return CUDA_ERROR_NOT_READY; /* the shim asks one at a time */
	if (w->share_count == IPC_SHARES_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!w->cuda.cuMemExportToShareableHandle)
		return worker_lacks(w, "cuMemExportToShareableHandle");
	status = ipc_move(w, d, (uint32_t)req->device, first);
	if (!status)
		status = w->cuda.cuMemExportToShareableHandle(&fd, d->mappings[first].memory,
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (status)
		return status;
	ask = (struct handoff){
		.what = HANDOFF_SHARE, .device = (uint32_t)req->device, .bytes = answer->bytes};
	w->ipc = (struct ipc_wait){.tag = -1,
		.device = (uint32_t)req->device,
		.address = answer->base,
		.bytes = answer->bytes};
	status = ipc_ask(w, r, &ask, fd);
	close(fd);
	return status;
}

CUresult serve_vcudaIpcImport(struct worker *w, struct request *r)
{
	const struct wire_vcudaIpcImport *req = (const void *)r->body;
	const uint8_t *name = worker_in(r, &req->name, 16);
	static struct handoff ask;
	struct worker_device *d;

	if (worker_refused(r))
		return r->refused;
	if (req->device < 0 || (uint32_t)req->device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	d = &w->devices[req->device];
	if (!memory_vacant(d, req->address, req->bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (req->bytes > d->lease - d->used)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (w->ipc.tag >= 0)
		return CUDA_ERROR_NOT_READY;
	if (!w->cuda.cuMemImportFromShareableHandle)
		return worker_lacks(w, "cuMemImportFromShareableHandle");
	ask = (struct handoff){.what = HANDOFF_WANT, .device = (uint32_t)req->device};
	memcpy(ask.session, name, sizeof(ask.session));
	w->ipc = (struct ipc_wait){.tag = -1,
		.import = true,
		.device = (uint32_t)req->device,
		.address = req->address,
		.bytes = req->bytes};
	return ipc_ask(w, r, &ask, -1);
}

/* ---- memory with a name ---- */

CUresult serve_vcudaVmmExport(struct worker *w, struct request *r)
{
	const struct wire_vcudaVmmExport *req = (const void *)r->body;
	struct wire_vcudaVmmExport_reply *answer = (void *)r->answer;
	struct vmm *m = worker_handle(w, r, req->memory, KIND_CUmemGenericAllocationHandle);
	static struct handoff ask;
	CUresult status;
	int fd;

	if (!m)
		return r->refused;
	if (!m->shareable)
		return CUDA_ERROR_INVALID_VALUE;
	if (m->named) {
		memcpy(worker_out(r, &answer->name, sizeof(m->name)), m->name, sizeof(m->name));
		return CUDA_SUCCESS;
	}
	if (w->ipc.tag >= 0)
		return CUDA_ERROR_NOT_READY; /* the shim asks one at a time */
	if (!w->cuda.cuMemExportToShareableHandle)
		return worker_lacks(w, "cuMemExportToShareableHandle");
	status = w->cuda.cuMemExportToShareableHandle(
		&fd, m->memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (status)
		return status;
	ask = (struct handoff){.what = HANDOFF_SHARE, .device = m->device, .bytes = m->bytes};
	w->ipc = (struct ipc_wait){.tag = -1, .memory = req->memory};
	status = ipc_ask(w, r, &ask, fd);
	close(fd);
	return status;
}

CUresult serve_vcudaVmmImport(struct worker *w, struct request *r)
{
	const struct wire_vcudaVmmImport *req = (const void *)r->body;
	const uint8_t *name = worker_in(r, &req->name, 16);
	static struct handoff ask;
	struct worker_device *d;

	if (worker_refused(r))
		return r->refused;
	if (req->device < 0 || (uint32_t)req->device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	d = &w->devices[req->device];
	if (!req->memory || !req->bytes || req->bytes % d->granularity)
		return CUDA_ERROR_INVALID_VALUE;
	if (req->bytes > d->lease - d->used)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (w->ipc.tag >= 0)
		return CUDA_ERROR_NOT_READY;
	if (!w->cuda.cuMemImportFromShareableHandle)
		return worker_lacks(w, "cuMemImportFromShareableHandle");
	ask = (struct handoff){.what = HANDOFF_WANT, .device = (uint32_t)req->device};
	memcpy(ask.session, name, sizeof(ask.session));
	w->ipc = (struct ipc_wait){.tag = -1,
		.import = true,
		.device = (uint32_t)req->device,
		.bytes = req->bytes,
		.memory = req->memory};
	return ipc_ask(w, r, &ask, -1);
}

/* The front's word on the import of memory with a name. */
static CUresult vmm_import(struct worker *w, const struct handoff *h, int fd)
{
	struct worker_device *d = &w->devices[w->ipc.device];
	CUmemGenericAllocationHandle memory;
	struct request r = {.refused = CUDA_SUCCESS};
	CUresult status;

	if (h->status || fd < 0)
		return h->status ? (CUresult)h->status : CUDA_ERROR_INVALID_VALUE;
	if (h->bytes != w->ipc.bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (w->ipc.bytes > d->lease - d->used)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = worker_use(w, (uint16_t)CONTEXT_PRIMARY(w->ipc.device));
	if (!status)
		status = w->cuda.cuMemImportFromShareableHandle(&memory, (void *)(intptr_t)fd,
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
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
	struct name *name = names_find(w, w->ipc.memory, KIND_CUmemGenericAllocationHandle);
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

static void vmm_answer(struct worker *w, const struct handoff *h, int fd)
{
	struct {
		struct wire_vcudaVmmExport_reply fixed;
		uint8_t name[16];
	} reply = {.fixed.name = {sizeof(reply.fixed), sizeof(reply.name)}};
	uint16_t tag = (uint16_t)w->ipc.tag;
	CUresult status = w->ipc.import ? vmm_import(w, h, fd) : vmm_shared(w, h);

	w->ipc.tag = -1;
	memcpy(reply.name, h->session, sizeof(reply.name));
	if (w->ipc.import)
		reply_send(w, tag, status, NULL, 0);
	else
		reply_send(w, tag, status, &reply, sizeof(reply));
}

/* The front's word on an import. */
static CUresult ipc_import_memory(struct worker *w, const struct handoff *h, int fd)
{
	struct worker_device *d = &w->devices[w->ipc.device];
	CUmemGenericAllocationHandle memory;
	CUresult status;

	if (h->status || fd < 0)
		return h->status ? (CUresult)h->status : CUDA_ERROR_INVALID_VALUE;
	/* Frames were served since it was asked. */
	if (h->bytes != w->ipc.bytes || !memory_vacant(d, w->ipc.address, w->ipc.bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (w->ipc.bytes > d->lease - d->used)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = worker_use(w, (uint16_t)CONTEXT_PRIMARY(w->ipc.device));
	if (!status)
		status = w->cuda.cuMemImportFromShareableHandle(&memory, (void *)(intptr_t)fd,
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
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

void ipc_answer(struct worker *w, const struct handoff *h, int fd)
{
	struct {
		struct wire_vcudaIpcExport_reply fixed;
		uint8_t name[16];
	} reply = {.fixed = {.base = w->ipc.address, .bytes = w->ipc.bytes}};
	uint16_t tag = (uint16_t)w->ipc.tag;
	CUresult status = CUDA_SUCCESS;

	if (w->ipc.tag >= 0 && w->ipc.memory && w->ipc.import == (h->what == HANDOFF_GIVEN)) {
		vmm_answer(w, h, fd);
	} else if (w->ipc.tag >= 0 && w->ipc.import == (h->what == HANDOFF_GIVEN)) {
		status = w->ipc.import ? ipc_import_memory(w, h, fd) : ipc_shared(w, h);
		w->ipc.tag = -1;
		reply.fixed.name.offset = sizeof(reply.fixed);
		reply.fixed.name.length = sizeof(reply.name);
		memcpy(reply.name, h->session, sizeof(reply.name));
		if (w->ipc.import)
			reply_send(w, tag, status, NULL, 0);
		else
			reply_send(w, tag, status, &reply, sizeof(reply));
	}
	if (fd >= 0)
		close(fd);
}
