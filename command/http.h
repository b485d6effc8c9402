/* SPDX-License-Identifier: Apache-2.0
 *
 * One GET from an agent's control port.
 */
#ifndef VCUDA_COMMAND_HTTP_H
#define VCUDA_COMMAND_HTTP_H

#include <stdint.h>

#include "common/error.h"

#define HTTP_TOKEN 256 /* bytes of one, with its NUL */

/* The first word of the file PATH, or where that is NULL of the file that $VCUDA_TOKEN_FILE
 * names; without either TOKEN is "". 0, or -errno with *error. */
int http_token(char token[HTTP_TOKEN], const char *path, struct error *error);

/* The body of http://HOST:PORT/PATH in *text (malloc), asked for with TOKEN ("": none). Each
 * step has 5 s, the answer 16 MiB. 0, or -errno with *error; -EACCES and the agent's sentence
 * where it wants another token. */
int http_get(const char *host, uint16_t port, const char *path, const char *token, char **text,
	struct error *error);

#endif
