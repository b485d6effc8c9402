/* SPDX-License-Identifier: Apache-2.0
 *
 * What every verb says in the same way: that something is wrong, and how it is used.
 */
#include <stdio.h>
#include <string.h>

#include "command/command.h"

int command_complain(const struct error *error, int status)
{
	fprintf(stderr, "vcuda: %s\n", error->text);
	return status;
}

bool command_helped(int argc, char **argv, const char *usage)
{
	if (argc < 2 || strcmp(argv[1], "--help") != 0)
		return false;
	fputs(usage, stdout);
	return true;
}
