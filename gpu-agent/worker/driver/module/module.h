/* SPDX-License-Identifier: Apache-2.0
 *
 * Images of modules and of what is linked, and options of the JIT.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_MODULE_MODULE_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_MODULE_MODULE_H

#include "gpu-agent/worker/worker_state.h"

#define MODULE_JIT_OPTIONS 24
static inline bool module_jit_right(uint32_t bytes)
{
	return bytes % sizeof(struct image_option) == 0 &&
	       bytes / sizeof(struct image_option) <= MODULE_JIT_OPTIONS;
}
/* Of a module or a link, with the places of variables. */
static inline bool module_options_right(uint32_t bytes)
{
	return bytes % sizeof(struct image_option) == 0 &&
	       bytes / sizeof(struct image_option) <= IMAGE_OPTIONS_MAX;
}
/* The image of an uploaded or cached input, malloc'ed, NUL behind it; NULL: *status, or where
 * that is SUCCESS nobody has it. */
unsigned char *module_image(
	struct worker *w, const uint8_t *digest, uint64_t size, CUresult *status);
/* Those options whose value is a number, taken apart; how many. */
unsigned module_jit(
	const struct image_option *jit, uint32_t bytes, CUjit_option *options, void **values);
/* Where the program says that variables are (struct image_option). */
struct module_symbols {
	char *text;
	const char **names;
	void **addresses;
	unsigned count;
};
CUresult module_symbols_read(
	struct module_symbols *s, const struct image_option *jit, uint32_t bytes);
/* Also after that has failed. */
void module_symbols_free(struct module_symbols *s);
/* As options for the driver, which uses their memory; how many. */
#define MODULE_SYMBOL_OPTIONS 3
unsigned module_symbol_options(
	const struct module_symbols *s, CUjit_option *options, void **values);
/* What is told of a function; the places of its first FUNCTION_PARAMS_MAX parameters into
 * PARAMS, if that is not NULL. */
void module_function_info(struct worker *w, CUfunction function, struct function_info *info,
	struct function_param *params);
/* What a module is loaded from: the driver's options. */
struct module_source {
	const void *image;
	CUjit_option *options;
	void **values;
	unsigned count;
};
/* The number of the library that the module is one of (IMAGE_OPTION_LIBRARY); 0: none is said.
 */
uint64_t module_library_number(const struct image_option *jit, uint32_t bytes);
/* The library's module in the current context. Leaves the loop's place meanwhile. */
CUresult module_library_load(struct worker *w, const struct request *r,
	const struct module_source *source, uint64_t number, CUmodule *module);
/* It goes, with its library if it is the last one of that. */
CUresult worker_module_unload(struct worker *w, CUmodule module);
/* One module less, whose image had so many bytes. */
void module_dismiss(struct worker *w, uint64_t bytes);
/* The JIT's texts: what is wrong, and what it tells (CU_JIT_LOG_VERBOSE: of each function). */
struct module_logs {
	char error[1024];
	char info[8192];
};
/* As options for the driver, which keeps the addresses; how many: MODULE_LOG_OPTIONS. */
#define MODULE_LOG_OPTIONS 4
unsigned module_log_options(struct module_logs *logs, CUjit_option *options, void **values);
/* If there are any, into a run of the answer: the errors' text, a NUL, and so many whole lines
 * of the other as there is room for. */
void module_log(struct request *r, struct wire_run *run, struct module_logs *logs);

#endif
