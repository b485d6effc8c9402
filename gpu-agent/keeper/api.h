/* SPDX-License-Identifier: Apache-2.0
 *
 * The Kubernetes API as a pod sees it: HTTPS with the ServiceAccount's token, the server known
 * by the CA that lies beside it.
 */
#ifndef VCUDA_GPU_AGENT_KEEPER_API_H
#define VCUDA_GPU_AGENT_KEEPER_API_H

#include <cjson/cJSON.h>
#include <openssl/types.h>
#include <stdint.h>

#include "common/error.h"

struct api {
	SSL_CTX *context;
	char host[256];
	uint16_t port;
	char *token;
};

/* ACCOUNT is the folder with `token` and `ca.crt`; where the server is, the environment says
 * (KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT). 0, or -errno with *error. */
int api_open(struct api *api, const char *account, struct error *error);
void api_close(struct api *api);

/* The text behind GET PATH (malloc), which has ended with 200. Takes 30 s at most, the answer
 * 4 MiB. 0, or -errno with *error: -ENOENT where there is no such thing, -EACCES where the
 * account may not. */
int api_get(struct api *api, const char *path, char **text, struct error *error);

/* Puts DATA in the place of the same keys of the object's `data`, unless somebody has changed
 * it since it had VERSION (NULL: whatever it has): -EAGAIN then. Takes as long as api_get. */
int api_patch_data(struct api *api, const char *path, const char *version, const cJSON *data,
	struct error *error);

#endif
