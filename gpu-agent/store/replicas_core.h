/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the store's replicas share: those under way. The store's list owns them,
 * and each owns who waits for it.
 */
#ifndef VCUDA_GPU_AGENT_STORE_REPLICAS_CORE_H
#define VCUDA_GPU_AGENT_STORE_REPLICAS_CORE_H

#include "gpu-agent/store/replicas.h"

struct replica_wait {
	struct replica_wait *next;
	struct tensor_message message; /* as it was asked */
};

struct replica {
	struct replica *next;
	uint64_t number;
	uint8_t id[16]; /* of the record that it fills */
	uint8_t ticket[16];
	uint8_t source[16]; /* of the record on another GPU that it is a copy of; 0: it is not
			     */
	bool local;
	char name[TENSOR_SPACE + TENSOR_NAME], node[REGISTRY_NODE + 1];
	struct replica_wait *waits;
};

/* Of those under way the one of that number; NULL: it has ended. */
struct replica *replicas_numbered(const struct store *s, uint64_t number);
/* The copy of NAME that is on its way to that GPU, or NULL. */
struct replica *replicas_under_way(
	const struct store *s, const char *name, const uint8_t gpu[16]);
/* The record that it fills; NULL: that is gone. */
struct tensor_record *replicas_record(const struct store *s, const struct replica *r);
/* ASKED waits for it, and hears so; false: without memory. */
bool replicas_wait(struct store *s, struct replica *r, const struct tensor_message *asked);
/* It ends without a tensor: who waited is refused. Frees R. */
void replicas_fail(struct store *s, struct replica *r, uint32_t status, const char *text);
/* It has a name here, and who waited asks anew. Frees R; INDEX is its record's. */
void replicas_finish(struct store *s, struct replica *r, uint32_t index);

/* replicas_local.c: the copy from another GPU is there. It ends well if what it is a copy of
 * still has its name. Frees R. */
void replicas_finish_local(struct store *s, struct replica *r);

#endif
