/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of NVIDIA's libraries workers use, by major version, and where they are looked for:
 * what `libraries:` of the configuration names for that library, then `libraries.path` and
 * where the loader looks; with the software GPU, beside it.
 */
#ifndef VCUDA_GPU_AGENT_LIBRARY_H
#define VCUDA_GPU_AGENT_LIBRARY_H

#include "common/error.h"
#include "gpu-agent/agent.h"

struct library_family {
	const char *key;	 /* in `libraries:` */
	const char *stem;	 /* "libcublas" */
	const char *software;	 /* the file beside the software GPU */
	uint32_t oldest, newest; /* majors whose functions are served */
};

/* FAMILY < AGENT_LIBRARIES. */
const struct library_family *library_family(enum agent_library family);

/* Opens FAMILY's library of MAJOR, or of the next major that is there: calls open(library,
 * PATH, error), which says 0 or -errno, for one path after the other.  The major that was
 * opened, and it is logged; or -errno with *error naming what was looked for and where, logged
 * too. */
int library_open(const struct agent_config *config, enum agent_library family, uint32_t major,
	int (*open)(void *library, const char *path, struct error *error), void *library,
	struct error *error);

/* The same for exactly MAJOR, without a line in the log. 0, or -errno with *error. */
int library_try(const struct agent_config *config, enum agent_library family, uint32_t major,
	int (*open)(void *library, const char *path, struct error *error), void *library,
	struct error *error);

/* A process of its own, started once: opens each library, tells `fd` (SOCK_SEQPACKET) with one
 * CONTROL_LIBRARY each what is there, and ends. */
int probe_main(const struct agent_config *config, int fd);

#endif
