/* SPDX-License-Identifier: Apache-2.0
 *
 * Any text as a PTX module: refused with a line, or loaded; never worse.  What loads is run: a
 * few threads of each of its first kernels, with numbers and addresses as parameters, for some
 * milliseconds.  Whatever it does ends with a status.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "softgpu/ptx/ptx.h"

#define WINDOW (64u << 20) /* of which the first part has memory */
#define BLOCK (16u << 20)  /* room for a heap of malloc */
#define KERNELS 3
#define PARAMS 4096
#define TIMEOUT_NS 5000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ptx_window window = {.span = WINDOW};

static uint64_t allocate(void *arg, size_t size, size_t align)
{
	(void)arg, (void)align;
	return size <= BLOCK ? window.base : 0;
}

static void discard(void *arg, const char *text, size_t n)
{
	(void)arg, (void)text, (void)n;
}

/* After the fuzzer's own handlers of signals, so not in an initialiser. */
static void start(void)
{
	void *at = mmap(
		NULL, WINDOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED || mprotect(at, BLOCK, PROT_READ | PROT_WRITE))
		abort();
	window.base = (uint64_t)(uintptr_t)at;
	if (ptx_init(&window, 1))
		abort();
	ptx_set_print(discard, NULL);
}

static void run(struct ptx_kernel *kernel)
{
	uint64_t params[PARAMS / sizeof(uint64_t)];
	struct ptx_launch launch = {.kernel = kernel,
		.grid = {2, 1, 1},
		.block = {48, 1, 1},
		.cluster = {1, 1, 1},
		.dynamic_shared = 1024,
		.params = params,
		.timeout_ns = TIMEOUT_NS};
	struct ptx_kernel_info info;
	struct ptx_error error;

	ptx_kernel_info(kernel, &info);
	if (info.param_bytes > PARAMS)
		return;
	for (size_t k = 0; k < PARAMS / sizeof(uint64_t); k++)
		params[k] = k % 3 == 2 ? k : window.base + BLOCK / 2 + 64 * k;
	if (info.required[0])
		memcpy(launch.block, info.required, sizeof(launch.block));
	if (info.cluster[0])
		memcpy(launch.cluster, info.cluster, sizeof(launch.cluster));
	ptx_launch(&launch, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ptx_module *module;
	struct ptx_error error;

	if (!window.base)
		start();
	module = ptx_module_load(
		(const char *)data, size, allocate, NULL, PTX_HEAP_BYTES, &error);
	for (size_t k = 0; module && k < ptx_module_kernel_count(module) && k < KERNELS; k++)
		run(ptx_module_kernel_at(module, k));
	ptx_module_free(module);
	return 0;
}
