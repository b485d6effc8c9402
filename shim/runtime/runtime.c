/* SPDX-License-Identifier: Apache-2.0
 *
 * State of the runtime front: cuInit, the primary contexts, the thread's context and device,
 * its last error.  The one idea: look which context is current where the driver keeps that for
 * the thread, and accept it if it is the one seen last; all else is the slow path.
 */
#include "shim/runtime/runtime.h"
#include "common/guard.h"
#include "shim/generated/cuda_calls.h"
#include "shim/engine/lock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No context's: a thread that has bound none looks here. */
static const uint64_t nowhere = 1;
__thread struct runtime_thread runtime_thread __attribute__((
	tls_model("initial-exec"), visibility("hidden"))) = {.current = &nowhere};

/* The driver front counts every context that is destroyed; another driver does not have this,
 * and then only our own resets are counted. */
__attribute__((weak)) extern _Atomic uint32_t vcuda_resets;
static _Atomic uint32_t own_resets;
_Atomic uint32_t *runtime_generation = &own_resets;
_Atomic unsigned char runtime_watched = RUNTIME_NEW;

static struct {
	_Atomic bool ready;  /* cuInit has succeeded */
	_Atomic int devices; /* that there were then */
	pthread_mutex_t lock;
	/* Contexts retained by us, by ordinal. Written under the lock. */
	_Atomic(CUcontext) contexts[RUNTIME_DEVICES];
	/* A primary context has the same handle each time. */
	_Atomic(CUcontext) known[RUNTIME_DEVICES];
	/* The device was reset behind a fault: that succeeds, and there is no device for this
	 * process any more (seen on an H200 with driver 580). */
	_Atomic bool reset_behind_fault;
} primary = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(primary, primary.lock, LOCK_PRIMARY);

/* The driver front counts for both fronts; another driver (the software GPU linked directly)
 * does not have this. */
__attribute__((weak)) void vcuda_count(unsigned call);
/* Nor this: a reset that leaves the program's references. */
__attribute__((weak)) CUresult vcuda_primary_reset(CUdevice dev);

/* Nor does it tell where the current context is. */
__attribute__((weak)) const uint64_t *vcuda_current(void);

/* Nor does it have anybody who records calls. */
__attribute__((weak)) void vcuda_trace_follow(_Atomic unsigned char *flags);
__attribute__((weak)) void vcuda_trace_enter(
	struct trace_call *trace, unsigned call, const void *caller);
__attribute__((weak)) unsigned vcuda_trace_leave(struct trace_call *trace, unsigned status);

static void runtime_look(void)
{
	/* Two threads may both look; they see the same. */
	if (!(atomic_load(&runtime_watched) & RUNTIME_NEW))
		return;
	if (vcuda_count && secure_getenv("VCUDA_STATS"))
		atomic_fetch_or(&runtime_watched, (unsigned char)RUNTIME_COUNTING);
	if (vcuda_trace_follow)
		vcuda_trace_follow(&runtime_watched);
	atomic_fetch_and(&runtime_watched, (unsigned char)~RUNTIME_NEW);
}

void runtime_count_slow(unsigned call)
{
	runtime_look();
	if (atomic_load(&runtime_watched) & RUNTIME_COUNTING)
		vcuda_count(call);
}

bool runtime_watch_slow(unsigned call)
{
	runtime_look();
	if (atomic_load(&runtime_watched) & RUNTIME_TRACING && !runtime_thread.caller)
		return true;
	runtime_count_slow(call);
	return false;
}

void runtime_trace_enter(struct trace_call *trace, unsigned call, const void *caller)
{
	runtime_thread.caller = caller;
	vcuda_trace_enter(trace, call, caller);
}

unsigned runtime_trace_leave(struct trace_call *trace, unsigned error)
{
	vcuda_trace_leave(trace, error);
	runtime_thread.caller = NULL;
	return error;
}

void runtime_own_enter(struct trace_call *trace)
{
	if (vcuda_trace_enter)
		vcuda_trace_enter(trace, CALL_LAST, NULL);
}

void runtime_own_leave(struct trace_call *trace)
{
	if (vcuda_trace_leave)
		vcuda_trace_leave(trace, 0);
}

/* Faults of the device, which every call that needs it answers (illegal address, assert, …). */
static bool runtime_sticky(cudaError_t error)
{
	switch (error) {
	case cudaErrorECCUncorrectable:
	case cudaErrorNvlinkUncorrectable:
	case cudaErrorContained:
	case cudaErrorIllegalAddress:
	case cudaErrorLaunchTimeout:
	case cudaErrorAssert:
	case cudaErrorHardwareStackError:
	case cudaErrorIllegalInstruction:
	case cudaErrorMisalignedAddress:
	case cudaErrorInvalidAddressSpace:
	case cudaErrorInvalidPc:
	case cudaErrorLaunchFailure:
	case cudaErrorTensorMemoryLeak:
	case cudaErrorMpsClientTerminated:
	case cudaErrorExternalDevice: return true;
	default: return false;
	}
}

extern struct vcuda_guard vcuda_guard __attribute__((weak, visibility("default")));

/* Where the last error of CALLER's copy of the runtime is; NULL: nowhere, and not ADDed. A call
 * that is being told comes from here, and its caller is kept. */
static cudaError_t *runtime_last(const void *caller, bool add)
{
	struct runtime_thread *thread = &runtime_thread;
	unsigned number = 0, i;

	if (&vcuda_guard && (add || thread->last || thread->copies_used))
		number = vcuda_guard.linked(thread->caller ? thread->caller : caller);
	if (!number)
		return &thread->last;
	for (i = 0; i < thread->copies_used; i++)
		if (thread->copies[i].number == number)
			return &thread->copies[i].last;
	if (!add)
		return NULL;
	/* With more copies than that, the first that failed forgets it. */
	i %= RUNTIME_COPIES;
	if (i == thread->copies_used)
		thread->copies_used++;
	thread->copies[i].number = number;
	return &thread->copies[i].last;
}

void runtime_remember(cudaError_t error, const void *caller)
{
	/* It is an answer, and no error: as natively (an H200), it is not kept. */
	if (error != cudaErrorNotReady)
		*runtime_last(caller, true) = error;
}

/* The exported stubs of these two end in a jump here, so the caller is the program. */
cudaError_t hand_cudaPeekAtLastError(void)
{
	const cudaError_t *last = runtime_last(__builtin_return_address(0), false);

	return last ? *last : cudaSuccess;
}

cudaError_t hand_cudaGetLastError(void)
{
	cudaError_t *last = runtime_last(__builtin_return_address(0), false);
	cudaError_t error = last ? *last : cudaSuccess;

	/* A fault of the device too: it comes again with the next call that needs the device.
	 */
	if (last)
		*last = cudaSuccess;
	return error;
}

cudaError_t runtime_status_slow(CUresult status)
{
	switch (status) {
	case CUDA_ERROR_CONTEXT_ALREADY_CURRENT: return cudaErrorIncompatibleDriverContext;
	case CUDA_ERROR_CONTEXT_IS_DESTROYED: return cudaErrorDeviceUninitialized;
	default:
		/* Since 10.1 the rest has the same numbers on both sides. */
		return (cudaError_t)status;
	}
}

cudaError_t runtime_refused(unsigned call, const char *name, const char *reason)
{
	static _Atomic bool logged_once[CALL_LAST];

	if (call < CALL_LAST && !atomic_exchange(&logged_once[call], true) &&
		secure_getenv("VCUDA_DEBUG"))
		fprintf(stderr, "vcuda: %s is not served: %s\n", name, reason);
	return cudaErrorNotSupported;
}

cudaError_t runtime_refused_since(
	unsigned call, const char *name, const char *reason, int release)
{
	int version = 0;

	if (!cuDriverGetVersion(&version) && version && version < release)
		return cudaErrorCallRequiresNewerDriver;
	return runtime_refused(call, name, reason);
}

cudaError_t runtime_init(void)
{
	CUresult status;

	if (likely(atomic_load_explicit(&primary.ready, memory_order_acquire)))
		return cudaSuccess;

	status = cuInit(0);
	if (&vcuda_resets)
		runtime_generation = &vcuda_resets;
	if (status == CUDA_SUCCESS) {
		int count;

		if (!cuDeviceGetCount(&count))
			atomic_store(&primary.devices, count);
		atomic_store(&primary.ready, true);
	}
	return runtime_status(status);
}

int runtime_devices(void)
{
	return atomic_load(&primary.devices);
}

cudaError_t runtime_device(int ordinal, CUdevice *device)
{
	cudaError_t error = runtime_init();

	if (error)
		return error;
	if (ordinal < 0 || ordinal >= RUNTIME_DEVICES)
		return cudaErrorInvalidDevice;
	return runtime_status(cuDeviceGet(device, ordinal));
}

/* The program may have reset or released what we retained: it is retained anew then. */
static bool primary_active(CUdevice device)
{
	unsigned flags;
	int active;

	return !cuDevicePrimaryCtxGetState(device, &flags, &active) && active;
}

cudaError_t runtime_primary(int ordinal, CUcontext *context)
{
	CUdevice device;
	cudaError_t error = runtime_device(ordinal, &device);

	if (error)
		return error;

	*context = atomic_load(&primary.contexts[ordinal]);
	if (*context && primary_active(device))
		return cudaSuccess;

	pthread_mutex_lock(&primary.lock);
	*context = atomic_load(&primary.contexts[ordinal]);
	if (!*context || !primary_active(device)) {
		/* Whatever has ended it, the runtime holds it once: natively a reset by the
		 * driver leaves that one reference. */
		if (*context)
			(void)cuDevicePrimaryCtxRelease(device);
		error = runtime_status(cuDevicePrimaryCtxRetain(context, device));
		if (!error) {
			atomic_store(&primary.contexts[ordinal], *context);
			atomic_store(&primary.known[ordinal], *context);
		}
	}
	pthread_mutex_unlock(&primary.lock);
	return error;
}

/* CONTEXT is the current one, and good until the resets are not GENERATION any more. */
static void bind(CUcontext context, uint32_t generation, bool is_ours, int ordinal)
{
	struct runtime_thread *thread = &runtime_thread;
	const uint64_t *current = vcuda_current ? vcuda_current() : NULL;

	thread->bound = context;
	thread->generation = generation;
	thread->primary = is_ours;
	thread->device = ordinal;
	thread->current = current ? current : &nowhere;
}

cudaError_t runtime_bind(int ordinal)
{
	uint32_t generation = atomic_load(runtime_generation);
	CUcontext context;
	cudaError_t error;

	if (unlikely(atomic_load(&primary.reset_behind_fault)))
		return cudaErrorDevicesUnavailable;
	error = runtime_primary(ordinal, &context);
	if (error)
		return error;
	error = runtime_status(cuCtxSetCurrent(context));
	if (error)
		return error;

	bind(context, generation, true, ordinal);
	return cudaSuccess;
}

cudaError_t runtime_ordinal(CUdevice device, int *ordinal)
{
	CUdevice other;
	int count;
	CUresult status = cuDeviceGetCount(&count);

	if (status)
		return runtime_status(status);
	for (int i = 0; i < count; i++) {
		if (cuDeviceGet(&other, i) == CUDA_SUCCESS && other == device) {
			*ordinal = i;
			return cudaSuccess;
		}
	}
	return cudaErrorInvalidDevice;
}

/* The ordinal of the current context's device. */
static cudaError_t current_ordinal(int *ordinal)
{
	CUdevice device;
	CUresult status = cuCtxGetDevice(&device);

	return status ? runtime_status(status) : runtime_ordinal(device, ordinal);
}

/* CURRENT, of a device, is its primary context. */
static bool is_primary(int ordinal, CUcontext current)
{
	CUcontext own = atomic_load(&primary.known[ordinal]);
	CUdevice device;

	if (own)
		return own == current;
	if (runtime_device(ordinal, &device))
		return false;
	/* To make one only to see that it is another would leave it to the program. */
	if (!primary_active(device))
		return !runtime_primary(ordinal, &own) && own == current;
	if (cuDevicePrimaryCtxRetain(&own, device))
		return false;
	(void)cuDevicePrimaryCtxRelease(device);
	atomic_store(&primary.known[ordinal], own);
	return own == current;
}

cudaError_t runtime_enter_slow(void)
{
	struct runtime_thread *thread = &runtime_thread;
	uint32_t generation = atomic_load(runtime_generation);
	CUcontext current = NULL;
	cudaError_t error = runtime_init();
	unsigned version;
	int ordinal;

	if (error)
		return error;
	error = runtime_status(cuCtxGetCurrent(&current));
	if (error)
		return error;

	if (!current)
		return runtime_bind(thread->chosen);
	if (current == thread->bound && generation == thread->generation)
		return cudaSuccess;
	/* One that we bound, and that a reset may have destroyed since. */
	if (current == thread->bound && thread->primary)
		return runtime_bind(thread->device);

	/* The program's own choice, by the driver API. */
	error = current_ordinal(&ordinal);
	if (error)
		return error;
	/* Or the primary context after all: it is ours as well then. */
	if (ordinal < RUNTIME_DEVICES && is_primary(ordinal, current))
		return runtime_bind(ordinal);
	if (cuCtxGetApiVersion(current, &version))
		return cudaErrorDeviceUninitialized;
	thread->device = ordinal;
	/* Of cuCtxCreate as it was before CUDA 3.2. */
	if (version < 3020)
		return cudaErrorIncompatibleDriverContext;
	bind(current, generation, false, ordinal);
	return cudaSuccess;
}

cudaError_t runtime_borrow(bool *borrowed)
{
	CUcontext current = NULL;
	cudaError_t error = runtime_init();

	*borrowed = false;
	if (!error)
		error = runtime_status(cuCtxGetCurrent(&current));
	if (error || current)
		return error ? error : runtime_enter();
	error = runtime_enter_slow();
	*borrowed = !error;
	return error;
}

void runtime_return(bool borrowed)
{
	if (borrowed)
		(void)cuCtxSetCurrent(NULL);
}

cudaError_t runtime_current_device(int *ordinal, CUdevice *device)
{
	struct runtime_thread *thread = &runtime_thread;
	CUcontext current = NULL;
	cudaError_t error = runtime_init();

	if (error)
		return error;
	error = runtime_status(cuCtxGetCurrent(&current));
	if (!error && current && current != thread->bound)
		error = runtime_enter_slow();
	/* The device is known all the same. */
	if (error && error != cudaErrorIncompatibleDriverContext)
		return error;
	*ordinal = current ? thread->device : thread->chosen;
	return device ? runtime_device(*ordinal, device) : cudaSuccess;
}

/* The thread is left in a context of the program's own that it has destroyed. */
static bool current_destroyed(int ordinal)
{
	CUcontext current = NULL;
	unsigned version;

	return !cuCtxGetCurrent(&current) && current && !is_primary(ordinal, current) &&
	       cuCtxGetApiVersion(current, &version);
}

cudaError_t runtime_reset(void)
{
	CUcontext context;
	CUdevice device;
	int ordinal;
	cudaError_t error = runtime_current_device(&ordinal, &device);

	if (error)
		return error;
	/* As natively nothing happens then, and that is no error. */
	if (current_destroyed(ordinal) || (!cuCtxGetCurrent(&context) && !context))
		return cudaSuccess;

	pthread_mutex_lock(&primary.lock);
	context = atomic_exchange(&primary.contexts[ordinal], NULL);
	error = runtime_status(vcuda_primary_reset ? vcuda_primary_reset(device)
						   : cuDevicePrimaryCtxReset(device));
	/* A green context keeps the primary one: told where that is the current one only. */
	if (error == cudaErrorNotPermitted) {
		atomic_store(&primary.contexts[ordinal], context);
		pthread_mutex_unlock(&primary.lock);
		return runtime_thread.primary ? error : cudaSuccess;
	}
	if (runtime_sticky(error)) {
		atomic_store(&primary.reset_behind_fault, true);
		error = cudaSuccess;
	}
	/* Our reference goes as well; a driver that dropped it with the reset says no, which is
	 * fine. */
	if (context)
		(void)cuDevicePrimaryCtxRelease(device);
	atomic_fetch_add(runtime_generation, 1);
	pthread_mutex_unlock(&primary.lock);
	return error;
}
