/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of the JIT and of the linker, and the texts that they tell.
 */
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
