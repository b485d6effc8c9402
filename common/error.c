/* SPDX-License-Identifier: Apache-2.0 */
#include "common/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *error, int code, const char *format, ...)
{
	va_list args;
	size_t at;
	int saved = errno;

	if (error) {
		error->code = code ? code : EINVAL;
		va_start(args, format);
		vsnprintf(error->text, sizeof(error->text), format, args);
		va_end(args);
		at = strlen(error->text);
		if (code)
			snprintf(error->text + at, sizeof(error->text) - at, ": %s",
				strerror(code));
	}
	errno = saved;
	return code ? -code : -EINVAL;
}

int error_wrap(struct error *error, int result, const char *format, ...)
{
	char old[sizeof(error->text)];
	va_list args;
	size_t at;

	if (!error)
		return result;
	memcpy(old, error->text, sizeof(old));
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	at = strlen(error->text);
	snprintf(error->text + at, sizeof(error->text) - at, ": %s", old);
	return result;
}
