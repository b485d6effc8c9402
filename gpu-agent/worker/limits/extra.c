/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory that no mapping shows: contexts of the app's own, and what the driver sets
 * aside for a limit (heap and stacks of kernels, the buffer of printf).  It is of the session's
 * lease like everything else, so a session's budget holds for it, but the shim knows nothing of
 * it: it comes out of what the shim was not told of, and where that is too little the front is
 * asked for more.
 *
 * Both calls are made a few times in a program's life and last in the driver, so the worker
 * waits for the front's answer; what looks after the session meanwhile is watchdog.c.
 */
#include <errno.h>
#include <string.h>

#include "common/wait.h"
#include "gpu-agent/worker/limits/extra.h"
#include "gpu-agent/worker/worker_state.h"

/* What a context takes is not told by any driver. A warm worker of an H200
 * holds 0.5 GB with its first one (docs/BENCHMARKS.md), which is taken for any other too. */
#define CONTEXT_BYTES (512ull << 20)
#define CONTEXT_SOFTWARE_BYTES (16ull << 20)
/* The front lets a wish wait for workers that are ending (lease.c), and answers all of them. */
#define ANSWER_NS 6000000000ull
/* Of local memory a thread has at most so much, on every GPU. */
#define STACK_MOST (512ull << 10)

enum extra_limit { EXTRA_STACK, EXTRA_PRINTF, EXTRA_HEAP, EXTRA_LIMITS };

static struct worker *extra_worker; /* there is one in a process */
static CUresult (*driver_set_limit)(CUlimit limit, size_t value);

static struct {
	uint32_t device;
	uint64_t bytes;		     /* the context's own */
	uint64_t most[EXTRA_LIMITS]; /* of each limit, beyond its value at the start */
	uint64_t first[EXTRA_LIMITS];
	bool known[EXTRA_LIMITS];
} extras[CONTEXT_MAX];

/* What of the lease neither the shim was told of, nor is in use. */
static uint64_t slack(const struct worker_device *d)
{
	uint64_t theirs = d->granted > d->used ? d->granted : d->used;

	return d->lease > theirs ? d->lease - theirs : 0;
}

static bool ask_front(struct worker *w, uint32_t device, uint64_t bytes)
{
	uint64_t deadline = wait_now() + ANSWER_NS;

	/* The answers to two wishes for a device could not be told apart. */
	while (w->lease.tag[device] >= 0)
		if (!worker_hear(w, deadline))
			return false;
	if (worker_ask_lease(w, device, bytes, LEASE_TAG_EXTRA))
		return false;
	while (w->lease.tag[device] == LEASE_TAG_EXTRA)
		if (!worker_hear(w, deadline))
			return false;
	return true;
}

static CUresult extra_lease(struct worker *w, uint32_t device, uint64_t bytes)
{
	struct worker_device *d = &w->devices[device];

	if (slack(d) < bytes && (!ask_front(w, device, bytes - slack(d)) || slack(d) < bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	d->extra += bytes;
	d->lease -= bytes;
	return CUDA_SUCCESS;
}

static void extra_unlease(struct worker *w, uint32_t device, uint64_t bytes)
{
	w->devices[device].extra -= bytes;
	w->devices[device].lease += bytes;
}

CUresult extra_context(struct worker *w, uint16_t context, uint32_t device)
{
	uint64_t bytes =
		w->config->driver == DRIVER_SOFTWARE ? CONTEXT_SOFTWARE_BYTES : CONTEXT_BYTES;
	CUresult status = extra_lease(w, device, bytes);

	if (status)
		return status;
	memset(&extras[context], 0, sizeof(extras[context]));
	extras[context].device = device;
	extras[context].bytes = bytes;
	return CUDA_SUCCESS;
}

void extra_green(struct worker *w, uint16_t context, uint32_t device)
{
	(void)w;
	memset(&extras[context], 0, sizeof(extras[context]));
	extras[context].device = device;
}

void extra_context_gone(struct worker *w, uint16_t context)
{
	uint64_t bytes = extras[context].bytes;

	for (int i = 0; i < EXTRA_LIMITS; i++)
		bytes += extras[context].most[i];
	extra_unlease(w, extras[context].device, bytes);
	memset(&extras[context], 0, sizeof(extras[context]));
}

uint32_t extra_device(uint16_t context)
{
	return context < CONTEXT_CREATED ? (uint32_t)(context - CONTEXT_PRIMARY(0))
					 : extras[context].device;
}

/* Every thread that can be on the device has a stack. */
static uint64_t threads_of(const struct worker_device *d)
{
	int cores = 1, threads = 1;

	extra_worker->cuda.cuDeviceGetAttribute(
		&cores, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, d->device);
	extra_worker->cuda.cuDeviceGetAttribute(
		&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, d->device);
	return (uint64_t)cores * (uint64_t)threads;
}

/* Bytes beyond what the context had at its start; UINT64_MAX where that is too large a number.
 */
static uint64_t beyond(uint16_t context, enum extra_limit which, CUlimit limit, size_t value)
{
	const struct worker_device *d = &extra_worker->devices[extras[context].device];
	size_t now = 0;
	uint64_t bytes;

	if (!extras[context].known[which] && !extra_worker->cuda.cuCtxGetLimit(&now, limit)) {
		extras[context].first[which] = now;
		extras[context].known[which] = true;
	}
	if (value <= extras[context].first[which])
		return 0;
	bytes = value - extras[context].first[which];
	if (which == EXTRA_STACK && __builtin_mul_overflow(bytes, threads_of(d), &bytes))
		return UINT64_MAX;
	return bytes;
}

/* In the place of the driver's own. What was set aside once is kept until the context goes. */
static CUresult set_limit(CUlimit limit, size_t value)
{
	static const int known[EXTRA_LIMITS] = {[EXTRA_STACK] = CU_LIMIT_STACK_SIZE,
		[EXTRA_PRINTF] = CU_LIMIT_PRINTF_FIFO_SIZE,
		[EXTRA_HEAP] = CU_LIMIT_MALLOC_HEAP_SIZE};
	struct worker *w = extra_worker;
	uint16_t context = w->current;
	uint64_t bytes, more = 0;
	CUresult status;
	int which = 0;

	while (which < EXTRA_LIMITS && known[which] != (int)limit)
		which++;
	if (which == EXTRA_LIMITS || context >= CONTEXT_MAX || !w->contexts[context])
		return driver_set_limit(limit, value);
	/* Before any of it is set aside: the driver refuses that, whatever memory there is. */
	if (which == EXTRA_STACK && value > STACK_MOST)
		return CUDA_ERROR_INVALID_VALUE;
	if (context < CONTEXT_CREATED) /* a primary one: of the device of that number */
		extras[context].device = context - CONTEXT_PRIMARY(0);
	bytes = beyond(context, (enum extra_limit)which, limit, value);
	if (bytes > extras[context].most[which])
		more = bytes - extras[context].most[which];
	status = more ? extra_lease(w, extras[context].device, more) : CUDA_SUCCESS;
	if (status)
		return status;
	worker_use(w, context); /* a stripe that came meanwhile may have left another */
	status = driver_set_limit(limit, value);
	if (status)
		extra_unlease(w, extras[context].device, more);
	else
		extras[context].most[which] += more;
	return status;
}

void extra_open(struct worker *w)
{
	extra_worker = w;
	driver_set_limit = w->cuda.cuCtxSetLimit;
	if (driver_set_limit)
		w->cuda.cuCtxSetLimit = set_limit;
}
