/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands as they are written: registers, numbers, variables and their elements, addresses,
 * lists.
 */
#include "softgpu/ptx/parse/build.h"

#include <string.h>

/* Lists in lists: a tensor's coordinates in an address are the deepest that PTX has. */
#define MAX_NESTED 3

static void read_items(struct ptx_build *b, struct ptx_operand *o, char close, unsigned depth)
{
	struct ptx_scan *s = &b->scan;
	struct ptx_operand items[64];
	uint32_t n = 0;

	if (depth > MAX_NESTED)
		ptx_build_wrong(b, "%.*s: lists in lists", (int)b->st.text.n, b->st.text.p);
	if (!ptx_scan_accept(s, close)) {
		do {
			if (n == 64)
				ptx_build_lacks(b, "more than 64 operands in a list");
			memset(&items[n], 0, sizeof(items[n]));
			ptx_read_operand(b, &items[n++], depth);
		} while (ptx_scan_accept(s, ','));
		if (!ptx_scan_accept(s, close))
			ptx_build_wrong(b, "%.*s: '%c' is expected", (int)b->st.text.n,
				b->st.text.p, close);
	}
	o->items = ptx_build_alloc(b, n * sizeof(*items) + 1);
	memcpy(o->items, items, n * sizeof(*items));
	o->nitems = n;
}

/* Behind a ! a predicate, and not a number. */
static bool register_follows(struct ptx_scan *s)
{
	struct ptx_scan start = *s;
	struct ptx_word word;
	bool found;

	s->p++;
	found = ptx_scan_word(s, &word);
	*s = start;
	return found && !ptx_word_is(word, "WARP_SZ");
}

static bool is_number(struct ptx_scan *s)
{
	struct ptx_scan start = *s;
	struct ptx_word word;
	bool found = !ptx_scan_word(s, &word) || ptx_word_is(word, "WARP_SZ");

	*s = start;
	return found;
}

static int64_t read_offset(struct ptx_build *b)
{
	struct ptx_number n;

	if (!ptx_scan_expression(&b->scan, &n, PTX_RANK_SUM - 1) || n.kind != PTX_INT)
		ptx_build_wrong(
			b, "%.*s: an offset is expected", (int)b->st.text.n, b->st.text.p);
	return (int64_t)n.bits;
}

/* a[2], a[r], a[r+1]: elements of an array, in place of its address. */
static void read_index(struct ptx_build *b, struct ptx_operand *o)
{
	struct ptx_symbol *array = ptx_build_find(b, o->word);
	struct ptx_scan *s = &b->scan;
	int64_t element = array ? array->element : 0;

	if (!element)
		ptx_build_wrong(b, "%.*s: %.*s is no array", (int)b->st.text.n, b->st.text.p,
			(int)o->word.n, o->word.p);
	if (is_number(s))
		o->offset = read_offset(b) * element;
	else if (ptx_scan_word(s, &o->index) && strchr("+-", ptx_scan_peek(s)))
		o->offset = read_offset(b) * element;
	if (!ptx_scan_accept(s, ']'))
		ptx_build_wrong(b, "%.*s: ']' is expected", (int)b->st.text.n, b->st.text.p);
}

void ptx_read_operand(struct ptx_build *b, struct ptx_operand *o, unsigned depth)
{
	struct ptx_scan *s = &b->scan;
	struct ptx_word part = {NULL, 0};
	char c = ptx_scan_peek(s);

	if (c == '{' || c == '[' || (c == '(' && ptx_word_is(b->st.root, "call"))) {
		s->p++;
		o->kind = c == '{'   ? PTX_OPERAND_LIST
			  : c == '(' ? PTX_OPERAND_GROUP
				     : PTX_OPERAND_ADDRESS;
		read_items(b, o, c == '{' ? '}' : c == '(' ? ')' : ']', depth + 1);
		if (c == '{' && ptx_scan_accept(s, '|') && !ptx_scan_word(s, &o->second))
			ptx_build_wrong(b, "a second destination is expected");
		/* [variable].unified: its address is the same on all devices. */
		if (c == '[' && ptx_scan_accept(s, '.') &&
			(!ptx_scan_word(s, &part) || !ptx_word_is(part, "unified")))
			ptx_build_wrong(b, "%.*s: .unified is expected", (int)b->st.text.n,
				b->st.text.p);
		return;
	}
	if (c == '!' && register_follows(s))
		o->negated = ptx_scan_accept(s, '!');
	/* A register; a number has its sign itself. */
	if (c == '-' && ptx_word_is(b->st.root, "vmad") && s->end - s->p > 1 &&
		!(s->p[1] >= '0' && s->p[1] <= '9')) {
		s->p++;
		o->minus = true;
	}
	if (is_number(s)) {
		if (!ptx_scan_expression(s, &o->number, 0))
			ptx_build_wrong(b, "%.*s: an operand at '%c'", (int)b->st.text.n,
				b->st.text.p, ptx_scan_peek(s));
		o->kind = PTX_OPERAND_NUMBER;
		return;
	}
	if (ptx_scan_word(s, &o->word)) {
		o->kind = PTX_OPERAND_WORD;
		if (s->p < s->end && *s->p == '.' && o->word.p[0] == '%') {
			s->p++;
			ptx_scan_word(s, &o->part);
		}
		if (ptx_scan_accept(s, '|') && !ptx_scan_word(s, &o->second))
			ptx_build_wrong(b, "a second destination is expected");
		if (ptx_scan_accept(s, '['))
			read_index(b, o);
		else if (strchr("+-", ptx_scan_peek(s)))
			o->offset += read_offset(b);
		return;
	}
	ptx_build_wrong(b, "%.*s: an operand at '%c'", (int)b->st.text.n, b->st.text.p,
		ptx_scan_peek(s));
}
