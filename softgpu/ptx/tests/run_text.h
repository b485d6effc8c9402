/* SPDX-License-Identifier: Apache-2.0
 *
 * For the interpreter's tests: a window, and launches of PTX given as text.
 */
#ifndef VCUDA_SOFTGPU_PTX_TESTS_RUN_TEXT_H
#define VCUDA_SOFTGPU_PTX_TESTS_RUN_TEXT_H

#include <stdint.h>

#include "softgpu/ptx/ptx.h"

/* Once; THREADS as ptx_init. */
void text_init(unsigned threads);

/* Device memory, zeroed, for the rest of the process. */
void *text_memory(size_t size);
/* The first byte behind what text_memory has given: no memory is mapped there. */
uint64_t text_hole(void);

/* Loads TEXT behind a .version 8.7 line for TARGET ("sm_90"); fails the test if it cannot.
 * Lines of errors count from the .version line as 1, so TEXT starts in line 3. */
struct ptx_module *text_load(const char *target, const char *text);

/* Launches the only kernel, or the one of that name, in the clusters that it asks for. */
enum ptx_status text_launch(struct ptx_module *module, const char *kernel, uint32_t blocks,
	uint32_t threads, uint32_t dynamic_shared, const void *params, struct ptx_error *error);

/* Load, launch with one pointer as parameter, free; the launch must work. */
void text_run(const char *text, uint32_t blocks, uint32_t threads, void *memory);

/* Writes a number below 7 as "f16", "bf16" or else f32. */
void text_number(void *at, const char *type, unsigned value);

#endif
