/* SPDX-License-Identifier: Apache-2.0
 *
 * Peer access.  What the GPUs can came with vcudaOpen; an agent that is older tells nothing,
 * and its GPUs reach nothing of each other.  Who has access, the worker knows (its peer.c), so
 * that its driver is the one that answers.
 */
#include "shim/driver/device/peer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/memory.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/engine/thread.h"

/* By device.place and the number that frames have: those of one agent. Filled when the process
 * joins, never changed after. */
static struct open_peer peers[OPEN_DEVICES_MOST][OPEN_DEVICES];

void peer_fill(const struct open_info *info, const void *answer, size_t bytes)
{
	const unsigned char *at = answer;
	struct open_peer(*rows)[OPEN_DEVICES] = &peers[session_here()->first];
	size_t count = info->device_count;

	memset(rows, 0, count * sizeof(*rows));
	if (!(info->features & OPEN_FEATURE_PEERS) ||
		bytes < count * count * sizeof(struct open_peer))
		return;
	for (size_t i = 0; i < count; i++)
		memcpy(rows[i], at + i * count * sizeof(struct open_peer),
			count * sizeof(struct open_peer));
}

/* Who was given access (cuCtxEnablePeerAccess): a device's memory is reached as long as one of
 * its contexts is. */
static struct {
	pthread_mutex_t lock;
	struct peer_pair {
		struct context *context;
		const struct context *peer;
	} *pairs;
	size_t count, room;
} given = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(peer, given.lock, LOCK_PEER);

/* GPUs of two agents reach nothing of each other. */
static const struct open_peer *peer_of(CUdevice dev, CUdevice other)
{
	static const struct open_peer none;

	return devices.at[dev].agent == devices.at[other].agent
		       ? &peers[devices.at[dev].place][device_wire(other)]
		       : &none;
}

bool peer_can(CUdevice dev, CUdevice other)
{
	return dev != other && peer_of(dev, other)->can;
}

CUresult hand_cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	if (!canAccessPeer)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_of(dev) || !device_of(peerDev))
		return CUDA_ERROR_INVALID_DEVICE;
	*canAccessPeer = peer_can(dev, peerDev);
	return CUDA_SUCCESS;
}

CUresult hand_cuDeviceGetP2PAttribute(
	int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice)
{
	const struct open_peer *peer;

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_of(srcDevice) || !device_of(dstDevice) || srcDevice == dstDevice)
		return CUDA_ERROR_INVALID_DEVICE;
	if (attrib < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
		attrib > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
		return CUDA_ERROR_INVALID_VALUE;
	peer = peer_of(srcDevice, dstDevice);
	*value = peer->attribute_known >> attrib & 1 ? peer->attributes[attrib] : 0;
	return CUDA_SUCCESS;
}

CUresult hand_cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities,
	const CUatomicOperation *operations, unsigned int count, CUdevice srcDevice,
	CUdevice dstDevice)
{
	const struct open_peer *peer;

	if (!capabilities || !operations || !count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_of(srcDevice) || !device_of(dstDevice) || srcDevice == dstDevice)
		return CUDA_ERROR_INVALID_DEVICE;
	peer = peer_of(srcDevice, dstDevice);
	for (unsigned i = 0; i < count; i++)
		capabilities[i] = (unsigned)operations[i] < OPEN_PEER_ATOMICS
					  ? peer->atomics[operations[i]]
					  : 0;
	return CUDA_SUCCESS;
}

static CUresult peer_context(const struct context *peer, bool on)
{
	return send_vcudaPeerContext(session_context(session_here(), peer->number), on);
}

/* Room for one more pair. */
static bool pair_room(void)
{
	struct peer_pair *pairs = given.pairs;
	size_t room = given.room ? 2 * given.room : 16;

	if (given.count < given.room)
		return true;
	pairs = realloc(pairs, room * sizeof(*pairs));
	if (!pairs)
		return false;
	given.pairs = pairs;
	given.room = room;
	return true;
}

static void pair_drop(size_t i)
{
	struct peer_pair gone = given.pairs[i];
	uint64_t reached = 0;

	given.pairs[i] = given.pairs[--given.count];
	for (size_t j = 0; j < given.count; j++)
		if (given.pairs[j].context == gone.context)
			reached |= 1ull << given.pairs[j].peer->device;
	atomic_store(&gone.context->reached, reached);
}

void peer_access_ends(struct context *context)
{
	pthread_mutex_lock(&given.lock);
	for (size_t i = given.count; i-- > 0;)
		if (given.pairs[i].context == context || given.pairs[i].peer == context)
			pair_drop(i);
	pthread_mutex_unlock(&given.lock);
}

CUresult hand_cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	struct context *context = context_current();
	const struct context *peer = context_of(peerContext);
	CUresult status;

	if (!peer)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!atomic_load(&peer->live))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	/* A device has no access to itself, as NVIDIA's driver puts it (not as cuda.h). */
	if (!peer_can(context->device, peer->device))
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	pthread_mutex_lock(&given.lock);
	status = pair_room() ? peer_context(peer, true) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!status) {
		given.pairs[given.count++] = (struct peer_pair){context, peer};
		atomic_fetch_or(&context->reached, 1ull << peer->device);
	}
	pthread_mutex_unlock(&given.lock);
	return status;
}

CUresult hand_cuCtxDisablePeerAccess(CUcontext peerContext)
{
	struct context *context = context_current();
	const struct context *peer = context_of(peerContext);
	CUresult status;

	if (!peer) /* also while a stream captures */
		return CUDA_ERROR_INVALID_CONTEXT;
	status = capture_unsafe();
	if (status)
		return status;
	if (!atomic_load(&peer->live))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (!peer_can(context->device, peer->device))
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	pthread_mutex_lock(&given.lock);
	status = peer_context(peer, false);
	for (size_t i = 0; !status && i < given.count; i++)
		if (given.pairs[i].context == context && given.pairs[i].peer == peer) {
			pair_drop(i);
			break;
		}
	pthread_mutex_unlock(&given.lock);
	return status;
}

bool peer_reaches(const struct context *context, CUdeviceptr ptr)
{
	CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = context->device};
	unsigned long long flags = 0;
	struct memory_range range;
	int device;

	if (!memory_in_window(ptr, &device) || device == context->device ||
		atomic_load(&context->reached) >> device & 1 || !memory_find(ptr, &range) ||
		range.async)
		return true;
	return range.reserved && !hand_cuMemGetAccess(&flags, &here, ptr) && flags;
}

CUresult peer_pool(CUdevice owner, CUdevice by, bool in)
{
	struct session_visit visit = device_visit(owner);
	CUresult status;

	status = send_vcudaPeerPool(device_wire(owner), device_wire(by), in);
	session_leave(visit);
	return status;
}

CUresult peer_mapping(
	CUdevice owner, CUdeviceptr address, size_t bytes, CUdevice by, CUmemAccess_flags flags)
{
	struct session_visit visit = device_visit(owner);
	CUresult status;

	status =
		send_vcudaVmmAccess(device_wire(owner), address, bytes, device_wire(by), flags);
	session_leave(visit);
	return status;
}
