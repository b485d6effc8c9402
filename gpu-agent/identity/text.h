/* SPDX-License-Identifier: Apache-2.0
 *
 * The two encodings of a token, read strictly: what another reader could take differently is
 * refused.
 */
#ifndef VCUDA_GPU_AGENT_IDENTITY_TEXT_H
#define VCUDA_GPU_AGENT_IDENTITY_TEXT_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <sys/types.h>

/* base64url without padding, N characters, into at most MOST bytes: how many, or -EINVAL where
 * a character or the bits behind the last byte are not as an encoder writes them. */
ssize_t text_decode(const char *text, size_t n, void *out, size_t most);

/* N bytes as one JSON object: UTF-8, nested 8 deep and 512 items long at most, no NUL in a
 * string, no name twice, nothing behind it. NULL otherwise; freed with cJSON_Delete. */
cJSON *text_json(const char *text, size_t n);

/* A string of OBJECT; NULL: there is none, or it is something else. */
const char *text_string(const cJSON *object, const char *name);

#endif
