/* SPDX-License-Identifier: Apache-2.0
 *
 * vcuda top: vcuda-top (command/top/), which alone needs ncurses.
 */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "command/command.h"
#include "command/spawn.h"

int command_top(int argc, char **argv)
{
	char program[PATH_MAX];
	struct error error;

	(void)argc;
	if (spawn_beside("vcuda-top", program, sizeof(program), &error) < 0)
		return command_complain(&error, 1);
	argv[0] = "vcuda-top";
	execv(program, argv);
	error_set(&error, errno, "%s", program);
	return command_complain(&error, 1);
}
