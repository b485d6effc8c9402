/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <errno.h>
#include <pthread.h>
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

/* log_limit: lines that may still be written, and since when. */
static struct {
	pthread_mutex_t lock;
	unsigned a_second; /* 0: no limit */
	unsigned left, dropped;
	time_t since;
} log_may = {.lock = PTHREAD_MUTEX_INITIALIZER};

void log_limit(unsigned a_second)
{
	log_may.a_second = a_second;
}

/* Whether one more line may be written; *dropped: how many were not, since the last. */
static int log_may_write(time_t now, unsigned *dropped)
{
	int may;

	*dropped = 0;
	if (!log_may.a_second)
		return 1;
	pthread_mutex_lock(&log_may.lock);
	if (now != log_may.since) {
		log_may.since = now;
		log_may.left = log_may.a_second;
		*dropped = log_may.dropped;
		log_may.dropped = 0;
	}
	may = log_may.left > 0;
	if (may)
		log_may.left--;
	else
		log_may.dropped++;
	pthread_mutex_unlock(&log_may.lock);
	return may;
}

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
	unsigned dropped;
	va_list args;
	size_t at;
	int n;

	if (level > log_level)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	if (!log_may_write(now.tv_sec, &dropped))
		return;
	if (dropped)
		log_event(LOG_WARN, "log.dropped", "lines=%u", dropped);
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
