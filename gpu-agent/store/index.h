/* SPDX-License-Identifier: Apache-2.0
 *
 * The store joined to its index in Redis (registry.h), where one is configured: a name is a
 * session's when Redis has agreed, and what the table loses the index loses.  The table is the
 * truth; each function does nothing where no index is configured.
 *
 * Holders in the table are numbers, in the index texts: a session is "s:" and its number, and
 * what a command made ("pid:…", "ttl:…") is packed into a number with its highest bit set, so
 * that the table says it to the next store.
 */
#ifndef VCUDA_GPU_AGENT_STORE_INDEX_H
#define VCUDA_GPU_AGENT_STORE_INDEX_H

#include "gpu-agent/store/store.h"

/* The table is right. 0 or -errno with *error: the configuration cannot be. */
int index_open(struct store *store, struct error *error);

/* What the store has answered, MESSAGE and the descriptor FD (the store's), to ASKED is said:
 * now, or when the index has agreed. HOLDS: how many there were before. */
void index_say(struct store *store, const struct tensor_message *asked,
	const struct tensor_message *message, int fd, uint32_t holds);
/* Whether the index could have the name that MESSAGE asks to make; it is refused otherwise. */
bool index_allows(const struct store *store, struct tensor_message *message);

/* Of the table: SESSION holds it no longer; it has its name no longer, since nobody holds it or
 * memory is short; nobody is to have that name any more. */
void index_dropped(struct store *store, uint32_t index, uint64_t session);
void index_unnamed(struct store *store, uint32_t index);
void index_deleted(struct store *store, uint32_t index);

/* A holder that a command made: no session of the front's. */
static inline bool index_made_holder(uint64_t session)
{
	return session >> 63;
}

#endif
