/* SPDX-License-Identifier: Apache-2.0
 *
 * vcuda weights: weights as tensors with names, from the command line.  It runs python/vcuda
 * under vcuda, which names files as vcuda.load_file() does, so that programs find what was
 * pushed.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "command/spawn.h"
#include "common/cleanup.h"

#define ARGUMENTS 256

static const char usage[] =
	"vcuda weights push [FLAGS] FILE|FOLDER …   loads safetensors files, for every pod\n"
	"vcuda weights ls [FLAGS] [PREFIX]          what there is\n"
	"vcuda weights rm [FLAGS] NAME …            a name goes at once, its memory with its "
	"last "
	"user\n"
	"\n"
	"  --agent HOST[:PORT]  on that agent; else through the sidecar that is running\n"
	"  --token-file FILE    as whom; else $VCUDA_TOKEN_FILE\n"
	"  --software           on this machine's CPU\n"
	"  --name NAME          push: one file under this name, and not by its content\n"
	"  --keep               push: it stays until it is removed; else until memory is "
	"short\n"
	"\n"
	"  It wants python3 (no package of it).\n";

/* python/vcuda, for the python3 that is run. */
static int set_path(struct error *error)
{
	const char *old = getenv("PYTHONPATH");
	cleanup_free char *path = NULL;
	char folder[PATH_MAX];

	if (spawn_library("python", folder, sizeof(folder)))
		return error_set(error, 0, "weights: no python/vcuda beside this command");
	if (asprintf(&path, "%s%s%s", folder, old && *old ? ":" : "", old ? old : "") < 0 ||
		setenv("PYTHONPATH", path, 1))
		return error_set(error, 0, "weights: no memory");
	return 0;
}

int command_weights(int argc, char **argv)
{
	char *words[ARGUMENTS + 8] = {"run"}, *rest[ARGUMENTS];
	const char *verb = argc > 1 ? argv[1] : "--help";
	int n = 1, behind = 0;
	struct error error;

	if (!strcmp(verb, "--help")) {
		fputs(usage, stdout);
		return argc > 1 ? 0 : 2;
	}
	if (argc > ARGUMENTS) {
		error_set(&error, 0, "weights: more than %d words", ARGUMENTS);
		return command_complain(&error, 2);
	}
	if (strcmp(verb, "push") != 0 && strcmp(verb, "ls") != 0 && strcmp(verb, "rm") != 0) {
		error_set(&error, 0,
			"weights: '%s' is not push, ls or rm; vcuda weights --help", verb);
		return command_complain(&error, 2);
	}
	for (int i = 2; i < argc; i++) {
		bool value = !strcmp(argv[i], "--agent") || !strcmp(argv[i], "--token-file");

		if (value && i + 1 < argc) {
			words[n++] = argv[i++];
			words[n++] = argv[i];
		} else if (value || !strcmp(argv[i], "--software")) {
			words[n++] = argv[i];
		} else {
			rest[behind++] = argv[i];
		}
	}
	words[n++] = "--";
	words[n++] = "python3";
	words[n++] = "-m";
	words[n++] = "vcuda";
	words[n++] = argv[1];
	for (int i = 0; i < behind; i++)
		words[n++] = rest[i];
	words[n] = NULL;
	return set_path(&error) ? command_complain(&error, 1) : command_run(n, words);
}
