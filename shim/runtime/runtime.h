/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime front: our own CUDA runtime on top of the driver API.  Every file of this folder
 * is compiled twice, against the headers of CUDA 12 and of CUDA 13; CUDART_VERSION tells them
 * apart where the ABI differs.  The exported functions are generated
 * (shim/generated/cudart_stubs.c) and call the hand_NAME functions of this folder.
 *
 * A thread works in whatever context is current to it; where none is, in the primary context of
 * its device, which is retained on first use.  Nothing is done before the first CUDA call.
 */
#ifndef VCUDA_SHIM_RUNTIME_RUNTIME_H
#define VCUDA_SHIM_RUNTIME_RUNTIME_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/engine/trace.h"
#include "shim/generated/cudart_hand.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Devices that the runtime keeps a primary context for. */
#define RUNTIME_DEVICES 256
/* <<<>>> configurations pushed and not yet popped: an argument of a launch may launch itself.
 */
#define RUNTIME_CONFIGS 4

/* One <<<grid, block, shared, stream>>>. */
struct runtime_config {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
};

/* How many other copies of the runtime have a last error of their own, in a thread. */
#define RUNTIME_COPIES 8

/* What a thread has; static TLS, so keep it small. */
struct runtime_thread {
	const uint64_t *current; /* vcuda_current(), once a context is bound */
	CUcontext bound;	 /* the context found current at the last call */
	uint32_t generation;	 /* of runtime_generation, when it was found */
	bool primary;		 /* bound is a primary context that the runtime retained */
	int chosen;		 /* by cudaSetDevice */
	int device;		 /* of `bound`; the chosen one where there is none */
	cudaError_t last;	 /* for cudaGetLastError */
	const void *caller;	 /* of the call that is being told; NULL: none */
	/* The same for callers with a runtime of their own, redirected to this one: copies[i]
	 * is the number that the loader guard gives one (common/guard.h). */
	unsigned copies_used;
	struct {
		unsigned number;
		cudaError_t last;
	} copies[RUNTIME_COPIES];
	unsigned depth; /* configurations pushed; the newest is configs[(depth - 1) % N] */
	struct runtime_config configs[RUNTIME_CONFIGS];
};
extern __thread struct runtime_thread runtime_thread
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Counts cudaDeviceReset calls: contexts bound before one are looked at again. */
extern _Atomic uint32_t *runtime_generation __attribute__((visibility("hidden")));
/* What every call looks at; none of these, as almost always: nobody counts or records calls. */
#define RUNTIME_NEW 1u		       /* not looked at yet */
#define RUNTIME_COUNTING 2u	       /* VCUDA_STATS is set and the driver front can count */
#define RUNTIME_TRACING TRACE_FOLLOWED /* the driver front sets it */
extern _Atomic unsigned char runtime_watched __attribute__((visibility("hidden")));

/* Counts one call of a runtime function; CALL is a CALL_… of shim/generated/cuda_calls.h.
 */
void runtime_count_slow(unsigned call);
static inline void runtime_count(unsigned call)
{
	if (unlikely(atomic_load_explicit(&runtime_watched, memory_order_relaxed)))
		runtime_count_slow(call);
}

/* The same of a call that is told where somebody records. True: it is to be, before it is
 * counted. */
bool runtime_watch_slow(unsigned call);
static inline bool runtime_watch(unsigned call)
{
	return unlikely(atomic_load_explicit(&runtime_watched, memory_order_relaxed)) &&
	       runtime_watch_slow(call);
}
/* Of a stub that is to be told of: before and after it is called once more. */
void runtime_trace_enter(struct trace_call *trace, unsigned call, const void *caller);
unsigned runtime_trace_leave(struct trace_call *trace, unsigned error);
/* Between these, what is asked of the driver is not told: no call of the program's asks. */
void runtime_own_enter(struct trace_call *trace);
void runtime_own_leave(struct trace_call *trace);

/* Remembers a failure (NotReady is none) for CALLER's cudaGetLastError and hands it on: for
 * exported functions, whose caller is the program. Any thread. */
void runtime_remember(cudaError_t error, const void *caller);
__attribute__((always_inline)) static inline cudaError_t runtime_result(cudaError_t error)
{
	if (unlikely(error != cudaSuccess))
		runtime_remember(error, __builtin_return_address(0));
	return error;
}

/* A function that is not served: says so on stderr where VCUDA_DEBUG is set, once a function;
 * cudaErrorNotSupported. */
cudaError_t runtime_refused(unsigned call, const char *name, const char *reason);
/* The same of one that came with CUDA RELEASE (13050: 13.5): where the agent's driver is older,
 * what NVIDIA's runtime says above such a driver, cudaErrorCallRequiresNewerDriver. */
cudaError_t runtime_refused_since(
	unsigned call, const char *name, const char *reason, int release);

/* The runtime's error for one of the driver's. The numbers are the same but for those that the
 * runtime does not have. */
cudaError_t runtime_status_slow(CUresult status);
static inline cudaError_t runtime_status(CUresult status)
{
	return likely(status == CUDA_SUCCESS) ? cudaSuccess : runtime_status_slow(status);
}

/* Calls cuInit once; its error each time while it fails. */
cudaError_t runtime_init(void);
/* How many devices there were when it had succeeded. */
int runtime_devices(void);

/* Starts every function that needs a context: makes sure that one is current. */
cudaError_t runtime_enter_slow(void);
static inline cudaError_t runtime_enter(void)
{
	const struct runtime_thread *thread = &runtime_thread;

	if (likely(*thread->current == (uintptr_t)thread->bound &&
		    thread->generation ==
			    atomic_load_explicit(runtime_generation, memory_order_relaxed)))
		return cudaSuccess;
	return runtime_enter_slow();
}

/* The same on STREAM: one of the program's own brings its context, and none becomes current. */
static inline cudaError_t runtime_enter_for(cudaStream_t stream)
{
	return (uintptr_t)stream > (uintptr_t)CU_STREAM_PER_THREAD ? runtime_init()
								   : runtime_enter();
}

/* As runtime_enter for a function after which the thread has no current context natively if it
 * had none: runtime_return() gives it back. */
cudaError_t runtime_borrow(bool *borrowed);
void runtime_return(bool borrowed);

/* A function that the driver has too: CALL is the driver's, and is not made where entering
 * failed. */
#define RUNTIME_DRIVER(CALL) (runtime_enter() ?: runtime_status(CALL))
/* The same, where what CALL names says all that it needs to know: it makes no context current.
 */
#define RUNTIME_ANYWHERE(CALL) (runtime_init() ?: runtime_status(CALL))

/* The driver's device for an ordinal; cudaErrorInvalidDevice where there is none. Calls cuInit.
 */
cudaError_t runtime_device(int ordinal, CUdevice *device);
/* And the ordinal of a device of the driver's. */
cudaError_t runtime_ordinal(CUdevice device, int *ordinal);
/* The device that the thread works on, with and without a context. */
cudaError_t runtime_current_device(int *ordinal, CUdevice *device);
/* The primary context of a device, retained by the runtime until cudaDeviceReset. */
cudaError_t runtime_primary(int ordinal, CUcontext *context);
#if CUDART_VERSION >= 13000
/* The driver's context of an execution context; INVALID_VALUE: of none. */
cudaError_t execution_context(cudaExecutionContext_t ctx, CUcontext *context);
#endif
/* Makes DEVICE the thread's: its primary context becomes current. */
cudaError_t runtime_bind(int ordinal);
/* Destroys the primary context of the thread's device. */
cudaError_t runtime_reset(void);

#endif
