/* SPDX-License-Identifier: Apache-2.0
 *
 * The forms of shim/generated/cuda_stubs.c, a row for each exported function.
 */
#ifndef VCUDA_SHIM_STUB_H
#define VCUDA_SHIM_STUB_H

#include "shim/engine/engine.h"
#include "shim/engine/thread.h"
#include "shim/engine/trace.h"
#include "shim/generated/cuda_calls.h"

#define STUB_EXPORT __attribute__((visibility("default")))

/* local_NAME is NAME for tables in this library: a pointer to it costs the loader no look-up.
 */
#define STUB_LOCAL __attribute__((visibility("hidden")))

/* How a call begins: it is told, counted and, unless it may come before cuInit, refused while
 * no call is possible, or without a current context. */
#define STUB_early(name) shim_watch(CALL_##name)
#define STUB_ready(name) shim_enter_ready(CALL_##name)
#define STUB_lasting(name) shim_enter_lasting(CALL_##name)
#define STUB_current(name) shim_enter_current(CALL_##name)
#define STUB_looks(name) shim_enter_looking(CALL_##name)
#define STUB_within(name) shim_enter_within(CALL_##name)
#define STUB_invalid() (trace_due() ? SHIM_TELL : CUDA_ERROR_INVALID_VALUE)

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

/* traced_NAME, for a call that STUB_… says is to be told. */
#define STUB_TRACED(name, parameters, names)                                                   \
	extern STUB_LOCAL __typeof__(name) local_##name;                                       \
	TRACED(CUresult, name, parameters, names, vcuda_trace_enter, vcuda_trace_leave)

/* NAME, which begins in the way of WHEN and goes to FUNCTION. Last, where ARGUMENTS are not the
 * names of the parameters: these. */
#define STUB(when, name, function, parameters, arguments, ...)                                 \
	STUB_TRACED(name, parameters, TRACE_NAMES(arguments, ##__VA_ARGS__))                   \
	STUB_EXPORT CUresult name parameters                                                   \
	{                                                                                      \
		CUresult status = STUB_##when(name);                                           \
		bool lent;                                                                     \
                                                                                               \
		if (__builtin_expect(status, 0))                                               \
			return status == SHIM_TELL                                             \
				       ? traced_##name TRACE_NAMES(arguments, ##__VA_ARGS__)   \
				       : status;                                               \
		lent = context_home_lend(STUB_HOME(STUB_FIRST arguments));                     \
		status = function arguments;                                                   \
		if (__builtin_expect(lent, 0))                                                 \
			context_home_lent();                                                   \
		return status;                                                                 \
	}                                                                                      \
	extern STUB_LOCAL __typeof__(name) local_##name __attribute__((alias(#name)))

/* The same, of a call about which CAPTURED, an expression, has the first word while a stream
 * captures. */
#define STUB_CAPTURED(when, captured, name, function, parameters, arguments, ...)              \
	STUB_TRACED(name, parameters, TRACE_NAMES(arguments, ##__VA_ARGS__))                   \
	STUB_EXPORT CUresult name parameters                                                   \
	{                                                                                      \
		CUresult status = STUB_##when(name);                                           \
		bool lent;                                                                     \
                                                                                               \
		if (__builtin_expect(status, 0))                                               \
			return status == SHIM_TELL                                             \
				       ? traced_##name TRACE_NAMES(arguments, ##__VA_ARGS__)   \
				       : status;                                               \
		lent = context_home_lend(STUB_HOME(STUB_FIRST arguments));                     \
		if (capture_any())                                                             \
			status = captured;                                                     \
		if (!status)                                                                   \
			status = function arguments;                                           \
		if (__builtin_expect(lent, 0))                                                 \
			context_home_lent();                                                   \
		return status;                                                                 \
	}                                                                                      \
	extern STUB_LOCAL __typeof__(name) local_##name __attribute__((alias(#name)))

/* The same, of a call on STREAM: where the thread has no current context, the stream's
 * serves. */
#define STUB_STREAM(when, stream, captured, name, function, parameters, arguments, ...)        \
	STUB_LENT(true, true, CUDA_ERROR_INVALID_CONTEXT, when, stream, captured, name,        \
		function, parameters, arguments, TRACE_NAMES(arguments, ##__VA_ARGS__))
/* The same, of a call that says itself what it lacks where nothing serves. */
#define STUB_UNBOUND(when, stream, captured, name, function, parameters, arguments, ...)       \
	STUB_LENT(true, true, CUDA_SUCCESS, when, stream, captured, name, function,            \
		parameters, arguments, TRACE_NAMES(arguments, ##__VA_ARGS__))
/* The same, of a call that there is on no legacy stream, and in a current context only. */
#define STUB_NAMED(when, stream, captured, name, function, parameters, arguments, ...)         \
	STUB_LENT((stream) != NULL, thread_self.current, CUDA_SUCCESS, when, stream, captured, \
		name, function, parameters, arguments, TRACE_NAMES(arguments, ##__VA_ARGS__))

/* VALID: what comes before all else; SERVES: whether the stream's context may; NONE: the answer
 * where the thread then has no context, unless the function says so itself. */
#define STUB_LENT(valid, serves, none, when, stream, captured, name, function, parameters,     \
	arguments, names)                                                                      \
	STUB_TRACED(name, parameters, names)                                                   \
	STUB_EXPORT CUresult name parameters                                                   \
	{                                                                                      \
		CUresult status = (valid) ? STUB_##when(name) : STUB_invalid();                \
		bool lent = false;                                                             \
                                                                                               \
		if (__builtin_expect(status, 0))                                               \
			return status == SHIM_TELL ? traced_##name names : status;             \
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
#define ANSWERS_ready(name) shim_enter(CALL_##name)
#define ANSWERS_current(name) (shim_enter(CALL_##name) ?: context_missing())
#define ANSWERS(when, name, status)                                                            \
	STUB_EXPORT CUresult answer_##name(void) __asm__(#name);                               \
	CUresult answer_##name(void)                                                           \
	{                                                                                      \
		CUresult entered = ANSWERS_##when(name);                                       \
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
