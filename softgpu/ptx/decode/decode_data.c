/* SPDX-License-Identifier: Apache-2.0
 *
 * Moves, comparisons and conversions: what needs more than a handler's name.
 */
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/ptx/parse/build.h"

/* mov.v2 and mov.v4: each element by itself, all read before the first is written. */
static void move_vector(struct ptx_build *b, uint32_t size)
{
	const struct ptx_operand *d = ptx_arg(b, 0), *a = ptx_arg(b, 1);
	uint32_t n = ptx_has_mod(&b->st, "v2") ? 2 : 4, in[4];

	if (d->kind != PTX_OPERAND_LIST || a->kind != PTX_OPERAND_LIST || d->nitems != n ||
		a->nitems != n || size < 2)
		ptx_build_lacks(b, "%.*s of these operands", (int)b->st.text.n, b->st.text.p);
	for (uint32_t pass = 0; pass < 2; pass++)
		for (uint32_t k = 0; k < n; k++) {
			struct ptx_out out = {.operand = pass ? 0 : ptx_build_temp(b, size)};
			struct ptx_ins *ins;
			char key[32];

			if (pass)
				out = ptx_out(b, &d->items[k], size, false);
			else
				in[k] = ptx_in(b, &a->items[k], size);
			snprintf(key, sizeof(key), "mov.b%u", size * 8);
			ins = ptx_build_emit(b, key);
			ins->d = out.operand;
			ins->a = in[k];
			if (!pass)
				in[k] = out.operand;
			ptx_out_finish(b, &out);
		}
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
	if (ptx_has_mod(st, "v2") || ptx_has_mod(st, "v4")) {
		move_vector(b, size);
		return;
	}
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

/* x as .ftz compares it, for the types whose comparison MXCSR does not flush. */
static uint32_t flushed(struct ptx_build *b, uint32_t x, const char *type, bool ftz)
{
	struct ptx_ins *ins;
	uint32_t d;
	char key[48];

	if (!ftz || !ptx_mod_in(type, "f16 f16x2"))
		return x;
	d = ptx_build_temp(b, ptx_type_bytes(type));
	snprintf(key, sizeof(key), "flush.%s", type);
	ins = ptx_build_emit(b, key);
	ins->d = d;
	ins->a = x;
	return d;
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
	x = flushed(b, ptx_in(b, ptx_arg(b, first), size), type, ftz);
	y = flushed(b, ptx_in(b, ptx_arg(b, first + 1), size), type, ftz);
	d = ptx_build_temp(b, 1);
	if (ptx_type_is_int(type) && type[0] == 'b')
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
	const bool ftz = ptx_has_mod(st, "ftz");
	uint32_t t, tq, c = 0;
	struct ptx_out p, q = {0};
	struct ptx_operand second = ptx_word_operand(d->second);

	for (uint32_t k = 1; k < st->nmods; k++) {
		if (ptx_mod_in(st->mod[k], "and or xor"))
			bool_op = st->mod[k];
		else if (ptx_type_bytes(st->mod[k]))
			type = st->mod[k];
	}
	if (!strcmp(type, "f16x2") || !strcmp(type, "bf16x2")) {
		char key[48];
		struct ptx_ins *ins;
		uint32_t x = flushed(b, ptx_in(b, ptx_arg(b, 1), 4), type, ftz);
		uint32_t y = flushed(b, ptx_in(b, ptx_arg(b, 2), 4), type, ftz);

		p = ptx_out(b, d, 1, false);
		q.operand = ptx_build_temp(b, 1);
		if (d->second.n)
			q = ptx_out(b, &second, 1, false);
		t = ptx_build_temp(b, 1);
		tq = ptx_build_temp(b, 1);
		if (bool_op)
			c = ptx_in(b, ptx_arg(b, 3), 1);
		snprintf(key, sizeof(key), "setp.%s.%s", cmp, type);
		ins = ptx_build_emit(b, key);
		ins->d = t;
		ins->c = tq;
		ins->a = x;
		ins->b = y;
		combine(b, bool_op, tq, tq, c, false);
		combine(b, bool_op, p.operand, t, c, false); /* may be c */
		combine(b, NULL, q.operand, tq, 0, false);
		return;
	}
	p = ptx_out(b, d, 1, false);
	if (d->second.n)
		q = ptx_out(b, &second, 1, false);
	if (bool_op)
		c = ptx_in(b, ptx_arg(b, 3), 1);
	t = compare(b, cmp, type, ftz, 1);
	if (!bool_op && !d->second.n) {
		b->module->code[b->module->ncode - 1].d = p.operand;
		return;
	}
	if (d->second.n && !ptx_is_sink(&second)) {
		/* q last but one: it may be c. */
		tq = ptx_build_temp(b, 1);
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
	const bool ftz = ptx_has_mod(st, "ftz");
	uint32_t t, one, zero, n = 0, size;
	struct ptx_out out;
	struct ptx_ins *ins;
	char key[48];

	for (uint32_t k = 1; k < st->nmods; k++) {
		if (ptx_mod_in(st->mod[k], "and or xor"))
			bool_op = st->mod[k];
		else if (ptx_type_bytes(st->mod[k]) && n < 2)
			kinds[n++] = st->mod[k];
	}
	size = ptx_type_bytes(kinds[0]);
	if (n != 2)
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	out = ptx_out(b, ptx_arg(b, 0), size, false);
	if (strstr(kinds[1], "x2")) {
		uint32_t x = flushed(b, ptx_in(b, ptx_arg(b, 1), 4), kinds[1], ftz);
		uint32_t y = flushed(b, ptx_in(b, ptx_arg(b, 2), 4), kinds[1], ftz);

		if (bool_op)
			ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
		snprintf(key, sizeof(key), "set.%s.%s.%s", cmp, kinds[0], kinds[1]);
		ins = ptx_build_emit(b, key);
		ins->d = out.operand;
		ins->a = x;
		ins->b = y;
		return;
	}
	t = compare(b, cmp, kinds[1], ftz, 1);
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

/* lop3{.and|.or}.b32 d{|p}, a, b, c, table{, q}: p = (d != 0) and/or q */
void ptx_decode_lop3(struct ptx_build *b)
{
	const struct ptx_operand *d = ptx_arg(b, 0);
	const char *bool_op = ptx_has_mod(&b->st, "and")  ? "and"
			      : ptx_has_mod(&b->st, "or") ? "or"
							  : NULL;
	struct ptx_operand second = ptx_word_operand(d->second);
	struct ptx_out out = ptx_out(b, d, 4, false), p;
	uint32_t v[4], q, t, zero;
	struct ptx_ins *ins;

	for (uint32_t k = 0; k < 4; k++)
		v[k] = ptx_in(b, ptx_arg(b, k + 1), 4);
	ins = ptx_build_emit(b, "lop3.b32");
	ins->d = out.operand;
	ins->a = v[0];
	ins->b = v[1];
	ins->c = v[2];
	ins->e = v[3];
	if (bool_op) {
		p = ptx_out(b, &second, 1, false);
		q = ptx_in(b, ptx_arg(b, 5), 1);
		t = ptx_build_temp(b, 1);
		zero = ptx_build_constant(b, 4, 0, PTX_FIXED);
		ins = ptx_build_emit(b, "setp.ne.u32");
		ins->d = t;
		ins->a = out.operand;
		ins->b = zero;
		combine(b, bool_op, p.operand, t, q, false);
	}
	ptx_out_finish(b, &out);
}

/* cvt.pack.sat.to.s32{.b32} d, a, b{, c}: a above b, what c has above both */
static void decode_pack(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	bool three = st->nmods == 5;
	uint32_t v[3] = {0}, bits = 0;
	struct ptx_out out;
	struct ptx_ins *ins;

	if (st->nmods >= 4 && (st->mod[2][0] == 'u' || st->mod[2][0] == 's'))
		bits = (uint32_t)strtoul(st->mod[2] + 1, NULL, 10);
	if (strcmp(st->mod[0], "pack") || !ptx_has_mod(st, "sat") ||
		strcmp(st->mod[3], "s32") || !bits || bits > 16 || (bits < 16) != three)
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	out = ptx_out(b, ptx_arg(b, 0), 4, false);
	for (uint32_t k = 0; k < (three ? 3 : 2); k++)
		v[k] = ptx_in(b, ptx_arg(b, k + 1), 4);
	ins = ptx_build_emit(b, three ? "cvt.pack.b32" : "cvt.pack");
	ins->d = out.operand;
	ins->a = v[0];
	ins->b = v[1];
	ins->c = v[2];
	ins->e = bits;
	ins->f = st->mod[2][0] == 's';
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

	if (ptx_has_mod(st, "pack")) {
		decode_pack(b);
		return;
	}
	for (uint32_t k = 0; k < st->nmods; k++) {
		const char *mod = st->mod[k];

		if (ptx_type_bytes(mod)) {
			to = n ? to : mod;
			from = mod;
			n++;
		} else if (ptx_mod_in(mod, "rn rm rp rz rna rni rmi rpi rzi")) {
			round = mod;
		} else if (!ptx_mod_in(mod, "ftz sat relu satfinite")) {
			ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
		}
	}
	to_size = ptx_type_bytes(to);
	from_size = ptx_type_bytes(from);
	if (n != 2)
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	to_int = ptx_type_is_int(to);
	from_int = ptx_type_is_int(from);
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
