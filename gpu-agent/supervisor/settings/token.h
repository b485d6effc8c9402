/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens and who they stand for.  The supervisor reads them and keeps their SHA-256; nothing
 * else of a token is handed on, so that no other process of the agent holds one but in the
 * HELLO that a client is just saying.
 *
 * The file has a line for each token: TOKEN [NAME [DEVICE-BYTES [SESSIONS]]], with spaces
 * between and `#` before a comment.  Tokens of the same name are the same tenant's.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_TOKEN_H
#define VCUDA_GPU_AGENT_SUPERVISOR_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "gpu-agent/agent.h"

#define TOKEN_TENANT "default" /* whose a token without a name is */

/* The file's tokens take the place of those that are there, and the path is kept. -errno with
 * *error naming file and line; then nothing has changed. */
int token_read(struct agent_tokens *tokens, const char *path, struct error *error);

/* The same for http.token_file: who may see every tenant. A line is a token, and behind it at
 * most the name of who has it. */
int token_read_http(struct agent_tokens *tokens, const char *path, struct error *error);

/* A network's token file: tokens alone, a line each. -errno with *error; then nothing has
 * changed. */
int token_read_network(struct agent_network *network, struct error *error);

/* One token alone, of the tenant "default" without a budget, in the place of those there are.
 * -EINVAL where it is empty or too long. */
int token_set(struct agent_tokens *tokens, const char *token);

/* A token of the kernel's random numbers, kept in a file of this user's from start to start:
 * $XDG_STATE_HOME/vcuda/token, without that variable /var/lib/vcuda/token as root, else
 * ~/.local/state/vcuda/token. tokens->file names it. */
int token_make(struct agent_tokens *tokens, struct error *error);

/* Which of the tokens the peer's field is, or -1, in a time that depends on neither.  What
 * stands behind its NUL is no part of it. */
int token_find(const struct agent_tokens *tokens, const char offered[AGENT_TOKEN_MAX + 1]);

/* Whether two secrets are equal, in constant time. */
bool token_same(const void *a, const void *b, size_t n);

/* n <= 256 random bytes from the kernel. */
int token_random(void *out, size_t n, struct error *error);

#endif
