/* SPDX-License-Identifier: Apache-2.0
 *
 * PTX text cut into words, numbers and constant expressions.  Words point into the text;
 * nothing is copied.
 */
#ifndef VCUDA_SOFTGPU_PTX_PARSE_SCAN_H
#define VCUDA_SOFTGPU_PTX_PARSE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx_scan {
	const char *p, *end;
	int line;
};

struct ptx_word {
	const char *p;
	uint32_t n;
};

enum ptx_number_kind { PTX_INT, PTX_F32, PTX_F64 };

struct ptx_number {
	enum ptx_number_kind kind;
	bool is_unsigned;
	uint64_t bits; /* the integer; the bits of the float or double */
};
double ptx_number_double(const struct ptx_number *number);

/* Past white space and comments; false at the end of the text. */
bool ptx_scan_skip(struct ptx_scan *s);
/* Takes C if it is next. */
bool ptx_scan_accept(struct ptx_scan *s, char c);
/* The next character that means something; 0 at the end. */
char ptx_scan_peek(struct ptx_scan *s);
/* An identifier: letters, digits, _ $ %.  Not a number. */
bool ptx_scan_word(struct ptx_scan *s, struct ptx_word *word);
/* What follows an opcode's dot: letters, digits, _ . :: */
bool ptx_scan_tail(struct ptx_scan *s, struct ptx_word *word);
/* What follows a directive's dot, up to the next dot: .reg.b16 is two. */
bool ptx_scan_directive(struct ptx_scan *s, struct ptx_word *word);
/* 12, -3, 0x1F, 0b1, 017, 1.5e3, 0f3F800000, 0d..., with a U suffix or none. */
bool ptx_scan_number(struct ptx_scan *s, struct ptx_number *number);
/* Numbers and WARP_SZ with operators between them that bind closer than RANK: 0, all;
 * PTX_RANK_SUM - 1, sums and what binds closer, as behind a name; PTX_RANK_UNARY, none. */
bool ptx_scan_expression(struct ptx_scan *s, struct ptx_number *number, unsigned rank);
#define PTX_RANK_SUM 9
#define PTX_RANK_UNARY (PTX_RANK_SUM + 2)
#define PTX_WARP_SZ 32
/* Up to the next C outside strings. */
void ptx_scan_past(struct ptx_scan *s, char c);
/* Past the block whose { has been taken; the group whose ( has been. */
void ptx_scan_past_block(struct ptx_scan *s);
void ptx_scan_past_group(struct ptx_scan *s);

bool ptx_word_is(struct ptx_word word, const char *text);

#endif
