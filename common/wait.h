/* SPDX-License-Identifier: Apache-2.0
 *
 * The pieces of waiting that every part shares: the clock, the futex on a shared word, and how
 * long it pays to spin before sleeping.  Header only and libc only: the shim uses it too.
 */
#ifndef VCUDA_COMMON_WAIT_H
#define VCUDA_COMMON_WAIT_H

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How long to spin for something that another core is about to do.  A TCP round trip on one
 * host is 13 us sleeping and 6 us polling, so 50 us covers a short call there; with less than
 * four cores the spinner takes the very core that the other side needs. */
#define WAIT_SPIN_NS 50000u
/* While a call waits for the GPU each of the three that are on its way spins longer, as
 * NVIDIA's own cudaStreamSynchronize does: measured on an H200, a wait of 0.4 ms takes 70 us
 * more where they sleep, 18 us where they don't. */
#define WAIT_CALL_NS 2000000u
#define WAIT_SPIN_CORES 4

static inline uint64_t wait_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A condition whose timed waits are by wait_now()'s clock. The clock of the day, by which they
 * are else, is set: a wait of a second lasts a day then. */
static inline void wait_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

/* NS from now on, for what waits by that clock. */
static inline struct timespec wait_deadline(uint64_t ns)
{
	uint64_t at = wait_now() + ns;

	return (struct timespec){
		.tv_sec = (time_t)(at / 1000000000u), .tv_nsec = (long)(at % 1000000000u)};
}

/* 0 where there are too few cores to spin on. Ask once and keep it. */
static inline uint64_t wait_spin_budget(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < WAIT_SPIN_CORES)
		return 0;
	return WAIT_SPIN_NS;
}

static inline void wait_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* The full fence between publishing and looking. ThreadSanitizer knows no fences: there an
 * exchange on a word of its own orders the same. */
static inline void wait_fence(void)
{
#if defined(__SANITIZE_THREAD__)
	static _Atomic uint32_t order;

	atomic_fetch_add(&order, 1);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Sleeps while *word == value, `ns` at the longest. The word may be shared between processes.
 */
static inline void wait_sleep(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec t = {
		.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

	syscall(SYS_futex, word, FUTEX_WAIT, value, &t, NULL, 0);
}

static inline void wait_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 0x7fffffff, NULL, NULL, 0);
}

/* The most that wait_change sleeps before it looks at *stop again. */
#define WAIT_LOOK_NS 1000000000ull

/* Waits until *word is not VALUE any more: spins for SPIN ns, then sleeps with *asleep set, for
 * one waiter. False: *stop was set before the word changed; who sets it wakes the word. */
static inline bool wait_change(_Atomic uint32_t *word, uint32_t value, _Atomic uint32_t *asleep,
	const _Atomic bool *stop, uint64_t spin)
{
	uint64_t since = wait_now();

	while (atomic_load_explicit(word, memory_order_acquire) == value) {
		if (atomic_load(stop))
			return false;
		if (wait_now() - since < spin) {
			wait_relax();
			continue;
		}
		atomic_store_explicit(asleep, 1, memory_order_relaxed);
		wait_fence();
		if (atomic_load_explicit(word, memory_order_acquire) == value &&
			!atomic_load(stop))
			wait_sleep(word, value, WAIT_LOOK_NS);
		atomic_store_explicit(asleep, 0, memory_order_relaxed);
	}
	return true;
}

/* The word was changed: wakes who sleeps on it. */
static inline void wait_changed(_Atomic uint32_t *word, const _Atomic uint32_t *asleep)
{
	wait_fence();
	if (atomic_load_explicit(asleep, memory_order_relaxed))
		wait_wake(word);
}

#endif
