/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of gpu-agent, today's and the one of the project's first documents.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_OPTIONS_H
#define VCUDA_GPU_AGENT_SUPERVISOR_OPTIONS_H

#include "gpu-agent/agent.h"

enum options_do {
	OPTIONS_RUN,   /* start the agent */
	OPTIONS_CHECK, /* --check-config: say that the configuration is good */
	OPTIONS_ASK,   /* --healthy: ask the agent of this configuration */
	OPTIONS_DONE,  /* --help, --version: printed, exit 0 */
	OPTIONS_USAGE, /* *error says what; exit 2 */
	OPTIONS_BAD,   /* the configuration file is bad; *error; exit 1 */
};

/* Fills in *config from defaults, the file that --config names, and the flags, which win
 * wherever they stand. */
enum options_do agent_options_parse(
	int argc, char **argv, struct agent_config *config, struct error *error);

#endif
