/* SPDX-License-Identifier: Apache-2.0
 *
 * The pieces of waiting that every part shares: the clock, the futex on a shared word, and how
 * long it pays to spin before sleeping.  Header only and libc only: the shim uses it too.
 */
#ifndef VCUDA_COMMON_WAIT_H
#define VCUDA_COMMON_WAIT_H

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
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

#endif
