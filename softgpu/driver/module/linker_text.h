/* SPDX-License-Identifier: Apache-2.0
 *
 * Several PTX texts made one.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_MODULE_LINKER_TEXT_H
#define VCUDA_SOFTGPU_DRIVER_MODULE_LINKER_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct link_statements; /* what an input consists of */

struct link_text {
	char **inputs; /* NUL-terminated copies */
	struct link_statements *statements;
	size_t count;
};

/* Adds a copy of TEXT; false: no memory. */
bool linker_text_add(struct link_text *text, const char *input, size_t n);
/* The linked text, malloc'ed; NULL: no memory.  MAX_REGISTERS of a thread; 0: no limit. */
char *linker_text_finish(const struct link_text *text, unsigned max_registers);
/* The first function that is declared and nowhere defined, *n bytes long; NULL: none. */
const char *linker_text_missing(const struct link_text *text, size_t *n);
/* The first name that two inputs define for others to use; NULL: none. */
const char *linker_text_twice(const struct link_text *text, size_t *n);
/* Whether a text (it ends in NUL) declares nothing that it does not define. */
bool linker_text_whole(const char *input);
/* Whether a text (it ends in NUL) has a definition of the function for others to use. */
bool linker_text_defines(const char *input, const char *name, size_t n);
void linker_text_fini(struct link_text *text);

#endif
