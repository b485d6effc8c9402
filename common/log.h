/* SPDX-License-Identifier: Apache-2.0
 *
 * One event a line, logfmt or JSON, to stderr: log_info("session.open", "peer=%s", …).  The
 * first word is a constant to grep for.  errno is kept.  Values from a peer go through
 * log_quote(). $VCUDA_LOG=error|warn|info|debug sets the level (default info),
 * $VCUDA_LOG_FORMAT=text|json the format (default text).
 *
 * A line about a session names it by the identifier that program, sidecar, front and worker all
 * have, and its pod: see struct log_subject.
 */
#ifndef VCUDA_COMMON_LOG_H
#define VCUDA_COMMON_LOG_H

#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

enum log_format { LOG_TEXT, LOG_JSON };

extern enum log_level log_level;
extern enum log_format log_format;

/* What a line is about. */
#define LOG_SESSION 33 /* 16 bytes in hexadecimal */
struct log_subject {
	char session[LOG_SESSION]; /* "": not known yet */
	char pod[128];		   /* printable; "": not known */
};
void log_session(struct log_subject *subject, const uint8_t session[16]);

/* Lines of this thread, or of all that have no subject of their own, are about SUBJECT from now
 * on, which stays the caller's; NULL: about none. The second before other threads. */
void log_about(const struct log_subject *subject);
void log_about_all(const struct log_subject *subject);

/* Lines go to this descriptor from now on (stderr until then); the caller keeps it open. */
void log_to(int fd);

/* 0, or -1: NAME is no format. */
int log_set_format(const char *name);

/* Reads $VCUDA_LOG and $VCUDA_LOG_FORMAT; `program` is the part= of every line. */
void log_open(const char *program);

/* At most so many lines a second; the rest are counted, and that is said. Before other threads.
 */
void log_limit(unsigned a_second);
/* The same limit for the lines of all processes that have WORD in common (0 at first), too. */
void log_limit_together(_Atomic uint64_t *word);

void log_event(enum log_level level, const char *event, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* One line about SUBJECT, whatever the thread's are about. */
void log_of(const struct log_subject *subject, enum log_level level, const char *event,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

#define log_error(event, ...) log_event(LOG_ERROR, event, __VA_ARGS__)
#define log_warn(event, ...) log_event(LOG_WARN, event, __VA_ARGS__)
#define log_info(event, ...) log_event(LOG_INFO, event, __VA_ARGS__)
#define log_debug(event, ...)                                                                  \
	do {                                                                                   \
		if (log_level >= LOG_DEBUG)                                                    \
			log_event(LOG_DEBUG, event, __VA_ARGS__);                              \
	} while (0)

/* TEXT in double quotes with control characters and quotes replaced, in `out`. Returns out. */
const char *log_quote(char *out, size_t n, const char *text);

#endif
