/* SPDX-License-Identifier: Apache-2.0
 *
 * The status page for people: files that are part of the binary and ask for /v1.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_HTTP_PAGE_H
#define VCUDA_GPU_AGENT_FRONT_HTTP_PAGE_H

#include <stdbool.h>
#include <stddef.h>

struct page_file {
	const char *path, *type;
	const char *bytes; /* stay */
	size_t size;
};

/* False: there is no such file. */
bool page_find(const char *path, struct page_file *file);

#endif
