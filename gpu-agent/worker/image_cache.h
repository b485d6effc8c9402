/* SPDX-License-Identifier: Apache-2.0
 *
 * Module images by their SHA-256, on disk.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_IMAGE_CACHE_H
#define VCUDA_GPU_AGENT_WORKER_IMAGE_CACHE_H

#include <stdint.h>

/* The image's bytes (malloc, NUL behind them), or NULL where it is not there or not whole. */
unsigned char *cache_read(const char *folder, const uint8_t digest[32], uint64_t size);
/* Best effort: a full or read-only disk only means that it is not kept. */
void cache_write(const char *folder, const uint8_t digest[32], const void *bytes, uint64_t size,
	uint64_t limit);

#endif
