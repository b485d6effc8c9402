/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads PTX files and says what of them the interpreter does not serve: a line for each kernel
 * or function that it would refuse.  Status 1 if there is any.
 *
 *	build/tests/ptx_load FILE.ptx ...
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "softgpu/ptx/internal.h"

#define WINDOW (UINT64_C(1) << 32)
#define MAX_TEXT (64u << 20)

static uint64_t next_block;

static uint64_t give(void *arg, size_t size, size_t align)
{
	uint64_t at = (next_block + align - 1) & ~(uint64_t)(align - 1);

	(void)arg;
	next_block = at + size;
	return at;
}

static bool load(const char *path, char *text)
{
	struct ptx_error error;
	struct ptx_module *module;
	FILE *f = fopen(path, "r");
	bool good = true;
	size_t n;

	if (!f) {
		perror(path);
		return false;
	}
	n = fread(text, 1, MAX_TEXT, f);
	fclose(f);
	module = ptx_module_load(text, n, give, NULL, PTX_HEAP_BYTES, &error);
	if (!module) {
		printf("%s:%d: %s\n", path, error.line, error.text);
		return false;
	}
	for (uint32_t k = 0; k < module->nfunctions; k++) {
		const struct ptx_function *fn = &module->functions[k];

		if (!fn->bad_line)
			continue;
		printf("%s:%d: %s: not served: %s\n", path, fn->bad_line, fn->name,
			fn->bad_text);
		good = false;
	}
	ptx_module_free(module);
	return good;
}

int main(int argc, char **argv)
{
	struct ptx_window window = {.span = WINDOW};
	char *text = malloc(MAX_TEXT);
	bool good = text != NULL;

	window.base = next_block = (uint64_t)(uintptr_t)mmap(NULL, WINDOW,
		PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ptx_init(&window, 1);
	for (int k = 1; text && k < argc; k++)
		good &= load(argv[k], text);
	free(text);
	return good ? 0 : 1;
}
