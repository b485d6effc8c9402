/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a lease is on the GPU.  The ledger gives what nobody of the agent's has; what others
 * use of the GPU's memory, the driver, its libraries and programs that are not the agent's,
 * only the driver knows.  So a lease is cut to what is free when it is told to the program.
 * What is taken by others later is missing where memory is made that nobody waits for: then all
 * is let go that can be, and tried again for a while.
 */
#include <sys/socket.h>
#include <time.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/memory/memory.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/loop/stash.h"
#include "gpu-agent/worker/worker_state.h"

/* A worker that is warm has given its context's memory back some 100 ms after it was told to.
 */
#define SHORT_WAIT_NS 2000000000ull
#define SHORT_STEP_NS 10000000

/* How long what was seen before the session came is believed: as long as clients take to
 * connect further, with others' allocations not faster than that. */
#define SEEN_NS 20000000ull

static bool free_there(struct worker *w, uint32_t device, size_t *bytes)
{
	size_t total;

	return !stash_driver_waits(w) && !worker_use(w, (uint16_t)CONTEXT_PRIMARY(device)) &&
	       !w->cuda.cuMemGetInfo_v2(bytes, &total);
}

void memory_look(struct worker *w, uint32_t device)
{
	struct worker_device *d = &w->devices[device];
	size_t bytes;

	d->seen_at = 0;
	if (!free_there(w, device, &bytes))
		return;
	d->seen_free = bytes;
	d->seen_at = wait_now();
}

uint64_t memory_there(struct worker *w, uint32_t device, uint64_t lease)
{
	uint64_t reserve = w->config->memory_reserve, used = w->devices[device].used;
	struct worker_device *d = &w->devices[device];
	size_t free_bytes = d->seen_free;
	bool seen = d->seen_at && wait_now() - d->seen_at < SEEN_NS;

	d->seen_at = 0; /* once: then there is the session's own memory */
	if (!seen && !free_there(w, device, &free_bytes))
		return lease;
	free_bytes = free_bytes > reserve ? free_bytes - reserve : 0;
	return lease < used + free_bytes ? lease : used + free_bytes;
}

/* What libraries keep for their next allocation. */
static void pools_trim(struct worker *w)
{
	CUmemoryPool pool;

	for (uint32_t i = 0; i < w->device_count; i++)
		if (w->cuda.cuDeviceGetDefaultMemPool && w->cuda.cuMemPoolTrimTo &&
			!w->cuda.cuDeviceGetDefaultMemPool(&pool, w->devices[i].device))
			w->cuda.cuMemPoolTrimTo(pool, 0);
}

/* The front ends workers that no session has, and starts none for a while. */
static void short_say(struct worker *w)
{
	static struct handoff ask;

	ask = (struct handoff){.version = HANDOFF_VERSION, .what = HANDOFF_SHORT};
	(void)!send(w->handoff, &ask, sizeof(ask), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* What was freed goes as its turn comes, meanwhile. */
static CUresult create_patiently(struct worker *w, CUmemGenericAllocationHandle *memory,
	uint64_t bytes, const CUmemAllocationProp *prop)
{
	const struct timespec step = {.tv_nsec = SHORT_STEP_NS};
	uint64_t until = wait_now() + SHORT_WAIT_NS;
	CUresult status;

	log_warn("memory.short", "bytes=%llu", (unsigned long long)bytes);
	pools_trim(w);
	short_say(w);
	do {
		fence_poll(w);
		status = w->cuda.cuMemCreate(memory, bytes, prop, 0);
		if (status != CUDA_ERROR_OUT_OF_MEMORY || w->sticky)
			break;
		nanosleep(&step, NULL);
	} while (wait_now() < until);
	return status;
}

CUresult memory_create(struct worker *w, CUmemGenericAllocationHandle *memory, uint64_t bytes,
	const CUmemAllocationProp *prop)
{
	CUresult status = w->cuda.cuMemCreate(memory, bytes, prop, 0);

	if (status == CUDA_ERROR_OUT_OF_MEMORY)
		status = create_patiently(w, memory, bytes, prop);
	if (status == CUDA_ERROR_OUT_OF_MEMORY)
		worker_end(w, status,
			"%llu MiB that the agent granted are not free on the GPU: something "
			"that is not the agent's uses its memory",
			(unsigned long long)(bytes >> 20));
	return status;
}
