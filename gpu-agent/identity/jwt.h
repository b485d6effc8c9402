/* SPDX-License-Identifier: Apache-2.0
 *
 * The token that the kubelet projects into a pod for its ServiceAccount: a JWT (RFC 7519)
 * signed by the cluster. Nothing in it is believed, and of its claims nothing is parsed, before
 * the signature is right; the algorithm is the key's, never the token's choice.
 */
#ifndef VCUDA_GPU_AGENT_IDENTITY_JWT_H
#define VCUDA_GPU_AGENT_IDENTITY_JWT_H

#include <stddef.h>
#include <stdint.h>

#include "gpu-agent/identity/key_set.h"

#define JWT_SKEW_S 10 /* by which the issuer's clock may differ from ours */

struct jwt_expected {
	const char *issuer, *audience;
};

/* Who it is, as Kubernetes names things. */
struct jwt_subject {
	char namespace[64], account[254];
	char pod[254], pod_uid[37];
	int64_t expires; /* Unix time */
};

/* N characters, at NOW (Unix time). 0 and *subject, or -EACCES and *why: for our log, never for
 * who sent it. */
int jwt_verify(struct key_set *keys, const struct jwt_expected *expected, const char *token,
	size_t n, int64_t now, struct jwt_subject *subject, const char **why);

#endif
