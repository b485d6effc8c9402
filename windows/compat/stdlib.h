/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_STDLIB_H
#define VCUDA_COMPAT_STDLIB_H
#include_next <stdlib.h>
#include <malloc.h>

/* No program gains rights by being started. */
static inline char *secure_getenv(const char *name)
{
	return getenv(name);
}
/* For what is never freed. */
static inline void *aligned_alloc(size_t alignment, size_t size)
{
	return _aligned_malloc(size, alignment);
}
#endif
