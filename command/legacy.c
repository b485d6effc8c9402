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

struct seeds {
	const char *role, *ip, *net, *send, *recv, *control;
};

static int parse(int argc, char **argv, struct seeds *seeds, struct error *error)
{
	const struct {
		const char *flag;
		const char **value;
	} flags[] = {
		{"-role", &seeds->role},
		{"-ip", &seeds->ip},
		{"-net", &seeds->net},
		{"-n", &seeds->net},
		{"-send_port", &seeds->send},
		{"-s", &seeds->send},
		{"-recv_port", &seeds->recv},
		{"-r", &seeds->recv},
		{"-p", &seeds->control},
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
	if (seeds->net && strcmp(seeds->net, "native"))
		return error_set(error, 0, "'%s': the network served is native", seeds->net);
	if (strcmp(seeds->role, "server") && strcmp(seeds->role, "client"))
		return error_set(error, 0, "-role %s: it is server or client", seeds->role);
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
int command_seeds(int argc, char **argv)
{
	struct seeds seeds = {.role = "server"};
	struct error error;
	int ret = parse(argc, argv, &seeds, &error);

	if (ret < 0)
		return command_complain(&error, 2);
	if (!strcmp(seeds.role, "client")) {
		if (!seeds.ip) {
			error_set(&error, 0, "-role client: where is the server? -ip HOST");
			return command_complain(&error, 2);
		}
		ret = become(
			(char *[]){NULL, "0", (char *)seeds.ip, "native",
				(char *)(seeds.send ? seeds.send : "9998"),
				(char *)(seeds.recv ? seeds.recv : "9997"),
				(char *)(seeds.control ? seeds.control : "9999"), "0", NULL},
			"vcuda-client", &error);
	} else {
		ret = become((char *[]){NULL, "-n", "native", "-s",
				     (char *)(seeds.send ? seeds.send : "9997"), "-r",
				     (char *)(seeds.recv ? seeds.recv : "9998"), "-p",
				     (char *)(seeds.control ? seeds.control : "9999"),
				     seeds.ip ? "--address" : NULL, (char *)seeds.ip, NULL},
			"gpu-agent", &error);
	}
	return command_complain(&error, 1);
}
