/* SPDX-License-Identifier: Apache-2.0
 *
 * vcuda stats: how long the awaited calls of the programs here take, by kind, as the sidecar of
 * this machine or pod saw them.
 */
#include <cjson/cJSON.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "command/spawn.h"
#include "common/cleanup.h"

#define STATS_CAPTURE ((size_t)8 << 20)
#define STATS_SECONDS 10

static const char *name_of(int op)
{
	static const struct {
		int op;
		const char *name;
	} operations[] = {
#define OPERATION(op, name) {op, #name},
#include "protocol/generated/operations.inc"
#undef OPERATION
	};

	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (operations[i].op == op)
			return operations[i].name;
	return "?";
}

static double number(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static const char *text_of(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

	return text ? text : "";
}

/* The name of each call, beside its opcode. */
static void name_calls(cJSON *root)
{
	cJSON *session, *call;

	cJSON_ArrayForEach(session, cJSON_GetObjectItemCaseSensitive(root, "sessions"))
	{
		cJSON_ArrayForEach(call, cJSON_GetObjectItemCaseSensitive(session, "calls"))
			cJSON_AddStringToObject(call, "name", name_of((int)number(call, "op")));
	}
}

static int by_time(const void *a, const void *b)
{
	const cJSON *x = *(cJSON *const *)a, *y = *(cJSON *const *)b;
	double left = number(x, "count") * number(x, "p50_ns");
	double right = number(y, "count") * number(y, "p50_ns");

	return (left < right) - (left > right);
}

static void print_session(const cJSON *session)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(session, "calls"), *call;
	size_t count = (size_t)cJSON_GetArraySize(list), n = 0;
	cleanup_free const cJSON **sorted = calloc(count + 1, sizeof(*sorted));

	printf("session %s  pid %.0f  %s\n", text_of(session, "session"),
		number(session, "pid"), text_of(session, "program"));
	if (!sorted)
		return;
	cJSON_ArrayForEach(call, list) sorted[n++] = call;
	qsort(sorted, n, sizeof(sorted[0]), by_time);
	printf("  %-32s  %10s  %10s  %10s  %10s\n", "CALL", "COUNT", "P50 US", "P90 US",
		"P99 US");
	for (size_t i = 0; i < n; i++)
		printf("  %-32s  %10.0f  %10.1f  %10.1f  %10.1f\n", text_of(sorted[i], "name"),
			number(sorted[i], "count"), number(sorted[i], "p50_ns") / 1e3,
			number(sorted[i], "p90_ns") / 1e3, number(sorted[i], "p99_ns") / 1e3);
}

static int ask(cJSON **root, struct error *error)
{
	cleanup_free char *out = malloc(STATS_CAPTURE), *err = malloc(STATS_CAPTURE);
	char program[PATH_MAX];
	char *argv[] = {program, "calls", NULL};
	int ret = spawn_beside("vcuda-client", program, sizeof(program), error);

	if (ret < 0)
		return ret;
	if (!out || !err)
		return error_set(error, 0, "stats: no memory");
	if (spawn_capture(argv, STATS_SECONDS, out, err, STATS_CAPTURE)) {
		err[strcspn(err, "\n")] = 0;
		return error_set(error, 0, "stats: %s", err);
	}
	*root = cJSON_Parse(out);
	return *root ? 0 : error_set(error, 0, "stats: the sidecar's answer is no JSON");
}

static const char usage[] = "vcuda stats [--json]\n"
			    "\n"
			    "  --json   as the sidecar writes it, with names of calls\n";

int command_stats(int argc, char **argv)
{
	bool json = argc == 2 && !strcmp(argv[1], "--json");
	const cJSON *sessions, *session;
	cleanup_free char *text = NULL;
	struct error error;
	cJSON *root = NULL;

	if (command_helped(argc, argv, usage))
		return 0;
	if (argc > 1 && !json) {
		error_set(&error, 0, "stats: what is '%s'? vcuda stats [--json]", argv[1]);
		return command_complain(&error, 2);
	}
	if (ask(&root, &error) < 0)
		return command_complain(&error, 1);
	name_calls(root);
	if (json) {
		text = cJSON_Print(root);
		puts(text ? text : "");
	} else {
		sessions = cJSON_GetObjectItemCaseSensitive(root, "sessions");
		cJSON_ArrayForEach(session, sessions) print_session(session);
		if (!cJSON_GetArraySize(sessions))
			puts("no program is joined");
	}
	cJSON_Delete(root);
	return 0;
}
