/* SPDX-License-Identifier: Apache-2.0
 *
 * What the readers of a module share: parse.c (directives) calls function.c (functions),
 * variable.c (declarations, initial values) and, at the end, relocate.c (final addresses).
 */
#ifndef VCUDA_SOFTGPU_PTX_PARSE_READ_H
#define VCUDA_SOFTGPU_PTX_PARSE_READ_H

#include "softgpu/ptx/parse/build.h"

/* A variable's declaration: .align 4 .b8 name[16][2] */
struct ptx_declaration {
	struct ptx_word name;
	uint32_t element, align, vector;
	uint64_t bytes;
	bool is_pred, is_unsized, has_align, is_managed;
	enum ptx_opaque opaque;
	uint32_t range; /* name<range> */
};

static inline uint64_t ptx_read_int(struct ptx_build *b)
{
	struct ptx_number number;

	if (!ptx_scan_expression(&b->scan, &number, 0) || number.kind != PTX_INT)
		ptx_build_fail(b, b->scan.line, "a number is expected");
	return number.bits;
}

/* Behind a name: its sign and what is added. */
static inline uint64_t ptx_read_offset(struct ptx_build *b)
{
	struct ptx_number number;

	if (!ptx_scan_expression(&b->scan, &number, PTX_RANK_SUM - 1) || number.kind != PTX_INT)
		ptx_build_fail(b, b->scan.line, "an offset is expected");
	return number.bits;
}

static inline void ptx_read_char(struct ptx_build *b, char c)
{
	if (!ptx_scan_accept(&b->scan, c))
		ptx_build_fail(b, b->scan.line, "'%c' is expected, found '%c'", c,
			ptx_scan_peek(&b->scan));
}

static inline struct ptx_word ptx_read_word(struct ptx_build *b)
{
	struct ptx_word word;

	if (!ptx_scan_word(&b->scan, &word))
		ptx_build_fail(b, b->scan.line, "a name is expected");
	return word;
}

/* Behind .entry or .func: up to the end of its body, or the semicolon. */
void ptx_read_function(struct ptx_build *b, bool is_kernel);

/* The dotted attributes before a variable's name, then the name and its dimensions. In a list
 * the attributes may stand before the first alone: DECL is the one before, or zero. */
void ptx_variable_declaration(struct ptx_build *b, struct ptx_declaration *decl);
/* Behind .global or .const, .shared, .reg, .local or .param: up to the semicolon. */
void ptx_variable_global(struct ptx_build *b, bool is_const, bool is_extern);
void ptx_variable_shared(struct ptx_build *b, bool is_extern);
void ptx_variable_registers(struct ptx_build *b);
void ptx_variable_frame(struct ptx_build *b);

/* Functions that no module brings (provided.c): in C, or as the text of a module; NULL: not
 * that one. */
enum ptx_builtin ptx_provided_builtin(struct ptx_word name);
const char *ptx_provided_text(struct ptx_word name);

/* Functions that are others get what those have. */
void ptx_link_aliases(struct ptx_build *b);
/* Takes the block of variables from `allocate`, fills it, and writes final addresses. */
void ptx_link_module(struct ptx_build *b, ptx_allocate allocate, void *arg);
/* The list of kernels, and how much local memory each function needs. */
void ptx_link_kernels(struct ptx_build *b);

#endif
