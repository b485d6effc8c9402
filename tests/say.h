/* SPDX-License-Identifier: Apache-2.0
 *
 * How the programs that tests run, watch and kill (tests/stack, tests/faults) tell what
 * happens: a line with its newline in one write, since threads print too.
 */
#ifndef TESTS_SAY_H
#define TESTS_SAY_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	strcat(line, "\n");
	if (write(STDOUT_FILENO, line, strlen(line)) < 0)
		_exit(3);
}

#endif
