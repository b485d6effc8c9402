/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that come by lists in Redis: taken by BLMOVE into a list of this agent's, done by
 * the store, answered and removed there in one script.  So a command is in some list until its
 * answer is out: an agent that dies leaves it to itself, or to the others when its key has
 * lapsed.
 *
 * One thread, the registry's.
 */
#ifndef VCUDA_GPU_AGENT_STORE_COMMANDS_H
#define VCUDA_GPU_AGENT_STORE_COMMANDS_H

#include "gpu-agent/store/registry/registry_core.h"

int commands_open(struct commands **commands, struct registry *registry, struct error *error);
void commands_close(struct commands *commands); /* NULL is fine */

/* The index is filled: takes commands from now on, and goes on with those that it has. */
void commands_ready(struct commands *commands);
/* The connection is gone. */
void commands_away(struct commands *commands);
/* When commands_tick is to be called at the latest, in ns; 0: whenever. */
uint64_t commands_until(const struct commands *commands);
void commands_tick(struct commands *commands, uint64_t now);

/* HOLDER may be one that a command made (before this store began): its end is told to the
 * store. Others are passed over. */
void commands_watch(struct commands *commands, const char *holder);

#endif
