/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices that a warp holds together: mma, ldmatrix, movmatrix.  The many registers of an mma
 * are copied to a row of registers side by side, so that its handler needs only where each
 * begins.
 */
#include "softgpu/ptx/parse/build.h"

#include <stdio.h>

/* Rows of registers: d 4, a 8, b 4, c 4. */
#define MATRIX_REGS 20
#define AT_A 4
#define AT_B 12
#define AT_C 16

static uint32_t scratch(struct ptx_build *b, uint32_t size)
{
	uint32_t *at = &b->matrix[size == 8];

	if (!*at) {
		*at = ptx_build_reg(b, size);
		for (unsigned k = 1; k < MATRIX_REGS; k++)
			(void)ptx_build_reg(b, size);
	}
	return *at;
}

static void move(struct ptx_build *b, uint32_t d, uint32_t a, uint32_t size)
{
	struct ptx_ins *ins = ptx_build_emit(b, size == 8 ? "mov.b64" : "mov.b32");

	ins->d = d;
	ins->a = a;
}

/* Operand `index` into the row of registers from `at`; returns how many there are. */
static void gather(
	struct ptx_build *b, uint32_t index, uint32_t at, uint32_t size, uint32_t most)
{
	const struct ptx_operand *o = ptx_arg(b, index);
	uint32_t n = o->kind == PTX_OPERAND_LIST ? o->nitems : 1;

	if (n > most)
		ptx_build_lacks(b, "%.*s: a list of %u", (int)b->st.text.n, b->st.text.p, n);
	for (uint32_t k = 0; k < n; k++)
		move(b, at + k * size * PTX_LANES,
			ptx_in(b, o->kind == PTX_OPERAND_LIST ? &o->items[k] : o, size), size);
}

/* The bits of MXCSR for a rounding of f64; 0: to the nearest. */
static uint16_t rounding(const struct ptx_statement *st)
{
	static const char *const modes[] = {"rm", "rp", "rz"};

	for (unsigned k = 0; k < 3; k++)
		if (ptx_has_mod(st, modes[k]))
			return (uint16_t)(PTX_MXCSR_DEFAULT | (k + 1u) << 13);
	return 0;
}

/* The row of registers from `at` into the first operand. */
static void scatter(struct ptx_build *b, uint32_t at, uint32_t size, uint32_t most)
{
	const struct ptx_operand *d = ptx_arg(b, 0);

	if (d->kind != PTX_OPERAND_LIST || d->nitems > most)
		ptx_build_lacks(b, "%.*s: its result", (int)b->st.text.n, b->st.text.p);
	for (uint32_t k = 0; k < d->nitems; k++) {
		struct ptx_out out = ptx_out(b, &d->items[k], size, false);

		move(b, out.operand, at + k * size * PTX_LANES, size);
		ptx_out_finish(b, &out);
	}
}

static uint64_t says(const char *mod, const char *what, uint64_t bit)
{
	return strcmp(mod, what) ? 0 : bit;
}

/* mma.sync.aligned.m8n8k4.alayout.blayout.dtype.f16.f16.ctype: Volta's, four products at once.
 * Rows of registers: d 8, a 2, b 2, c 8. */
static void decode_volta(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	const uint32_t row = 4 * PTX_LANES, at = scratch(b, 4);
	struct ptx_ins *ins;

	/* .sync.aligned.m8n8k4 and the rest in this order. */
	if (st->nmods != 9)
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	gather(b, 1, at + 8 * row, 4, 2);
	gather(b, 2, at + 10 * row, 4, 2);
	gather(b, 3, at + 12 * row, 4, 8);
	ins = ptx_build_emit(b, "mma.volta");
	ins->d = at;
	ins->a = at + 8 * row;
	ins->b = at + 10 * row;
	ins->c = at + 12 * row;
	ins->e = ptx_build_constant(b, 4, UINT32_MAX, PTX_FIXED);
	ins->imm = says(st->mod[3], "col", 1) | says(st->mod[4], "col", 2) |
		   says(st->mod[8], "f32", 4) | says(st->mod[5], "f32", 8);
	scatter(b, at, 4, 8);
}

static void decode_mma(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	const char *types[4] = {"", "", "", ""}, *shape = "";
	uint32_t n = 0, size, row, at, meta;
	struct ptx_ins *ins;
	char key[80];
	bool sparse;

	if (ptx_has_mod(st, "m8n8k4") && !ptx_has_mod(st, "f64")) {
		decode_volta(b);
		return;
	}

	for (uint32_t k = 0; k < st->nmods; k++) {
		const char *mod = st->mod[k];

		if ((ptx_type_bytes(mod) || ptx_mod_in(mod, "e4m3 e5m2 s4 u4 b1")) && n < 4)
			types[n++] = mod;
		else if (mod[0] == 'm' && mod[1] >= '0' && mod[1] <= '9')
			shape = mod;
		else if (strcmp(mod, "sync") && strcmp(mod, "aligned") && strcmp(mod, "row") &&
			 strcmp(mod, "col") && strcmp(mod, "satfinite") &&
			 strcmp(mod, "popc") && strcmp(mod, "and") && strcmp(mod, "xor") &&
			 !ptx_mod_in(mod, "rn rz rm rp sp sp::ordered_metadata"))
			ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	}
	if (n != 4 || strcmp(types[0], types[3]))
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	sparse = st->noperands == 6;
	snprintf(key, sizeof(key), "mma.%s%s%s.%s.%s.%s", sparse ? "sp." : "", shape,
		ptx_has_mod(st, "satfinite") ? ".satfinite"
		: ptx_has_mod(st, "and")     ? ".and"
		: ptx_has_mod(st, "xor")     ? ".xor"
					     : "",
		types[0], types[1], types[2]);
	size = !strcmp(types[0], "f64") ? 8 : 4;
	row = size * PTX_LANES;
	at = scratch(b, size);
	gather(b, 1, at + AT_A * row, size, AT_B - AT_A);
	gather(b, 2, at + AT_B * row, size, AT_C - AT_B);
	gather(b, 3, at + AT_C * row, size, MATRIX_REGS - AT_C);
	if (sparse && ptx_arg(b, 5)->kind != PTX_OPERAND_NUMBER)
		ptx_build_lacks(b, "%.*s: its selector", (int)st->text.n, st->text.p);
	meta = sparse ? ptx_in(b, ptx_arg(b, 4), 4) : 0;
	ins = ptx_build_emit(b, key);
	ins->d = at;
	ins->a = at + AT_A * row;
	ins->b = at + AT_B * row;
	ins->c = at + AT_C * row;
	ins->e = ptx_build_constant(b, 4, UINT32_MAX, PTX_FIXED);
	ins->mode = rounding(st);
	if (sparse) {
		ins->f = meta;
		ins->imm = ptx_arg(b, 5)->number.bits;
	}
	scatter(b, at, size, 4);
}

/* ldmatrix.sync.aligned.m8n8.x4{.trans}.shared.b16 {..}, [a]; stmatrix the other way round. */
static void decode_ldmatrix(struct ptx_build *b, bool store)
{
	const struct ptx_statement *st = &b->st;
	const struct ptx_operand *list = ptx_arg(b, store ? 1 : 0);
	uint32_t count = ptx_has_mod(st, "x4") ? 4 : ptx_has_mod(st, "x2") ? 2 : 1, v[4] = {0};
	struct ptx_address at;
	struct ptx_ins *ins;
	char key[48];

	if (!ptx_has_mod(st, "m8n8") || !ptx_has_mod(st, "b16") ||
		(list->kind == PTX_OPERAND_LIST ? list->nitems : 1) != count)
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	at = ptx_address(b, ptx_arg(b, store ? 0 : 1), 'S');
	for (uint32_t k = 0; k < count; k++) {
		const struct ptx_operand *o =
			list->kind == PTX_OPERAND_LIST ? &list->items[k] : list;

		v[k] = store ? ptx_in(b, o, 4) : ptx_out(b, o, 4, false).operand;
	}
	snprintf(key, sizeof(key), "%s.x%u%s", store ? "stmatrix" : "ldmatrix", count,
		ptx_has_mod(st, "trans") ? ".trans" : "");
	ins = ptx_build_emit(b, key);
	ins->a = at.reg;
	ins->imm = at.imm;
	ins->d = v[0];
	ins->b = v[1];
	ins->c = v[2];
	ins->f = v[3];
	ins->e = ptx_build_constant(b, 4, UINT32_MAX, PTX_FIXED);
}

void ptx_decode_matrix(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	struct ptx_ins *ins;
	struct ptx_out out;
	uint32_t a;

	if (st->root.n == 3) {
		decode_mma(b);
	} else if (st->root.p[0] != 'm') {
		decode_ldmatrix(b, st->root.p[0] == 's');
	} else if (ptx_has_mod(st, "m8n8") && ptx_has_mod(st, "trans")) {
		out = ptx_out(b, ptx_arg(b, 0), 4, false);
		a = ptx_in(b, ptx_arg(b, 1), 4);
		ins = ptx_build_emit(b, "movmatrix");
		ins->d = out.operand;
		ins->a = a;
		ins->e = ptx_build_constant(b, 4, UINT32_MAX, PTX_FIXED);
	} else {
		ptx_build_lacks(b, "%.*s", (int)st->text.n, st->text.p);
	}
}
