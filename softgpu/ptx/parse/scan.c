/* SPDX-License-Identifier: Apache-2.0
 *
 * PTX text cut into words and numbers (expressions: expression.c).
 */
#include "softgpu/ptx/parse/scan.h"

#include <stdlib.h>
#include <string.h>

bool ptx_scan_skip(struct ptx_scan *s)
{
	while (s->p < s->end) {
		char c = *s->p;

		if (c == '\n') {
			s->line++;
			s->p++;
		} else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
			s->p++;
		} else if (c == '/' && s->end - s->p > 1 && s->p[1] == '/') {
			while (s->p < s->end && *s->p != '\n')
				s->p++;
		} else if (c == '/' && s->end - s->p > 1 && s->p[1] == '*') {
			s->p += 2;
			while (s->p < s->end &&
				!(s->p[0] == '*' && s->end - s->p > 1 && s->p[1] == '/'))
				s->line += *s->p++ == '\n';
			s->p = s->end - s->p > 2 ? s->p + 2 : s->end;
		} else if (c == 0) {
			s->end = s->p; /* texts are often handed over with their NUL */
		} else {
			return true;
		}
	}
	return false;
}

char ptx_scan_peek(struct ptx_scan *s)
{
	return ptx_scan_skip(s) ? *s->p : 0;
}

bool ptx_scan_accept(struct ptx_scan *s, char c)
{
	if (ptx_scan_peek(s) != c)
		return false;
	s->p++;
	return true;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
	       c == '%' || (c & 0x80);
}

/* Within a name or an opcode. A % begins another name: ptxas takes "mov.u32%r1, %laneid;". */
static bool goes_on(char c)
{
	return (is_letter(c) && c != '%') || (c >= '0' && c <= '9');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool ptx_scan_word(struct ptx_scan *s, struct ptx_word *word)
{
	const char *start;

	if (!ptx_scan_skip(s) || !is_letter(*s->p))
		return false;
	start = s->p++;
	while (s->p < s->end && goes_on(*s->p))
		s->p++;
	*word = (struct ptx_word){start, (uint32_t)(s->p - start)};
	return true;
}

bool ptx_scan_tail(struct ptx_scan *s, struct ptx_word *word)
{
	const char *start = s->p;

	while (s->p < s->end && (goes_on(*s->p) || *s->p == '.' ||
					(*s->p == ':' && s->end - s->p > 1 &&
						(s->p[1] == ':' || s->p[-1] == ':'))))
		s->p++;
	*word = (struct ptx_word){start, (uint32_t)(s->p - start)};
	return word->n > 0;
}

bool ptx_scan_directive(struct ptx_scan *s, struct ptx_word *word)
{
	const char *start = s->p;

	while (s->p < s->end && (is_letter(*s->p) || is_digit(*s->p)))
		s->p++;
	*word = (struct ptx_word){start, (uint32_t)(s->p - start)};
	return word->n > 0;
}

static bool hex_bits(struct ptx_scan *s, unsigned digits, uint64_t *bits)
{
	if (s->end - s->p < 2 + (ptrdiff_t)digits)
		return false;
	*bits = 0;
	for (unsigned k = 0; k < digits; k++) {
		char c = s->p[2 + k];
		unsigned v = is_digit(c)	      ? (unsigned)(c - '0')
			     : (c >= 'a' && c <= 'f') ? (unsigned)(c - 'a') + 10
			     : (c >= 'A' && c <= 'F') ? (unsigned)(c - 'A') + 10
						      : 16;

		if (v == 16)
			return false;
		*bits = *bits << 4 | v;
	}
	s->p += 2 + digits;
	return true;
}

bool ptx_scan_number(struct ptx_scan *s, struct ptx_number *number)
{
	bool minus = false;
	char text[64], *rest;
	size_t n = 0;
	bool real = false;

	number->is_unsigned = false;
	if (!ptx_scan_skip(s))
		return false;
	while (*s->p == '-' || *s->p == '+') {
		minus ^= *s->p == '-';
		s->p++;
		if (!ptx_scan_skip(s))
			return false;
	}
	if (!is_digit(*s->p) && *s->p != '.')
		return false;
	if (s->end - s->p > 2 && s->p[0] == '0') {
		char k = (char)(s->p[1] | 0x20);

		if (k == 'f' && hex_bits(s, 8, &number->bits)) {
			number->kind = PTX_F32;
			number->bits ^= minus ? UINT64_C(1) << 31 : 0;
			return true;
		}
		if (k == 'd' && hex_bits(s, 16, &number->bits)) {
			number->kind = PTX_F64;
			number->bits ^= minus ? UINT64_C(1) << 63 : 0;
			return true;
		}
	}
	while (s->p + n < s->end && n < sizeof(text) - 1) {
		char c = s->p[n];
		bool hex = n > 1 && text[0] == '0' && (text[1] | 0x20) == 'x';

		if (!(is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    c == '.' ||
			    ((c == '-' || c == '+') && n && !hex &&
				    (text[n - 1] | 0x20) == 'e')))
			break;
		real |= !hex && (c == '.' || c == 'e' || c == 'E');
		text[n++] = c;
	}
	text[n] = 0;
	s->p += n;
	if (real) {
		double value = strtod(text, &rest);

		number->kind = PTX_F64;
		value = minus ? -value : value;
		memcpy(&number->bits, &value, sizeof(value));
		return *rest == 0;
	}
	number->is_unsigned = n > 1 && (text[n - 1] == 'U' || text[n - 1] == 'u');
	if (number->is_unsigned)
		text[--n] = 0;
	number->kind = PTX_INT;
	if (n > 2 && text[0] == '0' && (text[1] | 0x20) == 'b')
		number->bits = strtoull(text + 2, &rest, 2);
	else
		number->bits = strtoull(text, &rest, 0);
	number->is_unsigned |= number->bits >> 63;
	if (minus)
		number->bits = 0 - number->bits;
	return *rest == 0;
}

void ptx_scan_past(struct ptx_scan *s, char c)
{
	bool quoted = false;

	while (quoted ? s->p < s->end : ptx_scan_skip(s)) {
		char k = *s->p++;

		if (k == '"')
			quoted = !quoted;
		else if (k == '\n')
			s->line++;
		else if (k == c && !quoted)
			return;
	}
}

static void past_pair(struct ptx_scan *s, char open, char close)
{
	unsigned depth = 1;

	while (depth && ptx_scan_skip(s)) {
		char c = *s->p++;

		if (c == '"')
			ptx_scan_past(s, '"');
		else if (c == open)
			depth++;
		else if (c == close)
			depth--;
	}
}

void ptx_scan_past_block(struct ptx_scan *s)
{
	past_pair(s, '{', '}');
}

void ptx_scan_past_group(struct ptx_scan *s)
{
	past_pair(s, '(', ')');
}

bool ptx_word_is(struct ptx_word word, const char *text)
{
	size_t n = strlen(text);

	return word.n == n && (!n || !memcmp(word.p, text, n)); /* no word has no p */
}
