/* SPDX-License-Identifier: Apache-2.0
 *
 * vcuda: the command for people.
 */
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "common/log.h"
#include "common/version.h"

static const char every[] =
	"vcuda: any program uses any GPU as if it were its own\n"
	"\n"
	"  vcuda run [--software | --agent HOST[:PORT]] [--token-file FILE] -- PROGRAM …\n"
	"  vcuda smi [-L] [--agent HOST]     the GPUs, their memory and load, who uses them\n"
	"  vcuda top [--agent HOST]          an agent's sessions, as they change; keys sort\n"
	"  vcuda tensors --agent HOST        an agent's tensors with names\n"
	"  vcuda weights push|ls|rm          weights that every pod shares\n"
	"  vcuda peer join|leave|list        this machine's GPUs for a network of people\n"
	"  vcuda status [--json]             what the sidecar of this machine or pod does\n"
	"  vcuda stats [--json]              how long the calls of its programs take, by kind\n"
	"  vcuda doctor [--json] [PROGRAM]   what is right and what is wrong, a line each\n"
	"  vcuda preload                     what LD_PRELOAD has to name, to do it by hand\n"
	"\n"
	"  vcuda -n native|light -s SEND -r RECV -p CONTROL                       an agent\n"
	"  vcuda -role server|client -ip HOST -net native|light -send_port P -recv_port P\n"
	"\n"
	"  vcuda --help, vcuda --version; vcuda COMMAND --help\n";

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} verbs[] = {
		{"run", command_run},
		{"status", command_status},
		{"doctor", command_doctor},
		{"peer", command_peer},
		{"preload", command_preload},
		{"smi", command_smi},
		{"stats", command_stats},
		{"tensors", command_tensors},
		{"top", command_top},
		{"weights", command_weights},
	};
	struct error error;

	const char *name = argc ? strrchr(argv[0], '/') : NULL;

	log_open("vcuda");
	name = name ? name + 1 : argc ? argv[0] : "";
	if (!strcmp(name, "nvidia-smi"))
		return command_smi(argc, argv);
	if (!strcmp(name, "ptxas"))
		return command_ptxas(argc, argv);
	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
		fputs(every, stdout);
		return argc < 2 ? 2 : 0;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("vcuda " VCUDA_BUILD);
		return 0;
	}
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(verbs[i].name, argv[1]))
			return verbs[i].run(argc - 1, argv + 1);
	if (argv[1][0] == '-')
		return command_legacy(argc, argv);
	error_set(&error, 0, "unknown command '%s'; vcuda --help lists them", argv[1]);
	return command_complain(&error, 2);
}
