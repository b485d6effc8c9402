/* SPDX-License-Identifier: Apache-2.0
 *
 * `networks:` of the configuration, and what networks must not have in common with each other
 * or with tenants: one that a token or a name lets into two would see what is another's.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_NETWORK_SETTINGS_H
#define VCUDA_GPU_AGENT_SUPERVISOR_NETWORK_SETTINGS_H

#include <stdbool.h>

#include "common/config.h"
#include "common/error.h"
#include "gpu-agent/agent.h"

/* Whether the key is one of `networks:`. */
bool network_settings_has(const char *key);

/* A scalar of it. -EINVAL with *error. */
int network_settings_item(
	struct agent_config *config, const struct config_item *item, struct error *error);

/* After the file PATH is read: what is missing, relative paths, tokens. */
int network_settings_complete(
	struct agent_config *config, const char *path, struct error *error);

/* Whether NETWORK can be beside the first COUNT networks and all tenants of the configuration.
 */
int network_settings_fits(const struct agent_config *config, uint32_t count,
	const struct agent_network *network, struct error *error);
/* The same of each with those before it. */
int network_settings_check(const struct agent_config *config, struct error *error);

/* For the front, which dials no directory and reads no file of theirs. */
void network_settings_hide(struct agent_config *config);

/* Takes those of networks_folder, and those that are being left, away: what remains is what the
 * file says. */
void network_settings_strip(struct agent_config *config);

#endif
