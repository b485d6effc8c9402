/* SPDX-License-Identifier: Apache-2.0
 *
 * An error with its text, on the caller's stack: making one never allocates.  Functions take
 * `struct error *error` last, return 0 or -errno, and leave nothing open when they fail.
 */
#ifndef VCUDA_COMMON_ERROR_H
#define VCUDA_COMMON_ERROR_H

struct error {
	int code;	/* errno, positive; 0 = none */
	char text[240]; /* one line */
};

/* Sets text to "FORMAT: strerror(code)" (without the tail where code is 0) and returns -code
 * (-EINVAL where code is 0). `error` may be NULL. */
int error_set(struct error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "FORMAT: " before the text that is there; returns `result`. */
int error_wrap(struct error *error, int result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
