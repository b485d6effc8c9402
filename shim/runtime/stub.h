/* SPDX-License-Identifier: Apache-2.0
 *
 * The forms of shim/generated/cudart_stubs.c, a row for each exported function.
 */
#ifndef VCUDA_RUNTIME_STUB_H
#define VCUDA_RUNTIME_STUB_H

#include "shim/generated/cuda_calls.h"
#include "shim/runtime/runtime.h"

#define STUB_EXPORT __attribute__((visibility("default")))

/* NAME counts the call and goes to FUNCTION. Not every name is in a header. */
#define STUB_UNTOLD(result, name, function, parameters, arguments)                             \
	result name parameters;                                                                \
	STUB_EXPORT result name parameters                                                     \
	{                                                                                      \
		runtime_count(CALL_##name);                                                    \
		return function arguments;                                                     \
	}

/* local_NAME is NAME for traced_NAME (shim/engine/trace.h). */
#define STUB_TRACED(name, parameters, names)                                                   \
	cudaError_t name parameters;                                                           \
	extern cudaError_t local_##name parameters                                             \
		__attribute__((alias(#name), visibility("hidden")));                           \
	TRACED(cudaError_t, name, parameters, names, runtime_trace_enter, runtime_trace_leave)

/* The same, and where somebody records calls it is told. Last, where ARGUMENTS are not the
 * names of the parameters: these. */
#define STUB_STRAIGHT(name, function, parameters, arguments, ...)                              \
	STUB_TRACED(name, parameters, TRACE_NAMES(arguments, ##__VA_ARGS__))                   \
	STUB_EXPORT cudaError_t name parameters                                                \
	{                                                                                      \
		if (runtime_watch(CALL_##name))                                                \
			return traced_##name TRACE_NAMES(arguments, ##__VA_ARGS__);            \
		return function arguments;                                                     \
	}

/* The same, and a failure becomes the thread's last error. */
#define STUB(name, function, parameters, arguments, ...)                                       \
	STUB_TRACED(name, parameters, TRACE_NAMES(arguments, ##__VA_ARGS__))                   \
	STUB_EXPORT cudaError_t name parameters                                                \
	{                                                                                      \
		if (runtime_watch(CALL_##name))                                                \
			return traced_##name TRACE_NAMES(arguments, ##__VA_ARGS__);            \
		return runtime_result(function arguments);                                     \
	}

/* NAME, which answers ERROR whatever it is given (shim/engine/stub.h). */
#define ANSWERS(name, error)                                                                   \
	STUB_EXPORT cudaError_t answer_##name(void) __asm__(#name);                            \
	cudaError_t answer_##name(void)                                                        \
	{                                                                                      \
		cudaError_t entered = runtime_enter();                                         \
                                                                                               \
		runtime_count(CALL_##name);                                                    \
		return runtime_result(entered ? entered : (error));                            \
	}

/* NAME, which is not served: WHY says why. No parameter is looked at, so none is declared; for
 * C it is refused_NAME, since a header may declare NAME with them. */
#define REFUSED(name)                                                                          \
	STUB_EXPORT cudaError_t refused_##name(void) __asm__(#name);                           \
	cudaError_t refused_##name(void)                                                       \
	{                                                                                      \
		return runtime_result(runtime_refused(CALL_##name, #name, WHY));               \
	}

/* The same of one that came with CUDA RELEASE, as cudaRuntimeGetVersion counts. */
#define REFUSED_SINCE(name, release)                                                           \
	STUB_EXPORT cudaError_t refused_##name(void) __asm__(#name);                           \
	cudaError_t refused_##name(void)                                                       \
	{                                                                                      \
		return runtime_result(                                                         \
			runtime_refused_since(CALL_##name, #name, WHY, release));              \
	}

#endif
