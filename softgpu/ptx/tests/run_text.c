/* SPDX-License-Identifier: Apache-2.0
 *
 * For the interpreter's tests: a window, and launches of PTX given as text.
 */
#include "softgpu/ptx/tests/run_text.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define WINDOW (UINT64_C(1) << 32)
#define MAPPED (512u << 20) /* the rest of the window has no memory */

static struct ptx_window window = {.span = WINDOW};
static uint64_t used;
static struct sigaction on_segv, on_bus;

void text_init(unsigned threads)
{
	void *p = mmap(
		NULL, WINDOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED || mprotect(p, MAPPED, PROT_READ | PROT_WRITE)) {
		perror("mmap");
		exit(1);
	}
	window.base = (uint64_t)(uintptr_t)p;
	if (ptx_init(&window, threads)) {
		fprintf(stderr, "ptx_init failed\n");
		exit(1);
	}
	sigaction(SIGSEGV, NULL, &on_segv);
	sigaction(SIGBUS, NULL, &on_bus);
}

void *text_memory(size_t size)
{
	uint64_t at = (used + 255) & ~UINT64_C(255);

	assert_true(at + size <= MAPPED);
	used = at + size;
	return (void *)(uintptr_t)(window.base + at);
}

uint64_t text_hole(void)
{
	return window.base + MAPPED;
}

static uint64_t allocate(void *arg, size_t size, size_t align)
{
	(void)arg, (void)align;
	return (uint64_t)(uintptr_t)text_memory(size);
}

struct ptx_module *text_load(const char *target, const char *text)
{
	size_t room = strlen(text) + 128;
	char *whole = malloc(room);
	struct ptx_error error;
	struct ptx_module *module;
	int n;

	assert_non_null(whole);
	n = snprintf(
		whole, room, ".version 8.7\n.target %s .address_size 64\n%s", target, text);
	module = ptx_module_load(whole, (size_t)n, allocate, NULL, PTX_HEAP_BYTES, &error);
	free(whole);
	if (!module)
		fail_msg("line %d: %s", error.line, error.text);
	return module;
}

enum ptx_status text_launch(struct ptx_module *module, const char *kernel, uint32_t blocks,
	uint32_t threads, uint32_t dynamic_shared, const void *params, struct ptx_error *error)
{
	struct ptx_launch launch = {
		.kernel = kernel ? ptx_module_kernel(module, kernel)
				 : ptx_module_kernel_at(module, 0),
		.grid = {blocks, 1, 1},
		.block = {threads, 1, 1},
		.cluster = {1, 1, 1},
		.dynamic_shared = dynamic_shared,
		.params = params,
		.timeout_ns = UINT64_C(20000000000),
	};

	struct ptx_kernel_info info;

	assert_non_null(launch.kernel);
	ptx_kernel_info(launch.kernel, &info);
	for (int axis = 0; axis < 3; axis++)
		if (info.cluster[axis])
			launch.cluster[axis] = info.cluster[axis];
	/* cmocka puts its own handlers in their place for each test. */
	sigaction(SIGSEGV, &on_segv, NULL);
	sigaction(SIGBUS, &on_bus, NULL);
	return ptx_launch(&launch, error);
}

void text_run(const char *text, uint32_t blocks, uint32_t threads, void *memory)
{
	struct ptx_module *module = text_load("sm_90", text);
	struct ptx_error error;

	if (text_launch(module, NULL, blocks, threads, 0, &memory, &error))
		fail_msg("line %d: %s", error.line, error.text);
	ptx_module_free(module);
}

void text_number(void *at, const char *type, unsigned value)
{
	static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600};
	float f = (float)value;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	if (!strcmp(type, "f16"))
		memcpy(at, &halves[value], 2);
	else if (!strcmp(type, "bf16"))
		memcpy(at, (const char *)&bits + 2, 2);
	else
		memcpy(at, &bits, 4);
}
