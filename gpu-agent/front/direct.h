/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections between sessions of two agents (protocol/wire/direct.h): tickets for those that
 * come, and the dialing of those that go.  Where one is to go is a client's word: only what
 * `peers:` names is dialed.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_DIRECT_H
#define VCUDA_GPU_AGENT_FRONT_DIRECT_H

#include <stdint.h>

#include "common/error.h"
#include "gpu-agent/front/session/hello.h"
#include "gpu-agent/handoff.h"

struct front;
struct pool_worker;
struct session;

#define DIRECT_PEERS_MOST 64 /* connections of a session that are believed */

int direct_open(struct front *front, struct error *error);
void direct_close(struct front *front);
/* TICKET and DIAL of a worker that has a session. */
void direct_request(struct front *front, struct pool_worker *worker, const struct handoff *h);
/* Dials for NUMBER, a session's or a copy's (tensor/tensor_copy.h), and says
 * HELLO. 0; -EAGAIN: too many are being dialed. */
int direct_dial(struct front *front, uint64_t number, const char *address,
	const struct session_hello *hello, uint64_t patience_ns);
/* A connection in the role PEER, which brings a ticket and no token. Takes FD where it returns
 * 0; else a CUresult to refuse with, *refusal and text filled in. */
uint32_t direct_join(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192]);
/* The session ends: its tickets are nobody's. */
void direct_session_gone(struct front *front, const struct session *session);

#endif
