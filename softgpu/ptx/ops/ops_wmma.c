/* SPDX-License-Identifier: Apache-2.0
 *
 * wmma: matrices in fragments.  PTX leaves open which lane holds which element, so a lane has a
 * run of them: element e of a matrix, by rows, lies in lane e / n as its number e % n, where n
 * is how many of them each lane has.  B lies transposed, so that both operands run along k.
 * Accumulators of a shape lie alike whatever their type is; registers that PTX has beyond
 * these elements stay 0.
 */
#include "softgpu/ptx/ops/ops_sync.h"
#include "softgpu/ptx/ops/round.h"
#include "softgpu/ptx/wmma.h"

static const uint8_t element_bits[] = {
	[WMMA_F16] = 16,
	[WMMA_BF16] = 16,
	[WMMA_TF32] = 32,
	[WMMA_F32] = 32,
	[WMMA_F64] = 64,
	[WMMA_S8] = 8,
	[WMMA_U8] = 8,
	[WMMA_S32] = 32,
	[WMMA_S4] = 4,
	[WMMA_U4] = 4,
	[WMMA_B1] = 1,
};

#define ELEMENTS_MAX (32 * 32)

/* Where element n of a lane lies in a row of registers, in bits from the row's beginning. */
INLINE size_t place(unsigned bits, unsigned lane, unsigned n)
{
	const unsigned whole = bits > 32 ? 64 : 32, at = n * bits;

	return ((size_t)(at / whole) * PTX_LANES + lane) * whole + at % whole;
}

static double value_of(uint64_t raw, enum wmma_kind kind)
{
	uint32_t word = (uint32_t)raw;
	double v;
	float f;

	switch (kind) {
	case WMMA_F16: return (double)ptx_half_to_float((uint16_t)raw);
	case WMMA_BF16: return (double)ptx_bf16_to_float((uint16_t)raw);
	case WMMA_TF32: word &= ~0x1fffu; /* fall through */
	case WMMA_F32: memcpy(&f, &word, sizeof(f)); return (double)f;
	case WMMA_F64: memcpy(&v, &raw, sizeof(v)); return v;
	case WMMA_S8: return (int8_t)raw;
	case WMMA_S32: return (int32_t)word;
	case WMMA_S4: return (int8_t)(raw << 4) >> 4;
	default: return (double)raw;
	}
}

static uint64_t get(const unsigned char *regs, unsigned bits, unsigned lane, unsigned n)
{
	const size_t at = place(bits, lane, n);
	uint64_t word = 0;

	memcpy(&word, regs + at / 64 * 8, 8);
	word >>= at % 64;
	return bits < 64 ? word & ((UINT64_C(1) << bits) - 1) : word;
}

static void put(unsigned char *regs, unsigned bits, unsigned lane, unsigned n, uint64_t value)
{
	const size_t at = place(bits, lane, n);
	const uint64_t mask = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
	uint64_t word;

	memcpy(&word, regs + at / 64 * 8, 8);
	word = (word & ~(mask << at % 64)) | (value & mask) << at % 64;
	memcpy(regs + at / 64 * 8, &word, 8);
}

static void read_matrix(const unsigned char *regs, enum wmma_kind kind, unsigned count,
	double values[ELEMENTS_MAX])
{
	const unsigned each = count / PTX_LANES;

	for (unsigned e = 0; e < count; e++)
		values[e] = value_of(get(regs, element_bits[kind], e / each, e % each), kind);
}

/* Element (row, column) of the matrix in memory; elements of less than a byte by their byte. */
static void *in_memory(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane, unsigned row,
	unsigned column, unsigned bits)
{
	const bool by_columns = i->f >> 24;
	const uint64_t stride = REG(const uint32_t, b)[lane];
	const uint64_t e = by_columns ? column * stride + row : row * stride + column;

	return ptx_generic(w, i, lane, REG(const uint64_t, a)[lane] + i->imm + e * bits / 8,
		bits < 8 ? 1 : bits / 8);
}

/* f: rows, columns << 8, kind << 16, by columns << 24. */
OP_FLOW(wmma_load, "wmma.load", "x!")
{
	const uint32_t before = w->mask;
	const unsigned rows = i->f & 255, columns = i->f >> 8 & 255;
	const unsigned bits = element_bits[i->f >> 16 & 255], each = rows * columns / PTX_LANES;
	const unsigned step = bits < 8 ? 8 / bits : 1;
	unsigned char *d = ptx_reg(w, i->d);

	if (!gather(w, i))
		return NULL;
	EACH(w->mask)
	for (unsigned n = 0; n < each; n += step) {
		const unsigned e = l * each + n;
		uint64_t v = 0;

		memcpy(&v, in_memory(w, i, l, e / columns, e % columns, bits),
			bits < 8 ? 1 : bits / 8);
		put(d, bits * step, l, n / step, v);
	}
	return NEXT(before);
}

OP_FLOW(wmma_store, "wmma.store", "x!")
{
	const uint32_t before = w->mask;
	const unsigned rows = i->f & 255, columns = i->f >> 8 & 255;
	const unsigned bits = element_bits[i->f >> 16 & 255], each = rows * columns / PTX_LANES;

	if (!gather(w, i))
		return NULL;
	EACH(w->mask)
	for (unsigned n = 0; n < each; n++) {
		const unsigned e = l * each + n;
		const uint64_t v = get(ptx_reg(w, i->d), bits, l, n);

		memcpy(in_memory(w, i, l, e / columns, e % columns, bits), &v, bits / 8);
	}
	return NEXT(before);
}

static uint64_t as_kind(double v, enum wmma_kind kind, bool finite)
{
	uint64_t raw = 0;
	int64_t n;
	float f;

	switch (kind) {
	case WMMA_F16: return ptx_half_from(v);
	case WMMA_F64: memcpy(&raw, &v, sizeof(v)); return raw;
	case WMMA_S32:
		n = (int64_t)v;
		if (finite)
			n = n > INT32_MAX ? INT32_MAX : n < INT32_MIN ? INT32_MIN : n;
		return (uint32_t)n;
	default:
		f = (float)v;
		memcpy(&raw, &f, sizeof(f));
		return raw;
	}
}

/* imm: m, n << 8, k << 16, kinds of A (and B), C, D from bit 24, then what is done. */
OP_FLOW(wmma_mma, "wmma.mma", "x!")
{
	const uint32_t before = w->mask;
	const unsigned m = i->imm & 255, columns = i->imm >> 8 & 255,
		       depth = i->imm >> 16 & 255;
	const enum wmma_kind of = i->imm >> 24 & 255, from = i->imm >> 32 & 255;
	const enum wmma_kind to = i->imm >> 40 & 255;
	const enum wmma_how how = i->imm >> 48 & 255;
	const unsigned each = m * columns / PTX_LANES;
	double a[ELEMENTS_MAX], b[ELEMENTS_MAX], c[ELEMENTS_MAX];

	if (!gather(w, i))
		return NULL;
	read_matrix(ptx_reg(w, i->a), of, m * depth, a);
	read_matrix(ptx_reg(w, i->b), of, columns * depth, b);
	read_matrix(ptx_reg(w, i->c), from, m * columns, c);
	for (unsigned e = 0; e < m * columns; e++) {
		const double *row = a + e / columns * depth, *column = b + e % columns * depth;
		double sum = 0.0;

		if (!(w->mask >> e / each & 1))
			continue;
		for (unsigned t = 0; t < depth; t++)
			sum += how == WMMA_XOR ? (double)(row[t] != column[t])
					       : row[t] * column[t];
		put(ptx_reg(w, i->d), element_bits[to], e / each, e % each,
			as_kind(sum + c[e], to, how == WMMA_FINITE));
	}
	return NEXT(before);
}
