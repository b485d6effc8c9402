/* SPDX-License-Identifier: Apache-2.0
 *
 * The shared token and the random names of sessions.
 */
#ifndef VCUDA_GPU_AGENT_TOKEN_H
#define VCUDA_GPU_AGENT_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "gpu-agent/agent.h"

/* The file's first line, without its end. -errno with *error where it is empty or too long. */
int token_read(char token[AGENT_TOKEN_MAX + 1], const char *path, struct error *error);

/* Whether the peer's field is the token, in a time that depends on neither.  An empty token
 * asks for nothing. */
bool token_matches(
	const char token[AGENT_TOKEN_MAX + 1], const char offered[AGENT_TOKEN_MAX + 1]);

/* Whether two secrets are equal, in constant time. */
bool token_same(const void *a, const void *b, size_t n);

/* n <= 256 random bytes from the kernel. */
int token_random(void *out, size_t n, struct error *error);

#endif
