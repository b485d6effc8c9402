/* SPDX-License-Identifier: Apache-2.0
 *
 * The program's calls of the driver and the runtime, told to whoever records them: CUPTI's
 * front (shim/libraries/cupti).  Every stub looks at a byte of its front, in which
 * vcuda_trace_set keeps a bit; while that is not set nothing else is done.  Where it is, a stub
 * goes to traced_NAME, which puts the arguments into one struct and calls the stub again,
 * between vcuda_trace_enter and vcuda_trace_leave.  A call
 * within a call is not told, as NVIDIA's does not tell what its runtime asks of its driver.
 *
 * The recorder's functions run in the program's threads, inside of its calls: they take no lock
 * that is held while the program's code runs.
 */
#ifndef VCUDA_SHIM_ENGINE_TRACE_H
#define VCUDA_SHIM_ENGINE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A call that is under way; on its stub's stack. */
struct trace_call {
	unsigned call;	 /* CALL_… of shim/generated/cuda_calls.h */
	uint32_t number; /* the recorder's: CUPTI's correlation id */
	uint64_t start;	 /* the recorder's clock */
	uint64_t data;	 /* the recorder's */
	const void
		*params; /* the arguments in one struct, as in CUPTI's generated_cuda_meta.h */
	const void *result; /* in `leave`: what the call returns, a CUresult or cudaError_t */
	const struct trace_recorder *recorder; /* that was told of it; NULL: none */
	const void *caller;		       /* whose call it is */
};

struct trace_recorder {
	void (*enter)(struct trace_call *call);
	void (*leave)(struct trace_call *call);
	/* A frame of operation OP went to the process' agent AGENT with that number; CALL: by
	 * which call, NULL: by one that is not told (a library's). After it was published. */
	void (*sent)(const struct trace_call *call, unsigned agent, uint64_t seq, uint16_t op);
};

extern const struct trace_recorder *_Atomic vcuda_trace __attribute__((visibility("hidden")));

/* From now on, or NULL: none. Calls that are under way are told to the one before, so a
 * recorder is never unloaded. Any thread. */
void vcuda_trace_set(const struct trace_recorder *recorder);

/* For stubs: fills *TRACE in, whose params are behind it, and the thread is in that call until
 * it leaves. Where it is in one already, or nobody records any more, the call is not told;
 * nor is what a front does by itself, CALL_LAST, and what that asks of the driver.  STATUS, a
 * CUresult or cudaError_t, is handed back. */
void vcuda_trace_enter(struct trace_call *trace, unsigned call, const void *caller);
unsigned vcuda_trace_leave(struct trace_call *trace, unsigned status);
/* The call that the driver's stub begins is to be told: the thread is in none. */
bool trace_due(void);
/* Whose CALL it is that was made from there: a stub that was told of comes from traced_NAME. */
const void *trace_caller(unsigned call, const void *from);

/* For a runtime front, which stays loaded as long as the driver front: TRACE_FOLLOWED is set in
 * *FLAGS while there is a recorder. */
#define TRACE_FOLLOWED 0x80u
void vcuda_trace_follow(_Atomic unsigned char *flags);

/* For the engine: a frame was published. */
void trace_sent_slow(unsigned agent, uint64_t seq, uint16_t op);
static inline void trace_sent(unsigned agent, uint64_t seq, uint16_t op)
{
	if (__builtin_expect(
		    atomic_load_explicit(&vcuda_trace, memory_order_relaxed) != NULL, 0))
		trace_sent_slow(agent, seq, op);
}

/* OF(NAME) for each name, at most 18. */
#define TRACE_0(of)
#define TRACE_1(of, a) of(a)
#define TRACE_2(of, a, ...) of(a) TRACE_1(of, __VA_ARGS__)
#define TRACE_3(of, a, ...) of(a) TRACE_2(of, __VA_ARGS__)
#define TRACE_4(of, a, ...) of(a) TRACE_3(of, __VA_ARGS__)
#define TRACE_5(of, a, ...) of(a) TRACE_4(of, __VA_ARGS__)
#define TRACE_6(of, a, ...) of(a) TRACE_5(of, __VA_ARGS__)
#define TRACE_7(of, a, ...) of(a) TRACE_6(of, __VA_ARGS__)
#define TRACE_8(of, a, ...) of(a) TRACE_7(of, __VA_ARGS__)
#define TRACE_9(of, a, ...) of(a) TRACE_8(of, __VA_ARGS__)
#define TRACE_10(of, a, ...) of(a) TRACE_9(of, __VA_ARGS__)
#define TRACE_11(of, a, ...) of(a) TRACE_10(of, __VA_ARGS__)
#define TRACE_12(of, a, ...) of(a) TRACE_11(of, __VA_ARGS__)
#define TRACE_13(of, a, ...) of(a) TRACE_12(of, __VA_ARGS__)
#define TRACE_14(of, a, ...) of(a) TRACE_13(of, __VA_ARGS__)
#define TRACE_15(of, a, ...) of(a) TRACE_14(of, __VA_ARGS__)
#define TRACE_16(of, a, ...) of(a) TRACE_15(of, __VA_ARGS__)
#define TRACE_17(of, a, ...) of(a) TRACE_16(of, __VA_ARGS__)
#define TRACE_18(of, a, ...) of(a) TRACE_17(of, __VA_ARGS__)
/* clang-format off */
#define TRACE_NTH(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, nth, ...) nth
#define TRACE_EACH(of, ...) \
	TRACE_NTH(__VA_ARGS__ __VA_OPT__(,) TRACE_18, TRACE_17, TRACE_16, TRACE_15, TRACE_14, \
		TRACE_13, TRACE_12, TRACE_11, TRACE_10, TRACE_9, TRACE_8, TRACE_7, TRACE_6, \
		TRACE_5, TRACE_4, TRACE_3, TRACE_2, TRACE_1, TRACE_0)(of __VA_OPT__(,) __VA_ARGS__)

/* Of the names of a function's parameters: members of a struct, what puts the parameters there,
 * and the call's arguments out of there. */
#define TRACE_MEMBERS(...) TRACE_EACH(TRACE_MEMBER, __VA_ARGS__)
#define TRACE_MEMBER(name) __typeof__(name) name;
#define TRACE_PUTS(...) TRACE_EACH(TRACE_PUT, __VA_ARGS__)
#define TRACE_PUT(name) told.params.name = name;
#define TRACE_GETS(...) __VA_OPT__(TRACE_GET(__VA_ARGS__))
#define TRACE_GET(first, ...) told.params.first TRACE_EACH(TRACE_NEXT, __VA_ARGS__)
#define TRACE_NEXT(name) , told.params.name
/* clang-format on */

/* The first of NAMES, if there are any, else ARGUMENTS: what a stub's function is given are the
 * parameters' names, unless its row says them. */
#define TRACE_NAMES(arguments, ...) TRACE_FIRST(__VA_OPT__(__VA_ARGS__, ) arguments, )
#define TRACE_FIRST(first, ...) first

/* traced_NAME, which calls local_NAME and tells of it by ENTER and LEAVE. There is one for
 * every function, so they are small: nothing is kept in registers meanwhile. The stub ends in a
 * jump there, so the caller is the program. */
#ifdef __clang__
#define TRACE_SMALL minsize
#else
#define TRACE_SMALL cold
#endif
#define TRACED(result, name, parameters, names, enter, leave)                                  \
	__attribute__((cold, noinline, no_stack_protector,                                     \
		TRACE_SMALL)) static result traced_##name parameters                           \
	{                                                                                      \
		struct {                                                                       \
			struct trace_call call;                                                \
			struct {                                                               \
				TRACE_MEMBERS names                                            \
			} params;                                                              \
		} told;                                                                        \
                                                                                               \
		_Static_assert(offsetof(__typeof__(told), params) == sizeof(told.call), "");   \
		TRACE_PUTS names;                                                              \
		enter(&told.call, CALL_##name, __builtin_return_address(0));                   \
		return (result)leave(&told.call, (unsigned)local_##name(TRACE_GETS names));    \
	}

#endif
