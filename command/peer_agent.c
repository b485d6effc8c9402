/* SPDX-License-Identifier: Apache-2.0 */
#include "command/peer_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command/spawn.h"
#include "common/cleanup.h"
#include "common/folder.h"

#define STATE_MOST (1u << 20)
#define FLAGS_MOST 64

int peer_folder(char folder[1024], struct error *error)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	int n = 1024;

	if (state && state[0] == '/')
		n = snprintf(folder, 1024, "%s/vcuda/networks", state);
	else if (!geteuid())
		n = snprintf(folder, 1024, "/var/lib/vcuda/networks");
	else if (home && home[0] == '/')
		n = snprintf(folder, 1024, "%s/.local/state/vcuda/networks", home);
	return n < 1024 ? 0 : error_set(error, 0, "there is no $HOME; --folder names one");
}

int peer_folder_open(const char *folder, struct error *error)
{
	struct stat st;

	folder_make(folder); /* what cannot be made is told by the next */
	return folder_own(folder, &st, error);
}

bool peer_agent_runs(const char *folder)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[PEER_PATH];

	snprintf(path, sizeof(path), "%s/agent.lock", folder);
	cleanup_close int fd = open(path, O_RDWR | O_CLOEXEC);
	return fd >= 0 && !fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK;
}

cJSON *peer_agent_state(const char *folder)
{
	cleanup_free char *text = malloc(STATE_MOST + 1);
	cleanup_stream FILE *file = NULL;
	char path[PEER_PATH];
	size_t n;

	snprintf(path, sizeof(path), "%s/agent.json", folder);
	file = fopen(path, "re");
	if (!file || !text)
		return NULL;
	n = fread(text, 1, STATE_MOST, file);
	text[n] = 0;
	return cJSON_Parse(text);
}

const char *peer_text(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsString(item) ? item->valuestring : "";
}

double peer_number(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static const cJSON *find(
	const cJSON *state, const char *list, const char *key, const char *value)
{
	const cJSON *one;

	cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(state, list))
	{
		if (!strcmp(peer_text(one, key), value))
			return one;
	}
	return NULL;
}

const cJSON *peer_agent_network(const cJSON *state, const char *name)
{
	return find(state, "networks", "name", name);
}

const cJSON *peer_agent_refused(const cJSON *state, const char *file)
{
	return find(state, "refused", "file", file);
}

/* --- one of our own ----------------------------------------------------------------------- */

__attribute__((noreturn)) static void become(char *const *words, int log)
{
	int nothing = open("/dev/null", O_RDONLY);
	sigset_t none;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (nothing >= 0)
		dup2(nothing, STDIN_FILENO);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	close_range(STDERR_FILENO + 1, ~0u, 0);
	execv(words[0], words);
	_exit(127);
}

pid_t peer_agent_start(const char *folder, char *const *flags, struct error *error)
{
	char set[] = "--set", ends[] = "networks_end=true";
	char path[PEER_PATH], program[4096], where[PEER_PATH];
	char *words[FLAGS_MOST + 8] = {program, set, where, set, ends};
	size_t n = 5;
	pid_t pid;

	if (spawn_beside("gpu-agent", program, sizeof(program), error))
		return -ENOENT;
	snprintf(where, sizeof(where), "networks_folder=%s", folder);
	for (; *flags; flags++) {
		if (n == FLAGS_MOST)
			return error_set(error, 0, "too many flags for the agent");
		words[n++] = *flags;
	}
	snprintf(path, sizeof(path), "%s/agent.log", folder);
	cleanup_close int log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (log < 0)
		return error_set(error, errno, "%s", path);
	pid = fork();
	if (pid < 0)
		return error_set(error, errno, "fork");
	if (!pid)
		become(words, log);
	return pid;
}

void peer_agent_last_words(const char *folder, char *out, size_t n)
{
	cleanup_stream FILE *file = NULL;
	char path[PEER_PATH], line[1024];

	out[0] = 0;
	snprintf(path, sizeof(path), "%s/agent.log", folder);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\r\n")] = 0;
		if (!strncmp(line, "gpu-agent: ", 11))
			snprintf(out, n, "%s", line + 11);
	}
}
