/* SPDX-License-Identifier: Apache-2.0
 *
 * How the program's touches of managed memory are seen (managed.c decides what is done about
 * them).  Memory is *watched*: a touch of a page that is not installed in the program stops the
 * thread until it is.  One thread of ours, started with the first managed allocation, hears of
 * all touches.
 *
 * Addresses and sizes are multiples of the page.  Nothing here takes a lock, so a page that is
 * installed while another thread's is evicted is the caller's to keep apart.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_PAGES_PAGE_FAULT_H
#define VCUDA_SHIM_DRIVER_MEMORY_PAGES_PAGE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fault {
	uint64_t address; /* of the page */
	bool write;
	bool in_callback; /* by a host function */
	uint32_t thread;  /* gettid(); 0: not known */
	void *asked;	  /* the way's own */
};

/* What one way of watching does. VIEW: where this library reads and writes the pages at AT,
 * whatever the program may do with them. */
struct fault_way {
	/* False: this system does not let us. */
	bool (*open)(void);
	/* [at, at + bytes) is the program's from now on and has no page.  OURS: nothing but a
	 * reservation of this library is there.  The view; NULL: there is something else, or no
	 * memory. */
	void *(*map)(uint64_t at, size_t bytes, bool ours);
	/* The reverse: a reservation again where it was OURS. */
	void (*unmap)(uint64_t at, void *view, size_t bytes, bool ours);
	/* Installs pages that it has not: the bytes at FROM, or zeroes (NULL); to be written to
	 * or not. This and the next three: false where the kernel will have no more pieces. */
	bool (*install)(uint64_t at, void *view, const void *from, size_t bytes, bool write);
	/* Of pages that it has. */
	bool (*let_write)(uint64_t at, size_t bytes);
	bool (*forbid_write)(uint64_t at, size_t bytes);
	bool (*evict)(uint64_t at, void *view, size_t bytes);
	/* Waits for the next touch and fills in all of *FAULT. False: there will be none. */
	bool (*next)(struct fault *fault);
	/* The thread goes on; not MANAGED: it touched other memory. */
	void (*done)(const struct fault *fault, bool managed);
};
extern const struct fault_way fault_userfaultfd, fault_signal;

/* Whether this system has any way at all. */
extern const bool fault_seen;

/* Chooses a way and starts the thread, once. NULL: none works here. */
const struct fault_way *fault_open(void);

#endif
