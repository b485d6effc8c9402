/* SPDX-License-Identifier: Apache-2.0
 *
 * The command lines of the documents that the project grew from: they become gpu-agent's or
 * vcuda-client's.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command/command.h"
#include "command/spawn.h"

struct legacy {
	const char *role, *ip, *net, *send, *recv, *control;
};

static int parse(int argc, char **argv, struct legacy *legacy, struct error *error)
{
	const struct {
		const char *flag;
		const char **value;
	} flags[] = {
		{"-role", &legacy->role},
		{"-ip", &legacy->ip},
		{"-net", &legacy->net},
		{"-n", &legacy->net},
		{"-send_port", &legacy->send},
		{"-s", &legacy->send},
		{"-recv_port", &legacy->recv},
		{"-r", &legacy->recv},
		{"-p", &legacy->control},
		{"-a", NULL},
		{"-k", NULL},
	};

	for (int i = 1; i < argc; i += 2) {
		size_t f = 0, n = sizeof(flags) / sizeof(flags[0]);

		while (f < n && strcmp(flags[f].flag, argv[i]))
			f++;
		if (f == n)
			return error_set(error, 0, "unknown flag '%s'; vcuda --help", argv[i]);
		if (i + 1 >= argc)
			return error_set(error, 0, "%s needs a value", argv[i]);
		if (flags[f].value)
			*flags[f].value = argv[i + 1];
		else
			fprintf(stderr, "vcuda: %s is obsolete: not used\n", argv[i]);
	}
	if (strcmp(legacy->net, "native") && strcmp(legacy->net, "light"))
		return error_set(
			error, 0, "'%s': the networks are native and light", legacy->net);
	if (strcmp(legacy->role, "server") && strcmp(legacy->role, "client"))
		return error_set(error, 0, "-role %s: it is server or client", legacy->role);
	return 0;
}

static int become(char **argv, const char *name, struct error *error)
{
	char program[PATH_MAX];
	int ret = spawn_beside(name, program, sizeof(program), error);

	if (ret < 0)
		return ret;
	argv[0] = program;
	execv(program, argv);
	return error_set(error, errno, "%s", program);
}

/* The ports are the server's in both roles: its send port is the client's receive port. A
 * client sends to the server's receive port, which it calls -send_port. */
int command_legacy(int argc, char **argv)
{
	struct legacy legacy = {.role = "server", .net = "native"};
	struct error error;
	int ret = parse(argc, argv, &legacy, &error);

	if (ret < 0)
		return command_complain(&error, 2);
	if (!strcmp(legacy.role, "client")) {
		if (!legacy.ip) {
			error_set(&error, 0, "-role client: where is the server? -ip HOST");
			return command_complain(&error, 2);
		}
		ret = become(
			(char *[]){NULL, "0", (char *)legacy.ip, (char *)legacy.net,
				(char *)(legacy.send ? legacy.send : "9998"),
				(char *)(legacy.recv ? legacy.recv : "9997"),
				(char *)(legacy.control ? legacy.control : "9999"), "0", NULL},
			"vcuda-client", &error);
	} else {
		ret = become((char *[]){NULL, "-n", (char *)legacy.net, "-s",
				     (char *)(legacy.send ? legacy.send : "9997"), "-r",
				     (char *)(legacy.recv ? legacy.recv : "9998"), "-p",
				     (char *)(legacy.control ? legacy.control : "9999"),
				     legacy.ip ? "--address" : NULL, (char *)legacy.ip, NULL},
			"gpu-agent", &error);
	}
	return command_complain(&error, 1);
}
