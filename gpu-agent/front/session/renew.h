/* SPDX-License-Identifier: Apache-2.0
 *
 * What proves who a session's client is ends while it runs: the client brings the next one, or
 * the session is ended; and so it is where the token file has its tenant no more.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_RENEW_H
#define VCUDA_GPU_AGENT_FRONT_RENEW_H

#include "gpu-agent/front/session/hello.h"

/* SESSION_RENEW: the session goes on for as long as FROM is proven. 0, or a CUresult to refuse
 * with, *refusal and text filled in. */
uint32_t renew_session(struct front *front, const struct hello_from *from,
	enum refusal *refusal, char text[192]);

/* The tokens are others: sessions of a tenant that has none any more are ended. */
void renew_revoked(struct front *front);

uint64_t renew_tick(struct front *front, uint64_t now); /* the next time to look */

#endif
