/* SPDX-License-Identifier: Apache-2.0
 *
 * FOLDER/agent.json: which agent has the folder, and how its networks are, for `vcuda peer`.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "gpu-agent/supervisor/network_table.h"
#include "gpu-agent/supervisor/ready.h"
#include "gpu-agent/supervisor/supervisor.h"

static const char *const states[NETWORK_STATES] = {
	[NETWORK_STARTING] = "starting",
	[NETWORK_OPEN] = "open",
	[NETWORK_CLOSED] = "closed",
	[NETWORK_REFUSED] = "refused",
	[NETWORK_LEAVING] = "leaving",
};

/* A number of nanoseconds since 1970 is more than a double holds. */
static void add_time(cJSON *object, int64_t ns)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, ns);
	cJSON_AddStringToObject(object, "file_ns", text);
}

static cJSON *network_json(const struct agent_network *network, const struct network_place *at)
{
	cJSON *object = cJSON_CreateObject();
	bool told = at->report.name[0];
	uint32_t state = network->leaving_until ? NETWORK_LEAVING
			 : told			? at->report.state
						: NETWORK_STARTING;

	cJSON_AddStringToObject(object, "name", network->is.name);
	cJSON_AddStringToObject(object, "state", states[state]);
	cJSON_AddStringToObject(object, "text", told ? at->report.text : "");
	cJSON_AddNumberToObject(object, "sessions", told ? at->report.sessions : 0);
	cJSON_AddNumberToObject(object, "gpus", told ? at->report.gpu_count : 0);
	cJSON_AddStringToObject(object, "directory", network->is.directory);
	cJSON_AddBoolToObject(object, "entered", at->entered);
	cJSON_AddStringToObject(object, "directory_text", at->text);
	cJSON_AddBoolToObject(object, "configured", !network->dropped);
	add_time(object, at->file_ns);
	return object;
}

static char *print_all(const struct supervisor *s)
{
	const struct agent_config *config = s->config;
	cJSON *root = ready_place(config), *list;
	char *text;

	cJSON_AddNumberToObject(root, "drain_seconds", config->drain_ms / 1000.0);
	list = cJSON_AddArrayToObject(root, "networks");
	for (uint32_t i = 0; i < config->network_count; i++)
		cJSON_AddItemToArray(
			list, network_json(&config->networks[i], &s->networks.at[i]));
	list = cJSON_AddArrayToObject(root, "refused");
	for (uint32_t i = 0; i < s->networks.refused_count; i++) {
		const struct network_refused *refused = &s->networks.refused[i];
		cJSON *object = cJSON_CreateObject();

		cJSON_AddStringToObject(object, "file", refused->file);
		cJSON_AddStringToObject(object, "text", refused->text);
		add_time(object, refused->file_ns);
		cJSON_AddItemToArray(list, object);
	}
	text = cJSON_Print(root);
	cJSON_Delete(root);
	return text;
}

static void path_of(const struct agent_config *config, char *path, size_t n, const char *end)
{
	snprintf(path, n, "%s/agent.json%s", config->networks_folder, end);
}

void network_state_write(struct supervisor *s)
{
	char path[AGENT_PATH + 32], part[AGENT_PATH + 32];
	char *text;
	FILE *file;
	bool good;

	if (!s->config->networks_folder[0] || !s->networks.changed)
		return;
	path_of(s->config, path, sizeof(path), "");
	path_of(s->config, part, sizeof(part), ".part");
	text = print_all(s);
	file = text ? fopen(part, "we") : NULL;
	good = file && fprintf(file, "%s\n", text) > 0;
	if (file)
		good = !fclose(file) && good;
	if (!good || rename(part, path))
		log_error("networks.state", "file=\"%s\" text=\"%s\"", path, strerror(errno));
	s->networks.changed = false;
	cJSON_free(text);
}

void network_state_remove(const struct agent_config *config)
{
	char path[AGENT_PATH + 32];

	if (!config->networks_folder[0])
		return;
	path_of(config, path, sizeof(path), "");
	unlink(path);
}
