/* SPDX-License-Identifier: Apache-2.0
 *
 * One statement to instructions.  `rules` has a row for each opcode; most rows are `plain`: the
 * handler's name is the opcode with its modifiers and types (rounding, ftz and approximation
 * taken out), so that one more such instruction is a row here and a handler in ptx_ops_*.c.
 */
#include "softgpu/ptx_build.h"

#include <stdio.h>
#include <stdlib.h>

static void parse_operand(struct ptx_build *b, struct ptx_operand *o);

static void parse_items(struct ptx_build *b, struct ptx_operand *o, char close)
{
	struct ptx_scan *s = &b->scan;
	struct ptx_operand items[64];
	uint32_t n = 0;

	if (!ptx_scan_accept(s, close)) {
		do {
			if (n == 64)
				ptx_build_lacks(b, "more than 64 operands in a list");
			memset(&items[n], 0, sizeof(items[n]));
			parse_operand(b, &items[n++]);
		} while (ptx_scan_accept(s, ','));
		if (!ptx_scan_accept(s, close))
			ptx_build_lacks(b, "%.*s: '%c' is expected", (int)b->st.text.n,
				b->st.text.p, close);
	}
	o->items = ptx_build_alloc(b, n * sizeof(*items) + 1);
	memcpy(o->items, items, n * sizeof(*items));
	o->nitems = n;
}

static void parse_operand(struct ptx_build *b, struct ptx_operand *o)
{
	struct ptx_scan *s = &b->scan;
	struct ptx_number n;
	char c = ptx_scan_peek(s);

	if (c == '{' || c == '(' || c == '[') {
		s->p++;
		o->kind = c == '{'   ? PTX_OPERAND_LIST
			  : c == '(' ? PTX_OPERAND_GROUP
				     : PTX_OPERAND_ADDRESS;
		parse_items(b, o, c == '{' ? '}' : c == '(' ? ')' : ']');
		return;
	}
	if (c == '!') {
		s->p++;
		o->negated = true;
	}
	if (ptx_scan_word(s, &o->word)) {
		o->kind = PTX_OPERAND_WORD;
		if (s->p < s->end && *s->p == '.' && o->word.p[0] == '%') {
			s->p++;
			ptx_scan_word(s, &o->part);
		}
		if (ptx_scan_accept(s, '|') && !ptx_scan_word(s, &o->second))
			ptx_build_lacks(b, "a second destination is expected");
		c = ptx_scan_peek(s);
		if (c == '+' || c == '-') {
			if (!ptx_scan_number(s, &n))
				ptx_build_lacks(b, "%.*s: an offset is expected",
					(int)b->st.text.n, b->st.text.p);
			o->offset = (int64_t)n.bits;
		}
		return;
	}
	if (!ptx_scan_number(s, &o->number))
		ptx_build_lacks(b, "%.*s: an operand at '%c'", (int)b->st.text.n, b->st.text.p,
			ptx_scan_peek(s));
	o->kind = PTX_OPERAND_NUMBER;
}

/* The scanner stands behind the opcode's first word. */
static void parse_statement(struct ptx_build *b)
{
	struct ptx_statement *st = &b->st;
	struct ptx_scan *s = &b->scan;
	struct ptx_word tail = {NULL, 0};
	const char *p, *end;

	st->nmods = st->noperands = 0;
	st->text = st->root;
	if (ptx_scan_peek(s) == '.') {
		(void)ptx_scan_tail(s, &tail);
		st->text.n = (uint32_t)(s->p - st->root.p);
	}
	for (p = tail.p, end = tail.p + tail.n; p < end;) {
		const char *dot;

		if (*p == '.') {
			p++;
			continue;
		}
		dot = memchr(p, '.', (size_t)(end - p));
		if (!dot)
			dot = end;
		if (st->nmods == PTX_MAX_MODS || dot - p >= (int)sizeof(st->mod[0]))
			ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
		st->mods[st->nmods] = (struct ptx_word){p, (uint32_t)(dot - p)};
		memcpy(st->mod[st->nmods], p, (size_t)(dot - p));
		st->mod[st->nmods++][dot - p] = 0;
		p = dot;
	}
	if (ptx_scan_peek(s) == ';')
		return;
	do {
		if (st->noperands == PTX_MAX_OPERANDS)
			ptx_build_lacks(
				b, "%.*s has too many operands", (int)st->text.n, st->text.p);
		memset(&st->operands[st->noperands], 0, sizeof(st->operands[0]));
		parse_operand(b, &st->operands[st->noperands++]);
	} while (ptx_scan_accept(s, ','));
	if (ptx_scan_peek(s) != ';')
		ptx_build_lacks(b, "%.*s: ';' is expected", (int)st->text.n, st->text.p);
}

struct rule {
	const char *root;
	void (*decode)(struct ptx_build *b);
	/* Of a plain one.  s: the sign of an integer type does not matter; S: nor with .lo;
	 * b: only the size does; z: .ftz flushes the result (a move, not arithmetic). */
	const char *how;
};

static void plain(struct ptx_build *b);
static void nothing(struct ptx_build *b)
{
	(void)b;
}

static const struct rule rules[] = {
	{"abs", plain, "z"},
	{"activemask", plain, ""},
	{"add", plain, "s"},
	{"addc", plain, "s"},
	{"alloca", plain, ""},
	{"and", plain, "b"},
	{"applypriority", nothing, ""},
	{"atom", ptx_decode_atomic, ""},
	{"bar", ptx_decode_bar, ""},
	{"barrier", ptx_decode_bar, ""},
	{"bfe", plain, ""},
	{"bfi", plain, "b"},
	{"bfind", plain, ""},
	{"bmsk", plain, "b"},
	{"bra", ptx_decode_bra, ""},
	{"brev", plain, "b"},
	{"brkpt", plain, ""},
	{"brx", ptx_decode_brx, ""},
	{"call", ptx_decode_call, ""},
	{"clz", plain, "b"},
	{"cnot", plain, "b"},
	{"copysign", plain, ""},
	{"cos", plain, ""},
	{"cp", ptx_decode_cp_async, ""},
	{"cvt", ptx_decode_cvt, ""},
	{"cvta", ptx_decode_cvta, ""},
	{"discard", nothing, ""},
	{"div", plain, ""},
	{"dp2a", plain, ""},
	{"dp4a", plain, ""},
	{"elect", ptx_decode_sync, ""},
	{"ex2", plain, ""},
	{"exit", plain, ""},
	{"fence", plain, ""},
	{"fma", plain, ""},
	{"fns", plain, "b"},
	{"getctarank", ptx_decode_mapa, ""},
	{"griddepcontrol", nothing, ""},
	{"isspacep", ptx_decode_isspacep, ""},
	{"ld", ptx_decode_memory, ""},
	{"ldmatrix", ptx_decode_matrix, ""},
	{"ldu", ptx_decode_memory, ""},
	{"lg2", plain, ""},
	{"lop3", plain, "b"},
	{"mad", plain, "S"},
	{"mad24", plain, ""},
	{"madc", plain, "S"},
	{"mapa", ptx_decode_mapa, ""},
	{"match", ptx_decode_sync, ""},
	{"max", plain, "z"},
	{"mbarrier", ptx_decode_mbarrier, ""},
	{"membar", plain, ""},
	{"min", plain, "z"},
	{"mma", ptx_decode_matrix, ""},
	{"mov", ptx_decode_mov, ""},
	{"movmatrix", ptx_decode_matrix, ""},
	{"mul", plain, "S"},
	{"mul24", plain, ""},
	{"nanosleep", plain, ""},
	{"neg", plain, "z"},
	{"not", plain, "b"},
	{"or", plain, "b"},
	{"pmevent", nothing, ""},
	{"popc", plain, "b"},
	{"prefetch", nothing, ""},
	{"prefetchu", nothing, ""},
	{"prmt", plain, "b"},
	{"rcp", plain, ""},
	{"red", ptx_decode_atomic, ""},
	{"redux", ptx_decode_sync, ""},
	{"rem", plain, ""},
	{"ret", ptx_decode_ret, ""},
	{"rsqrt", plain, ""},
	{"sad", plain, ""},
	{"selp", plain, "b"},
	{"set", ptx_decode_set, ""},
	{"setmaxnreg", nothing, ""},
	{"setp", ptx_decode_setp, ""},
	{"shf", plain, "b"},
	{"shfl", ptx_decode_sync, ""},
	{"shl", plain, "b"},
	{"shr", plain, ""},
	{"sin", plain, ""},
	{"slct", plain, ""},
	{"sqrt", plain, ""},
	{"st", ptx_decode_memory, ""},
	{"stmatrix", ptx_decode_matrix, ""},
	{"sub", plain, "s"},
	{"subc", plain, "s"},
	{"szext", plain, ""},
	{"tanh", plain, ""},
	{"testp", plain, ""},
	{"trap", plain, ""},
	{"vote", ptx_decode_sync, ""},
	{"xor", plain, "b"},
};

static int by_root(const void *key, const void *row)
{
	const struct ptx_word *word = key;
	const struct rule *rule = row;
	int order = strncmp(word->p, rule->root, word->n);

	return order ? order : -(int)(strlen(rule->root) > word->n);
}

static const struct rule *find_rule(struct ptx_word root)
{
	return bsearch(
		&root, rules, sizeof(rules) / sizeof(rules[0]), sizeof(rules[0]), by_root);
}

void ptx_decode(struct ptx_build *b)
{
	const struct rule *rule;

	parse_statement(b);
	rule = find_rule(b->st.root);
	if (!rule)
		ptx_build_lacks(b, "%.*s", (int)b->st.text.n, b->st.text.p);
	rule->decode(b);
}

static bool any_of(const char *mod, const char *list)
{
	size_t n = strlen(mod);
	const char *p = list;

	while ((p = strstr(p, mod))) {
		if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == 0))
			return true;
		p++;
	}
	return false;
}

static bool is_int(const char *type)
{
	return (type[0] == 'u' || type[0] == 's' || type[0] == 'b') && type[1] >= '0' &&
	       type[1] <= '9';
}

static bool is_float(const char *type)
{
	return !strcmp(type, "f32") || !strcmp(type, "f64");
}

/* Appends .text to a name. */
static void add(char *key, size_t room, const char *text)
{
	size_t n = strlen(key);

	snprintf(key + n, room - n, ".%s", text);
}

static void plain(struct ptx_build *b)
{
	static const char *const rounding[] = {"rn", "rm", "rp", "rz"};
	const struct ptx_statement *st = &b->st;
	const char *how = find_rule(st->root)->how;
	bool ftz = false, sat = false, low = ptx_has_mod(st, "lo");
	const char *last = "";
	char key[128], post[32] = "";
	const struct ptx_op *op;
	struct ptx_out out = {0};
	struct ptx_ins *ins;
	unsigned mode = 0;
	uint32_t in[6] = {0}, n = 0;

	snprintf(key, sizeof(key), "%.*s", (int)st->root.n, st->root.p);
	for (uint32_t k = 0; k < st->nmods; k++)
		if (ptx_type_bytes(st->mod[k]))
			last = st->mod[k];
	if (!strcmp(key, "mad") && is_float(last))
		strcpy(key, "fma");
	if (!strcmp(key, "fence") || !strcmp(key, "membar")) {
		ptx_build_emit(b, "fence");
		return;
	}
	for (uint32_t k = 0; k < st->nmods; k++) {
		const char *mod = st->mod[k];

		if (ptx_type_bytes(mod) || any_of(mod, "approx full"))
			continue;
		if (any_of(mod, "rn rm rp rz") && !is_int(last)) {
			for (unsigned r = 0; r < 4; r++)
				if (!strcmp(mod, rounding[r]) && is_float(last))
					mode |= r << 13;
		} else if (!strcmp(mod, "ftz") && is_float(last)) {
			ftz = true;
		} else if (!strcmp(mod, "sat") && !is_int(last)) {
			sat = true;
		} else {
			add(key, sizeof(key), mod);
		}
	}
	for (uint32_t k = 0; k < st->nmods; k++) {
		const char *mod = st->mod[k];
		char bare[8];

		if (!ptx_type_bytes(mod))
			continue;
		if (ptx_type_bytes(mod) > 1 &&
			(strchr(how, 'b') || ((strchr(how, 's') || (strchr(how, 'S') && low)) &&
						     is_int(mod) && !ptx_has_mod(st, "sat")))) {
			snprintf(bare, sizeof(bare), "b%u", ptx_type_bytes(mod) * 8);
			mod = bare;
		}
		add(key, sizeof(key), mod);
	}
	if (ftz)
		mode |= 0x8040;
	if (mode)
		mode |= PTX_MXCSR_DEFAULT;

	op = ptx_op_find(key);
	if (!op)
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	for (const char *form = op->form; *form && *form != '!'; form++, n++) {
		uint32_t size = *form == '-' ? 0 : (uint32_t)(*form - '0');
		uint32_t arg = op->form[0] == '-' ? n - 1 : n;

		if (!size)
			continue;
		if (n >= 6)
			ptx_build_lacks(b, "%s: too many operands", key);
		if (n == 0)
			out = ptx_out(b, ptx_arg(b, 0), size, last[0] == 's');
		else
			in[n] = ptx_in(b, ptx_arg(b, arg), size);
	}
	if (st->noperands != (op->form[0] == '-' ? n - 1 : n) && n)
		ptx_build_lacks(
			b, "%.*s with %u operands", (int)st->text.n, st->text.p, st->noperands);
	ins = ptx_build_emit(b, key);
	ins->d = out.operand;
	ins->a = in[1];
	ins->b = in[2];
	ins->c = in[3];
	ins->e = in[4];
	ins->f = in[5];
	ins->mode = (uint16_t)mode;
	if (ftz && strchr(how, 'z')) {
		snprintf(post, sizeof(post), "flush.%s", last);
		ins = ptx_build_emit(b, post);
		ins->d = ins->a = out.operand;
	}
	if (sat) {
		snprintf(post, sizeof(post), "sat.%s", last);
		ins = ptx_build_emit(b, post);
		ins->d = ins->a = out.operand;
	}
	ptx_out_finish(b, &out);
}

/* mov: registers, addresses, special registers, and { } on either side. */
void ptx_decode_mov(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	const struct ptx_operand *d = ptx_arg(b, 0), *a = ptx_arg(b, 1);
	const struct ptx_operand *list = d->kind == PTX_OPERAND_LIST ? d : a;
	uint32_t size = st->nmods ? ptx_type_bytes(st->mod[st->nmods - 1]) : 0, part;
	struct ptx_out outs[4];
	struct ptx_ins *ins;
	uint32_t v[4] = {0};
	char key[32];

	if (!size)
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	if (d->kind != PTX_OPERAND_LIST && a->kind != PTX_OPERAND_LIST) {
		struct ptx_out out =
			ptx_out(b, d, size < 2 && strcmp(st->mod[0], "pred") ? 2 : size, false);

		v[0] = ptx_in(b, a, out.size);
		snprintf(
			key, sizeof(key), out.size == 1 ? "mov.pred" : "mov.b%u", out.size * 8);
		ins = ptx_build_emit(b, key);
		ins->d = out.operand;
		ins->a = v[0];
		ptx_out_finish(b, &out);
		return;
	}
	if (list->nitems < 1 || list->nitems > 4 || size % list->nitems)
		ptx_build_lacks(
			b, "%.*s: a list of %u", (int)st->text.n, st->text.p, list->nitems);
	part = size / list->nitems;
	if (part < 2)
		part = 1;
	if (list == a) {
		struct ptx_out out = ptx_out(b, d, size, false);

		for (uint32_t k = 0; k < a->nitems; k++)
			v[k] = ptx_in(b, &a->items[k], part < 2 ? 2 : part);
		snprintf(key, sizeof(key), "pack.b%u.b%u", size * 8, part * 8);
		ins = ptx_build_emit(b, key);
		ins->d = out.operand;
		ins->a = v[0];
		ins->b = v[1];
		ins->c = v[2];
		ins->e = v[3];
		ptx_out_finish(b, &out);
		return;
	}
	for (uint32_t k = 0; k < d->nitems; k++) {
		outs[k] = ptx_out(b, &d->items[k], part < 2 ? 2 : part, false);
		v[k] = outs[k].operand;
	}
	snprintf(key, sizeof(key), "unpack.b%u.b%u", size * 8, part * 8);
	part = ptx_in(b, a, size);
	ins = ptx_build_emit(b, key);
	ins->a = part;
	ins->d = v[0];
	ins->b = v[1];
	ins->c = v[2];
	ins->e = v[3];
	for (uint32_t k = 0; k < d->nitems; k++)
		ptx_out_finish(b, &outs[k]);
}

/* setp and set compare alike; the result lands in a temporary predicate. */
static uint32_t compare(
	struct ptx_build *b, const char *cmp, const char *type, bool ftz, uint32_t first)
{
	uint32_t size = ptx_type_bytes(type), x, y, d;
	struct ptx_ins *ins;
	char key[48];

	if (!size)
		ptx_build_lacks(b, "%.*s", (int)b->st.text.n, b->st.text.p);
	x = ptx_in(b, ptx_arg(b, first), size);
	y = ptx_in(b, ptx_arg(b, first + 1), size);
	d = ptx_build_temp(b, 1);
	if (is_int(type) && type[0] == 'b')
		snprintf(key, sizeof(key), "setp.%s.u%u", cmp, size * 8);
	else
		snprintf(key, sizeof(key), "setp.%s.%s", cmp, type);
	ins = ptx_build_emit(b, key);
	ins->d = d;
	ins->a = x;
	ins->b = y;
	if (ftz && !strcmp(type, "f32"))
		ins->mode = PTX_MXCSR_DEFAULT | 0x8040;
	return d;
}

static void combine(
	struct ptx_build *b, const char *op, uint32_t d, uint32_t x, uint32_t y, bool invert)
{
	struct ptx_ins *ins;
	char key[32];
	uint32_t t = x;

	if (invert) {
		t = ptx_build_temp(b, 1);
		ins = ptx_build_emit(b, "not.pred");
		ins->d = t;
		ins->a = x;
	}
	if (op)
		snprintf(key, sizeof(key), "%s.pred", op);
	else
		strcpy(key, "mov.pred");
	ins = ptx_build_emit(b, key);
	ins->d = d;
	ins->a = t;
	ins->b = op ? y : 0;
}

void ptx_decode_setp(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	const struct ptx_operand *d = ptx_arg(b, 0);
	const char *bool_op = NULL, *type = "", *cmp = st->nmods ? st->mod[0] : "";
	uint32_t t, c = 0;
	struct ptx_out p, q = {0};
	struct ptx_operand second = ptx_word_operand(d->second);

	for (uint32_t k = 1; k < st->nmods; k++) {
		if (any_of(st->mod[k], "and or xor"))
			bool_op = st->mod[k];
		else if (ptx_type_bytes(st->mod[k]))
			type = st->mod[k];
	}
	if (!strcmp(type, "f16x2") || !strcmp(type, "bf16x2")) {
		char key[48];
		struct ptx_ins *ins;
		uint32_t x = ptx_in(b, ptx_arg(b, 1), 4), y = ptx_in(b, ptx_arg(b, 2), 4);

		p = ptx_out(b, d, 1, false);
		q.operand = ptx_build_temp(b, 1);
		if (d->second.n)
			q = ptx_out(b, &second, 1, false);
		snprintf(key, sizeof(key), "setp.%s.%s", cmp, type);
		ins = ptx_build_emit(b, key);
		ins->d = p.operand;
		ins->c = q.operand;
		ins->a = x;
		ins->b = y;
		if (bool_op)
			ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
		return;
	}
	p = ptx_out(b, d, 1, false);
	if (d->second.n)
		q = ptx_out(b, &second, 1, false);
	if (bool_op)
		c = ptx_in(b, ptx_arg(b, 3), 1);
	t = compare(b, cmp, type, ptx_has_mod(st, "ftz"), 1);
	if (!bool_op && !d->second.n) {
		b->module->code[b->module->ncode - 1].d = p.operand;
		return;
	}
	if (d->second.n && !ptx_is_sink(&second)) {
		/* q last but one: it may be c. */
		uint32_t tq = ptx_build_temp(b, 1);

		combine(b, bool_op, tq, t, c, true);
		combine(b, bool_op, p.operand, t, c, false);
		combine(b, NULL, q.operand, tq, 0, false);
	} else {
		combine(b, bool_op, p.operand, t, c, false);
	}
}

void ptx_decode_set(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	const char *bool_op = NULL, *kinds[2] = {"", ""}, *cmp = st->nmods ? st->mod[0] : "";
	uint32_t t, one, zero, n = 0, size;
	struct ptx_out out;
	struct ptx_ins *ins;
	char key[48];

	for (uint32_t k = 1; k < st->nmods; k++) {
		if (any_of(st->mod[k], "and or xor"))
			bool_op = st->mod[k];
		else if (ptx_type_bytes(st->mod[k]) && n < 2)
			kinds[n++] = st->mod[k];
	}
	size = ptx_type_bytes(kinds[0]);
	if (n != 2)
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	out = ptx_out(b, ptx_arg(b, 0), size, false);
	if (strstr(kinds[1], "x2")) {
		uint32_t x = ptx_in(b, ptx_arg(b, 1), 4), y = ptx_in(b, ptx_arg(b, 2), 4);

		if (bool_op)
			ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
		snprintf(key, sizeof(key), "set.%s.%s.%s", cmp, kinds[0], kinds[1]);
		ins = ptx_build_emit(b, key);
		ins->d = out.operand;
		ins->a = x;
		ins->b = y;
		return;
	}
	t = compare(b, cmp, kinds[1], ptx_has_mod(st, "ftz"), 1);
	if (bool_op)
		combine(b, bool_op, t, t, ptx_in(b, ptx_arg(b, 3), 1), false);
	one = ptx_build_constant(b, size,
		!strcmp(kinds[0], "f32")    ? 0x3f800000u
		: !strcmp(kinds[0], "f16")  ? 0x3c00u
		: !strcmp(kinds[0], "bf16") ? 0x3f80u
					    : UINT64_MAX >> (64 - 8 * size),
		PTX_FIXED);
	zero = ptx_build_constant(b, size, 0, PTX_FIXED);
	snprintf(key, sizeof(key), "selp.b%u", size * 8);
	ins = ptx_build_emit(b, key);
	ins->d = out.operand;
	ins->a = one;
	ins->b = zero;
	ins->c = t;
	ptx_out_finish(b, &out);
}

/* cvt{.round}{.ftz}{.sat}.to.from: a fast handler by name, or the general one. */
void ptx_decode_cvt(struct ptx_build *b)
{
	static const char *const kinds[] = {"u8", "s8", "u16", "s16", "u32", "s32", "u64",
		"s64", "f16", "bf16", "f32", "f64", "tf32"};
	static const char *const rounds[] = {
		"rn", "rm", "rp", "rz", "rna", "rni", "rmi", "rpi", "rzi", "rs"};
	const struct ptx_statement *st = &b->st;
	const char *to = "", *from = "", *round = "";
	bool ftz = ptx_has_mod(st, "ftz"), sat = ptx_has_mod(st, "sat");
	bool relu = ptx_has_mod(st, "relu"), to_int, from_int, narrower;
	uint32_t to_size, from_size, in, n = 0, second = 0;
	const struct ptx_op *op = NULL;
	struct ptx_out out;
	struct ptx_ins *ins;
	char key[64];

	for (uint32_t k = 0; k < st->nmods; k++) {
		const char *mod = st->mod[k];

		if (ptx_type_bytes(mod)) {
			to = n ? to : mod;
			from = mod;
			n++;
		} else if (any_of(mod, "rn rm rp rz rna rni rmi rpi rzi")) {
			round = mod;
		} else if (!any_of(mod, "ftz sat relu satfinite")) {
			ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
		}
	}
	to_size = ptx_type_bytes(to);
	from_size = ptx_type_bytes(from);
	if (n != 2)
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	to_int = is_int(to);
	from_int = is_int(from);
	if (strstr(to, "x2")) {
		/* d = { a: high, b: low } */
		bool from_pair = strstr(from, "x2");

		out = ptx_out(b, ptx_arg(b, 0), to_size, false);
		in = ptx_in(b, ptx_arg(b, 1), from_size);
		if (!from_pair)
			second = ptx_in(b, ptx_arg(b, 2), from_size);
		snprintf(key, sizeof(key), "cvt.%s%s%s.%s.%s", round, relu ? ".relu" : "",
			ptx_has_mod(st, "satfinite") && to[0] != 'e' ? ".satfinite" : "", to,
			from);
		ins = ptx_build_emit(b, key);
		ins->d = out.operand;
		ins->a = in;
		ins->b = second;
		ptx_out_finish(b, &out);
		return;
	}
	out = ptx_out(b, ptx_arg(b, 0), to_size < 2 ? 2 : to_size, to[0] == 's');
	in = ptx_in(b, ptx_arg(b, 1), from_size < 2 ? 2 : from_size);
	narrower = !sat && to_int && from_int && to_size >= 2 && from_size >= 2;
	if (narrower)
		snprintf(key, sizeof(key), "cvt.u%u.%c%u", to_size * 8,
			to_size > from_size && from[0] == 's' ? 's' : 'u', from_size * 8);
	else if (*round && (!sat || (to_int && !from_int)))
		snprintf(key, sizeof(key), "cvt.%s.%s.%s", round, to, from);
	else
		snprintf(key, sizeof(key), "cvt.%s.%s", to, from);
	if (!relu && !(sat && !to_int) && !(sat && from_int))
		op = ptx_op_find(key);
	if (op) {
		ins = ptx_build_emit(b, key);
	} else {
		uint32_t k_to = 0, k_from = 0, k_round = 0;

		while (k_to < 13 && strcmp(kinds[k_to], to))
			k_to++;
		while (k_from < 13 && strcmp(kinds[k_from], from))
			k_from++;
		while (*round && k_round < 9 && strcmp(rounds[k_round], round))
			k_round++;
		if (k_to == 13 || k_from == 13 || k_round == 9)
			ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
		ins = ptx_build_emit(b, "cvt.any");
		ins->imm = k_to | k_from << 8 | k_round << 16 | (uint32_t)sat << 24 |
			   (uint32_t)ftz << 25 | (uint32_t)relu << 26;
	}
	ins->d = out.operand;
	ins->a = in;
	if (op && ftz)
		ins->mode = PTX_MXCSR_DEFAULT | 0x8040;
	ptx_out_finish(b, &out);
}
