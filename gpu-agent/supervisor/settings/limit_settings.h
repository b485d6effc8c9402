/* SPDX-License-Identifier: Apache-2.0
 *
 * The keys `tenants.NAME.…` of the configuration.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_LIMIT_SETTINGS_H
#define VCUDA_GPU_AGENT_SUPERVISOR_LIMIT_SETTINGS_H

#include <stdbool.h>

#include "common/error.h"
#include "gpu-agent/agent.h"

bool limit_settings_has(const char *key);
/* -EINVAL with *error naming the key and what it takes. */
int limit_settings_set(
	struct agent_config *config, const char *key, const char *value, struct error *error);

/* The same of a file, where a key stands once: SEEN has which did, none at first. */
#define LIMIT_KEYS (4 + QUOTAS)
#define LIMITS_SEEN (AGENT_LIMITS * LIMIT_KEYS)
int limit_settings_read(struct agent_config *config, bool seen[LIMITS_SEEN], const char *key,
	const char *value, struct error *error);

#endif
