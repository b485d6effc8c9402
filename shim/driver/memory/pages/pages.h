/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pages of one managed allocation the program has, and what has to be done about them: a
 * table of states, nothing else.  The caller locks.  How many pages are dealt with at once when
 * the program touches one grows while it goes on behind the last ones.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_PAGES_PAGES_H
#define VCUDA_SHIM_DRIVER_MEMORY_PAGES_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_BYTES 4096u
/* So many of a program's walks through an allocation are followed at once. */
#define PAGES_WALKS 4u

enum page_state {
	PAGE_ZERO,   /* all zeroes on the device; the program has not touched it */
	PAGE_ABSENT, /* only the device has it */
	PAGE_CLEAN,  /* the program has a copy, which it may read */
	PAGE_MAYBE,  /* was PAGE_ZERO, the program may write: new unless it is still zero */
	PAGE_DIRTY,  /* the program's is the newer one */
};

/* Where a walk will go on, and how many pages it is given then. */
struct page_walk {
	size_t next;
	size_t ahead;
};

/* A walk that was announced: wherever it begins, its steps are as large as can be. */
struct page_span {
	size_t first, end;
};

struct pages {
	size_t count;
	size_t present; /* that are neither PAGE_ZERO nor PAGE_ABSENT */
	size_t zero;	/* PAGE_ZERO */
	uint8_t *state;
	struct page_walk walks[PAGES_WALKS];
	unsigned oldest; /* walk to be replaced */
	struct page_span expected;
};

/* COUNT pages, all PAGE_ZERO. False: no memory. */
bool pages_init(struct pages *pages, size_t count);
void pages_fini(struct pages *pages);

void pages_set(struct pages *pages, size_t first, size_t n, enum page_state state);
/* How many pages from FIRST on, at most MOST, are in that page's state. */
size_t pages_run(const struct pages *pages, size_t first, size_t most);
/* The program touched page FIRST: how many pages from there on, all in that one's state and at
 * most MOST, it is given. */
size_t pages_ahead(struct pages *pages, size_t first, size_t most);

/* The program will walk through these: it begins with large steps. */
void pages_expect(struct pages *pages, size_t first, size_t n);

static inline bool page_present(enum page_state state)
{
	return state >= PAGE_CLEAN;
}

/* Does the program's copy go to the device? */
static inline bool page_new(enum page_state state)
{
	return state >= PAGE_MAYBE;
}

#endif
