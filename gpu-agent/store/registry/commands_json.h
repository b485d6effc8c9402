/* SPDX-License-Identifier: Apache-2.0
 *
 * The legacy commands as JSON, and their answers: bounds on size and depth, and one sentence
 * for each thing that cannot be.
 */
#ifndef VCUDA_GPU_AGENT_STORE_COMMANDS_JSON_H
#define VCUDA_GPU_AGENT_STORE_COMMANDS_JSON_H

#include "gpu-agent/store/registry/registry.h"

#define COMMAND_BYTES 65536u
#define COMMAND_DEPTH 8
#define COMMAND_ID 128
#define COMMAND_TTL_MOST (30u * 86400)

struct command_text {
	enum registry_op op;
	char op_name[8];
	struct registry_tensor tensor; /* registry.h, struct registry_command */
	char node[REGISTRY_NODE + 1];  /* "": any */
	char id[COMMAND_ID + 1];       /* "": none */
	char reply[REGISTRY_NAME + 1]; /* a list; "": none */
	int32_t pid;		       /* 0: none */
	uint32_t ttl_s;		       /* 0: none */
};

/* 0, or -EINVAL with *error saying what cannot be; what was understood (reply, id, name) is in
 * COMMAND then too, so that somebody can be told. */
int command_parse(
	struct command_text *command, const char *text, size_t n, struct error *error);

/* The answer, malloc'ed: {"id":…,"op":…,"status":…} with the tensor's fields, or an "error".
 * NULL: no memory. */
char *command_answer(const struct command_text *command, const struct registry_result *result);

#endif
