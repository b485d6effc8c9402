/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that join the store to its index share (index*.c, replicas*.c).
 */
#ifndef VCUDA_GPU_AGENT_STORE_INDEX_CORE_H
#define VCUDA_GPU_AGENT_STORE_INDEX_CORE_H

#include "gpu-agent/store/index.h"

static inline const struct tensor_record *index_record(const struct store *s, uint32_t i)
{
	return &s->table->records[i];
}

static inline bool index_has_name(const struct tensor_record *r)
{
	return r->state == TENSOR_CREATED || r->state == TENSOR_SEALED;
}

/* By the name that the index has; UINT32_MAX: nobody has it here. */
uint32_t index_find(const struct store *store, const char *full);
/* What was a replica is the first of its name. HEIR: it goes with its last holder, as what was
 * the first before did. */
void index_first(struct store *store, const char *name, bool heir);
/* For the registry: a command. */
void index_command(void *owner, const struct registry_command *wanted);
/* What the index says of the record. */
void index_about(const struct tensor_record *record, struct registry_tensor *t,
	const struct store *store);
/* A GPU as people write it. */
void index_gpu_text(char out[48], const uint8_t gpu[16]);
/* The name of SPACE/NAME in the index; false: it can have none. */
bool index_full_name(
	char out[REGISTRY_NAME + 1], const char *space, const char *name, struct error *error);
/* Its bytes are lost: its name goes here, and elsewhere if nobody has a replica. */
void index_lost(struct store *store, uint32_t index, const char *why);
/* It is on another GPU of this agent now: the index hears it. */
void index_moved(struct store *store, uint32_t index);
/* Its name goes here, and the index knows already. */
void index_forget(struct store *store, uint32_t index);
/* A question is answered with a refusal, which is counted. */
void index_refuse(struct store *store, const struct tensor_message *refusal);

#endif
