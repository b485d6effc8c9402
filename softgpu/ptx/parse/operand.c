/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands: parsed, found, brought to the size that a handler wants, addressed.
 */
#include "softgpu/ptx/parse/build.h"

#include <stdio.h>

static const struct {
	const char *name;
	uint32_t bytes;
} types[] = {
	{"pred", 1},
	{"b8", 1},
	{"u8", 1},
	{"s8", 1},
	{"b16", 2},
	{"u16", 2},
	{"s16", 2},
	{"f16", 2},
	{"bf16", 2},
	{"e4m3x2", 2},
	{"e5m2x2", 2},
	{"b32", 4},
	{"u32", 4},
	{"s32", 4},
	{"f32", 4},
	{"f16x2", 4},
	{"bf16x2", 4},
	{"tf32", 4},
	{"b64", 8},
	{"u64", 8},
	{"s64", 8},
	{"f64", 8},
	{"f32x2", 8},
	{"b128", 16},
	{"u16x2", 4},
	{"s16x2", 4},
};

uint32_t ptx_type_bytes(const char *type)
{
	for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++)
		if (!strcmp(types[k].name, type))
			return types[k].bytes;
	return 0;
}

/* MOD is one of the words of LIST. */
bool ptx_mod_in(const char *mod, const char *list)
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

bool ptx_type_is_int(const char *type)
{
	return (type[0] == 'u' || type[0] == 's' || type[0] == 'b') && type[1] >= '0' &&
	       type[1] <= '9';
}

bool ptx_has_mod(const struct ptx_statement *st, const char *mod)
{
	for (uint32_t k = 0; k < st->nmods; k++)
		if (!strcmp(st->mod[k], mod))
			return true;
	return false;
}

const struct ptx_operand *ptx_arg(struct ptx_build *b, uint32_t index)
{
	if (index >= b->st.noperands)
		ptx_build_lacks(b, "%.*s with %u operands", (int)b->st.text.n, b->st.text.p,
			b->st.noperands);
	return &b->st.operands[index];
}

bool ptx_is_sink(const struct ptx_operand *o)
{
	return o->kind == PTX_OPERAND_WORD && ptx_word_is(o->word, "_");
}

struct ptx_operand ptx_word_operand(struct ptx_word word)
{
	return (struct ptx_operand){.kind = PTX_OPERAND_WORD, .word = word};
}

static const struct {
	const char *name, *part;
	uint32_t size;
} sregs[] = {
	/* The order is that of enum ptx_sreg in ops/ops_flow.c. */
	{"%tid", "x", 4},
	{"%tid", "y", 4},
	{"%tid", "z", 4},
	{"%ntid", "x", 4},
	{"%ntid", "y", 4},
	{"%ntid", "z", 4},
	{"%ctaid", "x", 4},
	{"%ctaid", "y", 4},
	{"%ctaid", "z", 4},
	{"%nctaid", "x", 4},
	{"%nctaid", "y", 4},
	{"%nctaid", "z", 4},
	{"%laneid", "", 4},
	{"%warpid", "", 4},
	{"%nwarpid", "", 4},
	{"%smid", "", 4},
	{"%nsmid", "", 4},
	{"%gridid", "", 8},
	{"%lanemask_eq", "", 4},
	{"%lanemask_le", "", 4},
	{"%lanemask_lt", "", 4},
	{"%lanemask_ge", "", 4},
	{"%lanemask_gt", "", 4},
	{"%clock", "", 4},
	{"%clock_hi", "", 4},
	{"%clock64", "", 8},
	{"%globaltimer", "", 8},
	{"%globaltimer_lo", "", 4},
	{"%globaltimer_hi", "", 4},
	{"%dynamic_smem_size", "", 4},
	{"%total_smem_size", "", 4},
	{"%clusterid", "x", 4},
	{"%clusterid", "y", 4},
	{"%clusterid", "z", 4},
	{"%nclusterid", "x", 4},
	{"%nclusterid", "y", 4},
	{"%nclusterid", "z", 4},
	{"%cluster_ctaid", "x", 4},
	{"%cluster_ctaid", "y", 4},
	{"%cluster_ctaid", "z", 4},
	{"%cluster_nctaid", "x", 4},
	{"%cluster_nctaid", "y", 4},
	{"%cluster_nctaid", "z", 4},
	{"%cluster_ctarank", "", 4},
	{"%cluster_nctarank", "", 4},
	{"%is_explicit_cluster", "", 1},
	{"%aggr_smem_size", "", 4},
	{"%reserved_smem_offset_begin", "", 4},
	{"%reserved_smem_offset_end", "", 4},
	{"%current_graph_exec", "", 8},
	/* Where a cooperative launch has its workspace, high half first. */
	{"%envreg1", "", 4},
	{"%envreg2", "", 4},
};

/* A cheap move between sizes: narrowing keeps the low bits. */
static uint32_t resize(
	struct ptx_build *b, uint32_t operand, uint32_t from, uint32_t to, bool is_signed)
{
	char key[32];
	struct ptx_ins *ins;
	uint32_t d;

	if (from == to)
		return operand;
	d = ptx_build_temp(b, to);
	snprintf(key, sizeof(key), "cvt.u%u.%c%u", to * 8, is_signed && to > from ? 's' : 'u',
		from * 8);
	ins = ptx_build_emit(b, key);
	ins->d = d;
	ins->a = operand;
	return d;
}

/* What counts nothing here: PREFIX, a number below COUNT and SUFFIX. */
static bool is_numbered(
	struct ptx_word word, const char *prefix, uint32_t count, const char *suffix)
{
	char name[32];

	for (uint32_t k = 0; k < count; k++) {
		snprintf(name, sizeof(name), "%s%u%s", prefix, k, suffix);
		if (ptx_word_is(word, name))
			return true;
	}
	return false;
}

/* Registers that PTX leaves to the driver and to tools, and shared memory that is reserved for
 * the system, of which there is none. */
static bool is_zero(struct ptx_word word)
{
	return word.n > 3 &&
	       (is_numbered(word, "%pm", 8, "") || is_numbered(word, "%pm", 8, "_64") ||
		       is_numbered(word, "%envreg", 32, "") ||
		       is_numbered(word, "%reserved_smem_offset_", 2, "") ||
		       ptx_word_is(word, "%reserved_smem_offset_cap"));
}

static uint32_t special(struct ptx_build *b, const struct ptx_operand *o, uint32_t size)
{
	for (size_t k = 0; k < sizeof(sregs) / sizeof(sregs[0]); k++) {
		struct ptx_ins *ins;
		uint32_t d;

		if (!ptx_word_is(o->word, sregs[k].name) ||
			!ptx_word_is(o->part, sregs[k].part))
			continue;
		if (!strncmp(sregs[k].name, "%envreg", 7))
			b->module->wants_workspace = true;
		d = ptx_build_temp(b, sregs[k].size);
		ins = ptx_build_emit(b, sregs[k].size == 8   ? "mov.sreg.b64"
					: sregs[k].size == 4 ? "mov.sreg.b32"
							     : "mov.sreg.pred");
		ins->d = d;
		ins->imm = k;
		return resize(b, d, sregs[k].size, size, false);
	}
	if (!o->part.n && is_zero(o->word))
		return ptx_build_constant(b, size, 0, PTX_FIXED);
	return UINT32_MAX;
}

static uint32_t number(struct ptx_build *b, const struct ptx_number *n, uint32_t size)
{
	uint64_t bits = n->bits;

	if (n->kind == PTX_F32 && size == 8) {
		uint32_t low = (uint32_t)bits;
		float narrow;
		double value;

		memcpy(&narrow, &low, sizeof(narrow));
		value = (double)narrow;
		memcpy(&bits, &value, sizeof(bits));
	} else if (n->kind == PTX_F64 && size == 4) {
		double value;
		float narrow;
		uint32_t low;

		memcpy(&value, &bits, sizeof(value));
		narrow = (float)value;
		memcpy(&low, &narrow, sizeof(low));
		bits = low;
	}
	if (size < 8 && size > 1)
		bits &= (UINT64_C(1) << (8 * size)) - 1;
	return ptx_build_constant(b, size, bits, PTX_FIXED);
}

static uint32_t array_address(struct ptx_build *b, const struct ptx_symbol *symbol,
	const struct ptx_operand *o, uint32_t size)
{
	uint64_t value = symbol->value + (uint64_t)o->offset;
	struct ptx_ins *ins;
	uint32_t d;

	switch (symbol->kind) {
	case PTX_SYM_GLOBAL:
		if (symbol->awaited)
			ptx_build_await(b, symbol);
		d = ptx_build_constant(b, 8, value, symbol->bound ? PTX_FIXED : PTX_IN_BLOCK);
		return resize(b, d, 8, size, false);
	case PTX_SYM_SHARED:
		ptx_shared_use(b, (uint32_t)symbol->value);
		return ptx_build_constant(
			b, size, (uint64_t)o->offset, PTX_IN_SHARED + (uint32_t)symbol->value);
	case PTX_SYM_PARAM:
		d = ptx_build_constant(b, 8, PTX_PARAM_BASE + value, PTX_FIXED);
		return resize(b, d, 8, size, false);
	case PTX_SYM_FUNCTION:
		d = ptx_build_constant(b, 8, PTX_CODE_BASE + 16 * symbol->value, PTX_FIXED);
		return resize(b, d, 8, size, false);
	case PTX_SYM_FRAME:
		d = ptx_build_temp(b, 8);
		ins = ptx_build_emit(b, "mov.frame");
		ins->d = d;
		ins->imm = value + (symbol->own ? PTX_LOCAL_BASE : 0);
		return resize(b, d, 8, size, false);
	case PTX_SYM_DYNAMIC:
		d = ptx_build_temp(b, 8);
		ins = ptx_build_emit(b, "mov.dynamic");
		ins->d = d;
		ins->imm = (uint64_t)o->offset;
		return resize(b, d, 8, size, false);
	default: ptx_build_lacks(b, "%.*s is no value", (int)o->word.n, o->word.p);
	}
}

/* With the element that a register counts. */
static uint32_t symbol_address(struct ptx_build *b, const struct ptx_symbol *symbol,
	const struct ptx_operand *o, uint32_t size)
{
	uint32_t base = array_address(b, symbol, o, size), index, have, element, d;
	struct ptx_ins *ins;

	if (!o->index.n)
		return base;
	if (!ptx_build_register(b, o->index, &index, &have) || have == 1 || size < 4)
		ptx_build_lacks(b, "%.*s: this form of index", (int)b->st.text.n, b->st.text.p);
	index = resize(b, index, have, size, false);
	element = ptx_build_constant(b, size, symbol->element, PTX_FIXED);
	d = ptx_build_temp(b, size);
	ins = ptx_build_emit(b, size == 4 ? "mad.lo.b32" : "mad.lo.b64");
	ins->d = d;
	ins->a = index;
	ins->b = element;
	ins->c = base;
	return d;
}

/* 0: the instruction names no type. */
static void must_have_size(struct ptx_build *b, uint32_t size)
{
	if (!size)
		ptx_build_lacks(b, "%.*s", (int)b->st.text.n, b->st.text.p);
}

static uint32_t ptx_in_signed(
	struct ptx_build *b, const struct ptx_operand *o, uint32_t size, bool is_signed)
{
	const struct ptx_symbol *symbol;
	uint32_t operand, have;

	must_have_size(b, size);
	if (o->kind == PTX_OPERAND_NUMBER)
		return number(b, &o->number, size);
	if (o->kind == PTX_OPERAND_LIST && o->nitems == 1)
		return ptx_in_signed(b, &o->items[0], size, is_signed);
	if (o->kind != PTX_OPERAND_WORD)
		ptx_build_lacks(b, "an operand of %.*s", (int)b->st.text.n, b->st.text.p);
	if (ptx_build_register(b, o->word, &operand, &have)) {
		if ((have == 1) != (size == 1))
			ptx_build_lacks(b, "%.*s mixes predicates and values",
				(int)b->st.text.n, b->st.text.p);
		if (o->negated && size == 1) {
			uint32_t d = ptx_build_temp(b, 1);
			struct ptx_ins *ins = ptx_build_emit(b, "not.pred");

			ins->d = d;
			ins->a = operand;
			return d;
		}
		return resize(b, operand, have, size, is_signed);
	}
	symbol = ptx_build_find(b, o->word);
	if (symbol)
		return symbol_address(b, symbol, o, size);
	operand = special(b, o, size);
	if (operand == UINT32_MAX && !ptx_known_register(o->word))
		ptx_build_wrong(b, "%.*s is not declared", (int)o->word.n, o->word.p);
	if (operand == UINT32_MAX)
		ptx_build_lacks(b, "%.*s%s%.*s is not known", (int)o->word.n, o->word.p,
			o->part.n ? "." : "", (int)o->part.n, o->part.p ? o->part.p : "");
	return operand;
}

uint32_t ptx_in(struct ptx_build *b, const struct ptx_operand *o, uint32_t size)
{
	return ptx_in_signed(b, o, size, false);
}

struct ptx_out ptx_out(
	struct ptx_build *b, const struct ptx_operand *o, uint32_t size, bool is_signed)
{
	struct ptx_out out = {.size = size, .is_signed = is_signed};
	uint32_t operand, have;

	must_have_size(b, size);
	if (ptx_is_sink(o)) {
		out.operand = ptx_build_temp(b, size);
		return out;
	}
	if (o->kind == PTX_OPERAND_LIST && o->nitems == 1)
		return ptx_out(b, &o->items[0], size, is_signed);
	if (o->kind == PTX_OPERAND_WORD && !ptx_build_register(b, o->word, &operand, &have) &&
		!ptx_build_find(b, o->word))
		ptx_build_wrong(b, "%.*s is not declared", (int)o->word.n, o->word.p);
	if (o->kind != PTX_OPERAND_WORD || !ptx_build_register(b, o->word, &operand, &have))
		ptx_build_lacks(b, "%.*s: the destination is no register", (int)b->st.text.n,
			b->st.text.p);
	if (have == size) {
		out.operand = operand;
	} else if (have > size && size > 1) {
		out.operand = ptx_build_temp(b, size);
		out.final = operand;
		out.final_size = have;
	} else {
		ptx_build_lacks(b, "%.*s: %.*s has the wrong size", (int)b->st.text.n,
			b->st.text.p, (int)o->word.n, o->word.p);
	}
	return out;
}

void ptx_out_finish(struct ptx_build *b, const struct ptx_out *out)
{
	struct ptx_ins *ins;
	char key[32];

	if (!out->final_size)
		return;
	snprintf(key, sizeof(key), "cvt.u%u.%c%u", out->final_size * 8,
		out->is_signed ? 's' : 'u', out->size * 8);
	ins = ptx_build_emit(b, key);
	ins->d = out->final;
	ins->a = out->operand;
}

struct ptx_address ptx_address(struct ptx_build *b, const struct ptx_operand *o, char space)
{
	struct ptx_address at = {.space = space, .imm = (uint64_t)o->offset};
	uint32_t operand, have, want = space == 'S' ? 4 : 8;
	const struct ptx_symbol *symbol;
	const struct ptx_operand *base = o;
	struct ptx_operand bare;

	if (o->kind == PTX_OPERAND_ADDRESS) {
		if (o->nitems != 1)
			ptx_build_lacks(b, "%.*s: this form of address", (int)b->st.text.n,
				b->st.text.p);
		base = &o->items[0];
		at.imm = (uint64_t)base->offset;
	}
	if (base->kind == PTX_OPERAND_NUMBER) {
		at.reg = ptx_build_constant(b, want, 0, PTX_FIXED);
		at.imm = base->number.bits;
		return at;
	}
	if (ptx_build_register(b, base->word, &operand, &have)) {
		if (space == 'P')
			at.space = 'A';
		if (have == 1)
			ptx_build_lacks(b, "a predicate as address");
		at.reg = resize(b, operand, have, want, false);
		return at;
	}
	symbol = ptx_build_find(b, base->word);
	if (!symbol)
		ptx_build_wrong(b, "%.*s is not declared", (int)base->word.n, base->word.p);
	bare = *base;
	bare.offset = 0;
	switch (symbol->kind) {
	case PTX_SYM_FRAME:
		at.space = base->index.n ? 'L' : 'F';
		if (base->index.n)
			at.reg = symbol_address(b, symbol, &bare, 8);
		else
			at.imm += symbol->value;
		break;
	case PTX_SYM_PARAM:
		at.space = base->index.n ? 'A' : 'P';
		if (base->index.n)
			at.reg = symbol_address(b, symbol, &bare, 8);
		else
			at.imm += symbol->value;
		break;
	case PTX_SYM_SHARED:
	case PTX_SYM_DYNAMIC:
		at.space = 'S';
		at.reg = symbol_address(b, symbol, &bare, 4);
		break;
	default:
		at.space = space == 'P' ? 'A' : space;
		at.reg = symbol_address(b, symbol, &bare, 8);
		break;
	}
	return at;
}

/* The address as a generic one, so that a handler need not know the space. */
struct ptx_address ptx_address_in(struct ptx_build *b, const struct ptx_operand *o, char space)
{
	struct ptx_address at = ptx_address(b, o, space);
	uint32_t t;
	struct ptx_ins *ins;

	if (at.space == 'G' || at.space == 'A')
		return at;
	t = ptx_build_temp(b, 8);
	if (at.space == 'F') {
		ins = ptx_build_emit(b, "mov.frame");
		ins->imm = at.imm + PTX_LOCAL_BASE;
		at.imm = 0;
	} else if (at.space == 'S') {
		ins = ptx_build_emit(b, "cvta.shared.b32");
		ins->a = at.reg;
	} else if (at.space == 'L') {
		ins = ptx_build_emit(b, "cvta.add.b64");
		ins->a = at.reg;
		ins->imm = PTX_LOCAL_BASE;
	} else {
		at.reg = ptx_build_constant(b, 8, PTX_PARAM_BASE, PTX_FIXED);
		return at;
	}
	ins->d = t;
	at.reg = t;
	return at;
}
