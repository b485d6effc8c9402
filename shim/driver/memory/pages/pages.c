/* SPDX-License-Identifier: Apache-2.0
 *
 * See pages.h.
 */
#include "shim/driver/memory/pages/pages.h"

#include <stdlib.h>
#include <string.h>

bool pages_init(struct pages *pages, size_t count)
{
	*pages = (struct pages){.count = count, .zero = count};
	pages->state = calloc(count, sizeof(*pages->state)); /* PAGE_ZERO is 0 */
	for (unsigned i = 0; i < PAGES_WALKS; i++)
		pages->walks[i].next = SIZE_MAX;
	return pages->state != NULL;
}

void pages_fini(struct pages *pages)
{
	free(pages->state);
	pages->state = NULL;
}

void pages_set(struct pages *pages, size_t first, size_t n, enum page_state state)
{
	for (size_t i = first; i < first + n; i++) {
		pages->present -= page_present(pages->state[i]);
		pages->zero -= pages->state[i] == PAGE_ZERO;
	}
	memset(pages->state + first, (int)state, n);
	if (page_present(state))
		pages->present += n;
	if (state == PAGE_ZERO)
		pages->zero += n;
}

size_t pages_run(const struct pages *pages, size_t first, size_t most)
{
	size_t n = 1;

	while (n < most && first + n < pages->count &&
		pages->state[first + n] == pages->state[first])
		n++;
	return n;
}

size_t pages_ahead(struct pages *pages, size_t first, size_t most)
{
	struct page_walk *walk = NULL;
	size_t n;

	for (unsigned i = 0; i < PAGES_WALKS; i++)
		if (pages->walks[i].next == first)
			walk = &pages->walks[i];
	if (first >= pages->expected.first && first < pages->expected.end) {
		n = pages->expected.end - first;
		return pages_run(pages, first, n < most ? n : most);
	}
	if (walk) {
		walk->ahead = 2 * walk->ahead < most ? 2 * walk->ahead : most;
	} else {
		walk = &pages->walks[pages->oldest++ % PAGES_WALKS];
		walk->ahead = 1;
	}
	n = pages_run(pages, first, walk->ahead);
	walk->next = first + n;
	return n;
}

void pages_expect(struct pages *pages, size_t first, size_t n)
{
	pages->expected = (struct page_span){first, first + n};
}
