/* SPDX-License-Identifier: Apache-2.0
 *
 * ptxas for the software GPU, which runs PTX: what frameworks (XLA, Triton) take for machine
 * code is the text, with a NUL behind it, for they hand it on without its size. `vcuda run
 * --software` puts it where they look (run.c).
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "common/cleanup.h"

#define TEXT_MAX (256u << 20)

/* Of what is printed, readers take the release: one that Triton 2.3 and JAX 0.11 both know. */
static const char version[] = "ptxas of vcuda: code of the software GPU is PTX\n"
			      "Cuda compilation tools, release 12.9, V12.9.86\n";

/* Options whose value is the next word; any other that is not ours is its own. */
static bool has_value(const char *option)
{
	static const char *const names[] = {"-arch", "--gpu-name", "-O", "--opt-level",
		"-maxrregcount", "--maxrregcount", "-m", "--machine"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(option, names[i]))
			return true;
	return false;
}

static int parse(
	int argc, char **argv, const char **input, const char **output, struct error *error)
{
	static const char longest[] = "--output-file=";

	for (int i = 1; i < argc; i++) {
		bool out = !strcmp(argv[i], "-o") || !strcmp(argv[i], "--output-file");

		if (out || has_value(argv[i])) {
			if (++i >= argc)
				return error_set(
					error, 0, "%s: no value behind it", argv[i - 1]);
			if (out)
				*output = argv[i];
		} else if (!strncmp(argv[i], longest, sizeof(longest) - 1)) {
			*output = argv[i] + sizeof(longest) - 1;
		} else if (argv[i][0] != '-') {
			if (*input)
				return error_set(error, 0, "%s: one file at a time, after %s",
					argv[i], *input);
			*input = argv[i];
		}
	}
	if (!*input || !*output)
		return error_set(
			error, 0, "%s", *input ? "no -o with the output's name" : "no input");
	return 0;
}

/* Whether the first word behind comments is PTX's. */
static bool begins(const char *text)
{
	for (;;) {
		text += strspn(text, " \t\r\n");
		if (!strncmp(text, "//", 2)) {
			text += strcspn(text, "\n");
		} else if (!strncmp(text, "/*", 2)) {
			const char *end = strstr(text + 2, "*/");

			if (!end)
				return false;
			text = end + 2;
		} else {
			return !strncmp(text, ".version", 8);
		}
	}
}

/* The text of a file, with a NUL behind it; NULL: why. */
static char *text_of(const char *path, size_t *bytes, struct error *error)
{
	cleanup_stream FILE *file = fopen(path, "re");
	cleanup_free char *text = NULL;
	char *got;
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0) {
		error_set(error, errno, "%s", path);
		return NULL;
	}
	if ((unsigned long)size > TEXT_MAX) {
		error_set(error, EFBIG, "%s", path);
		return NULL;
	}
	rewind(file);
	text = calloc(1, (size_t)size + 1);
	if (!text || fread(text, 1, (size_t)size, file) != (size_t)size) {
		error_set(error, text ? EIO : ENOMEM, "%s", path);
		return NULL;
	}
	*bytes = strlen(text);
	if (!begins(text)) {
		error_set(error, 0, "%s: is no PTX", path);
		return NULL;
	}
	got = text;
	text = NULL;
	return got;
}

int command_ptxas(int argc, char **argv)
{
	const char *input = NULL, *output = NULL;
	cleanup_free char *text = NULL;
	struct error error;
	size_t bytes = 0;
	FILE *to;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--version") || !strcmp(argv[i], "-V")) {
			fputs(version, stdout);
			return 0;
		}
	if (parse(argc, argv, &input, &output, &error) < 0)
		return command_complain(&error, 2);
	text = text_of(input, &bytes, &error);
	if (!text)
		return command_complain(&error, 255);
	to = fopen(output, "we");
	if (!to || fwrite(text, 1, bytes + 1, to) != bytes + 1) {
		error_set(&error, errno, "%s", output);
		if (to)
			fclose(to);
		return command_complain(&error, 255);
	}
	if (fclose(to)) {
		error_set(&error, errno, "%s", output);
		return command_complain(&error, 255);
	}
	return 0;
}
