/* SPDX-License-Identifier: Apache-2.0
 *
 * A tensor as fields of a hash, and back: what comes from Redis may have been written by
 * anyone.
 */
#ifndef VCUDA_GPU_AGENT_STORE_REGISTRY_RECORD_H
#define VCUDA_GPU_AGENT_STORE_REGISTRY_RECORD_H

#include "gpu-agent/store/registry/registry_link.h"

/* What record_fields() needs beside the tensor, for as long as the arguments are used. */
struct record_texts {
	char shape[REGISTRY_DIMENSIONS * 21 + 3]; /* "[2,3]" */
	char handle[92];			  /* base64 */
};

/* Adds TENSOR's fields and their values, as those of NODE and EPOCH. */
void record_fields(struct link_arguments *arguments, const struct registry_tensor *tensor,
	const char *node, uint64_t epoch, struct record_texts *texts);

/* The shape as JSON has it. */
void record_shape(char *out, size_t n, const struct registry_tensor *tensor);
void record_base64(char out[92], const uint8_t handle[REGISTRY_HANDLE]);
const char *record_state(enum registry_state state);

/* The fields of a hash, NAME VALUE …, as a tensor: 0, or -EINVAL with *error naming the field
 * that is missing or cannot be. Other fields are passed over. */
int record_read(const redisReply *fields, struct registry_tensor *tensor, struct error *error);

#endif
