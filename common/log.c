/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum log_level log_level = LOG_INFO;

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static char log_program[32] = "vcuda";
static int log_fd = STDERR_FILENO;

void log_to(int fd)
{
	log_fd = fd;
}

void log_open(const char *program)
{
	const char *want = getenv("VCUDA_LOG");

	snprintf(log_program, sizeof(log_program), "%s", program);
	for (unsigned i = 0; want && i < sizeof(level_names) / sizeof(level_names[0]); i++)
		if (!strcmp(want, level_names[i]))
			log_level = (enum log_level)i;
}

void log_event(enum log_level level, const char *event, const char *format, ...)
{
	char line[1024];
	int saved = errno;
	struct timespec now;
	struct tm tm;
	va_list args;
	size_t at;
	int n;

	if (level > log_level)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	at = strftime(line, sizeof(line), "t=%Y-%m-%dT%H:%M:%S", &tm);
	n = snprintf(line + at, sizeof(line) - at, ".%03ldZ level=%s part=%s pid=%d event=%s ",
		now.tv_nsec / 1000000, level_names[level], log_program, (int)getpid(), event);
	at += (size_t)n;
	va_start(args, format);
	n = vsnprintf(line + at, sizeof(line) - at - 1, format, args);
	va_end(args);
	at += n < 0 ? 0 : (size_t)n;
	if (at > sizeof(line) - 2)
		at = sizeof(line) - 2;
	line[at++] = '\n';
	/* One write a line, so that lines of several processes do not mix. */
	if (write(log_fd, line, at) < 0)
		errno = saved; /* nowhere left to say it */
	errno = saved;
}

const char *log_quote(char *out, size_t n, const char *text)
{
	size_t at = 0;

	if (n < 3)
		return "";
	out[at++] = '"';
	for (; *text && at < n - 2; text++) {
		unsigned char c = (unsigned char)*text;

		out[at++] = c < ' ' || c == '"' || c == '\\' || c == 127 ? '?' : (char)c;
	}
	out[at++] = '"';
	out[at] = 0;
	return out;
}
