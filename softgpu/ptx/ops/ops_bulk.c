/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk copies and reductions, of bytes side by side and of boxes of a tensor.  They are done
 * when the instruction is; what they bring counts on the barrier at once.
 */
#include "softgpu/ptx/bulk.h"
#include "softgpu/ptx/ops/barrier.h"
#include "softgpu/ptx/ops/ops.h"
#include "softgpu/ptx/ops/round.h"

static const uint8_t sizes[BULK_TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};

struct operands {
	uint64_t v[BULK_OPERANDS];
};

static struct operands read_operands(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane)
{
	struct operands o;

	for (unsigned k = 0; k < BULK_OPERANDS; k++)
		o.v[k] = ((const uint64_t *)(const void *)ptx_reg(
			w, i->d + k * 8 * PTX_LANES))[lane];
	return o;
}

/* ---- One element's reduction ---- */

static uint64_t whole(enum bulk_op op, enum bulk_type type, uint64_t old, uint64_t v)
{
	const bool less = type == BULK_S32   ? (int32_t)v < (int32_t)old
			  : type == BULK_S64 ? (int64_t)v < (int64_t)old
					     : v < old;

	switch (op) {
	case BULK_ADD: return old + v;
	case BULK_MIN: return less ? v : old;
	case BULK_MAX: return less ? old : v;
	case BULK_INC: return old >= v ? 0 : old + 1;
	case BULK_DEC: return old == 0 || old > v ? v : old - 1;
	case BULK_AND: return old & v;
	case BULK_OR: return old | v;
	case BULK_XOR: return old ^ v;
	default: return v;
	}
}

static double to_double(enum bulk_type type, uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float narrow;
	double v;

	switch (type) {
	case BULK_F16: return (double)ptx_half_to_float((uint16_t)bits);
	case BULK_BF16: return (double)ptx_bf16_to_float((uint16_t)bits);
	case BULK_F32: memcpy(&narrow, &low, sizeof(narrow)); return (double)narrow;
	default: memcpy(&v, &bits, sizeof(v)); return v;
	}
}

static uint64_t from_double(enum bulk_type type, double v)
{
	float narrow = (float)v;
	uint64_t bits = 0;

	if (type == BULK_F16)
		return ptx_half_from(v);
	if (type == BULK_BF16)
		return ptx_bf16_from(v);
	if (type == BULK_F32)
		memcpy(&bits, &narrow, sizeof(narrow));
	else
		memcpy(&bits, &v, sizeof(v));
	return bits;
}

static uint64_t combine(enum bulk_op op, enum bulk_type type, uint64_t old, uint64_t v)
{
	const double x = to_double(type, old), y = to_double(type, v);

	if (type < BULK_F16)
		return whole(op, type, old, v);
	switch (op) {
	case BULK_ADD: return from_double(type, x + y);
	case BULK_MIN: return isnan(x) || y < x ? v : old;
	case BULK_MAX: return isnan(x) || y > x ? v : old;
	default: return whole(op, type, old, v); /* on the bits */
	}
}

#define SWAP_AS(T)                                                                             \
	do {                                                                                   \
		T old_ = __atomic_load_n((T *)to, __ATOMIC_SEQ_CST), next_;                    \
		do                                                                             \
			next_ = (T)combine(op, type, old_, v);                                 \
		while (!__atomic_compare_exchange_n(                                           \
			(T *)to, &old_, next_, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));     \
	} while (0)

/* Stores the element, or what it makes of the one that is there. */
static void store(void *to, const void *from, enum bulk_op op, enum bulk_type type)
{
	const size_t size = sizes[type];
	uint64_t v = 0;

	memcpy(&v, from, size);
	if (op == BULK_COPY)
		memcpy(to, &v, size);
	else if (size == 1)
		SWAP_AS(uint8_t);
	else if (size == 2)
		SWAP_AS(uint16_t);
	else if (size == 4)
		SWAP_AS(uint32_t);
	else
		SWAP_AS(uint64_t);
}

/* ---- Bytes side by side ---- */

static void move(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane,
	const struct bulk *bulk, uint64_t to, uint64_t from, uint32_t n)
{
	if (n % 16 || to % 16 || from % 16)
		ptx_fault(w, i, PTX_MISALIGNED_ADDRESS,
			"a bulk copy of %u bytes not aligned to 16", n);
	for (uint32_t at = 0; at < n; at += 16) {
		unsigned char held[16], *p = ptx_generic(w, i, lane, to + at, 16);
		const uint8_t size = sizes[bulk->type];

		memcpy(held, ptx_generic(w, i, lane, from + at, 16), 16);
		if (bulk->op == BULK_COPY)
			memcpy(p, held, 16);
		else
			for (unsigned k = 0; k < 16; k += size)
				store(p + k, held + k, bulk->op, bulk->type);
	}
}

/* ---- Tensors ---- */

/* The bytes of a box or column; 0: there is none such. */
static uint64_t box_bytes(const struct tensor_map *map)
{
	uint64_t bytes = sizes[map->type];

	if (map->im2col)
		return map->rank < 3 || map->box[0] > TENSOR_BOX_MAX ||
				       map->box[1] > TENSOR_PIXELS_MAX
			       ? 0
			       : bytes * map->box[0] * map->box[1];
	for (unsigned k = 0; k < map->rank; k++) {
		if (map->box[k] > TENSOR_BOX_MAX || !map->step[k] ||
			map->step[k] > TENSOR_STRIDE_MAX)
			return 0;
		bytes *= (map->box[k] + map->step[k] - 1u) / map->step[k];
	}
	return bytes;
}

/* A kernel may have written the map itself. */
static struct tensor_map read_map(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane,
	uint64_t address, const struct bulk *bulk)
{
	struct tensor_map map;
	uint64_t bytes;

	for (unsigned k = 0; k < sizeof(map); k += 8)
		memcpy((char *)&map + k, ptx_generic(w, i, lane, address + k, 8), 8);
	if (map.magic != TENSOR_MAGIC || map.rank != bulk->rank || map.type >= BULK_TYPES ||
		map.swizzle > 3)
		ptx_fault(w, i, PTX_TRAP, "no map of a tensor of rank %u at 0x%llx", bulk->rank,
			(unsigned long long)address);
	if (map.im2col != bulk->im2col)
		ptx_fault(w, i, PTX_TRAP, "the tensor map at 0x%llx is %s",
			(unsigned long long)address,
			map.im2col ? "one of im2col" : "none of im2col");
	bytes = box_bytes(&map);
	if (!bytes || bytes > PTX_MAX_SHARED || bytes % 16)
		ptx_fault(w, i, PTX_TRAP, "a tensor map with a box of %llu bytes",
			(unsigned long long)bytes);
	return map;
}

/* Where byte `at` of shared memory lies: its 16-byte unit is moved within its row. */
static uint64_t swizzled(uint64_t at, unsigned swizzle)
{
	return at ^ (at >> 3 & ((1u << swizzle) - 1) << 4);
}

/* What moves the elements of one box or column. */
struct tensor_move {
	struct ptx_warp *w;
	const struct ptx_ins *i;
	unsigned lane;
	const struct bulk *bulk;
	const struct tensor_map *map;
	uint64_t shared; /* where the first one lies */
	uint32_t bytes;	 /* that are done */
};

static void move_element(struct tensor_move *m, const int64_t *at)
{
	const struct tensor_map *map = m->map;
	const uint8_t size = sizes[map->type];
	const uint64_t outside = map->fill_nan && map->type >= BULK_F16
					 ? PTX_OOB_NAN * UINT64_C(0x0001000100010001)
					 : 0;
	uint64_t address = map->address;
	bool inside = true;
	void *here = ptx_generic(
		m->w, m->i, m->lane, swizzled(m->shared + m->bytes, map->swizzle), size);

	for (unsigned k = 0; k < map->rank; k++) {
		inside &= at[k] >= 0 && at[k] <= map->last[k];
		address += (uint64_t)at[k] * (k ? map->stride[k - 1] : size);
	}
	if (!m->bulk->to_shared && inside)
		store(ptx_generic(m->w, m->i, m->lane, address, size), here, m->bulk->op,
			map->type);
	else if (m->bulk->to_shared)
		store(here, inside ? ptx_generic(m->w, m->i, m->lane, address, size) : &outside,
			BULK_COPY, map->type);
	m->bytes += size;
}

static void move_box(struct tensor_move *m, const uint64_t *coordinates)
{
	const struct tensor_map *map = m->map;
	uint32_t index[5] = {0};
	int64_t at[5];
	unsigned k;

	do {
		for (k = 0; k < map->rank; k++)
			at[k] = (int32_t)coordinates[k] + (int64_t)index[k];
		move_element(m, at);
		for (k = 0; k < map->rank; k++) {
			index[k] += k ? map->step[k] : 1;
			if (index[k] < map->box[k])
				break;
			index[k] = 0;
		}
	} while (k < map->rank);
}

/* Pixel after pixel from the coordinates on: where the filter's base leaves its bounds in
 * width it goes back and on in height, and so on to the next image.  The offsets are where in
 * the filter the pixel lies. */
static void move_column(
	struct tensor_move *m, const uint64_t *coordinates, const uint64_t *offsets)
{
	const struct tensor_map *map = m->map;
	const unsigned last = map->rank - 1u;
	int64_t base[5], at[5];
	unsigned k;

	for (k = 0; k <= last; k++)
		base[k] = (int32_t)coordinates[k];
	for (uint32_t pixel = 0; pixel < map->box[1]; pixel++) {
		for (k = 1; k <= last; k++)
			at[k] = base[k] +
				(k < last && m->bulk->to_shared ? (uint16_t)offsets[k - 1] : 0);
		for (at[0] = base[0]; at[0] < base[0] + map->box[0]; at[0]++)
			move_element(m, at);
		for (k = 1; k < last; k++) {
			base[k] += map->step[k];
			if (base[k] <= (int64_t)map->last[k] + map->upper[k - 1])
				break;
			base[k] = map->lower[k - 1];
		}
		if (k == last)
			base[k]++;
	}
}

/* The box or column at the coordinates, to or from `shared`; returns its bytes. */
static uint32_t move_tensor(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane,
	const struct bulk *bulk, const struct operands *o)
{
	const uint64_t shared = o->v[bulk->to_shared ? BULK_TO : BULK_FROM];
	const struct tensor_map map =
		read_map(w, i, lane, o->v[bulk->to_shared ? BULK_FROM : BULK_TO], bulk);
	struct tensor_move m = {w, i, lane, bulk, &map, shared, 0};
	const int64_t first = (int64_t)(int32_t)o->v[BULK_AT] * sizes[map.type];

	if (shared % 16)
		ptx_fault(w, i, PTX_MISALIGNED_ADDRESS, "a tensor's box at 0x%llx",
			(unsigned long long)shared);
	/* So an H200 does (tests/programs/tensor-copies.cu). */
	if (first % 16)
		ptx_fault(w, i, PTX_ILLEGAL_INSTRUCTION,
			"a tensor's box %lld bytes into a row, not a multiple of 16",
			(long long)first);
	if (map.im2col)
		move_column(&m, &o->v[BULK_AT], &o->v[BULK_OFFSET]);
	else
		move_box(&m, &o->v[BULK_AT]);
	return m.bytes;
}

/* ---- The instruction ---- */

static void one_block(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane,
	const struct bulk *bulk, const struct operands *o)
{
	uint32_t bytes = (uint32_t)o->v[BULK_BYTES];

	if (bulk->rank)
		bytes = move_tensor(w, i, lane, bulk, o);
	else
		move(w, i, lane, bulk, o->v[BULK_TO], o->v[BULK_FROM], bytes);
	if (bulk->has_barrier) {
		uint64_t *p = ptx_generic(w, i, lane, o->v[BULK_BARRIER], 8);
		struct mbarrier bar = mbarrier_read(p);

		bar.bytes -= (int32_t)bytes;
		mbarrier_write(p, bar);
	}
}

/* The same place in the shared memory of another block. */
static uint64_t in_block(uint64_t address, unsigned rank)
{
	return (address & ~(UINT64_C(0xff) << PTX_RANK_SHIFT)) | (uint64_t)(rank + 1)
									 << PTX_RANK_SHIFT;
}

OP(bulk, "bulk", "x")
{
	struct bulk bulk;

	memcpy(&bulk, &i->imm, sizeof(bulk));
	EACH(w->mask)
	{
		struct operands o = read_operands(w, i, l);

		if (!bulk.multicast) {
			one_block(w, i, l, &bulk, &o);
			continue;
		}
		for (unsigned k = 0; k < PTX_MAX_CLUSTER; k++) {
			struct operands there = o;

			if (!(o.v[BULK_BLOCKS] >> k & 1))
				continue;
			there.v[BULK_TO] = in_block(o.v[BULK_TO], k);
			there.v[BULK_BARRIER] = in_block(o.v[BULK_BARRIER], k);
			one_block(w, i, l, &bulk, &there);
		}
	}
}

/* By the numbers that PTX has for them. */
static const uint8_t element_types[] = {BULK_U8, BULK_U16, BULK_U32, BULK_S32, BULK_U64,
	BULK_S64, BULK_F16, BULK_F32, BULK_F32, BULK_F64, BULK_BF16, BULK_F32, BULK_F32};

/* The fields are in the order of `fields` in decode/decode_bulk.c. */
static void set_field(struct tensor_map *map, uint32_t field, uint32_t index, uint64_t v)
{
	switch (field) {
	case 0: map->address = v; break;
	case 1: map->rank = (uint8_t)(v + 1); break;
	case 2: map->box[index] = (uint16_t)v; break;
	case 3: map->last[index] = (uint32_t)v - 1; break;
	case 4: map->stride[index] = v; break;
	case 5: map->step[index] = index ? (uint8_t)v : 1; break;
	case 6: map->type = v < sizeof(element_types) ? element_types[v] : BULK_TYPES; break;
	case 8: map->swizzle = (uint8_t)v; break;
	case 9: map->fill_nan = v != 0; break;
	default: break;
	}
}

static void replace(
	struct ptx_warp *w, const struct ptx_ins *i, unsigned lane, uint64_t at, uint64_t v)
{
	struct tensor_map map;

	if (i->f > (i->e == 4 ? 3 : 4) || (i->e == 7 && v))
		ptx_fault(w, i, PTX_TRAP, "a field that tensor maps here lack");
	for (unsigned k = 0; k < sizeof(map); k += 8)
		memcpy((char *)&map + k, ptx_generic(w, i, lane, at + k, 8), 8);
	if (map.im2col && i->e == 2)
		ptx_fault(w, i, PTX_TRAP, "a tensor map of im2col has no box");
	set_field(&map, i->e, i->f, v);
	for (unsigned k = 0; k < sizeof(map); k += 8)
		memcpy(ptx_generic(w, i, lane, at + k, 8), (char *)&map + k, 8);
}

OP(tensormap_b32, "tensormap.b32", "x")
{
	EACH(w->mask) replace(w, i, l, REG(const uint64_t, d)[l], REG(const uint32_t, a)[l]);
}

OP(tensormap_b64, "tensormap.b64", "x")
{
	EACH(w->mask) replace(w, i, l, REG(const uint64_t, d)[l], REG(const uint64_t, a)[l]);
}
