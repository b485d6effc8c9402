/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU with one hardware channel for each priority of a context: what streams of
 * one priority have runs in the order in which it was given, as on NVIDIA's GPUs once there are
 * more streams than channels (CUDA_DEVICE_MAX_CONNECTIONS).  Its own functions come before
 * those of the library that it is linked with.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))
#define CHANNELS 64u
#define STRING(name) #name
#define SYMBOL(name) STRING(name) /* with the version that cuda.h gives it */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, SYMBOL(name)))

/* The worker's one thread uses them. */
static struct channel {
	CUcontext context;
	int priority;
	CUevent last; /* behind all that it was given */
} channels[CHANNELS];
static unsigned channel_count;

/* NULL: in a capture, which has no channel. */
static struct channel *channel_of(CUstream stream)
{
	CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
	CUcontext context = NULL;
	int priority = 0;

	NEXT(cuStreamIsCapturing)(stream, &capture);
	NEXT(cuCtxGetCurrent)(&context);
	NEXT(cuStreamGetPriority)(stream, &priority);
	if (capture)
		return NULL;
	for (unsigned i = 0; i < channel_count; i++)
		if (channels[i].context == context && channels[i].priority == priority)
			return &channels[i];
	if (channel_count == CHANNELS)
		return NULL;
	channels[channel_count] = (struct channel){.context = context, .priority = priority};
	if (NEXT(cuEventCreate)(&channels[channel_count].last, CU_EVENT_DISABLE_TIMING))
		return NULL;
	return &channels[channel_count++];
}

static struct channel *begin(CUstream stream)
{
	struct channel *c = channel_of(stream);

	if (c)
		NEXT(cuStreamWaitEvent)(stream, c->last, 0);
	return c;
}

static CUresult end(struct channel *c, CUstream stream, CUresult status)
{
	if (c)
		NEXT(cuEventRecord)(c->last, stream);
	return status;
}

#define IN_ORDER(stream, call)                                                                 \
	struct channel *channel = begin(stream);                                               \
                                                                                               \
	return end(channel, stream, call)

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
	unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
	void **extra)
{
	IN_ORDER(stream, NEXT(cuLaunchKernel)(function, gx, gy, gz, bx, by, bz, shared, stream,
				 params, extra));
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	IN_ORDER(stream, NEXT(cuStreamWaitEvent)(stream, event, flags));
}

EXPORT CUresult cuStreamWaitValue64(
	CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	IN_ORDER(stream, NEXT(cuStreamWaitValue64)(stream, address, value, flags));
}

EXPORT CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	IN_ORDER(stream, NEXT(cuMemcpyDtoHAsync)(to, from, bytes, stream));
}

EXPORT CUresult cuMemcpyHtoDAsync(
	CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	IN_ORDER(stream, NEXT(cuMemcpyHtoDAsync)(to, from, bytes, stream));
}
