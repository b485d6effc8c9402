/* SPDX-License-Identifier: Apache-2.0
 *
 * Constant expressions, with C's operators and their order: what stands for a number in
 * operands, offsets, dimensions and initial values.  Integers have 64 bits and are signed, but
 * for what bits, remainders and unsigned operands make; with a float, both become doubles.
 */
#include "softgpu/ptx/parse/scan.h"

#include <string.h>

/* Parentheses, signs and conditions in one another. */
#define MAX_DEPTH 64

enum operation {
	NONE,
	OR_ELSE,
	AND_THEN,
	BIT_OR,
	BIT_XOR,
	BIT_AND,
	EQUAL,
	UNEQUAL,
	LESS,
	LESS_EQUAL,
	GREATER,
	GREATER_EQUAL,
	SHIFT_LEFT,
	SHIFT_RIGHT,
	ADD,
	SUBTRACT,
	MULTIPLY,
	DIVIDE,
	REMAINDER,
};

/* Longer ones before those that they begin with. RANK: what binds closer has a higher one. */
static const struct {
	char text[3];
	unsigned char operation, rank;
} operators[] = {
	{"||", OR_ELSE, 1},
	{"&&", AND_THEN, 2},
	{"|", BIT_OR, 3},
	{"^", BIT_XOR, 4},
	{"&", BIT_AND, 5},
	{"==", EQUAL, 6},
	{"!=", UNEQUAL, 6},
	{"<<", SHIFT_LEFT, 8},
	{">>", SHIFT_RIGHT, 8},
	{"<=", LESS_EQUAL, 7},
	{">=", GREATER_EQUAL, 7},
	{"<", LESS, 7},
	{">", GREATER, 7},
	{"+", ADD, PTX_RANK_SUM},
	{"-", SUBTRACT, PTX_RANK_SUM},
	{"*", MULTIPLY, PTX_RANK_SUM + 1},
	{"/", DIVIDE, PTX_RANK_SUM + 1},
	{"%", REMAINDER, PTX_RANK_SUM + 1},
};

static bool binary(struct ptx_scan *s, struct ptx_number *left, unsigned rank, unsigned depth);

static bool is_true(const struct ptx_number *number)
{
	return number->kind == PTX_INT ? number->bits != 0 : ptx_number_double(number) != 0;
}

static struct ptx_number integer(uint64_t bits, bool is_unsigned)
{
	return (struct ptx_number){.kind = PTX_INT, .bits = bits, .is_unsigned = is_unsigned};
}

static struct ptx_number real(double value)
{
	struct ptx_number number = {.kind = PTX_F64};

	memcpy(&number.bits, &value, sizeof(value));
	return number;
}

double ptx_number_double(const struct ptx_number *number)
{
	uint32_t low = (uint32_t)number->bits;
	double value;
	float narrow;

	if (number->kind == PTX_INT)
		return number->is_unsigned ? (double)number->bits
					   : (double)(int64_t)number->bits;
	if (number->kind == PTX_F64) {
		memcpy(&value, &number->bits, sizeof(value));
		return value;
	}
	memcpy(&narrow, &low, sizeof(narrow));
	return (double)narrow;
}

/* (.s64) and (.u64). */
static bool cast(struct ptx_scan *s, struct ptx_number *number, unsigned depth)
{
	struct ptx_word type;
	bool is_unsigned;

	if (!ptx_scan_word(s, &type) || !ptx_scan_accept(s, ')'))
		return false;
	is_unsigned = ptx_word_is(type, "u64");
	if ((!is_unsigned && !ptx_word_is(type, "s64")) ||
		!binary(s, number, PTX_RANK_UNARY, depth) || number->kind != PTX_INT)
		return false;
	number->is_unsigned = is_unsigned;
	return true;
}

static bool negate(struct ptx_number *number)
{
	if (number->kind == PTX_INT)
		number->bits = 0 - number->bits;
	else
		number->bits ^= UINT64_C(1) << (number->kind == PTX_F32 ? 31 : 63);
	return true;
}

static bool unary(struct ptx_scan *s, struct ptx_number *number, unsigned depth)
{
	char c = ptx_scan_peek(s);
	struct ptx_word word;

	if (depth > MAX_DEPTH)
		return false;
	if (c == '(') {
		s->p++;
		if (ptx_scan_accept(s, '.'))
			return cast(s, number, depth + 1);
		return binary(s, number, 0, depth + 1) && ptx_scan_accept(s, ')');
	}
	if (c == '-' || c == '+' || c == '~' || c == '!') {
		s->p++;
		if (!unary(s, number, depth + 1))
			return false;
		if (c == '-')
			return negate(number);
		if (c == '!')
			*number = integer(!is_true(number), false);
		else if (c == '~' && number->kind == PTX_INT)
			*number = integer(~number->bits, true);
		return c != '~' || number->kind == PTX_INT;
	}
	if (ptx_scan_word(s, &word)) {
		*number = integer(PTX_WARP_SZ, false);
		return ptx_word_is(word, "WARP_SZ");
	}
	return ptx_scan_number(s, number);
}

static bool of_doubles(enum operation operation, double a, double b, struct ptx_number *result)
{
	switch (operation) {
	case ADD: *result = real(a + b); return true;
	case SUBTRACT: *result = real(a - b); return true;
	case MULTIPLY: *result = real(a * b); return true;
	case DIVIDE: *result = real(a / b); return true;
	case EQUAL: *result = integer(a == b, false); return true;
	case UNEQUAL: *result = integer(a != b, false); return true;
	case LESS: *result = integer(a < b, false); return true;
	case LESS_EQUAL: *result = integer(a <= b, false); return true;
	case GREATER: *result = integer(a > b, false); return true;
	case GREATER_EQUAL: *result = integer(a >= b, false); return true;
	default: return false;
	}
}

/* Signed division of the least number by -1 has no result. */
static struct ptx_number quotient(uint64_t a, uint64_t b, bool is_unsigned)
{
	if (is_unsigned)
		return integer(a / b, true);
	return integer(b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b), false);
}

static bool of_integers(enum operation operation, const struct ptx_number *left,
	const struct ptx_number *right, struct ptx_number *result)
{
	uint64_t a = left->bits, b = right->bits, by = b & 63;
	bool is_unsigned = left->is_unsigned || right->is_unsigned;
	bool less = is_unsigned ? a < b : (int64_t)a < (int64_t)b;

	if ((operation == DIVIDE || operation == REMAINDER) && !b)
		return false;
	switch (operation) {
	case BIT_OR: *result = integer(a | b, true); return true;
	case BIT_XOR: *result = integer(a ^ b, true); return true;
	case BIT_AND: *result = integer(a & b, true); return true;
	case ADD: *result = integer(a + b, is_unsigned); return true;
	case SUBTRACT: *result = integer(a - b, is_unsigned); return true;
	case MULTIPLY: *result = integer(a * b, is_unsigned); return true;
	case DIVIDE: *result = quotient(a, b, is_unsigned); return true;
	case REMAINDER: *result = integer(a % b, true); return true;
	case SHIFT_LEFT: *result = integer(a << by, left->is_unsigned); return true;
	case SHIFT_RIGHT:
		*result = integer(left->is_unsigned ? a >> by : (uint64_t)((int64_t)a >> by),
			left->is_unsigned);
		return true;
	case EQUAL: *result = integer(a == b, false); return true;
	case UNEQUAL: *result = integer(a != b, false); return true;
	case LESS: *result = integer(less, false); return true;
	case LESS_EQUAL: *result = integer(less || a == b, false); return true;
	case GREATER: *result = integer(!less && a != b, false); return true;
	case GREATER_EQUAL: *result = integer(!less, false); return true;
	default: return false;
	}
}

static bool apply(
	enum operation operation, struct ptx_number *left, const struct ptx_number *right)
{
	if (operation == OR_ELSE || operation == AND_THEN) {
		bool a = is_true(left), b = is_true(right);

		*left = integer(operation == OR_ELSE ? a || b : a && b, false);
		return true;
	}
	if (left->kind == PTX_INT && right->kind == PTX_INT)
		return of_integers(operation, left, right, left);
	return of_doubles(operation, ptx_number_double(left), ptx_number_double(right), left);
}

/* The next operator that binds closer than RANK, taken; NONE: there is none. */
static enum operation next_operator(struct ptx_scan *s, unsigned rank, unsigned *found)
{
	struct ptx_scan start = *s;

	(void)ptx_scan_peek(s);
	for (size_t k = 0; k < sizeof(operators) / sizeof(operators[0]); k++) {
		size_t n = strlen(operators[k].text);

		if ((size_t)(s->end - s->p) < n || memcmp(s->p, operators[k].text, n))
			continue;
		if (operators[k].rank <= rank)
			break;
		s->p += n;
		*found = operators[k].rank;
		return operators[k].operation;
	}
	/* In the line of what was read, which messages name. */
	*s = start;
	return NONE;
}

static bool condition(struct ptx_scan *s, struct ptx_number *number, unsigned depth)
{
	struct ptx_number yes, no;

	if (!binary(s, &yes, 0, depth + 1) || !ptx_scan_accept(s, ':') ||
		!binary(s, &no, 0, depth + 1))
		return false;
	*number = is_true(number) ? yes : no;
	return true;
}

static bool accept_ahead(struct ptx_scan *s, char c)
{
	struct ptx_scan start = *s;

	if (ptx_scan_accept(s, c))
		return true;
	*s = start;
	return false;
}

/* Operands and the operators between them that bind closer than RANK. */
static bool binary(struct ptx_scan *s, struct ptx_number *left, unsigned rank, unsigned depth)
{
	enum operation operation;
	struct ptx_number right;
	unsigned found = 0;

	if (depth > MAX_DEPTH || !unary(s, left, depth))
		return false;
	while ((operation = next_operator(s, rank, &found)))
		if (!binary(s, &right, found, depth + 1) || !apply(operation, left, &right))
			return false;
	return rank || !accept_ahead(s, '?') || condition(s, left, depth);
}

bool ptx_scan_expression(struct ptx_scan *s, struct ptx_number *number, unsigned rank)
{
	return binary(s, number, rank, 0);
}
