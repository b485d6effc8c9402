/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices that reach each other's memory.  The driver's own cuCtxEnablePeerAccess opens what
 * the driver placed (variables of modules, arrays).  What the session allocates is memory that
 * is mapped in windows, which the driver opens by cuMemSetAccess: once for all that is mapped
 * when a device is given access, and with each mapping after that (memory_put).  A device has
 * access as long as a context of it has it, or a pool gives it; to single mappings
 * (vcudaVmmAccess) it has it whatever happens to that.
 */
#include "gpu-agent/worker/driver/memory/peer.h"

#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/driver/memory/memory.h"
#include "gpu-agent/worker/driver/memory/vmm.h"

/* The most that a session's contexts may have; beyond it TOO_MANY_PEERS. */
#define PEER_PAIRS_MAX 4096u

void peer_describe(const struct worker *w, uint32_t i, uint32_t j, struct open_peer *peer)
{
	CUdevice device = w->devices[i].device, other = w->devices[j].device;
	int value = 0;

	*peer = (struct open_peer){0};
	if (i == j)
		return;
	if (w->cuda.cuDeviceCanAccessPeer &&
		!w->cuda.cuDeviceCanAccessPeer(&value, device, other))
		peer->can = value != 0;
	for (int a = 1; w->cuda.cuDeviceGetP2PAttribute && a < OPEN_PEER_ATTRIBUTES; a++)
		if (!w->cuda.cuDeviceGetP2PAttribute(
			    &peer->attributes[a], (CUdevice_P2PAttribute)a, device, other))
			peer->attribute_known |= (uint8_t)(1u << a);
	for (unsigned op = 0; w->cuda.cuDeviceGetP2PAtomicCapabilities &&
			      op < (unsigned)CU_ATOMIC_OPERATION_MAX && op < OPEN_PEER_ATOMICS;
		op++) {
		CUatomicOperation operation = (CUatomicOperation)op;
		unsigned capabilities = 0;

		if (w->cuda.cuDeviceGetP2PAtomicCapabilities(
			    &capabilities, &operation, 1, device, other))
			continue;
		peer->atomics_known = 1;
		peer->atomics[op] = (uint8_t)capabilities;
	}
}

/* A mapping without a name begins at granule G, to which BY has no access of its own. */
static bool mapping_plain(const struct worker_device *d, uint64_t g, uint32_t by)
{
	const struct mapping *m = &d->mappings[g];

	return m->granules && !m->of && !(m->others >> by & 1);
}

/* The first granule from G on that such a mapping begins in; END: there is none. */
static uint64_t mapping_next(
	const struct worker_device *d, uint64_t g, uint64_t end, uint32_t by)
{
	while (g < end) {
		if (!(g % 64) && !d->mapped[g / 64])
			g += 64;
		else if (mapping_plain(d, g, by))
			return g;
		else
			g++;
	}
	return end;
}

/* What is mapped of OWNER's without a name: BY may do that with it. The first failure ends it.
 */
static CUresult window_let(struct worker *w, const struct worker_device *owner, uint32_t by,
	CUmemAccess_flags flags)
{
	CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = w->devices[by].device},
		.flags = flags};
	uint64_t end = owner->window_bytes / owner->granularity, first, n;
	CUresult status = CUDA_SUCCESS;

	for (uint64_t g = mapping_next(owner, 0, end, by); !status && g < end;
		g = mapping_next(owner, g, end, by)) {
		first = g;
		do {
			g += owner->mappings[g].granules;
		} while (g < end && mapping_plain(owner, g, by));
		n = g - first;
		status = w->cuda.cuMemSetAccess(owner->window + first * owner->granularity,
			n * owner->granularity, &access, 1);
	}
	return status;
}

/* Once more, or once less, OWNER's memory is BY's to read and write. */
static CUresult peer_let(struct worker *w, uint32_t owner, uint32_t by, bool in)
{
	struct worker_device *d = &w->devices[owner];
	CUresult status = CUDA_SUCCESS;

	if (owner == by)
		return CUDA_SUCCESS;
	if (in && d->reached[by] == UINT16_MAX)
		return CUDA_ERROR_TOO_MANY_PEERS;
	if (!in && !d->reached[by])
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	if (in && !d->reached[by]) {
		status = window_let(w, d, by, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
		if (status)
			window_let(w, d, by, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	} else if (!in && d->reached[by] == 1) {
		/* Kernels that were launched before may still read. */
		status = worker_drain(w);
		if (!status)
			status = window_let(w, d, by, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	}
	if (!in)
		d->reached[by]--;
	else if (!status)
		d->reached[by]++;
	return status;
}

CUresult peer_captures(struct worker *w, uint64_t one, uint64_t other)
{
	const uint32_t pair[2] = {memory_window_of(w, one), memory_window_of(w, other)};
	CUresult status = CUDA_SUCCESS;

	if (pair[0] == w->device_count || pair[1] == w->device_count || pair[0] == pair[1])
		return CUDA_SUCCESS;
	for (int i = 0; i < 2 && !status; i++) {
		struct worker_device *d = &w->devices[pair[i]];

		if (d->captured >> pair[!i] & 1)
			continue;
		status = peer_let(w, pair[i], pair[!i], true);
		if (!status)
			d->captured |= 1u << pair[!i];
	}
	return status;
}

static CUresult context_device(struct worker *w, uint16_t context, uint8_t *device)
{
	CUdevice found;
	CUresult status = worker_use(w, context);

	if (!status)
		status = w->cuda.cuCtxGetDevice(&found);
	if (status)
		return status;
	for (uint32_t i = 0; i < w->device_count; i++)
		if (w->devices[i].device == found) {
			*device = (uint8_t)i;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_DEVICE;
}

static struct peer_pair *pair_find(struct worker *w, uint16_t context, uint16_t peer)
{
	for (uint32_t i = 0; i < w->peers.count; i++)
		if (w->peers.pairs[i].context == context && w->peers.pairs[i].peer == peer)
			return &w->peers.pairs[i];
	return NULL;
}

static bool pair_room(struct worker_peers *peers)
{
	uint32_t room = peers->room ? 2 * peers->room : 16;
	struct peer_pair *pairs;

	if (peers->count < peers->room)
		return true;
	pairs = realloc(peers->pairs, room * sizeof(*pairs));
	if (!pairs)
		return false;
	peers->pairs = pairs;
	peers->room = room;
	return true;
}

static CUresult pair_add(struct worker *w, struct peer_pair pair)
{
	CUresult status = context_device(w, pair.peer, &pair.owner);

	if (!status)
		status = context_device(w, pair.context, &pair.device);
	if (!status)
		status = w->cuda.cuCtxEnablePeerAccess(w->contexts[pair.peer], 0);
	if (status)
		return status;
	status = peer_let(w, pair.owner, pair.device, true);
	if (status) {
		worker_use(w, pair.context);
		w->cuda.cuCtxDisablePeerAccess(w->contexts[pair.peer]);
		return status;
	}
	w->peers.pairs[w->peers.count++] = pair;
	return CUDA_SUCCESS;
}

static CUresult pair_drop(struct worker *w, struct peer_pair *at)
{
	struct peer_pair pair = *at;
	CUresult status = peer_let(w, pair.owner, pair.device, false), driver;

	*at = w->peers.pairs[--w->peers.count];
	driver = worker_use(w, pair.context);
	if (!driver)
		driver = w->cuda.cuCtxDisablePeerAccess(w->contexts[pair.peer]);
	return driver ? driver : status;
}

void peer_forget(struct worker *w, uint16_t context)
{
	for (uint32_t i = w->peers.count; i-- > 0;)
		if (w->peers.pairs[i].context == context || w->peers.pairs[i].peer == context)
			pair_drop(w, &w->peers.pairs[i]);
}

CUresult serve_vcudaPeerContext(struct worker *w, struct request *r)
{
	const struct wire_vcudaPeerContext *req = (const void *)r->body;
	struct peer_pair pair = {r->header.context, (uint16_t)req->peer, 0, 0}, *there;

	if (req->peer >= CONTEXT_MAX || !w->contexts[req->peer])
		return CUDA_ERROR_INVALID_CONTEXT;
	there = pair_find(w, pair.context, pair.peer);
	if (!req->on)
		return there ? pair_drop(w, there) : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	if (there)
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	if (w->peers.count == PEER_PAIRS_MAX)
		return CUDA_ERROR_TOO_MANY_PEERS;
	return pair_room(&w->peers) ? pair_add(w, pair) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult serve_vcudaPeerPool(struct worker *w, struct request *r)
{
	const struct wire_vcudaPeerPool *req = (const void *)r->body;

	if (req->device < 0 || (uint32_t)req->device >= w->device_count || req->accessor < 0 ||
		(uint32_t)req->accessor >= w->device_count || req->device == req->accessor)
		return CUDA_ERROR_INVALID_DEVICE;
	return peer_let(w, (uint32_t)req->device, (uint32_t)req->accessor, req->on != 0);
}

/* What ACCESSOR is let to do with a whole mapping that is asked for: *FLAGS, as it is to be. */
static CUresult mapping_allows(const struct worker_device *d, const struct mapping *m,
	const struct wire_vcudaVmmAccess *req, CUmemAccess_flags *flags)
{
	if (m->of) {
		/* As when it was mapped: nobody writes to a sealed tensor. */
		if (m->of->read_only && *flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			*flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
		return CUDA_SUCCESS;
	}
	if (req->accessor == req->device || *flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
		return CUDA_ERROR_INVALID_VALUE;
	/* It may have access to all there is. */
	if (d->reached[req->accessor])
		*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return CUDA_SUCCESS;
}

/* It was. */
static void mapping_let(struct mapping *m, const struct wire_vcudaVmmAccess *req)
{
	const uint32_t bit = 1u << req->accessor;

	if (m->of && req->accessor != req->device)
		m->of->others |= bit;
	else if (!m->of && req->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		m->others |= bit;
	else if (!m->of)
		m->others &= ~bit;
}

CUresult serve_vcudaVmmAccess(struct worker *w, struct request *r)
{
	const struct wire_vcudaVmmAccess *req = (const void *)r->body;
	CUmemAccessDesc access = {.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
		.flags = (CUmemAccess_flags)req->flags};
	CUresult status = CUDA_SUCCESS;
	struct worker_device *d;
	uint64_t first, count, n;

	if (req->device < 0 || (uint32_t)req->device >= w->device_count || req->accessor < 0 ||
		(uint32_t)req->accessor >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	d = &w->devices[req->device];
	if ((req->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		    req->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		    req->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) ||
		!memory_granules(d, req->address, req->bytes, &first, &count))
		return CUDA_ERROR_INVALID_VALUE;
	for (uint64_t g = first; g < first + count; g += n) {
		n = d->mappings[g].granules;
		if (!n || n > first + count - g || !d->mappings[g].of != !d->mappings[first].of)
			return CUDA_ERROR_INVALID_VALUE;
		status = mapping_allows(d, &d->mappings[g], req, &access.flags);
		if (status)
			return status;
	}
	access.location.id = w->devices[req->accessor].device;
	status = w->cuda.cuMemSetAccess(req->address, req->bytes, &access, 1);
	for (uint64_t g = first; !status && g < first + count; g += d->mappings[g].granules)
		mapping_let(&d->mappings[g], req);
	return status;
}
