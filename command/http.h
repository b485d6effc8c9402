/* SPDX-License-Identifier: Apache-2.0
 *
 * One GET from an agent's control port.
 */
#ifndef VCUDA_COMMAND_HTTP_H
#define VCUDA_COMMAND_HTTP_H

#include <stdint.h>

#include "common/error.h"

/* The body of http://HOST:PORT/PATH in *text (malloc). Each step has 5 s, the answer 1 MiB. 0,
 * or -errno with *error. */
int http_get(
	const char *host, uint16_t port, const char *path, char **text, struct error *error);

#endif
