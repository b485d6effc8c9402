/* SPDX-License-Identifier: Apache-2.0
 *
 * The public keys that an issuer signs with: a JWKS (RFC 7517) in a file. It is looked at again
 * with the next token, at most once a second, so that new keys need no restart; one that does
 * not fit is said in the log, and the keys of before stay.
 */
#ifndef VCUDA_GPU_AGENT_IDENTITY_KEY_SET_H
#define VCUDA_GPU_AGENT_IDENTITY_KEY_SET_H

#include <openssl/types.h>
#include <stddef.h>

#include "common/error.h"

enum key_algorithm { KEY_RS256, KEY_ES256, KEY_ALGORITHMS };

struct key_set;

/* The file's keys: RSA of 2048 to 8192 bits and P-256, for signatures, with a name (kid);
 * others are left out. 0, or -errno with *error naming the file: not readable, no JWKS, no such
 * key. */
int key_set_open(struct key_set **set, const char *path, struct error *error);
/* The same of N bytes in memory, which are not looked at again. */
int key_set_parse(struct key_set **set, const char *text, size_t n, struct error *error);
void key_set_close(struct key_set *set); /* NULL is fine */

/* The key of that name for that algorithm, which stays the set's until the next call; NULL. */
EVP_PKEY *key_set_find(struct key_set *set, const char *name, enum key_algorithm algorithm);

#endif
