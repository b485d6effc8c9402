/* SPDX-License-Identifier: Apache-2.0
 *
 * One event a line, logfmt, to stderr: log_info("session.open", "session=%u pid=%d", …).  The
 * first word is a constant to grep for.  errno is kept.  Values from a peer go through
 * log_quote().  $VCUDA_LOG=error|warn|info|debug sets the level (default info).
 */
#ifndef VCUDA_COMMON_LOG_H
#define VCUDA_COMMON_LOG_H

#include <stddef.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

extern enum log_level log_level;

/* Lines go to this descriptor from now on (stderr until then); the caller keeps it open. */
void log_to(int fd);

/* Reads $VCUDA_LOG; `program` is the part= of every line. */
void log_open(const char *program);

/* At most so many lines a second; the rest are counted, and that is said. Before other threads.
 */
void log_limit(unsigned a_second);

void log_event(enum log_level level, const char *event, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

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
