/* SPDX-License-Identifier: Apache-2.0
 *
 * vcuda tensors: the tensors with names that an agent has, a line each.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "command/http.h"
#include "common/cleanup.h"
#include "protocol/wire/session.h"
#include "transport/transport.h"

static const char usage[] =
	"vcuda tensors --agent HOST[:PORT] [--token-file FILE] [--json]\n"
	"\n"
	"  --agent HOST[:PORT]  the agent's control port (9999)\n"
	"  --token-file FILE    a token of its http.token_file, which shows every namespace, "
	"or\n"
	"                       a tenant's, which shows its own; else $VCUDA_TOKEN_FILE\n"
	"  --json               as /v1/tensors has it\n";

static const char *text_of(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsString(item) ? item->valuestring : "";
}

static double number_of(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static void print_one(const cJSON *tensor)
{
	char shape[160] = "";
	const cJSON *item;
	size_t at = 0;

	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(tensor, "shape"))
	{
		if (at < sizeof(shape))
			at += (size_t)snprintf(shape + at, sizeof(shape) - at, "%s%.0f",
				at ? "x" : "", item->valuedouble);
	}
	printf("%-7s %-7s %-20s %12.1f %7.0f  %s/%s\n",
		cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(tensor, "replica"))
			? "replica"
			: text_of(tensor, "state"),
		text_of(tensor, "dtype"), shape, number_of(tensor, "bytes") / (1 << 20),
		number_of(tensor, "holders"), text_of(tensor, "namespace"),
		text_of(tensor, "name"));
}

static int print_all(const char *json)
{
	cJSON *root = cJSON_Parse(json);
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "tensors"), *tensor;
	int status = 0;

	if (cJSON_IsArray(list)) {
		printf("%-7s %-7s %-20s %12s %7s  %s\n", "STATE", "DTYPE", "SHAPE", "MIB",
			"HOLDERS", "NAME");
		cJSON_ArrayForEach(tensor, list) print_one(tensor);
	} else {
		fprintf(stderr, "vcuda tensors: the agent's answer is no list of tensors\n");
		status = 1;
	}
	cJSON_Delete(root);
	return status;
}

int command_tensors(int argc, char **argv)
{
	const char *agent = NULL, *token_file = NULL;
	cleanup_free char *json = NULL;
	struct transport_description at;
	char token[HTTP_TOKEN];
	struct error error = {0};
	bool as_json = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help")) {
			fputs(usage, stdout);
			return 0;
		}
		if (!strcmp(argv[i], "--json")) {
			as_json = true;
		} else if (!strcmp(argv[i], "--agent") && i + 1 < argc) {
			agent = argv[++i];
		} else if (!strcmp(argv[i], "--token-file") && i + 1 < argc) {
			token_file = argv[++i];
		} else {
			error_set(&error, 0,
				"tensors: '%s' is not understood; see vcuda "
				"tensors --help",
				argv[i]);
			return command_complain(&error, 2);
		}
	}
	if (!agent) {
		error_set(&error, 0, "tensors: --agent HOST[:PORT] says whose");
		return command_complain(&error, 2);
	}
	if (transport_describe(agent, SESSION_PORT_CONTROL, &at, &error) < 0 ||
		http_token(token, token_file, &error) < 0 ||
		http_get(at.host, at.port, "/v1/tensors", token, &json, &error) < 0)
		return command_complain(&error, 1);
	if (as_json) {
		puts(json);
		return 0;
	}
	return print_all(json);
}
