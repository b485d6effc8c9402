/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks which libraries are there, in a process of its own: the front never loads one, and a
 * worker opens what its program asks for, no more. Then the process goes on as the meter.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "gpu-agent/control.h"
#include "gpu-agent/probe/library_search.h"
#include "gpu-agent/probe/meter.h"

/* A file that cannot be read must not hold a process for ever. */
#define PROBE_SECONDS 120

/* One for each major of each. */
enum {
	LIBRARIES_TOLD = 0
#define LIBRARY_ROW(id, family, key, stem, software, oldest, newest, ...)                      \
	+((newest) - (oldest) + 1)
#include "gpu-agent/generated/libraries.inc"
#undef LIBRARY_ROW
};
_Static_assert((int)LIBRARIES_TOLD <= CONTROL_LIBRARIES, "the supervisor keeps them all");

struct probed {
	void *handle;
	char path[AGENT_PATH + 64];
};

static int probe_open(void *library, const char *path, struct error *error)
{
	struct probed *probed = library;
	struct link_map *map = NULL;

	probed->handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (!probed->handle)
		return error_set(error, 0, "%s", dlerror());
	/* A plain name was looked for by the loader. */
	if (!strchr(path, '/') && !dlinfo(probed->handle, RTLD_DI_LINKMAP, &map))
		path = map->l_name;
	snprintf(probed->path, sizeof(probed->path), "%s", path);
	return 0;
}

/* "12.9.1" of three properties, or of one number. */
static void version_print(enum version_form form, void *function, char *text, size_t n)
{
	int (*property)(int which, int *value);
	size_t (*version)(void);
	int (*fills)(int *value);
	int part[3] = {0};
	size_t number;

	if (form == VERSION_PROPERTY) {
		memcpy(&property, &function, sizeof(property));
		for (int i = 0; i < 3; i++)
			if (property(i, &part[i]))
				return;
		snprintf(text, n, "%d.%d.%d", part[0], part[1], part[2]);
		return;
	}
	if (form == VERSION_FILLS) {
		memcpy(&fills, &function, sizeof(fills));
		if (fills(&part[0]) || part[0] < 0)
			return;
		number = (size_t)part[0];
	} else {
		memcpy(&version, &function, sizeof(version));
		number = version();
	}
	/* cuDNN 8 counts in thousands, CUPTI 12 its interfaces. */
	if (number < 1000)
		snprintf(text, n, "%zu", number);
	else if (number < 10000)
		snprintf(
			text, n, "%zu.%zu.%zu", number / 1000, number / 100 % 10, number % 100);
	else
		snprintf(text, n, "%zu.%zu.%zu", number / 10000, number / 100 % 100,
			number % 100);
}

/* "" where the library does not say. */
static void version_of(const struct library_family *family, void *handle, char *text, size_t n)
{
	void *function = dlsym(handle, family->version_function);

	text[0] = 0;
	if (function)
		version_print(family->version_form, function, text, n);
}

static bool probe(
	const struct agent_config *config, int fd, enum agent_library family, uint32_t major)
{
	const struct library_family *f = library_family(family);
	struct control c = {.what = CONTROL_LIBRARY, .number = family, .pid = (int32_t)major};
	struct error error = {0};
	struct probed probed = {0};
	char version[32];

	if (library_try(config, family, major, probe_open, &probed, &error)) {
		c.status = -1;
		snprintf(c.text, sizeof(c.text), "%s", error.text);
	} else {
		version_of(f, probed.handle, version, sizeof(version));
		snprintf(c.text, sizeof(c.text), "%s%s%.200s", version, version[0] ? ", " : "",
			probed.path);
		log_info("library.found", "name=%s.so.%u version=\"%s\" path=\"%s\"", f->stem,
			major, version, probed.path);
	}
	send(fd, &c, sizeof(c), MSG_NOSIGNAL);
	return !c.status;
}

int probe_main(const struct agent_config *config, int fd)
{
	alarm(PROBE_SECONDS);
	for (unsigned family = 0; family < AGENT_LIBRARIES; family++) {
		const struct library_family *f = library_family((enum agent_library)family);
		bool any = false;

		for (uint32_t major = f->oldest; major <= f->newest; major++)
			any |= probe(config, fd, (enum agent_library)family, major);
		if (!any)
			log_warn("library.missing",
				"name=%s text=\"programs that use it are told so; "
				"libraries.%s or libraries.path says where it is\"",
				f->stem, f->key);
	}
	meter_run(config, fd);
	return 0;
}
