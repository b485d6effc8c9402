/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of NVIDIA's libraries workers use, by major version, and where they are looked for:
 * what `libraries:` of the configuration names for that library, then `libraries.path` and
 * where the loader looks, for CUPTI also where a toolkit has it; with the software GPU, beside
 * it.
 */
#ifndef VCUDA_GPU_AGENT_PROBE_LIBRARY_SEARCH_H
#define VCUDA_GPU_AGENT_PROBE_LIBRARY_SEARCH_H

#include "common/error.h"
#include "gpu-agent/agent.h"

/* Of one family: a table by major has a row for MAJOR - oldest. */
#define LIBRARY_MAJORS 2

/* How a library tells its version. */
enum version_form {
	VERSION_PROPERTY, /* int f(int which, int *value), for each of three */
	VERSION_NUMBER,	  /* size_t f(void): 120901, or in thousands: 8907 */
	VERSION_FILLS,	  /* int f(int *value): the same number */
};

struct library_family {
	const char *key;	 /* in `libraries:` */
	const char *stem;	 /* "libcublas" */
	const char *software;	 /* the file beside the software GPU */
	uint32_t oldest, newest; /* majors whose functions are served, LIBRARY_MAJORS at most */
	enum version_form version_form;
	const char *version_function;
};

/* FAMILY < AGENT_LIBRARIES. */
const struct library_family *library_family(enum agent_library family);

/* Whether MAJOR is one of FAMILY's. */
bool library_serves(enum agent_library family, uint32_t major);

/* FAMILY's library for a program that uses MAJOR: BYTES, zeroed and then filled in by
 * open(library, PATH, error), which says 0 or -errno and is asked for one path after the other,
 * of MAJOR and then of the next major.  That happens with the first call for a major; what was
 * opened stays for good, and so does NULL where there is none.  Either is logged once, the
 * missing one with what was looked for and where.  For the loop's thread. */
const void *library_once(const struct agent_config *config, enum agent_library family,
	uint32_t major, int (*open)(void *library, const char *path, struct error *error),
	size_t bytes);

/* Those that library_once() found, a bit each: LIBRARY_BIT(family, major). */
uint32_t library_used(void);
#define LIBRARY_BIT(family, row) (1u << ((family) * LIBRARY_MAJORS + (row)))
#define LIBRARY_BITS (1u << (AGENT_LIBRARIES * LIBRARY_MAJORS))

/* Opens exactly MAJOR, without a line in the log. 0, or -errno with *error. */
int library_try(const struct agent_config *config, enum agent_library family, uint32_t major,
	int (*open)(void *library, const char *path, struct error *error), void *library,
	struct error *error);

/* A process of its own, started once: opens each library, tells `fd` (SOCK_SEQPACKET) with one
 * CONTROL_LIBRARY each what is there, and ends. */
int probe_main(const struct agent_config *config, int fd);

#endif
