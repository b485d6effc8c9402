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
#define STUB_looks(name) shim_enter_looking(CALL_##name)

/* The first argument, where that names something of one context: it is done there where that is
 * another agent's. (What is passed by number, as device addresses are, is looked at by hand.)
 */
#define STUB_FIRST(...) STUB_SECOND(0, ##__VA_ARGS__, 0)
#define STUB_SECOND(zeroth, first, ...) first
/* clang-format off */
#define STUB_HOME(first) \
	((uint64_t)(uintptr_t)_Generic((first), \
		CUstream: (first), \
		CUevent: (first), \
		CUmodule: (first), \
		CUfunction: (first), \
		CUgraph: (first), \
		CUgraphExec: (first), \
		CUgraphNode: (first), \
		CUarray: (first), \
		CUmipmappedArray: (first), \
		CUtexref: (first), \
		CUsurfref: (first), \
		default: NULL))
/* clang-format on */

/* NAME, which begins in the way of WHEN and goes to FUNCTION. */
#define STUB(when, name, function, parameters, arguments)                                      \
	STUB_EXPORT CUresult name parameters                                                   \
	{                                                                                      \
		CUresult status = STUB_##when(name);                                           \
		bool lent = !status && home_lend(STUB_HOME(STUB_FIRST arguments));             \
                                                                                               \
		if (!status)                                                                   \
			status = function arguments;                                           \
		if (__builtin_expect(lent, 0))                                                 \
			home_lent();                                                           \
		return status;                                                                 \
	}                                                                                      \
	extern STUB_LOCAL __typeof__(name) local_##name __attribute__((alias(#name)))

/* The same, of a call about which CAPTURED, an expression, has the first word while a stream
 * captures. */
#define STUB_CAPTURED(when, captured, name, function, parameters, arguments)                   \
	STUB_EXPORT CUresult name parameters                                                   \
	{                                                                                      \
		CUresult status = STUB_##when(name);                                           \
		bool lent = !status && home_lend(STUB_HOME(STUB_FIRST arguments));             \
                                                                                               \
		if (capture_any() && !status)                                                  \
			status = captured;                                                     \
		if (!status)                                                                   \
			status = function arguments;                                           \
		if (__builtin_expect(lent, 0))                                                 \
			home_lent();                                                           \
		return status;                                                                 \
	}                                                                                      \
	extern STUB_LOCAL __typeof__(name) local_##name __attribute__((alias(#name)))

/* The same, of a call on STREAM: where the thread has no current context, the stream's
 * serves. */
#define STUB_STREAM(when, stream, captured, name, function, parameters, arguments)             \
	STUB_LENT(true, true, CUDA_ERROR_INVALID_CONTEXT, when, stream, captured, name,        \
		function, parameters, arguments)
/* The same, of a call that says itself what it lacks where nothing serves. */
#define STUB_UNBOUND(when, stream, captured, name, function, parameters, arguments)            \
	STUB_LENT(true, true, CUDA_SUCCESS, when, stream, captured, name, function,            \
		parameters, arguments)
/* The same, of a call that there is on no legacy stream, and in a current context only. */
#define STUB_NAMED(when, stream, captured, name, function, parameters, arguments)              \
	STUB_LENT((stream) != NULL, thread_self.current, CUDA_SUCCESS, when, stream, captured, \
		name, function, parameters, arguments)

/* VALID: what comes before all else; SERVES: whether the stream's context may; NONE: the answer
 * where the thread then has no context, unless the function says so itself. */
#define STUB_LENT(                                                                             \
	valid, serves, none, when, stream, captured, name, function, parameters, arguments)    \
	STUB_EXPORT CUresult name parameters                                                   \
	{                                                                                      \
		CUresult status = (valid) ? STUB_##when(name) : CUDA_ERROR_INVALID_VALUE;      \
		bool lent = false;                                                             \
                                                                                               \
		if (status)                                                                    \
			return status;                                                         \
		if (__builtin_expect(!thread_self.plain, 0) && (serves)) {                     \
			status = stream_lend(stream, STUB_HOME(STUB_FIRST arguments), &lent);  \
			if (!thread_self.current && (none))                                    \
				return none;                                                   \
			if (status)                                                            \
				return status;                                                 \
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
