/* SPDX-License-Identifier: Apache-2.0
 *
 * The forms of shim/generated/cuda_stubs.c, a row for each exported function.
 */
#ifndef VCUDA_SHIM_STUB_H
#define VCUDA_SHIM_STUB_H

#include "shim/engine/engine.h"
#include "shim/engine/thread.h"
#include "shim/generated/cuda_calls.h"

#define STUB_EXPORT __attribute__((visibility("default")))

/* local_NAME is NAME for tables in this library: a pointer to it costs the loader no look-up.
 */
#define STUB_LOCAL __attribute__((visibility("hidden")))

/* How a call begins: it is counted and, unless it may come before cuInit, refused while no call
 * is possible, or without a current context. */
#define STUB_early(name) (shim_count(CALL_##name), CUDA_SUCCESS)
#define STUB_ready(name) shim_enter(CALL_##name)
#define STUB_lasting(name) shim_enter_lasting(CALL_##name)
#define STUB_current(name) shim_enter_current(CALL_##name)

/* NAME, which begins in the way of WHEN and goes to FUNCTION. */
#define STUB(when, name, function, parameters, arguments)                                      \
	STUB_EXPORT CUresult name parameters                                                   \
	{                                                                                      \
		CUresult entered = STUB_##when(name);                                          \
                                                                                               \
		return entered ? entered : function arguments;                                 \
	}                                                                                      \
	extern STUB_LOCAL __typeof__(name) local_##name __attribute__((alias(#name)))

/* The same, of a call about which CAPTURED, an expression, has the first word while a stream
 * captures. */
#define STUB_CAPTURED(when, captured, name, function, parameters, arguments)                   \
	STUB_EXPORT CUresult name parameters                                                   \
	{                                                                                      \
		CUresult entered = STUB_##when(name);                                          \
                                                                                               \
		if (capture_any() && !entered)                                                 \
			entered = captured;                                                    \
		return entered ? entered : function arguments;                                 \
	}                                                                                      \
	extern STUB_LOCAL __typeof__(name) local_##name __attribute__((alias(#name)))

/* The same, of a call on STREAM: where the thread has no current context, the stream's
 * serves. */
#define STUB_STREAM(when, stream, captured, name, function, parameters, arguments)             \
	STUB_EXPORT CUresult name parameters                                                   \
	{                                                                                      \
		CUresult status = STUB_##when(name);                                           \
		bool lent = false;                                                             \
                                                                                               \
		if (status)                                                                    \
			return status;                                                         \
		if (__builtin_expect(!thread_self.current, 0)) {                               \
			lent = stream_lend(stream);                                            \
			if (!lent)                                                             \
				return CUDA_ERROR_INVALID_CONTEXT;                             \
		}                                                                              \
		if (capture_any())                                                             \
			status = captured;                                                     \
		if (!status)                                                                   \
			status = function arguments;                                           \
		if (__builtin_expect(lent, 0))                                                 \
			stream_lent();                                                         \
		return status;                                                                 \
	}                                                                                      \
	extern STUB_LOCAL __typeof__(name) local_##name __attribute__((alias(#name)))

/* NAME, which answers STATUS whatever it is given, as NVIDIA's does where nothing can be given
 * that it would take. No parameter is looked at, so none is declared; for C it is answer_NAME,
 * since cuda.h may declare NAME with them. */
#define ANSWERS(when, name, status)                                                            \
	STUB_EXPORT CUresult answer_##name(void) __asm__(#name);                               \
	CUresult answer_##name(void)                                                           \
	{                                                                                      \
		CUresult entered = STUB_##when(name);                                          \
                                                                                               \
		return entered ? entered : (status);                                           \
	}                                                                                      \
	extern STUB_LOCAL CUresult local_##name(void) __attribute__((alias(#name)))

/* NAME, which is not served: WHY says why. No parameter is looked at, so none is declared; for
 * C it is refused_NAME, since cuda.h may declare NAME with them. */
#define REFUSED(name)                                                                          \
	STUB_EXPORT CUresult refused_##name(void) __asm__(#name);                              \
	CUresult refused_##name(void)                                                          \
	{                                                                                      \
		return shim_refused(CALL_##name, #name, WHY);                                  \
	}                                                                                      \
	extern STUB_LOCAL CUresult local_##name(void) __attribute__((alias(#name)))

#endif
