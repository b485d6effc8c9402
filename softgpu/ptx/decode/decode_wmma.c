/* SPDX-License-Identifier: Apache-2.0
 *
 * wmma.load, wmma.store and wmma.mma.  As with mma, the registers of a fragment are copied to a
 * row of registers side by side.
 */
#include "softgpu/ptx/parse/build.h"
#include "softgpu/ptx/wmma.h"

#include <stdio.h>

/* The names as in PTX, in the order of enum wmma_kind. */
static const char *const kinds[WMMA_KINDS] = {
	"f16", "bf16", "tf32", "f32", "f64", "s8", "u8", "s32", "s4", "u4", "b1"};

/* How many registers PTX gives a fragment of so many elements. */
static uint32_t registers(
	struct ptx_build *b, enum wmma_kind kind, uint32_t elements, bool accumulates)
{
	static const uint32_t per[WMMA_KINDS] = {2, 2, 1, 1, 1, 4, 4, 1, 8, 8, 32};
	uint32_t n = elements / PTX_LANES / per[kind];

	if (!n || n > PTX_FRAGMENT)
		ptx_build_lacks(b, "%.*s", (int)b->st.text.n, b->st.text.p);
	return kind == WMMA_F16 && !accumulates ? PTX_FRAGMENT : n;
}

struct wmma {
	uint32_t m, n, k;
	enum wmma_kind kind[4]; /* as they stand */
	uint32_t nkinds;
};

static void read_mods(struct ptx_build *b, struct wmma *what)
{
	const struct ptx_statement *st = &b->st;

	*what = (struct wmma){0};
	for (uint32_t k = 0; k < st->nmods; k++) {
		uint32_t kind = 0;

		if (sscanf(st->mod[k], "m%2un%2uk%3u", &what->m, &what->n, &what->k) == 3)
			continue;
		while (kind < WMMA_KINDS && strcmp(kinds[kind], st->mod[k]))
			kind++;
		if (kind < WMMA_KINDS && what->nkinds < 4)
			what->kind[what->nkinds++] = kind;
	}
	/* Every shape of PTX, and nothing that a fragment could not hold. */
	if (st->nmods < 4 || !ptx_mod_in(st->mod[0], "load store mma") || !what->nkinds ||
		!((what->k == 16 && what->m * what->n == 256 && what->m >= 8 && what->n >= 8) ||
			(what->m == 16 && what->n == 16 && what->k == 8) ||
			(what->m == 8 && what->n == 8 &&
				(what->k == 4 || what->k == 32 || what->k == 128))))
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
}

static uint32_t size_of(enum wmma_kind kind)
{
	return kind == WMMA_F64 ? 8 : 4;
}

/* Four rows of registers, for D, A, B and C. */
static uint32_t row_of(struct ptx_build *b, enum wmma_kind kind, unsigned which)
{
	const uint32_t size = size_of(kind);
	uint32_t *at = &b->fragments[size == 8];

	if (!*at) {
		*at = ptx_build_reg(b, size);
		for (unsigned k = 1; k < 4 * PTX_FRAGMENT; k++)
			(void)ptx_build_reg(b, size);
	}
	return *at + which * PTX_FRAGMENT * size * PTX_LANES;
}

static void check_list(struct ptx_build *b, const struct ptx_operand *list, uint32_t count)
{
	if ((list->kind == PTX_OPERAND_LIST ? list->nitems : 1) != count)
		ptx_build_wrong(
			b, "%.*s takes %u registers", (int)b->st.text.n, b->st.text.p, count);
}

static void copy(struct ptx_build *b, uint32_t d, uint32_t a, uint32_t size)
{
	struct ptx_ins *ins = ptx_build_emit(b, size == 8 ? "mov.b64" : "mov.b32");

	ins->d = d;
	ins->a = a;
}

static void from_list(struct ptx_build *b, const struct ptx_operand *list, enum wmma_kind kind,
	uint32_t count, uint32_t row)
{
	const uint32_t size = size_of(kind);

	check_list(b, list, count);
	for (uint32_t k = 0; k < count; k++)
		copy(b, row + k * size * PTX_LANES,
			ptx_in(b, list->kind == PTX_OPERAND_LIST ? &list->items[k] : list,
				size),
			size);
}

static void to_list(struct ptx_build *b, const struct ptx_operand *list, enum wmma_kind kind,
	uint32_t count, uint32_t row)
{
	const uint32_t size = size_of(kind);

	check_list(b, list, count);
	for (uint32_t k = 0; k < count; k++) {
		struct ptx_out out = ptx_out(b,
			list->kind == PTX_OPERAND_LIST ? &list->items[k] : list, size, false);

		copy(b, out.operand, row + k * size * PTX_LANES, size);
		ptx_out_finish(b, &out);
	}
}

/* Whether the registers are read is known at the function's end: see ptx_build_drop_loads. */
static void note_load(struct ptx_build *b, uint32_t ins)
{
	const struct ptx_operand *o = ptx_arg(b, 0);
	const uint32_t count = o->kind == PTX_OPERAND_LIST ? o->nitems : 1;
	struct ptx_fragment_load *load;

	if (b->guarded)
		return; /* what is put before it moves the instruction */
	b->loads = ptx_build_grow(b, b->loads, b->nloads, &b->load_room, sizeof(*b->loads));
	load = &b->loads[b->nloads];
	*load = (struct ptx_fragment_load){.ins = ins};
	for (uint32_t k = 0; k < count; k++) {
		const struct ptx_operand *item = o->kind == PTX_OPERAND_LIST ? &o->items[k] : o;

		if (ptx_is_sink(item))
			continue;
		load->mentions[load->count] = ptx_build_mentions(b, item->word);
		if (!load->mentions[load->count++])
			return;
	}
	b->nloads++;
}

/* wmma.load.a.sync.aligned.row.shape{.space}.type r, [p]{, stride}; wmma.store.d ... [p], r */
static void decode_load(struct ptx_build *b, const struct wmma *what, bool store)
{
	const struct ptx_statement *st = &b->st;
	const char part = st->mod[1][0];
	const bool by_columns = ptx_has_mod(st, "col");
	const enum wmma_kind kind = what->kind[0];
	uint32_t rows = part == 'b' ? what->k : what->m;
	uint32_t columns = part == 'a' ? what->k : what->n, count, stride, row;
	struct ptx_address at;
	struct ptx_ins *ins;
	bool turned = by_columns;

	count = registers(b, kind, rows * columns, part == 'c' || part == 'd');
	stride = ptx_build_constant(b, 4, by_columns ? rows : columns, PTX_FIXED);
	at = ptx_address_generic(b, ptx_arg(b, store ? 0 : 1));
	if (st->noperands > 2)
		stride = ptx_in(b, ptx_arg(b, 2), 4);
	if (part == 'b') {
		const uint32_t swap = rows;

		rows = columns;
		columns = swap;
		turned = !by_columns;
	}
	if (turned && (kind == WMMA_S4 || kind == WMMA_U4 || kind == WMMA_B1))
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	row = row_of(b, kind, 0);
	if (store)
		from_list(b, ptx_arg(b, 1), kind, count, row);
	else
		for (uint32_t k = 0; k < count; k++)
			copy(b, row + k * size_of(kind) * PTX_LANES,
				ptx_build_constant(b, size_of(kind), 0, PTX_FIXED),
				size_of(kind));
	ins = ptx_build_emit(b, store ? "wmma.store" : "wmma.load");
	ins->d = row;
	ins->a = at.reg;
	ins->imm = at.imm;
	ins->b = stride;
	ins->e = ptx_build_constant(b, 4, UINT32_MAX, PTX_FIXED);
	ins->f = rows | columns << 8 | (uint32_t)kind << 16 | (uint32_t)turned << 24;
	if (!store) {
		const uint32_t at_ins = b->module->ncode - 1;

		to_list(b, ptx_arg(b, 0), kind, count, row);
		note_load(b, at_ins);
	}
}

/* Of f16 only the types of D and C stand there; of others D, A, B, C. */
static void decode_mma(struct ptx_build *b, const struct wmma *what)
{
	const struct ptx_statement *st = &b->st;
	const bool halves = what->nkinds == 2;
	const enum wmma_kind to = what->kind[0], from = what->kind[halves ? 1 : 3];
	const enum wmma_kind of = halves ? WMMA_F16 : what->kind[1];
	const enum wmma_how how = ptx_has_mod(st, "xor")	 ? WMMA_XOR
				  : ptx_has_mod(st, "satfinite") ? WMMA_FINITE
								 : WMMA_PLAIN;
	struct ptx_ins *ins;

	if (!halves && (what->nkinds != 4 || what->kind[2] != of || to != from))
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	from_list(b, ptx_arg(b, 1), of, registers(b, of, what->m * what->k, false),
		row_of(b, of, 1));
	from_list(b, ptx_arg(b, 2), of, registers(b, of, what->k * what->n, false),
		row_of(b, of, 2));
	from_list(b, ptx_arg(b, 3), from, registers(b, from, what->m * what->n, true),
		row_of(b, from, 3));
	ins = ptx_build_emit(b, "wmma.mma");
	ins->d = row_of(b, to, 0);
	ins->a = row_of(b, of, 1);
	ins->b = row_of(b, of, 2);
	ins->c = row_of(b, from, 3);
	ins->e = ptx_build_constant(b, 4, UINT32_MAX, PTX_FIXED);
	ins->imm = what->m | what->n << 8 | (uint64_t)what->k << 16 | (uint64_t)of << 24 |
		   (uint64_t)from << 32 | (uint64_t)to << 40 | (uint64_t)how << 48;
	to_list(b, ptx_arg(b, 0), to, registers(b, to, what->m * what->n, true),
		row_of(b, to, 0));
}

void ptx_decode_wmma(struct ptx_build *b)
{
	struct wmma what;

	read_mods(b, &what);
	if (b->st.mod[0][0] == 'm')
		decode_mma(b, &what);
	else
		decode_load(b, &what, b->st.mod[0][0] == 's');
}
