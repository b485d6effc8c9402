/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/supervisor/ready.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"

#define AGAIN_NS 1000000000ull

/* What could not be written: the disk was full just then. */
static struct {
	uint64_t at; /* 0: nothing */
	bool ready;
	char text[256];
} again;

cJSON *ready_place(const struct agent_config *config)
{
	cJSON *root = cJSON_CreateObject(), *ports;

	cJSON_AddNumberToObject(root, "pid", getpid());
	cJSON_AddStringToObject(root, "address", config->address);
	ports = cJSON_AddObjectToObject(root, "ports");
	cJSON_AddNumberToObject(ports, "send", config->bound[LISTEN_SEND]);
	cJSON_AddNumberToObject(ports, "recv", config->bound[LISTEN_RECV]);
	cJSON_AddNumberToObject(ports, "control", config->bound[LISTEN_CONTROL]);
	return root;
}

void ready_write(const struct agent_config *config, bool ready, const char *text)
{
	char part[AGENT_PATH + 8];
	cJSON *root;
	char *json;
	FILE *file;
	bool good;

	if (!config->ready_file[0])
		return;
	root = ready_place(config);
	cJSON_AddBoolToObject(root, "ready", ready);
	cJSON_AddStringToObject(root, "text", text);
	json = cJSON_PrintUnformatted(root);
	cJSON_Delete(root);

	/* Renamed into place: who waits for the file finds all of it. */
	snprintf(part, sizeof(part), "%s.part", config->ready_file);
	file = json ? fopen(part, "we") : NULL;
	good = file && fprintf(file, "%s\n", json) > 0;
	if (file)
		good = !fclose(file) && good;
	good = good && !rename(part, config->ready_file);
	if (!good && !again.at)
		log_error("ready.file", "file=\"%s\" text=\"%s\"", config->ready_file,
			strerror(errno));
	again.at = good ? 0 : wait_now() + AGAIN_NS;
	again.ready = ready;
	if (text != again.text)
		snprintf(again.text, sizeof(again.text), "%s", text);
	cJSON_free(json);
}

uint64_t ready_tick(const struct agent_config *config, uint64_t now)
{
	if (again.at && again.at <= now)
		ready_write(config, again.ready, again.text);
	return again.at ? again.at : UINT64_MAX;
}

void ready_remove(const struct agent_config *config)
{
	if (config->ready_file[0])
		unlink(config->ready_file);
}
