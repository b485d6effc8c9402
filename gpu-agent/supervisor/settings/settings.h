/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration: defaults, the YAML file, single settings (flags use them too), and the
 * memfd that carries it to an exec'ed process.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_SETTINGS_H
#define VCUDA_GPU_AGENT_SUPERVISOR_SETTINGS_H

#include "common/error.h"
#include "gpu-agent/agent.h"

void settings_defaults(struct agent_config *config);

/* Reads PATH over what is in *config. 0, or -errno with "PATH:LINE: …" in *error. */
int agent_settings_read(struct agent_config *config, const char *path, struct error *error);

/* One setting, named as in the file with dots ("ports.send"). -EINVAL with *error naming the
 * key and what it takes. */
int settings_set(
	struct agent_config *config, const char *key, const char *value, struct error *error);

/* After all settings: fills in what depends on others (driver_path, cache_dir) and checks what
 * must fit together.  binary: the path of the running executable. */
int settings_complete(struct agent_config *config, const char *binary, struct error *error);

/* A CLOEXEC memfd that holds *config, rewound; or -errno. */
int settings_to_fd(const struct agent_config *config, struct error *error);
int settings_from_fd(struct agent_config *config, int fd, struct error *error);

#endif
