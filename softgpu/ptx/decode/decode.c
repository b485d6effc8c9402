/* SPDX-License-Identifier: Apache-2.0
 *
 * One statement to instructions.  `rules` has a row for each opcode; most rows are `plain`: the
 * handler's name is the opcode with its modifiers and types (rounding, ftz and approximation
 * taken out), so that one more such instruction is a row here and a handler in ptx_ops_*.c.
 */
#include "softgpu/ptx/parse/build.h"

#include <stdio.h>
#include <stdlib.h>

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
		st->mod[st->nmods][dot - p] = 0;
		if (!ptx_known_modifier(st->mod[st->nmods++]))
			ptx_build_wrong(
				b, "%.*s: there is no such type", (int)st->text.n, st->text.p);
		p = dot;
	}
	if (ptx_scan_peek(s) == ';')
		return;
	do {
		if (st->noperands == PTX_MAX_OPERANDS)
			ptx_build_lacks(
				b, "%.*s has too many operands", (int)st->text.n, st->text.p);
		memset(&st->operands[st->noperands], 0, sizeof(st->operands[0]));
		ptx_read_operand(b, &st->operands[st->noperands++], 0);
	} while (ptx_scan_accept(s, ','));
	if (ptx_scan_peek(s) != ';')
		ptx_build_wrong(b, "%.*s: ';' is expected", (int)st->text.n, st->text.p);
}

struct rule {
	const char *root;
	void (*decode)(struct ptx_build *b);
	/* Of a plain one.  s: the sign of an integer type does not matter; S: nor with .lo;
	 * b: only the size does; z: .ftz flushes the result (a move, not arithmetic). */
	const char *how;
};

static void plain(struct ptx_build *b);
/* How much is taken is known when it runs. */
static void decode_alloca(struct ptx_build *b)
{
	struct ptx_statement *st = &b->st;

	ptx_build_function(b)->has_alloca = true;
	/* All that is taken begins at a multiple of 16. */
	if (st->noperands == 3 && st->operands[2].kind == PTX_OPERAND_NUMBER &&
		st->operands[2].number.bits <= 16)
		st->noperands = 2;
	plain(b);
}

static void nothing(struct ptx_build *b)
{
	(void)b;
}

static const struct rule rules[] = {
	{"abs", plain, "z"},
	{"activemask", plain, ""},
	{"add", plain, "s"},
	{"addc", plain, "s"},
	{"alloca", decode_alloca, ""},
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
	{"createpolicy", ptx_decode_createpolicy, ""},
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
	{"istypep", ptx_decode_istypep, ""},
	{"ld", ptx_decode_memory, ""},
	{"ldmatrix", ptx_decode_matrix, ""},
	{"ldu", ptx_decode_memory, ""},
	{"lg2", plain, ""},
	{"lop3", ptx_decode_lop3, ""},
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
	{"stackrestore", plain, ""},
	{"stacksave", plain, ""},
	{"stmatrix", ptx_decode_matrix, ""},
	{"sub", plain, "s"},
	{"subc", plain, "s"},
	{"suld", ptx_decode_suld, ""},
	{"suq", ptx_decode_txq, ""},
	{"sured", ptx_decode_sured, ""},
	{"sust", ptx_decode_sust, ""},
	{"szext", plain, ""},
	{"tanh", plain, ""},
	{"tensormap", ptx_decode_tensormap, ""},
	{"testp", plain, ""},
	{"tex", ptx_decode_tex, ""},
	{"tld4", ptx_decode_tex, ""},
	{"trap", plain, ""},
	{"txq", ptx_decode_txq, ""},
	{"vabsdiff", ptx_decode_video, ""},
	{"vabsdiff2", ptx_decode_video, ""},
	{"vabsdiff4", ptx_decode_video, ""},
	{"vadd", ptx_decode_video, ""},
	{"vadd2", ptx_decode_video, ""},
	{"vadd4", ptx_decode_video, ""},
	{"vavrg2", ptx_decode_video, ""},
	{"vavrg4", ptx_decode_video, ""},
	{"vmad", ptx_decode_video, ""},
	{"vmax", ptx_decode_video, ""},
	{"vmax2", ptx_decode_video, ""},
	{"vmax4", ptx_decode_video, ""},
	{"vmin", ptx_decode_video, ""},
	{"vmin2", ptx_decode_video, ""},
	{"vmin4", ptx_decode_video, ""},
	{"vote", ptx_decode_sync, ""},
	{"vset", ptx_decode_video, ""},
	{"vset2", ptx_decode_video, ""},
	{"vset4", ptx_decode_video, ""},
	{"vshl", ptx_decode_video, ""},
	{"vshr", ptx_decode_video, ""},
	{"vsub", ptx_decode_video, ""},
	{"vsub2", ptx_decode_video, ""},
	{"vsub4", ptx_decode_video, ""},
	{"wmma", ptx_decode_wmma, ""},
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
	const struct rule *rule = find_rule(b->st.root);

	b->st.text = b->st.root;
	if (!rule && ptx_known_opcode(b->st.root)) {
		/* Past its lists, which have braces of their own. */
		while (ptx_scan_peek(&b->scan) && *b->scan.p != ';')
			b->scan.p++;
		ptx_build_lacks(b, "%.*s", (int)b->st.root.n, b->st.root.p);
	}
	if (!rule)
		ptx_build_wrong(b, "%.*s: there is no such instruction", (int)b->st.root.n,
			b->st.root.p);
	parse_statement(b);
	rule->decode(b);
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

/* As many operands as the form has letters, but for a destination that is none. */
static uint32_t operand_count(const struct ptx_op *op)
{
	uint32_t n = (uint32_t)strcspn(op->form, "!");

	return n && op->form[0] == '-' ? n - 1 : n;
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

		if (ptx_type_bytes(mod) || ptx_mod_in(mod, "approx full"))
			continue;
		if (ptx_mod_in(mod, "rn rm rp rz") && !ptx_type_is_int(last)) {
			for (unsigned r = 0; r < 4; r++)
				if (!strcmp(mod, rounding[r]) && is_float(last))
					mode |= r << 13;
		} else if (!strcmp(mod, "ftz") && is_float(last)) {
			ftz = true;
		} else if (!strcmp(mod, "sat") && !ptx_type_is_int(last)) {
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
		if (ptx_type_bytes(mod) > 1 && !strstr(mod, "x2") &&
			(strchr(how, 'b') ||
				((strchr(how, 's') || (strchr(how, 'S') && low)) &&
					ptx_type_is_int(mod) && !ptx_has_mod(st, "sat")))) {
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
	if (st->noperands < operand_count(op))
		ptx_build_wrong(
			b, "%.*s with %u operands", (int)st->text.n, st->text.p, st->noperands);
	/* PTX has some with more (a maximum of three). */
	if (operand_count(op) && st->noperands > operand_count(op))
		ptx_build_lacks(
			b, "%.*s with %u operands", (int)st->text.n, st->text.p, st->noperands);
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
