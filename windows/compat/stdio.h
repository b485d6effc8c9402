/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_STDIO_H
#define VCUDA_COMPAT_STDIO_H
#include_next <stdio.h>
#include <stdarg.h>

#include "windows/os/os.h"

static inline int __attribute__((format(gnu_printf, 2, 3))) dprintf(
	int fd, const char *format, ...)
{
	char text[2048];
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (n >= (int)sizeof(text))
		n = sizeof(text) - 1;
	return n > 0 ? (int)os_write(fd, text, (size_t)n) : n;
}
/* "re": nothing is inherited here, and bytes stay as they are. */
static inline FILE *os_fopen(const char *path, const char *mode)
{
	char binary[3] = {mode[0], 'b', 0};

	return fopen(path, binary);
}
#undef fopen
#define fopen(path, mode) os_fopen(path, mode)
#endif
