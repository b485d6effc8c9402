/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of a GPU without a context: made, exported as a descriptor, and let go, so that it
 * lives as long as somebody has the descriptor or has it mapped.
 */
#ifndef VCUDA_GPU_AGENT_STORE_MEMORY_H
#define VCUDA_GPU_AGENT_STORE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "gpu-agent/agent.h"

struct memory;

/* Opens the configured driver.  NULL with *error; never closed. */
struct memory *store_memory_open(const struct agent_config *config, struct error *error);

/* Bytes that memory of that GPU is made in multiples of; 0: there is no such GPU. */
uint64_t store_memory_granularity(const struct memory *memory, const uint8_t gpu[16]);

/* The GPUs by ordinal: how many, which one that UUID is (0 where it is none), and the UUID of
 * one; false: there is none. */
uint32_t store_memory_devices(const struct memory *memory);
uint32_t store_memory_device(const struct memory *memory, const uint8_t gpu[16]);
bool store_memory_gpu(const struct memory *memory, uint32_t device, uint8_t gpu[16]);

/* A descriptor of BYTES (a multiple of the granularity) of that GPU, the caller's; or a negated
 * CUresult with *error. */
int store_memory_make(
	struct memory *memory, const uint8_t gpu[16], uint64_t bytes, struct error *error);

#endif
