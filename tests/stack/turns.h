/* SPDX-License-Identifier: Apache-2.0
 *
 * For the programs of this folder that go on until their stdin is closed.
 */
#pragma once

#include <poll.h>
#include <time.h>
#include <unistd.h>

/* Whether stdin is closed, or will be within so long. */
static inline bool stdin_closed(int wait_ms = 0)
{
	struct pollfd in = {STDIN_FILENO, POLLIN, 0};
	char byte;

	return poll(&in, 1, wait_ms) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

/* The same, once in each turn of a program that goes on until then. After two seconds the turns
 * are apart, so that one which goes on for long leaves the processors to what is tested. */
static inline bool turns_over()
{
	static time_t began;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!began)
		began = now.tv_sec;
	return stdin_closed(now.tv_sec > began + 2 ? 10 : 0);
}
