/* SPDX-License-Identifier: Apache-2.0
 *
 * Setters of values that are neither a number, a flag, a text nor a path: for the table in
 * settings.c, which says what each takes.  0, or -errno where VALUE is none of it.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_SETTINGS_VALUES_H
#define VCUDA_GPU_AGENT_SUPERVISOR_SETTINGS_VALUES_H

#include "gpu-agent/agent.h"

int settings_driver(struct agent_config *config, const char *value);
int settings_cache_shared(struct agent_config *config, const char *value);
int settings_gpus(struct agent_config *config, const char *value);
int settings_cpus(struct agent_config *config, const char *value);
int settings_log_level(struct agent_config *config, const char *value);
int settings_log_format(struct agent_config *config, const char *value);
int settings_peers(struct agent_config *config, const char *value);
int settings_token(struct agent_config *config, const char *value);
int settings_sandbox(struct agent_config *config, const char *value);
int settings_compress(struct agent_config *config, const char *value);
int settings_congestion(struct agent_config *config, const char *value);
int settings_account_tenant(struct agent_config *config, const char *value);
int settings_store_socket(struct agent_config *config, const char *value);
int settings_http_address(struct agent_config *config, const char *value);
int settings_registry(struct agent_config *config, const char *value);
/* "9997,9998,9999" of the flag --ports. */
int settings_ports(struct agent_config *config, const char *value);

#endif
