/* SPDX-License-Identifier: Apache-2.0
 *
 * What graphs use of a device's memory: see graph_usage.h.
 */
#include "shim/driver/graph/graph_usage.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "shim/driver/context/context.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/generated/cuda_hand.h"

#define UNIT (32ull << 20)

struct graph_use {
	struct graph_use *next;
	uint64_t graph;
	int device;
	uint32_t allocations, live;
	uint64_t stream; /* that it was launched or freed on last */
	uint64_t units;	 /* that it has mapped */
	uint64_t pass;	 /* of the launch that the sums are of */
	uint64_t now, most;
};

/* In units. */
struct usage {
	uint64_t used, used_high, reserved, reserved_high;
};

static struct {
	pthread_mutex_t lock;
	struct graph_use *uses;
	struct usage of[OPEN_DEVICES_MOST];
} usages = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(graph_usage, usages.lock, LOCK_GRAPH_USAGE);

struct graph_use *graph_use_get(int device, uint64_t graph)
{
	struct graph_use *use;

	pthread_mutex_lock(&usages.lock);
	for (use = usages.uses; use; use = use->next)
		if (use->graph == graph && use->device == device)
			break;
	if (!use) {
		use = calloc(1, sizeof(*use));
		if (use) {
			use->graph = graph;
			use->device = device;
			use->next = usages.uses;
			usages.uses = use;
		}
	}
	if (use)
		use->allocations++;
	pthread_mutex_unlock(&usages.lock);
	return use;
}

/* It has none mapped any more; with the lock held. */
static void unmap(struct graph_use *use)
{
	usages.of[use->device].used -= use->units;
	use->units = 0;
}

void graph_use_put(struct graph_use *use)
{
	struct graph_use **at = &usages.uses;

	pthread_mutex_lock(&usages.lock);
	if (!--use->allocations) {
		while (*at != use)
			at = &(*at)->next;
		*at = use->next;
		unmap(use);
		free(use);
	}
	pthread_mutex_unlock(&usages.lock);
}

void graph_use_alloc(struct graph_use *use, uint64_t pass, size_t bytes)
{
	if (use->pass != pass)
		use->now = use->most = 0;
	use->pass = pass;
	use->now += bytes;
	if (use->most < use->now)
		use->most = use->now;
}

void graph_use_free(struct graph_use *use, uint64_t pass, size_t bytes)
{
	if (use->pass == pass)
		use->now -= bytes;
}

/* Takes up to N units of graphs whose work is done when the stream comes to this one. */
static uint64_t take_over(const struct graph_use *for_use, uint64_t stream, uint64_t n)
{
	uint64_t left = n;

	for (struct graph_use *use = usages.uses; use && left; use = use->next) {
		uint64_t some = use->units < left ? use->units : left;

		if (use == for_use || use->device != for_use->device || use->live ||
			(use->stream != stream && use->stream != GRAPH_USE_ANY))
			continue;
		use->units -= some;
		left -= some;
	}
	return n - left;
}

void graph_use_launched(struct graph_use *use, uint64_t pass, uint64_t stream)
{
	struct usage *u = &usages.of[use->device];
	uint64_t units, missing;

	if (use->pass != pass)
		return;
	pthread_mutex_lock(&usages.lock);
	units = (use->most + UNIT - 1) / UNIT;
	use->stream = stream;
	if (units > use->units) {
		missing = units - use->units;
		use->units = units;
		u->used += missing - take_over(use, stream, missing);
		if (u->reserved < u->used)
			u->reserved = u->used;
		if (u->used_high < u->used)
			u->used_high = u->used;
		if (u->reserved_high < u->reserved)
			u->reserved_high = u->reserved;
	}
	pthread_mutex_unlock(&usages.lock);
}

void graph_use_lives(struct graph_use *use)
{
	pthread_mutex_lock(&usages.lock);
	use->live++;
	pthread_mutex_unlock(&usages.lock);
}

void graph_use_ends(struct graph_use *use, uint64_t stream)
{
	pthread_mutex_lock(&usages.lock);
	use->live--;
	use->stream = stream;
	pthread_mutex_unlock(&usages.lock);
}

/* With the lock held: what nothing is allocated in goes. */
static void trim(int device, bool all)
{
	for (struct graph_use *use = usages.uses; use; use = use->next)
		if (use->device == device && (all || !use->live))
			unmap(use);
	usages.of[device].reserved = usages.of[device].used;
}

void graph_usage_reset(int device)
{
	pthread_mutex_lock(&usages.lock);
	trim(device, true);
	pthread_mutex_unlock(&usages.lock);
}

/* ---- the calls ---- */

CUresult hand_cuDeviceGraphMemTrim(CUdevice device)
{
	struct device *d = device_of(device);

	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&usages.lock);
	trim((int)(d - devices.at), false);
	pthread_mutex_unlock(&usages.lock);
	return CUDA_SUCCESS;
}

CUresult hand_cuDeviceGetGraphMemAttribute(
	CUdevice device, CUgraphMem_attribute attr, void *value)
{
	struct device *d = device_of(device);
	struct usage u;
	uint64_t units;

	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&usages.lock);
	u = usages.of[d - devices.at];
	pthread_mutex_unlock(&usages.lock);
	switch (attr) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: units = u.used; break;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: units = u.used_high; break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: units = u.reserved; break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: units = u.reserved_high; break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	*(cuuint64_t *)value = units * UNIT;
	return CUDA_SUCCESS;
}

/* The high marks can be set back to what there is now. */
CUresult hand_cuDeviceSetGraphMemAttribute(
	CUdevice device, CUgraphMem_attribute attr, void *value)
{
	struct device *d = device_of(device);
	CUresult status = CUDA_SUCCESS;
	struct usage *u;

	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value || *(const cuuint64_t *)value)
		return CUDA_ERROR_INVALID_VALUE;
	u = &usages.of[d - devices.at];
	pthread_mutex_lock(&usages.lock);
	if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		u->used_high = u->used;
	else if (attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		u->reserved_high = u->reserved;
	else
		status = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&usages.lock);
	return status;
}
