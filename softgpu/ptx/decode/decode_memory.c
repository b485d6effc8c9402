/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads, stores, atomics, address conversion, asynchronous copies.
 *
 * Spaces in handlers' names: G global and constant, S shared, L local by register, F local at a
 * fixed place of the frame, P kernel parameters, A generic.
 */
#include "softgpu/ptx/parse/build.h"

#include <stdio.h>

static char find_space(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;

	for (uint32_t k = 0; k < st->nmods; k++) {
		const char *mod = st->mod[k];

		if (!strcmp(mod, "global") || !strcmp(mod, "const"))
			return 'G';
		if (!strncmp(mod, "shared", 6))
			return 'S';
		if (!strcmp(mod, "local"))
			return 'L';
		if (!strncmp(mod, "param", 5))
			return 'P';
	}
	return 'A';
}

/* The operand of the value's register that decides its width. */
static uint32_t register_size(struct ptx_build *b, const struct ptx_operand *o)
{
	uint32_t operand, size;

	if (o->kind == PTX_OPERAND_WORD && ptx_build_register(b, o->word, &operand, &size))
		return size;
	return 0;
}

/* st.async and red.async are done at once: their bytes count on the barrier. */
static void complete_bytes(struct ptx_build *b, const struct ptx_operand *o, uint32_t bytes)
{
	struct ptx_address at = ptx_address_in(b, o, 'S');
	uint32_t count = ptx_build_constant(b, 4, bytes, PTX_FIXED);
	struct ptx_ins *ins = ptx_build_emit(b, "mbarrier.complete_tx");

	ins->a = at.reg;
	ins->imm = at.imm;
	ins->b = count;
}

/* No lane's guard keeps its warp from it. */
static void others_first(struct ptx_build *b)
{
	bool guarded = b->guarded;

	b->guarded = false;
	ptx_build_emit(b, "others.first");
	b->guarded = guarded;
}

void ptx_decode_memory(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	bool store = st->root.p[0] == 's';
	const struct ptx_operand *value = ptx_arg(b, store ? 1 : 0), *items = value;
	const char *type = st->nmods ? st->mod[st->nmods - 1] : "";
	uint32_t size = ptx_type_bytes(type), count = 1, width = 0, v[8] = {0}, lists = 1;
	struct ptx_address at;
	struct ptx_out outs[8];
	struct ptx_ins *ins;
	bool is_signed = type[0] == 's', acquires = false;
	char key[48];

	if (!size || !strcmp(type, "pred"))
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	for (uint32_t k = 0; k < st->nmods; k++) {
		if (!strcmp(st->mod[k], "v2") || !strcmp(st->mod[k], "v4") ||
			!strcmp(st->mod[k], "v8"))
			count = (uint32_t)(st->mod[k][1] - '0');
		acquires |= !strcmp(st->mod[k], "volatile") || !strcmp(st->mod[k], "relaxed") ||
			    !strcmp(st->mod[k], "acquire");
	}
	if (value->kind == PTX_OPERAND_LIST) {
		if (value->nitems != count)
			ptx_build_lacks(b, "%.*s: a list of %u", (int)st->text.n, st->text.p,
				value->nitems);
		items = value->items;
	} else if (count != 1) {
		ptx_build_lacks(b, "%.*s without a list", (int)st->text.n, st->text.p);
	}
	if (size == 16 && count == 1) {
		/* One 128-bit register: as two halves. */
		struct ptx_operand whole = *items;
		uint32_t halves[2] = {ptx_build_temp(b, 8), ptx_build_temp(b, 8)};

		at = ptx_address(b, ptx_arg(b, store ? 0 : 1), find_space(b));
		if (store) {
			uint32_t in = ptx_in(b, &whole, 16);

			ins = ptx_build_emit(b, "unpack.b128.b64");
			ins->a = in;
			ins->d = halves[0];
			ins->b = halves[1];
		}
		snprintf(key, sizeof(key), "%s.%c.u64.u64", store ? "st" : "ld", at.space);
		ins = ptx_build_emit(b, key);
		ins->a = at.reg;
		ins->imm = at.imm;
		ins->d = halves[0];
		ins->b = halves[1];
		ins->f = 2;
		if (!store) {
			struct ptx_out out = ptx_out(b, &whole, 16, false);

			ins = ptx_build_emit(b, "pack.b128.b64");
			ins->d = out.operand;
			ins->a = halves[0];
			ins->b = halves[1];
		}
		return;
	}
	if (size > 8)
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	for (uint32_t k = 0; k < count && !width; k++)
		width = register_size(b, &items[k]);
	if (width < size || width == 1 || width > 8)
		width = size < 2 ? 2 : size;
	if (store && find_space(b) == 'S')
		others_first(b);
	at = ptx_address(b, ptx_arg(b, store ? 0 : 1), find_space(b));
	for (uint32_t k = 0; k < count; k++) {
		if (store) {
			v[k] = ptx_in(b, &items[k], width);
		} else {
			outs[k] = ptx_out(b, &items[k], width, is_signed);
			v[k] = outs[k].operand;
		}
	}
	lists = count > 4 ? 2 : 1;
	for (uint32_t half = 0; half < lists; half++) {
		const uint32_t *u = v + 4 * half;

		if (store)
			snprintf(key, sizeof(key), "st.%c.u%u.u%u", at.space, size * 8,
				width * 8);
		else
			snprintf(key, sizeof(key), "ld.%c.%c%u.u%u", at.space,
				is_signed && size < width ? 's' : 'u', size * 8, width * 8);
		ins = ptx_build_emit(b, key);
		ins->a = at.reg;
		ins->imm = at.imm + half * 4 * size;
		ins->f = count > 4 ? 4 : count;
		ins->d = u[0];
		ins->b = u[1];
		ins->c = u[2];
		ins->e = u[3];
	}
	if (!store)
		for (uint32_t k = 0; k < count; k++)
			ptx_out_finish(b, &outs[k]);
	if (acquires && !store)
		ptx_build_emit(b, "polled");
	if (ptx_has_mod(st, "async"))
		complete_bytes(b, ptx_arg(b, 2), count * size);
}

struct ptx_address ptx_address_generic(struct ptx_build *b, const struct ptx_operand *o)
{
	return ptx_address_in(b, o, find_space(b));
}

/* atom.add.f32 d, [a], b; red.add.f32 [a], b; atom.cas d, [a], b, c; .v2/.v4 of sm_90. */
void ptx_decode_atomic(struct ptx_build *b)
{
	static const char *const ops[] = {
		"add", "min", "max", "inc", "dec", "exch", "cas", "and", "or", "xor"};
	const struct ptx_statement *st = &b->st;
	bool red = st->root.p[0] == 'r';
	const char *op = NULL, *type = "";
	uint32_t size, first = red ? 0 : 1, count = 1;
	const struct ptx_operand *value, *dst;
	struct ptx_address at;
	char key[48], bare[8];

	for (uint32_t k = 0; k < st->nmods; k++) {
		for (size_t n = 0; n < sizeof(ops) / sizeof(ops[0]); n++)
			if (!strcmp(st->mod[k], ops[n]))
				op = ops[n];
		if (!strcmp(st->mod[k], "v2") || !strcmp(st->mod[k], "v4") ||
			!strcmp(st->mod[k], "v8"))
			count = (uint32_t)(st->mod[k][1] - '0');
		if (ptx_type_bytes(st->mod[k]))
			type = st->mod[k];
	}
	size = ptx_type_bytes(type);
	if (!op || size < 2)
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	if (op[0] == 'a' || op[0] == 'e' || op[0] == 'c' || op[0] == 'o' || op[0] == 'x')
		if (type[0] != 'f' && type[1] != 'f') {
			snprintf(bare, sizeof(bare), "b%u", size * 8);
			type = bare;
		}
	if (!strcmp(op, "exch") && size == 4)
		type = "b32";
	at = ptx_address_in(b, ptx_arg(b, first), find_space(b));
	value = ptx_arg(b, first + 1);
	dst = red ? NULL : ptx_arg(b, 0);
	if (count > 1 && (value->nitems != count || (dst && dst->nitems != count)))
		ptx_build_lacks(b, "%.*s: its lists", (int)st->text.n, st->text.p);
	snprintf(key, sizeof(key), "atom.%s.%s", op, type);
	for (uint32_t k = 0; k < count; k++) {
		struct ptx_out out = {0};
		struct ptx_ins *ins;
		uint32_t v, c = 0;

		v = ptx_in(b, count > 1 ? &value->items[k] : value, size);
		if (!strcmp(op, "cas"))
			c = ptx_in(b, ptx_arg(b, first + 2), size);
		if (dst)
			out = ptx_out(
				b, count > 1 ? &dst->items[k] : dst, size, type[0] == 's');
		else
			out.operand = ptx_build_temp(b, size);
		ins = ptx_build_emit(b, key);
		ins->d = out.operand;
		ins->a = at.reg;
		ins->imm = at.imm + k * size;
		ins->b = v;
		ins->c = c;
		ptx_out_finish(b, &out);
	}
	if (!red)
		ptx_build_emit(b, "polled");
	if (ptx_has_mod(st, "async"))
		complete_bytes(b, ptx_arg(b, 2), size);
}

/* cvta{.to}.space.u64 d, a */
void ptx_decode_cvta(struct ptx_build *b)
{
	bool to = ptx_has_mod(&b->st, "to");
	char space = find_space(b);
	struct ptx_out out = ptx_out(b, ptx_arg(b, 0), 8, false);
	uint32_t a = ptx_in(b, ptx_arg(b, 1), 8);
	uint64_t base = space == 'S' ? PTX_SHARED_BASE : space == 'L' ? PTX_LOCAL_BASE : 0;
	struct ptx_ins *ins = ptx_build_emit(b, base ? "cvta.add.b64" : "mov.b64");

	ins->d = out.operand;
	ins->a = a;
	ins->imm = to ? 0 - base : base;
	ptx_out_finish(b, &out);
}

void ptx_decode_isspacep(struct ptx_build *b)
{
	struct ptx_out out = ptx_out(b, ptx_arg(b, 0), 1, false);
	uint32_t a = ptx_in(b, ptx_arg(b, 1), 8);
	struct ptx_ins *ins = ptx_build_emit(b, "isspacep");

	ins->d = out.operand;
	ins->a = a;
	ins->imm = (uint64_t)find_space(b);
	if (ptx_has_mod(&b->st, "const"))
		ins->imm = 'C';
	else if (ptx_has_mod(&b->st, "shared::cluster"))
		ins->imm = 's';
}

/* mapa{.shared::cluster}.u32/u64 d, a, b; getctarank{...} d, a */
void ptx_decode_mapa(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	bool shared = find_space(b) == 'S', rank = st->root.p[0] == 'g';
	uint32_t size = ptx_type_bytes(st->nmods ? st->mod[st->nmods - 1] : "");
	const struct ptx_operand *a = ptx_arg(b, 1);
	struct ptx_out out;
	uint32_t in, ctarank = 0;
	struct ptx_ins *ins;

	if (size < 4)
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	out = ptx_out(b, ptx_arg(b, 0), rank ? 4 : size, false);
	in = ptx_in(b, a, size);
	if (!rank)
		ctarank = ptx_in(b, ptx_arg(b, 2), 4);
	ins = ptx_build_emit(b, rank	    ? size == 4 ? "getctarank.b32" : "getctarank.b64"
				: size == 4 ? "mapa.b32"
					    : "mapa.b64");
	(void)shared;
	ins->d = out.operand;
	ins->a = in;
	ins->b = ctarank;
	ptx_out_finish(b, &out);
}

static bool is_predicate(struct ptx_build *b, const struct ptx_operand *o)
{
	return register_size(b, o) == 1;
}

/* The value; 0 where the predicate holds. */
static uint32_t unless(struct ptx_build *b, const struct ptx_operand *o, uint32_t value)
{
	uint32_t p = ptx_in(b, o, 1), d = ptx_build_temp(b, 4);
	uint32_t zero = ptx_build_constant(b, 4, 0, PTX_FIXED);
	uint32_t other = ptx_build_constant(b, 4, value, PTX_FIXED);
	struct ptx_ins *ins = ptx_build_emit(b, "selp.b32");

	ins->d = d;
	ins->a = zero;
	ins->b = other;
	ins->c = p;
	return d;
}

/* cp.async.{ca,cg}.shared.global [d], [a], size{, src-size or a predicate that
 * says to read nothing}; commit and wait groups do nothing,
 * since the copy is done when the instruction is. */
void ptx_decode_cp_async(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	struct ptx_address to, from;
	uint32_t source = 0;
	struct ptx_ins *ins;
	const struct ptx_operand *size;

	if (ptx_has_mod(st, "bulk")) {
		ptx_decode_bulk(b);
		return;
	}
	if (!ptx_has_mod(st, "async"))
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	if (ptx_has_mod(st, "commit_group") || ptx_has_mod(st, "wait_group") ||
		ptx_has_mod(st, "wait_all"))
		return;
	if (ptx_has_mod(st, "mbarrier")) {
		to = ptx_address_in(b, ptx_arg(b, 0), find_space(b));
		ins = ptx_build_emit(b, "mbarrier.cp_async");
		ins->a = to.reg;
		ins->imm = to.imm;
		ins->b = ptx_has_mod(st, "noinc");
		return;
	}
	to = ptx_address_in(b, ptx_arg(b, 0), 'S');
	from = ptx_address_in(b, ptx_arg(b, 1), 'G');
	size = ptx_arg(b, 2);
	if (size->kind != PTX_OPERAND_NUMBER ||
		(size->number.bits != 4 && size->number.bits != 8 && size->number.bits != 16))
		ptx_build_lacks(b, "%.*s: its size", (int)st->text.n, st->text.p);
	if (st->noperands > 3 && is_predicate(b, ptx_arg(b, 3)))
		source = unless(b, ptx_arg(b, 3), (uint32_t)size->number.bits);
	else if (st->noperands > 3 && !ptx_has_mod(st, "L2::cache_hint"))
		source = ptx_in(b, ptx_arg(b, 3), 4);
	else if (st->noperands > 4)
		source = ptx_in(b, ptx_arg(b, 3), 4);
	else
		source = ptx_build_constant(b, 4, size->number.bits, PTX_FIXED);
	ins = ptx_build_emit(b, "cp.async");
	ins->d = to.reg;
	ins->f = (uint32_t)to.imm;
	ins->a = from.reg;
	ins->imm = from.imm;
	ins->b = source;
	ins->e = (uint32_t)size->number.bits;
}

/* mbarrier.{init,inval,arrive,arrive_drop,test_wait,try_wait,expect_tx,complete_tx,
 * pending_count}; one handler each, the operands brought into order here. */
void ptx_decode_mbarrier(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	const char *what = st->nmods ? st->mod[0] : "";
	struct ptx_out out = {0};
	struct ptx_address at;
	struct ptx_ins *ins;
	uint32_t first = 0, value = 0;
	char key[72];

	if (!strcmp(what, "pending_count")) {
		out = ptx_out(b, ptx_arg(b, 0), 4, false);
		value = ptx_in(b, ptx_arg(b, 1), 8);
		ins = ptx_build_emit(b, "mbarrier.pending_count");
		ins->d = out.operand;
		ins->a = value;
		return;
	}
	if (!strcmp(what, "test_wait") || !strcmp(what, "try_wait")) {
		bool parity = ptx_has_mod(st, "parity");

		out = ptx_out(b, ptx_arg(b, 0), 1, false);
		at = ptx_address_in(b, ptx_arg(b, 1), find_space(b));
		value = ptx_in(b, ptx_arg(b, 2), parity ? 4 : 8);
		ins = ptx_build_emit(b, parity ? "mbarrier.wait.parity" : "mbarrier.wait");
		ins->d = out.operand;
		ins->a = at.reg;
		ins->imm = at.imm;
		ins->b = value;
		ptx_build_emit(b, "polled");
		return;
	}
	if (!strncmp(what, "arrive", 6)) {
		bool expect = ptx_has_mod(st, "expect_tx");

		if (ptx_arg(b, 0)->kind != PTX_OPERAND_ADDRESS) {
			out = ptx_out(b, ptx_arg(b, 0), 8, false);
			first = 1;
		} else {
			out.operand = ptx_build_temp(b, 8);
		}
		at = ptx_address_in(b, ptx_arg(b, first), find_space(b));
		if (st->noperands > first + 1)
			value = ptx_in(b, ptx_arg(b, first + 1), 4);
		else
			value = ptx_build_constant(b, 4, 1, PTX_FIXED);
		snprintf(key, sizeof(key), "mbarrier.%s%s", what, expect ? ".expect_tx" : "");
		ins = ptx_build_emit(b, key);
		ins->d = out.operand;
		ins->a = at.reg;
		ins->imm = at.imm;
		ins->b = value;
		return;
	}
	at = ptx_address_in(b, ptx_arg(b, 0), find_space(b));
	if (st->noperands > 1)
		value = ptx_in(b, ptx_arg(b, 1), 4);
	snprintf(key, sizeof(key), "mbarrier.%s", what);
	ins = ptx_build_emit(b, key);
	ins->a = at.reg;
	ins->imm = at.imm;
	ins->b = value;
}
