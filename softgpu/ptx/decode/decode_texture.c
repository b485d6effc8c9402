/* SPDX-License-Identifier: Apache-2.0
 *
 * Textures and surfaces: tex tld4 txq, suld sust sured suq.  Their many registers are copied to
 * a row side by side, so that a handler needs only where that begins.
 */
#include "softgpu/ptx/parse/build.h"

#include <stdio.h>

#define SURFACE_VALUES 4

static void move(struct ptx_build *b, uint32_t d, uint32_t a, uint32_t size)
{
	struct ptx_ins *ins = ptx_build_emit(b, size == 8 ? "mov.b64" : "mov.b32");

	ins->d = d;
	ins->a = a;
}

static uint32_t row_of(struct ptx_build *b, uint32_t which, uint32_t size, uint32_t count)
{
	uint32_t *at = &b->texture[which];

	if (!*at) {
		*at = ptx_build_reg(b, size);
		for (uint32_t k = 1; k < count; k++)
			(void)ptx_build_reg(b, size);
	}
	return *at;
}

/* O, a value or a list of them, into the row from register FIRST on. */
static void gather(
	struct ptx_build *b, const struct ptx_operand *o, uint32_t row, uint32_t first)
{
	uint32_t n = o->kind == PTX_OPERAND_LIST ? o->nitems : 1;

	if (n > 4)
		ptx_build_lacks(b, "%.*s: a list of %u", (int)b->st.text.n, b->st.text.p, n);
	for (uint32_t k = 0; k < n; k++)
		move(b, row + (first + k) * 4 * PTX_LANES,
			ptx_in(b, o->kind == PTX_OPERAND_LIST ? &o->items[k] : o, 4), 4);
}

/* What [a, ...] names: the number in a register, or what the driver has put into the variable
 * of a texture reference. */
static uint32_t object(struct ptx_build *b, const struct ptx_operand *address)
{
	const struct ptx_operand *o;
	const struct ptx_symbol *symbol;
	uint32_t operand, size, d;
	struct ptx_ins *ins;

	if (address->kind != PTX_OPERAND_ADDRESS || !address->nitems || address->nitems > 2)
		ptx_build_lacks(
			b, "%.*s: a sampler of its own", (int)b->st.text.n, b->st.text.p);
	o = &address->items[0];
	if (o->kind != PTX_OPERAND_WORD)
		ptx_build_wrong(
			b, "%.*s: a texture is expected", (int)b->st.text.n, b->st.text.p);
	symbol = ptx_build_register(b, o->word, &operand, &size) ? NULL
								 : ptx_build_find(b, o->word);
	operand = ptx_in(b, o, 8);
	if (!symbol || symbol->kind != PTX_SYM_GLOBAL)
		return operand;
	d = ptx_build_temp(b, 8);
	ins = ptx_build_emit(b, "ld.G.u64.u64");
	ins->a = operand;
	ins->d = d;
	ins->f = 1;
	return d;
}

static const struct ptx_operand *coordinates(
	struct ptx_build *b, const struct ptx_operand *address)
{
	if (address->nitems != 2)
		ptx_build_wrong(
			b, "%.*s: coordinates are expected", (int)b->st.text.n, b->st.text.p);
	return &address->items[1];
}

/* 1d .. acube: dimensions, and what else there is. False: another shape. */
static bool geometry(const struct ptx_statement *st, uint8_t *dims, bool *layered, bool *cube)
{
	static const struct {
		char name[6];
		uint8_t dims;
		bool layered, cube;
	} shapes[] = {{"1d", 1, false, false}, {"2d", 2, false, false}, {"3d", 3, false, false},
		{"a1d", 1, true, false}, {"a2d", 2, true, false}, {"cube", 2, false, true},
		{"acube", 2, true, true}};

	for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++) {
		if (!ptx_has_mod(st, shapes[k].name))
			continue;
		*dims = shapes[k].dims;
		*layered = shapes[k].layered;
		*cube = shapes[k].cube;
		return true;
	}
	return false;
}

/* The results, and the predicate that says that they were there. */
static void results(struct ptx_build *b, uint32_t row, uint8_t half)
{
	const struct ptx_operand *d = ptx_arg(b, 0);

	if (d->kind != PTX_OPERAND_LIST || d->nitems > (half == PTX_HALF_PAIRS ? 2 : 4))
		ptx_build_lacks(b, "%.*s: its result", (int)b->st.text.n, b->st.text.p);
	for (uint32_t k = 0; k < d->nitems; k++) {
		struct ptx_out out;
		struct ptx_ins *ins;

		if (ptx_is_sink(&d->items[k]))
			continue;
		out = ptx_out(b, &d->items[k], half == PTX_HALVES ? 2 : 4, false);
		ins = ptx_build_emit(b, half == PTX_HALVES ? "cvt.u16.u32" : "mov.b32");
		ins->d = out.operand;
		ins->a = row + (PTX_FETCH_RESULT + k) * 4 * PTX_LANES;
		ptx_out_finish(b, &out);
	}
	if (d->second.n) {
		struct ptx_operand second = ptx_word_operand(d->second);
		struct ptx_ins *ins;
		uint32_t p = ptx_out(b, &second, 1, false).operand;

		ins = ptx_build_emit(b, "mov.pred");
		ins->d = p;
		ins->a = ptx_build_constant(b, 1, UINT32_MAX, PTX_FIXED);
	}
}

/* tex{.level|.grad}.geom.v4.type.type d, [a, c]{, level | dx, dy}{, offset};
 * tld4.component.2d... */
void ptx_decode_tex(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	const struct ptx_operand *address = ptx_arg(b, 1);
	struct ptx_fetch fetch = {0};
	uint32_t next = 2, row, a;
	const char *type, *coordinate;
	struct ptx_ins *ins;

	if (st->nmods < 3 || !geometry(st, &fetch.dims, &fetch.layered, &fetch.cube))
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	type = st->mod[st->nmods - 2];
	coordinate = st->mod[st->nmods - 1];
	fetch.half = !strcmp(type, "f16x2") ? PTX_HALF_PAIRS
		     : !strcmp(type, "f16") ? PTX_HALVES
					    : PTX_WORDS;
	if (ptx_type_bytes(type) != (fetch.half == PTX_HALVES ? 2 : 4) ||
		ptx_type_bytes(coordinate) != 4)
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	fetch.whole = strcmp(coordinate, "f32") != 0;
	if (st->root.p[1] == 'l') {
		static const char components[4][2] = {"r", "g", "b", "a"};

		for (uint8_t k = 0; k < 4; k++)
			if (ptx_has_mod(st, components[k]))
				fetch.gather = (uint8_t)(k + 1);
		if (!fetch.gather)
			ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	}
	fetch.level = ptx_has_mod(st, "level")	? PTX_LEVEL_GIVEN
		      : ptx_has_mod(st, "grad") ? PTX_LEVEL_GRAD
						: PTX_LEVEL_NONE;
	row = row_of(b, 0, 4, PTX_FETCH_REGISTERS);
	a = object(b, address);
	gather(b, coordinates(b, address), row, PTX_FETCH_COORDINATE);
	if (fetch.level != PTX_LEVEL_NONE)
		gather(b, ptx_arg(b, next++), row, PTX_FETCH_LEVEL);
	if (fetch.level == PTX_LEVEL_GRAD)
		gather(b, ptx_arg(b, next++), row, PTX_FETCH_LEVEL + 4);
	if (st->noperands > next) {
		/* A single float compares depths. */
		if (ptx_arg(b, next)->kind != PTX_OPERAND_LIST || st->noperands > next + 1)
			ptx_build_lacks(b, "%.*s that compares", (int)st->text.n, st->text.p);
		fetch.offset = true;
		gather(b, ptx_arg(b, next), row, PTX_FETCH_OFFSET);
	}
	ins = ptx_build_emit(b, "tex");
	ins->a = a;
	ins->b = row;
	memcpy(&ins->imm, &fetch, sizeof(fetch));
	results(b, row, fetch.half);
}

/* The row of a surface instruction: coordinates; and how what lies outside is met. */
static uint32_t surface(struct ptx_build *b, const struct ptx_operand *address,
	struct ptx_surface *s, uint32_t *a)
{
	const struct ptx_statement *st = &b->st;
	const char *type = st->nmods ? st->mod[st->nmods - 1] : "";
	uint32_t row;
	bool cube;

	for (uint32_t k = 0; k < st->nmods; k++) {
		const char *mod = st->mod[k];

		if (!strcmp(mod, "v2") || !strcmp(mod, "v4"))
			s->count = (uint8_t)(mod[1] - '0');
		if (!strcmp(mod, "trap") || !strcmp(mod, "clamp") || !strcmp(mod, "zero"))
			s->outside = mod[0] == 't'   ? PTX_SURFACE_TRAP
				     : mod[0] == 'c' ? PTX_SURFACE_CLAMP
						     : PTX_SURFACE_ZERO;
		else if (ptx_type_bytes(mod))
			type = mod;
	}
	s->bytes = (uint8_t)ptx_type_bytes(type);
	if (ptx_has_mod(st, "p"))
		s->unit = st->root.p[2] == 's'	 ? PTX_SURFACE_ELEMENTS /* sust */
			  : st->root.p[2] == 'r' ? PTX_SURFACE_VALUES	/* sured */
						 : PTX_SURFACE_BYTES;
	if (ptx_has_mod(st, "b") == (s->unit != PTX_SURFACE_BYTES) || !s->bytes ||
		s->bytes > 8 || !geometry(st, &s->dims, &s->layered, &cube) || cube)
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	row = row_of(b, 0, 4, PTX_FETCH_REGISTERS);
	*a = object(b, address);
	gather(b, coordinates(b, address), row, PTX_FETCH_COORDINATE);
	return row;
}

static void surface_emit(struct ptx_build *b, const char *name, uint32_t a, uint32_t row,
	uint32_t values, const struct ptx_surface *s)
{
	struct ptx_ins *ins = ptx_build_emit(b, name);

	ins->a = a;
	ins->b = row;
	ins->d = values;
	memcpy(&ins->imm, s, sizeof(*s));
}

static const struct ptx_operand *surface_value(struct ptx_build *b, const struct ptx_operand *o,
	const struct ptx_surface *s, uint32_t k)
{
	if ((o->kind == PTX_OPERAND_LIST ? o->nitems : 1) != s->count)
		ptx_build_lacks(b, "%.*s: its values", (int)b->st.text.n, b->st.text.p);
	return o->kind == PTX_OPERAND_LIST ? &o->items[k] : o;
}

/* suld.b.geom{.v2|.v4}.type.outside d, [a, c]; */
void ptx_decode_suld(struct ptx_build *b)
{
	struct ptx_surface s = {.count = 1};
	uint32_t a, row = surface(b, ptx_arg(b, 1), &s, &a);
	uint32_t values = row_of(b, 1, 8, SURFACE_VALUES);

	surface_emit(b, "suld", a, row, values, &s);
	for (uint32_t k = 0; k < s.count; k++) {
		uint32_t size = s.bytes < 2 ? 2 : s.bytes;
		struct ptx_out out =
			ptx_out(b, surface_value(b, ptx_arg(b, 0), &s, k), size, false);
		char key[24];
		struct ptx_ins *ins;

		snprintf(key, sizeof(key), size == 8 ? "mov.b64" : "cvt.u%u.u64", size * 8);
		ins = ptx_build_emit(b, key);
		ins->d = out.operand;
		ins->a = values + k * 8 * PTX_LANES;
		ptx_out_finish(b, &out);
	}
}

/* sust.b.geom{.v2|.v4}.type.outside [a, c], v; */
void ptx_decode_sust(struct ptx_build *b)
{
	struct ptx_surface s = {.count = 1};
	uint32_t a, row = surface(b, ptx_arg(b, 0), &s, &a);
	uint32_t values = row_of(b, 1, 8, SURFACE_VALUES);

	for (uint32_t k = 0; k < s.count; k++)
		move(b, values + k * 8 * PTX_LANES,
			ptx_in(b, surface_value(b, ptx_arg(b, 1), &s, k), 8), 8);
	surface_emit(b, s.unit == PTX_SURFACE_ELEMENTS ? "sust.p" : "sust", a, row, values, &s);
}

/* sured.b.op.geom.type.outside [a, c], v; */
void ptx_decode_sured(struct ptx_build *b)
{
	static const char *const names[] = {"add", "min", "max", "and", "or"};
	const struct ptx_statement *st = &b->st;
	struct ptx_surface s = {.count = 1};
	uint32_t a, row = surface(b, ptx_arg(b, 0), &s, &a);
	uint32_t values = row_of(b, 1, 8, SURFACE_VALUES);
	const char *name = NULL;
	char key[32], sign = 'u';

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		if (ptx_has_mod(st, names[k]))
			name = names[k];
	if (!name || s.bytes < 4)
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	if (name[0] == 'm' && s.unit == PTX_SURFACE_VALUES)
		sign = 'p';
	else if (name[0] == 'm' && (ptx_has_mod(st, "s32") || ptx_has_mod(st, "s64")))
		sign = 's';
	else if (name[1] == 'n' || name[1] == 'r')
		sign = 'b';
	snprintf(key, sizeof(key), "sured.%s.%c%u", name, sign, s.bytes * 8u);
	move(b, values, ptx_in(b, ptx_arg(b, 1), 8), 8);
	surface_emit(b, key, a, row, values, &s);
}

/* txq{.level}.query.b32 d, [a]{, level}; suq the same. */
void ptx_decode_txq(struct ptx_build *b)
{
	static const struct {
		const char *name;
		enum ptx_texture_query query;
	} queries[] = {{"width", PTX_ASK_WIDTH}, {"height", PTX_ASK_HEIGHT},
		{"depth", PTX_ASK_DEPTH}, {"array_size", PTX_ASK_LAYERS},
		{"num_mipmap_levels", PTX_ASK_LEVELS}, {"channel_data_type", PTX_ASK_TYPE},
		{"channel_order", PTX_ASK_ORDER}, {"normalized_coords", PTX_ASK_NORMALIZED},
		{"filter_mode", PTX_ASK_FILTER}, {"addr_mode_0", PTX_ASK_ADDRESS_0},
		{"addr_mode_1", PTX_ASK_ADDRESS_1}, {"addr_mode_2", PTX_ASK_ADDRESS_2},
		{"num_samples", PTX_ASK_NOTHING}, {"memory_layout", PTX_ASK_NOTHING}};
	const struct ptx_statement *st = &b->st;
	struct ptx_out out = ptx_out(b, ptx_arg(b, 0), 4, false);
	uint32_t a = object(b, ptx_arg(b, 1));
	uint32_t level = ptx_has_mod(st, "level") ? ptx_in(b, ptx_arg(b, 2), 4)
						  : ptx_build_constant(b, 4, 0, PTX_FIXED);

	for (size_t k = 0; k < sizeof(queries) / sizeof(queries[0]); k++) {
		struct ptx_ins *ins;

		if (!ptx_has_mod(st, queries[k].name))
			continue;
		ins = ptx_build_emit(b, "txq");
		ins->d = out.operand;
		ins->a = a;
		ins->b = level;
		ins->imm = queries[k].query;
		ptx_out_finish(b, &out);
		return;
	}
	ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
}

/* istypep.type p, a: whether a variable of that type lies there. */
void ptx_decode_istypep(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	struct ptx_out out = ptx_out(b, ptx_arg(b, 0), 1, false);
	uint32_t a = ptx_in(b, ptx_arg(b, 1), 8);
	struct ptx_ins *ins = ptx_build_emit(b, "istypep");

	ins->d = out.operand;
	ins->a = a;
	ins->imm = ptx_has_mod(st, "texref")	   ? PTX_TEXREF
		   : ptx_has_mod(st, "surfref")	   ? PTX_SURFREF
		   : ptx_has_mod(st, "samplerref") ? PTX_SAMPLERREF
						   : PTX_PLAIN;
	if (ins->imm == PTX_PLAIN)
		ptx_build_wrong(b, "%.*s: a type is expected", (int)st->text.n, st->text.p);
	ptx_out_finish(b, &out);
}
