/* SPDX-License-Identifier: Apache-2.0
 *
 * Replicas: sealed tensors of other agents, or of other GPUs of this one, copied once for all
 * who ask.  The latter go with what they are a copy of, and no index knows them.  The index
 * gives a ticket, the front has a worker fetch the bytes from the agent that has them, and what
 * is there whole gets a name here and stands in the index.  Until then it is memory of its
 * namespace without a name (TENSOR_COPYING), which ends with the store, the front or the copy.
 */
#ifndef VCUDA_GPU_AGENT_STORE_REPLICAS_H
#define VCUDA_GPU_AGENT_STORE_REPLICAS_H

#include "gpu-agent/store/store.h"

/* ASKED, as the front said it, wants what another agent has, T of the index: answered here,
 * now or when the copy is there or has failed. */
void replicas_get(struct store *store, const struct tensor_message *asked,
	const struct registry_tensor *t);
/* ASKED wants on its GPU what another GPU of this agent has, sealed: it is copied there. False:
 * it is not that. */
bool replicas_local(struct store *store, const struct tensor_message *asked);
/* The front: a copy has ended; or somebody brought a ticket, which is answered. */
void replicas_copied(struct store *store, const struct tensor_message *message);
void replicas_redeem(struct store *store, const struct tensor_message *message);
/* The session waits for nothing more. */
void replicas_session_over(struct store *store, uint64_t session);
/* What lay in the memory of the message's GPU is lost, and why: another agent's replica is the
 * first from now on, or the index says that it is lost. */
void replicas_fell(struct store *store, const struct tensor_message *message);
/* Who copied, and who asked, are not there any more. */
void replicas_front_gone(struct store *store);
/* Whether a session of SPACE may have what the index says. */
bool replicas_may_have(const char *space, const struct registry_tensor *t);

#endif
