/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU, where what makes something waits until the GPU is idle first, as NVIDIA's
 * driver may: a stream, memory, the code of a kernel, which comes to the device with its first
 * launch or when an attribute of it is set, and the stack of one, with its first launch in any
 * case; and a stream that has 1024 launches has no room for more.  Its own functions come
 * before those of the library that it is linked with.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

#define EXPORT __attribute__((visibility("default")))
#define FUNCTIONS 64u
#define STREAMS 64u
#define MARKED 64u
#define MARKS 16u

/* The program has a few. */
static struct functions {
	pthread_mutex_t lock;
	CUfunction all[FUNCTIONS];
	unsigned count;
} loaded = {.lock = PTHREAD_MUTEX_INITIALIZER}, launched = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Of the worker's one thread that launches. */
static struct {
	CUstream stream;
	unsigned launches;
	CUevent marks[MARKS]; /* each behind MARKED launches more */
} queues[STREAMS];

static void *next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static void idle(void)
{
	((__typeof__(&cuCtxSynchronize))next("cuCtxSynchronize"))();
}

/* With ADD it is from now on. */
static bool is_in(struct functions *set, CUfunction function, bool add)
{
	bool found = false;

	pthread_mutex_lock(&set->lock);
	for (unsigned i = 0; i < set->count; i++)
		found = found || set->all[i] == function;
	if (!found && add && set->count < FUNCTIONS)
		set->all[set->count++] = function;
	pthread_mutex_unlock(&set->lock);
	return found;
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
	idle();
	return ((__typeof__(&cuStreamCreateWithPriority))next("cuStreamCreateWithPriority"))(
		stream, flags, priority);
}

EXPORT CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
	idle();
	return ((__typeof__(&cuMemHostAlloc))next("cuMemHostAlloc"))(at, bytes, flags);
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	idle();
	return ((__typeof__(&cuMemCreate))next("cuMemCreate"))(handle, bytes, prop, flags);
}

EXPORT CUresult cuFuncSetAttribute(
	CUfunction function, CUfunction_attribute attribute, int value)
{
	if (!is_in(&loaded, function, true))
		idle();
	return ((__typeof__(&cuFuncSetAttribute))next("cuFuncSetAttribute"))(
		function, attribute, value);
}

/* One more launch on STREAM, once there is room for it. */
static void queue(CUstream stream)
{
	CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
	unsigned at = 0, mark;

	((__typeof__(&cuStreamIsCapturing))next("cuStreamIsCapturing"))(stream, &capture);
	if (capture)
		return;
	while (at < STREAMS - 1 && queues[at].stream && queues[at].stream != stream)
		at++;
	queues[at].stream = stream;
	if (queues[at].launches++ % MARKED)
		return;
	mark = queues[at].launches / MARKED % MARKS;
	if (!queues[at].marks[mark])
		((__typeof__(&cuEventCreate))next("cuEventCreate"))(
			&queues[at].marks[mark], CU_EVENT_DISABLE_TIMING);
	else
		((__typeof__(&cuEventSynchronize))next("cuEventSynchronize"))(
			queues[at].marks[mark]);
	((__typeof__(&cuEventRecord))next("cuEventRecord"))(queues[at].marks[mark], stream);
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
	unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
	void **extra)
{
	is_in(&loaded, function, true);
	if (!is_in(&launched, function, true))
		idle();
	queue(stream);
	return ((__typeof__(&cuLaunchKernel))next("cuLaunchKernel"))(
		function, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}
