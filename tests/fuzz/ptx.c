/* SPDX-License-Identifier: Apache-2.0
 *
 * Any text as a PTX module: refused with a line, or loaded; never worse.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "softgpu/ptx/ptx.h"

#define BLOCK (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *block;

static uint64_t allocate(void *arg, size_t size, size_t align)
{
	(void)arg, (void)align;
	return size <= BLOCK ? (uint64_t)(uintptr_t)block : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ptx_error error;

	if (!block)
		block = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	if (block == MAP_FAILED)
		abort();
	ptx_module_free(ptx_module_load((const char *)data, size, allocate, NULL, &error));
	return 0;
}
