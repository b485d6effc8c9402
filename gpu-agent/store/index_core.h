/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files that join the store to its index share (index.c, replicas.c).
 */
#ifndef VCUDA_GPU_AGENT_STORE_INDEX_CORE_H
#define VCUDA_GPU_AGENT_STORE_INDEX_CORE_H

#include "gpu-agent/store/index.h"

/* What the index says of the record. */
void index_about(const struct tensor_record *record, struct registry_tensor *t,
	const struct store *store);
/* A GPU as people write it. */
void index_gpu_text(char out[48], const uint8_t gpu[16]);
/* The name of SPACE/NAME in the index; false: it can have none. */
bool index_full_name(
	char out[REGISTRY_NAME + 1], const char *space, const char *name, struct error *error);
/* Its name goes here, and the index knows already. */
void index_forget(struct store *store, uint32_t index);

#endif
