/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_STRING_H
#define VCUDA_COMPAT_STRING_H
#include_next <string.h>
#include <stddef.h>

const char *os_strerror(int code);
#define strerror(code) ((char *)os_strerror(code))

static inline void explicit_bzero(void *at, size_t n)
{
	memset(at, 0, n);
	__asm__ volatile("" : : "r"(at) : "memory");
}
static inline void *memmem(const void *in, size_t in_n, const void *what, size_t n)
{
	const char *at = (const char *)in;

	for (; in_n >= n; at++, in_n--)
		if (!memcmp(at, what, n))
			return (void *)at;
	return NULL;
}
static inline char *stpcpy(char *to, const char *from)
{
	size_t n = strlen(from);

	memcpy(to, from, n + 1);
	return to + n;
}
static inline char *strndup(const char *text, size_t most)
{
	size_t n = strnlen(text, most);
	char *copy = (char *)__builtin_malloc(n + 1);

	if (copy) {
		memcpy(copy, text, n);
		copy[n] = 0;
	}
	return copy;
}
static inline char *strsep(char **rest, const char *between)
{
	char *start = *rest, *end;

	if (!start)
		return NULL;
	end = start + strcspn(start, between);
	*rest = *end ? end + 1 : NULL;
	*end = 0;
	return start;
}
#endif
