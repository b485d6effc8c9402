/* SPDX-License-Identifier: Apache-2.0
 *
 * How the program's touches of managed memory are seen (managed.c decides what is done about
 * them).  Memory is *watched*: a touch of a page that was not given to the program stops the
 * thread until it is.  One thread of ours, started with the first managed allocation, hears of
 * all touches.
 *
 * Addresses and sizes are multiples of the page.  Nothing here takes a lock, so a page that is
 * given while another thread's is taken is the caller's to keep apart.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_FAULT_H
#define VCUDA_SHIM_DRIVER_MEMORY_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fault {
	uint64_t address;
	bool write;
	uint32_t thread; /* gettid(); 0: not known */
};

/* What one way of watching does. */
struct fault_way {
	/* False: this system does not let us. */
	bool (*open)(void);
	/* [at, at + bytes) is the program's from now on and has no page.  OURS: nothing but a
	 * reservation of this library is there.  False: there is something else, or no memory.
	 */
	bool (*map)(uint64_t at, size_t bytes, bool ours);
	/* The reverse: a reservation again where it was OURS. */
	void (*unmap)(uint64_t at, size_t bytes, bool ours);
	/* Gives pages that it has not: the bytes at FROM, or zeroes (NULL); to be written to or
	 * not. */
	bool (*give)(uint64_t at, const void *from, size_t bytes, bool write);
	/* Of pages that it has. */
	void (*let_write)(uint64_t at, size_t bytes);
	void (*forbid_write)(uint64_t at, size_t bytes);
	void (*take)(uint64_t at, size_t bytes);
	/* Where their bytes are to be read without being touched. */
	const void *(*view)(uint64_t at);
	/* Threads that touched these go on. */
	void (*wake)(uint64_t at, size_t bytes);
	/* The next touch. False: there will be none. */
	bool (*next)(struct fault *fault);
};
extern const struct fault_way fault_userfaultfd;

/* Chooses a way and starts the thread, once. NULL: none works here. */
const struct fault_way *fault_open(void);

#endif
