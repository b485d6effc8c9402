/* SPDX-License-Identifier: Apache-2.0
 *
 * vcuda status: the sidecar's own words.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "command/command.h"
#include "command/spawn.h"

static const char usage[] = "vcuda status [--json]\n"
			    "\n"
			    "  --json   as the sidecar writes it\n";

int command_status(int argc, char **argv)
{
	char program[PATH_MAX];
	struct error error;
	char *json = NULL;

	if (command_helped(argc, argv, usage))
		return 0;
	if (argc == 2 && !strcmp(argv[1], "--json"))
		json = "--json";
	else if (argc > 1) {
		error_set(&error, 0, "status: what is '%s'? vcuda status [--json]", argv[1]);
		return command_complain(&error, 2);
	}
	if (spawn_beside("vcuda-client", program, sizeof(program), &error) < 0)
		return command_complain(&error, 1);
	execv(program, (char *[]){"vcuda-client", "status", json, NULL});
	error_set(&error, errno, "%s", program);
	return command_complain(&error, 1);
}
