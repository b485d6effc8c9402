/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOG_TEXT_MAX 900 /* of a line, behind what every line has */

enum log_level log_level = LOG_INFO;
enum log_format log_format = LOG_TEXT;

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static char log_program[32] = "vcuda";
static int log_fd = STDERR_FILENO;
static const struct log_subject *about_all;
static _Thread_local const struct log_subject *about_thread;

/* log_limit: lines that may still be written, and since when. */
static struct {
	pthread_mutex_t lock;
	unsigned a_second; /* 0: no limit */
	unsigned left, dropped;
	time_t since;
	_Atomic uint64_t
		*together; /* second and lines of it, 32 bits each; NULL: nobody else's */
} log_may = {.lock = PTHREAD_MUTEX_INITIALIZER};

void log_limit(unsigned a_second)
{
	log_may.a_second = a_second;
}

void log_limit_together(_Atomic uint64_t *word)
{
	log_may.together = word;
}

/* Another process may be in the next second already: that one counts. */
static int log_may_together(time_t now)
{
	uint64_t have = atomic_load(log_may.together), next;

	do {
		bool same = (int32_t)((uint32_t)(have >> 32) - (uint32_t)now) >= 0;

		if (same && (uint32_t)have >= log_may.a_second)
			return 0;
		next = same ? have + 1 : (uint64_t)(uint32_t)now << 32 | 1;
	} while (!atomic_compare_exchange_weak(log_may.together, &have, next));
	return 1;
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
	may = log_may.left > 0 && (!log_may.together || log_may_together(now));
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

int log_set_format(const char *name)
{
	if (strcmp(name, "text") && strcmp(name, "json"))
		return -1;
	log_format = strcmp(name, "json") ? LOG_TEXT : LOG_JSON;
	return 0;
}

void log_open(const char *program)
{
	const char *want = getenv("VCUDA_LOG"), *format = getenv("VCUDA_LOG_FORMAT");

	snprintf(log_program, sizeof(log_program), "%s", program);
	for (unsigned i = 0; want && i < sizeof(level_names) / sizeof(level_names[0]); i++)
		if (!strcmp(want, level_names[i]))
			log_level = (enum log_level)i;
	if (format && log_set_format(format))
		log_warn("log.format", "text=\"$VCUDA_LOG_FORMAT is text or json\"");
}

void log_session(struct log_subject *subject, const uint8_t session[16])
{
	for (size_t i = 0; i < 16; i++)
		snprintf(subject->session + 2 * i, 3, "%02x", session[i]);
}

void log_about(const struct log_subject *subject)
{
	about_thread = subject;
}

void log_about_all(const struct log_subject *subject)
{
	about_all = subject;
}

/* TEXT with what JSON gives a meaning escaped; what is not ASCII may be no UTF-8 and becomes a
 * question mark. Returns how much of OUT is used. */
static size_t log_escape(char *out, size_t n, const char *text)
{
	size_t at = 0;

	for (; *text && at + 3 < n; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			out[at++] = '\\';
		out[at++] = c < ' ' || c > 126 ? '?' : (char)c;
	}
	out[at] = 0;
	return at;
}

struct log_line {
	enum log_level level;
	const char *event, *text;
	const struct log_subject *subject;
	char time[32];
};

/* Both return what snprintf does. */
static int log_as_text(char *out, size_t n, const struct log_line *line)
{
	const struct log_subject *s = line->subject;
	char session[LOG_SESSION + 10] = "", pod[sizeof(s->pod) + 10] = "";

	if (s && s->session[0])
		snprintf(session, sizeof(session), "session=%s ", s->session);
	if (s && s->pod[0])
		snprintf(pod, sizeof(pod), "pod=\"%s\" ", s->pod);
	return snprintf(out, n, "t=%s level=%s part=%s pid=%d event=%s %s%s%s", line->time,
		level_names[line->level], log_program, (int)getpid(), line->event, session, pod,
		line->text);
}

static int log_as_json(char *out, size_t n, const struct log_line *line)
{
	const struct log_subject *s = line->subject;
	char text[2048], pod[2 * sizeof(s->pod)];

	log_escape(text, sizeof(text), line->text);
	log_escape(pod, sizeof(pod), s ? s->pod : "");
	return snprintf(out, n,
		"{\"ts\":\"%s\",\"level\":\"%s\",\"component\":\"%s\",\"pid\":%d,"
		"\"event\":\"%s\",\"session\":\"%s\",\"pod\":\"%s\",\"text\":\"%s\"}",
		line->time, level_names[line->level], log_program, (int)getpid(), line->event,
		s ? s->session : "", pod, text);
}

static void log_write(const struct log_subject *subject, enum log_level level,
	const char *event, const char *text)
{
	struct log_line line = {
		.level = level, .event = event, .text = text, .subject = subject};
	char out[3072];
	struct timespec now;
	struct tm tm;
	unsigned dropped;
	size_t at;
	int n;

	clock_gettime(CLOCK_REALTIME, &now);
	if (!log_may_write(now.tv_sec, &dropped))
		return;
	if (dropped)
		log_event(LOG_WARN, "log.dropped", "lines=%u", dropped);
	gmtime_r(&now.tv_sec, &tm);
	at = strftime(line.time, sizeof(line.time), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(line.time + at, sizeof(line.time) - at, ".%03ldZ", now.tv_nsec / 1000000);
	n = log_format == LOG_JSON ? log_as_json(out, sizeof(out) - 1, &line)
				   : log_as_text(out, sizeof(out) - 1, &line);
	at = n < 0 ? 0 : (size_t)n;
	if (at > sizeof(out) - 2)
		at = sizeof(out) - 2;
	out[at++] = '\n';
	/* One write a line, so that lines of several processes do not mix. */
	(void)!write(log_fd, out, at); /* nowhere left to say that it failed */
}

/* What log_event and log_of have in common: errno stays. */
__attribute__((format(printf, 4, 0))) static void log_format_line(
	const struct log_subject *subject, enum log_level level, const char *event,
	const char *format, va_list args)
{
	char text[LOG_TEXT_MAX];
	int saved = errno;

	vsnprintf(text, sizeof(text), format, args);
	log_write(subject, level, event, text);
	errno = saved;
}

void log_event(enum log_level level, const char *event, const char *format, ...)
{
	va_list args;

	if (level > log_level)
		return;
	va_start(args, format);
	log_format_line(about_thread ? about_thread : about_all, level, event, format, args);
	va_end(args);
}

void log_of(const struct log_subject *subject, enum log_level level, const char *event,
	const char *format, ...)
{
	va_list args;

	if (level > log_level)
		return;
	va_start(args, format);
	log_format_line(subject, level, event, format, args);
	va_end(args);
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
