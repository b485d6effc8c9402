/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk copies and reductions (cp.async.bulk, cp.reduce.async.bulk, their tensor forms), and
 * what changes a tensor map.  A copy's operands go into a row of registers side by side.
 */
#include "softgpu/ptx/bulk.h"
#include "softgpu/ptx/parse/build.h"

#include <stdlib.h>

static _Noreturn void lacks(struct ptx_build *b)
{
	ptx_build_lacks(b, "%.*s", (int)b->st.text.n, b->st.text.p);
}

static uint32_t place(struct ptx_build *b, uint32_t index)
{
	if (!b->bulk) {
		b->bulk = ptx_build_reg(b, 8);
		for (unsigned k = 1; k < BULK_OPERANDS; k++)
			(void)ptx_build_reg(b, 8);
	}
	return b->bulk + index * 8 * PTX_LANES;
}

static void put(struct ptx_build *b, uint32_t index, const struct ptx_operand *o, uint32_t size)
{
	uint32_t a = ptx_in(b, o, size), d = place(b, index);
	struct ptx_ins *ins = ptx_build_emit(b, size == 2 ? "cvt.u64.u16" : "cvt.u64.s32");

	ins->d = d;
	ins->a = a;
}

static void put_address(
	struct ptx_build *b, uint32_t index, const struct ptx_operand *o, char space)
{
	struct ptx_address at = ptx_address_in(b, o, space);
	uint32_t d = place(b, index);
	struct ptx_ins *ins = ptx_build_emit(b, "cvta.add.b64");

	ins->d = d;
	ins->a = at.reg;
	ins->imm = at.imm;
}

/* [map, {coordinates}]: the map is at a generic address. */
static void put_tensor(
	struct ptx_build *b, uint32_t index, const struct ptx_operand *o, unsigned rank)
{
	if (o->kind != PTX_OPERAND_ADDRESS || o->nitems != 2 ||
		o->items[1].kind != PTX_OPERAND_LIST || o->items[1].nitems != rank)
		ptx_build_wrong(
			b, "%.*s: the tensor's coordinates", (int)b->st.text.n, b->st.text.p);
	put_address(b, index, &o->items[0], 'A');
	for (uint32_t k = 0; k < rank; k++)
		put(b, BULK_AT + k, &o->items[1].items[k], 4);
}

/* {width, height, depth}: as many as the tensor's rank less two. */
static void put_offsets(struct ptx_build *b, const struct ptx_operand *o, unsigned rank)
{
	if (o->kind != PTX_OPERAND_LIST || o->nitems != rank - 2)
		ptx_build_wrong(
			b, "%.*s: the filter's offsets", (int)b->st.text.n, b->st.text.p);
	for (uint32_t k = 0; k < o->nitems; k++)
		put(b, BULK_OFFSET + k, &o->items[k], 2);
}

static void read_mods(struct ptx_build *b, struct bulk *bulk)
{
	static const char *const ops[] = {
		"", "add", "min", "max", "inc", "dec", "and", "or", "xor"};
	static const char *const types[] = {
		"", "", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16"};
	const struct ptx_statement *st = &b->st;
	bool placed = false;

	for (uint32_t k = 0; k < st->nmods; k++) {
		const char *mod = st->mod[k];

		if (mod[0] >= '1' && mod[0] <= '5' && !strcmp(mod + 1, "d"))
			bulk->rank = (unsigned)(mod[0] - '0') & 7;
		else if (!placed && (!strncmp(mod, "shared", 6) || !strcmp(mod, "global")))
			bulk->to_shared = placed = true, bulk->to_shared = mod[0] == 's';
		else if (!strcmp(mod, "im2col") || !strcmp(mod, "im2col_no_offs"))
			bulk->im2col = true;
		else if (!strncmp(mod, "im2col", 6) || !strncmp(mod, "tile::", 6) ||
			 !strcmp(mod, "cp_mask"))
			lacks(b);
		for (unsigned n = 1; n < sizeof(ops) / sizeof(ops[0]); n++)
			if (!strcmp(mod, ops[n]))
				bulk->op = n & 15;
		for (unsigned n = 2; n < sizeof(types) / sizeof(types[0]); n++)
			if (!strcmp(mod, types[n]))
				bulk->type = n & 15;
		if (!strcmp(mod, "b32") || !strcmp(mod, "b64"))
			bulk->type = mod[1] == '3' ? BULK_U32 : BULK_U64;
	}
}

void ptx_decode_bulk(struct ptx_build *b)
{
	const struct ptx_statement *st = &b->st;
	struct bulk bulk = {0};
	struct ptx_ins *ins;
	uint32_t next = 2, row;

	if (ptx_has_mod(st, "commit_group") || ptx_has_mod(st, "wait_group") ||
		ptx_has_mod(st, "prefetch"))
		return; /* a copy is done when the instruction is */
	read_mods(b, &bulk);
	if ((!strcmp(st->mod[0], "reduce")) != (bulk.op != BULK_COPY) ||
		(bulk.op && !bulk.rank && bulk.type < BULK_U32) ||
		(ptx_has_mod(st, "tensor") != (bulk.rank != 0)))
		lacks(b);
	if (bulk.im2col && bulk.rank < 3)
		ptx_build_wrong(b, "%.*s: a tensor of rank %u has no pixels", (int)st->text.n,
			st->text.p, bulk.rank);
	if (bulk.rank && !bulk.to_shared)
		put_tensor(b, BULK_TO, ptx_arg(b, 0), bulk.rank);
	else
		put_address(b, BULK_TO, ptx_arg(b, 0), bulk.to_shared ? 'S' : 'G');
	if (bulk.rank && bulk.to_shared)
		put_tensor(b, BULK_FROM, ptx_arg(b, 1), bulk.rank);
	else
		put_address(b, BULK_FROM, ptx_arg(b, 1),
			bulk.to_shared && ptx_has_mod(st, "global") ? 'G' : 'S');
	if (!bulk.rank)
		put(b, BULK_BYTES, ptx_arg(b, next++), 4);
	if (bulk.to_shared) {
		bulk.has_barrier = true;
		put_address(b, BULK_BARRIER, ptx_arg(b, next++), 'S');
	}
	if (bulk.im2col && bulk.to_shared)
		put_offsets(b, ptx_arg(b, next++), bulk.rank);
	if (ptx_has_mod(st, "multicast::cluster")) {
		bulk.multicast = true;
		put(b, BULK_BLOCKS, ptx_arg(b, next), 2);
	}
	row = place(b, 0);
	ins = ptx_build_emit(b, "bulk");
	ins->d = row;
	memcpy(&ins->imm, &bulk, sizeof(bulk));
}

/* A policy of the caches: there are none here. */
void ptx_decode_createpolicy(struct ptx_build *b)
{
	struct ptx_out out = ptx_out(b, ptx_arg(b, 0), 8, false);
	uint32_t none = ptx_build_constant(b, 8, 0, PTX_FIXED);
	struct ptx_ins *ins = ptx_build_emit(b, "mov.b64");

	ins->d = out.operand;
	ins->a = none;
	ptx_out_finish(b, &out);
}

/* tensormap.replace.tile.field.space.b1024.type [map], {index,} value;
 * tensormap.cp_fenceproxy [to], [from], 128 */
void ptx_decode_tensormap(struct ptx_build *b)
{
	static const char *const fields[] = {"global_address", "rank", "box_dim", "global_dim",
		"global_stride", "element_stride", "elemtype", "interleave_layout",
		"swizzle_mode", "fill_mode"};
	const struct ptx_statement *st = &b->st;
	struct bulk bulk = {0};
	struct ptx_ins *ins;
	uint32_t field = 0, row, value, size;
	bool indexed;

	if (ptx_has_mod(st, "cp_fenceproxy")) {
		put_address(b, BULK_TO, ptx_arg(b, 0), 'G');
		put_address(b, BULK_FROM, ptx_arg(b, 1), 'S');
		put(b, BULK_BYTES, ptx_arg(b, 2), 4);
		row = place(b, 0);
		ins = ptx_build_emit(b, "bulk");
		ins->d = row;
		memcpy(&ins->imm, &bulk, sizeof(bulk));
		return;
	}
	while (field < 10 && !ptx_has_mod(st, fields[field]))
		field++;
	if (field == 10 || !ptx_has_mod(st, "tile"))
		lacks(b);
	indexed = field >= 2 && field <= 5;
	size = ptx_type_bytes(st->mod[st->nmods - 1]);
	put_address(b, BULK_TO, ptx_arg(b, 0), ptx_has_mod(st, "global") ? 'G' : 'S');
	if (indexed && ptx_arg(b, 1)->kind != PTX_OPERAND_NUMBER)
		ptx_build_wrong(b, "%.*s: its index", (int)st->text.n, st->text.p);
	value = ptx_in(b, ptx_arg(b, indexed ? 2 : 1), size);
	row = place(b, 0);
	ins = ptx_build_emit(b, size == 8 ? "tensormap.b64" : "tensormap.b32");
	ins->d = row;
	ins->a = value;
	ins->e = field;
	ins->f = indexed ? (uint32_t)ptx_arg(b, 1)->number.bits : 0;
}
