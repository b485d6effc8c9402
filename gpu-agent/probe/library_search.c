/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/probe/library_search.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"

/* From the stanzas of protocol/api. */
static const struct library_family families[AGENT_LIBRARIES] = {
#define LIBRARY_ROW(id, family, ...) [LIBRARY_##id] = {__VA_ARGS__},
#include "gpu-agent/generated/libraries.inc"
#undef LIBRARY_ROW
};

const struct library_family *library_family(enum agent_library family)
{
	return &families[family];
}

/* One entry of the configuration: a folder, or a file that has this major in its name. */
static bool entry_path(const char *entry, const char *name, char *path, size_t n)
{
	const char *slash = strrchr(entry, '/');
	size_t length = strlen(name);
	struct stat st;

	if (stat(entry, &st))
		return false;
	if (S_ISDIR(st.st_mode))
		snprintf(path, n, "%s/%s", entry, name);
	else if (slash && !strncmp(slash + 1, name, length) &&
		 (!slash[1 + length] || slash[1 + length] == '.'))
		snprintf(path, n, "%s", entry);
	else
		return false;
	return !access(path, R_OK);
}

/* A toolkit keeps its CUPTI in a folder of its own, where no loader looks. */
static int toolkit_try(enum agent_library family, const char *name,
	int (*open)(void *library, const char *path, struct error *error), void *library)
{
	static const char *const folders[] = {
		"/usr/local/cuda/extras/CUPTI/lib64",
		"/usr/local/cuda/lib64",
	};
	struct error error = {0}; /* the loader's says more */
	char path[128];

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], name);
		if (family == LIBRARY_CUPTI && !open(library, path, &error))
			return 0;
	}
	return -ENOENT;
}

int library_try(const struct agent_config *config, enum agent_library family, uint32_t major,
	int (*open)(void *library, const char *path, struct error *error), void *library,
	struct error *error)
{
	const struct library_family *f = &families[family];
	const char *slash = strrchr(config->driver_path, '/');
	char entries[AGENT_PATH], path[AGENT_PATH + 64], name[64];
	char *rest = entries, *entry;

	snprintf(name, sizeof(name), "%s.so.%u", f->stem, major);
	if (config->driver == DRIVER_SOFTWARE && slash) {
		snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - config->driver_path),
			config->driver_path, f->software);
		return open(library, path, error) ? -ENOENT : 0;
	}
	memcpy(entries, config->libraries[family], sizeof(entries));
	while ((entry = strsep(&rest, ":"))) {
		if (*entry && entry_path(entry, name, path, sizeof(path)) &&
			!open(library, path, error))
			return 0;
	}
	return open(library, name, error) ? toolkit_try(family, name, open, library) : 0;
}

bool library_serves(enum agent_library family, uint32_t major)
{
	return major >= families[family].oldest && major <= families[family].newest;
}

/* Of MAJOR or the next that is there. 0 or -errno. */
static int library_open(const struct agent_config *config, enum agent_library family,
	uint32_t major, int (*open)(void *library, const char *path, struct error *error),
	void *library)
{
	const struct library_family *f = &families[family];
	struct error error = {0};

	for (uint32_t m = major; m <= f->newest; m++) {
		if (library_try(config, family, m, open, library, &error))
			continue;
		log_info("library.open", "name=%s.so.%u asked=%u", f->stem, m, major);
		return 0;
	}
	log_error("library.missing",
		"name=%s.so.%u%s libraries.%s=\"%s\" libraries.path=\"%s\" error=\"%s\"",
		f->stem, major, major < f->newest ? " or newer" : "", f->key,
		config->libraries[family], config->library_path, error.text);
	return -ENOENT;
}

static uint32_t used;

uint32_t library_used(void)
{
	return used;
}

const void *library_once(const struct agent_config *config, enum agent_library family,
	uint32_t major, int (*open)(void *library, const char *path, struct error *error),
	size_t bytes)
{
	static struct {
		void *library;
		bool tried;
	} opened[AGENT_LIBRARIES][LIBRARY_MAJORS], *once;

	if (!library_serves(family, major))
		return NULL;
	once = &opened[family][major - families[family].oldest];
	if (!once->tried) {
		void *library = calloc(1, bytes);

		once->tried = true;
		if (library && !library_open(config, family, major, open, library)) {
			once->library = library;
			used |= LIBRARY_BIT(family, major - families[family].oldest);
		} else {
			free(library);
		}
	}
	return once->library;
}
