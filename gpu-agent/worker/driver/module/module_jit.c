/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of the JIT and of the linker, and the texts that they tell.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/driver/module/module.h"

/* Only options whose value is a number; the log buffers are ours. */
static bool module_jit_is_plain(uint32_t option)
{
	switch (option) {
	case CU_JIT_MAX_REGISTERS:
	case CU_JIT_THREADS_PER_BLOCK:
	case CU_JIT_OPTIMIZATION_LEVEL:
	case CU_JIT_TARGET_FROM_CUCONTEXT:
	case CU_JIT_TARGET:
	case CU_JIT_FALLBACK_STRATEGY:
	case CU_JIT_GENERATE_DEBUG_INFO:
	case CU_JIT_LOG_VERBOSE:
	case CU_JIT_GENERATE_LINE_INFO:
	case CU_JIT_CACHE_MODE:
	case CU_JIT_POSITION_INDEPENDENT_CODE:
	case CU_JIT_MIN_CTA_PER_SM:
	case CU_JIT_MAX_THREADS_PER_BLOCK:
	case CU_JIT_OVERRIDE_DIRECTIVE_VALUES: return true;
	default: return false;
	}
}

unsigned module_jit(
	const struct image_option *jit, uint32_t bytes, CUjit_option *options, void **values)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < bytes / sizeof(*jit) && n < MODULE_JIT_OPTIONS; i++)
		if (module_jit_is_plain(jit[i].option)) {
			options[n] = (CUjit_option)jit[i].option;
			values[n++] = (void *)(uintptr_t)jit[i].value;
		}
	return n;
}

void module_symbols_free(struct module_symbols *s)
{
	free(s->text);
	free(s->names);
	free(s->addresses);
}

CUresult module_symbols_read(
	struct module_symbols *s, const struct image_option *jit, uint32_t bytes)
{
	size_t entries = bytes / sizeof(*jit), at = 0, start = 0;

	*s = (struct module_symbols){.text = calloc(entries + 1, sizeof(jit->value) + 1),
		.names = calloc(entries + 1, sizeof(*s->names)),
		.addresses = calloc(entries + 1, sizeof(*s->addresses))};
	if (!s->text || !s->names || !s->addresses)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < entries; i++) {
		if (jit[i].option == CU_JIT_GLOBAL_SYMBOL_NAMES) {
			memcpy(s->text + at, &jit[i].value, sizeof(jit[i].value));
			at += sizeof(jit[i].value);
		} else if (jit[i].option == CU_JIT_GLOBAL_SYMBOL_ADDRESSES) {
			if (at == start)
				return CUDA_ERROR_INVALID_VALUE;
			s->names[s->count] = s->text + start;
			s->addresses[s->count++] = (void *)(uintptr_t)jit[i].value;
			start = ++at; /* behind a NUL, whatever the name ends in */
		}
	}
	return CUDA_SUCCESS;
}

unsigned module_symbol_options(
	const struct module_symbols *s, CUjit_option *options, void **values)
{
	if (!s->count)
		return 0;
	options[0] = CU_JIT_GLOBAL_SYMBOL_NAMES;
	values[0] = (void *)s->names;
	options[1] = CU_JIT_GLOBAL_SYMBOL_ADDRESSES;
	values[1] = (void *)s->addresses;
	options[2] = CU_JIT_GLOBAL_SYMBOL_COUNT;
	values[2] = (void *)(uintptr_t)s->count;
	return MODULE_SYMBOL_OPTIONS;
}

unsigned module_log_options(struct module_logs *logs, CUjit_option *options, void **values)
{
	const CUjit_option names[MODULE_LOG_OPTIONS] = {CU_JIT_ERROR_LOG_BUFFER,
		CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
		CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
	void *const rooms[MODULE_LOG_OPTIONS] = {logs->error,
		(void *)(uintptr_t)sizeof(logs->error), logs->info,
		(void *)(uintptr_t)sizeof(logs->info)};

	memcpy(options, names, sizeof(names));
	memcpy(values, rooms, sizeof(rooms));
	return MODULE_LOG_OPTIONS;
}

/* Lines of TEXT that fit into ROOM. */
static size_t lines_fit(const char *text, size_t room)
{
	size_t n = strlen(text);

	if (n <= room)
		return n;
	for (n = room; n && text[n - 1] != '\n'; n--)
		;
	return n;
}

void module_log(struct request *r, struct wire_run *run, struct module_logs *logs)
{
	const size_t left = ANSWER_MAX - ((r->answer_bytes + 7) & ~7u);
	size_t errors, lines;
	char *text;

	logs->error[sizeof(logs->error) - 1] = 0;
	logs->info[sizeof(logs->info) - 1] = 0;
	errors = strlen(logs->error) + 1;
	if (left < errors + 1)
		return;
	lines = lines_fit(logs->info, left - errors - 1);
	if (errors == 1 && !lines)
		return;
	text = worker_out(r, run, errors + (lines ? lines + 1 : 0));
	memcpy(text, logs->error, errors);
	if (lines) {
		memcpy(text + errors, logs->info, lines);
		text[errors + lines] = 0;
	}
}
