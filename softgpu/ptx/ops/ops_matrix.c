/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices held by a warp.  Which lane holds which element is PTX's; the product is summed in
 * double (integers exactly) and rounded once, so it is at least as close as the hardware's.
 */
#include "softgpu/ptx/ops/ops_sync.h"
#include "softgpu/ptx/ops/round.h"

enum element { E_F16, E_BF16, E_TF32, E_F64, E_S8, E_U8, E_E4M3, E_E5M2, E_S4, E_U4, E_B1 };

/* Elements in a register. */
INLINE unsigned per_register(enum element kind)
{
	return kind <= E_BF16	? 2
	       : kind <= E_F64	? 1
	       : kind <= E_E5M2 ? 4
	       : kind <= E_U4	? 8
				: 32;
}

/* Element `index` of what a lane holds of A or B. */
INLINE double element(
	const unsigned char *regs, enum element kind, unsigned lane, unsigned index)
{
	const unsigned per = per_register(kind);
	uint32_t word, bits;
	float f;
	double v;

	if (kind == E_F64) {
		memcpy(&v, regs + (index * PTX_LANES + lane) * 8, sizeof(v));
		return v;
	}
	memcpy(&word, regs + (index / per * PTX_LANES + lane) * 4, sizeof(word));
	switch (kind) {
	case E_F16: return (double)ptx_half_to_float((uint16_t)(word >> 16 * (index & 1)));
	case E_BF16: return (double)ptx_bf16_to_float((uint16_t)(word >> 16 * (index & 1)));
	case E_S8: return (int8_t)(word >> 8 * (index & 3));
	case E_U8: return (uint8_t)(word >> 8 * (index & 3));
	case E_E4M3: return ptx_unround(word >> 8 * (index & 3) & 0xff, &ptx_e4m3);
	case E_E5M2: return ptx_unround(word >> 8 * (index & 3) & 0xff, &ptx_e5m2);
	case E_S4: return (int32_t)(word << (28 - 4 * (index & 7))) >> 28;
	case E_U4: return word >> 4 * (index & 7) & 15;
	case E_B1: return word >> (index & 31) & 1;
	default:
		bits = word & ~0x1fffu; /* tf32 has no more */
		memcpy(&f, &bits, sizeof(f));
		return (double)f;
	}
}

/* A is m x k by rows, B k x 8 by columns, here each by rows.  A lane holds runs of `run`
 * elements along k; the runs of A alternate between row g and row g + 8 where there are 16
 * rows. */
INLINE void load_a(struct ptx_warp *w, const struct ptx_ins *i, unsigned m, unsigned k,
	enum element ka, double *a)
{
	const unsigned run = per_register(ka), rows = m / 8;

	for (unsigned l = 0; l < PTX_LANES; l++)
		for (unsigned n = 0; n < m * k / 32; n++) {
			const unsigned part = n / run;

			a[((l >> 2) + part % rows * 8) * k + (l & 3) * run + n % run +
				part / rows * 4 * run] = element(ptx_reg(w, i->a), ka, l, n);
		}
}

INLINE void load_b(
	struct ptx_warp *w, const struct ptx_ins *i, unsigned k, enum element kb, double *b)
{
	const unsigned run = per_register(kb);

	for (unsigned l = 0; l < PTX_LANES; l++)
		for (unsigned n = 0; n < k * 8 / 32; n++)
			b[((l & 3) * run + n % run + n / run * 4 * run) * 8 + (l >> 2)] =
				element(ptx_reg(w, i->b), kb, l, n);
}

/* A sparse A of 16 x k, of which a lane holds what is not 0 as if there were no more.  Of four
 * along k two are there, and two bits say which each is (numbers of 4 bits go in pairs); of two
 * tf32 one, and 4 bits say it as two pairs of bits.  The bits are in lanes of the row's quad;
 * `imm` says which of them, as many as it takes.  Of 16 and 32 bits wide numbers such a lane
 * has four chunks of row g in its low half and of row g + 8 in its high half; of narrower ones
 * it has eight chunks of one row, and the next lane those of row g + 8 (seen on an H200). */
INLINE void load_sparse_a(
	struct ptx_warp *w, const struct ptx_ins *i, unsigned k, enum element ka, double *a)
{
	const unsigned unit = ka == E_S4 || ka == E_U4 ? 2 : 1, each = ka == E_TF32 ? 1 : 2;
	const unsigned held = k / 2, lanes = held / unit / each / 4;
	const unsigned first = (unsigned)i->imm % (4 / lanes) * lanes;
	const bool halves = ka == E_F16 || ka == E_BF16 || ka == E_TF32;
	const uint32_t *meta = REG(const uint32_t, f);
	double packed[16 * 64];

	load_a(w, i, 16, held, ka, packed);
	memset(a, 0, 16 * k * sizeof(*a));
	for (unsigned r = 0; r < 16; r++)
		for (unsigned n = 0; n < held; n++) {
			const unsigned at = n / unit, chunk = at / each;
			const unsigned lane = halves ? chunk / 4 : chunk / 8 * 2 + r / 8;
			const unsigned bit =
				halves ? r / 8 * 16 + chunk % 4 * 4 : chunk % 8 * 4;
			const uint32_t bits = meta[r % 8 * 4 + first + lane] >> bit;
			const unsigned index =
				each == 1 ? bits >> 1 & 1 : bits >> at % 2 * 2 & 3;

			a[r * k + (chunk * 2 * each + index) * unit + n % unit] =
				packed[r * held + n];
		}
}

/* Where element n of C and D lies: row g (+ 8), column 2 * (l & 3) (+ 1). */
#define MMA(id, name, m, k, ka, kb, ...) MMA_BY(x *y, id, name, m, k, ka, kb, __VA_ARGS__)
#define MMA_BY(times, id, name, m, k, ka, kb, ...)                                             \
	MMA_OF(times, id, name, m, k, load_a(w, i, m, k, ka, a), kb, __VA_ARGS__)
#define MMA_OF(times, id, name, m, k, load, kb, ...)                                           \
	OP_FLOW(mma_##id, "mma." name, "x!")                                                   \
	{                                                                                      \
		const uint32_t before = w->mask;                                               \
		double a[(m) * (k)], b[(k) * 8];                                               \
		if (!gather(w, i))                                                             \
			return NULL;                                                           \
		load;                                                                          \
		load_b(w, i, k, kb, b);                                                        \
		EACH(w->mask)                                                                  \
		for (unsigned n = 0; n < (m) / 4; n++) {                                       \
			const unsigned row = (l >> 2) + n / 2 * 8,                             \
				       column = 2 * (l & 3) + n % 2;                           \
			double sum = 0.0;                                                      \
			for (unsigned t = 0; t < (k); t++) {                                   \
				const double x = a[row * (k) + t], y = b[t * 8 + column];      \
				sum += times;                                                  \
			}                                                                      \
			__VA_ARGS__                                                            \
		}                                                                              \
		return NEXT(before);                                                           \
	}

#define INTO_F32                                                                               \
	REG(float, d)[n * 32 + l] = (float)(sum + (double)REG(const float, c)[n * 32 + l]);
#define INTO_F64 REG(double, d)[n * 32 + l] = sum + REG(const double, c)[n * 32 + l];
#define INTO_S32                                                                               \
	REG(uint32_t, d)                                                                       \
	[n * 32 + l] = (uint32_t)(int64_t)sum + REG(const uint32_t, c)[n * 32 + l];
#define INTO_S32_SAT                                                                           \
	int64_t v = (int64_t)sum + REG(const int32_t, c)[n * 32 + l];                          \
	v = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;                         \
	REG(int32_t, d)[n * 32 + l] = (int32_t)v;
#define INTO_F16                                                                               \
	uint16_t *half = REG(uint16_t, d) + (n / 2 * 32 + l) * 2 + n % 2;                      \
	*half = ptx_half_from(sum + (double)ptx_half_to_float(REG(const uint16_t,              \
					    c)[(n / 2 * 32 + l) * 2 + n % 2]));

MMA(f16_k16, "m16n8k16.f32.f16.f16", 16, 16, E_F16, E_F16, INTO_F32)
MMA(f16_k8, "m16n8k8.f32.f16.f16", 16, 8, E_F16, E_F16, INTO_F32)
MMA(f16_k16_f16, "m16n8k16.f16.f16.f16", 16, 16, E_F16, E_F16, INTO_F16)
MMA(f16_k8_f16, "m16n8k8.f16.f16.f16", 16, 8, E_F16, E_F16, INTO_F16)
MMA(bf16_k16, "m16n8k16.f32.bf16.bf16", 16, 16, E_BF16, E_BF16, INTO_F32)
MMA(bf16_k8, "m16n8k8.f32.bf16.bf16", 16, 8, E_BF16, E_BF16, INTO_F32)
MMA(tf32_k8, "m16n8k8.f32.tf32.tf32", 16, 8, E_TF32, E_TF32, INTO_F32)
MMA(tf32_k4, "m16n8k4.f32.tf32.tf32", 16, 4, E_TF32, E_TF32, INTO_F32)
MMA(f64_k4, "m8n8k4.f64.f64.f64", 8, 4, E_F64, E_F64, INTO_F64)
MMA(f64_m16_k4, "m16n8k4.f64.f64.f64", 16, 4, E_F64, E_F64, INTO_F64)
MMA(f64_m16_k8, "m16n8k8.f64.f64.f64", 16, 8, E_F64, E_F64, INTO_F64)
MMA(f64_m16_k16, "m16n8k16.f64.f64.f64", 16, 16, E_F64, E_F64, INTO_F64)

#define MMA_8BIT_FLOAT(ta, ka, tb, kb)                                                         \
	MMA(ta##_##tb##_k16, "m16n8k16.f32." #ta "." #tb, 16, 16, ka, kb, INTO_F32)            \
	MMA(ta##_##tb##_k32, "m16n8k32.f32." #ta "." #tb, 16, 32, ka, kb, INTO_F32)            \
	MMA(ta##_##tb##_k16_f16, "m16n8k16.f16." #ta "." #tb, 16, 16, ka, kb, INTO_F16)        \
	MMA(ta##_##tb##_k32_f16, "m16n8k32.f16." #ta "." #tb, 16, 32, ka, kb, INTO_F16)
MMA_8BIT_FLOAT(e4m3, E_E4M3, e4m3, E_E4M3)
MMA_8BIT_FLOAT(e4m3, E_E4M3, e5m2, E_E5M2)
MMA_8BIT_FLOAT(e5m2, E_E5M2, e4m3, E_E4M3)
MMA_8BIT_FLOAT(e5m2, E_E5M2, e5m2, E_E5M2)

#define MMA_INT(shape, m, k, ta, ka, tb, kb)                                                   \
	MMA(shape##_##ta##_##tb, #shape ".s32." #ta "." #tb, m, k, ka, kb, INTO_S32)           \
	MMA(shape##_##ta##_##tb##_sat, #shape ".satfinite.s32." #ta "." #tb, m, k, ka, kb,     \
		INTO_S32_SAT)
#define MMA_INTS(shape, m, k)                                                                  \
	MMA_INT(shape, m, k, s8, E_S8, s8, E_S8)                                               \
	MMA_INT(shape, m, k, s8, E_S8, u8, E_U8)                                               \
	MMA_INT(shape, m, k, u8, E_U8, s8, E_S8)                                               \
	MMA_INT(shape, m, k, u8, E_U8, u8, E_U8)
MMA_INTS(m16n8k16, 16, 16)
MMA_INTS(m16n8k32, 16, 32)
MMA_INTS(m8n8k16, 8, 16)
#define MMA_NIBBLES(shape, m, k)                                                               \
	MMA_INT(shape, m, k, s4, E_S4, s4, E_S4)                                               \
	MMA_INT(shape, m, k, s4, E_S4, u4, E_U4)                                               \
	MMA_INT(shape, m, k, u4, E_U4, s4, E_S4)                                               \
	MMA_INT(shape, m, k, u4, E_U4, u4, E_U4)
MMA_NIBBLES(m8n8k32, 8, 32)
MMA_NIBBLES(m16n8k32, 16, 32)
MMA_NIBBLES(m16n8k64, 16, 64)

#define MMA_BITS(shape, m, k)                                                                  \
	MMA(shape##_and, #shape ".and.s32.b1.b1", m, k, E_B1, E_B1, INTO_S32)                  \
	MMA_BY(x != y, shape##_xor, #shape ".xor.s32.b1.b1", m, k, E_B1, E_B1, INTO_S32)
MMA_BITS(m8n8k128, 8, 128)
MMA_BITS(m16n8k128, 16, 128)
MMA_BITS(m16n8k256, 16, 256)

#define MMA_SPARSE(id, name, k, ka, kb, ...)                                                   \
	MMA_OF(x *y, sp_##id, "sp." name, 16, k, load_sparse_a(w, i, k, ka, a), kb, __VA_ARGS__)
MMA_SPARSE(f16_k16, "m16n8k16.f32.f16.f16", 16, E_F16, E_F16, INTO_F32)
MMA_SPARSE(f16_k32, "m16n8k32.f32.f16.f16", 32, E_F16, E_F16, INTO_F32)
MMA_SPARSE(f16_k16_f16, "m16n8k16.f16.f16.f16", 16, E_F16, E_F16, INTO_F16)
MMA_SPARSE(f16_k32_f16, "m16n8k32.f16.f16.f16", 32, E_F16, E_F16, INTO_F16)
MMA_SPARSE(bf16_k16, "m16n8k16.f32.bf16.bf16", 16, E_BF16, E_BF16, INTO_F32)
MMA_SPARSE(bf16_k32, "m16n8k32.f32.bf16.bf16", 32, E_BF16, E_BF16, INTO_F32)
MMA_SPARSE(tf32_k8, "m16n8k8.f32.tf32.tf32", 8, E_TF32, E_TF32, INTO_F32)
MMA_SPARSE(tf32_k16, "m16n8k16.f32.tf32.tf32", 16, E_TF32, E_TF32, INTO_F32)
#define MMA_SPARSE_INT(k, ta, ka, tb, kb)                                                      \
	MMA_SPARSE(ta##_##tb##_k##k, "m16n8k" #k ".s32." #ta "." #tb, k, ka, kb, INTO_S32)     \
	MMA_SPARSE(ta##_##tb##_k##k##_sat, "m16n8k" #k ".satfinite.s32." #ta "." #tb, k, ka,   \
		kb, INTO_S32_SAT)
#define MMA_SPARSE_INTS(k, s, ks, u, ku)                                                       \
	MMA_SPARSE_INT(k, s, ks, s, ks)                                                        \
	MMA_SPARSE_INT(k, s, ks, u, ku)                                                        \
	MMA_SPARSE_INT(k, u, ku, s, ks)                                                        \
	MMA_SPARSE_INT(k, u, ku, u, ku)
MMA_SPARSE_INTS(32, s8, E_S8, u8, E_U8)
MMA_SPARSE_INTS(64, s8, E_S8, u8, E_U8)
MMA_SPARSE_INTS(64, s4, E_S4, u4, E_U4)
MMA_SPARSE_INTS(128, s4, E_S4, u4, E_U4)
MMA_SPARSE(e4m3_e4m3, "m16n8k64.f32.e4m3.e4m3", 64, E_E4M3, E_E4M3, INTO_F32)
MMA_SPARSE(e4m3_e5m2, "m16n8k64.f32.e4m3.e5m2", 64, E_E4M3, E_E5M2, INTO_F32)
MMA_SPARSE(e5m2_e4m3, "m16n8k64.f32.e5m2.e4m3", 64, E_E5M2, E_E4M3, INTO_F32)
MMA_SPARSE(e5m2_e5m2, "m16n8k64.f32.e5m2.e5m2", 64, E_E5M2, E_E5M2, INTO_F32)

/* Volta's product: the quads l / 4 and l / 4 + 4 make one of 8 x 8 x 4, the first with the
 * upper half of rows (of B columns).  Where element n of C or D lies; floats are spread wider
 * than halves. */
INLINE void volta_place(bool wide, unsigned l, unsigned n, unsigned *row, unsigned *column)
{
	*row = (l < 16 ? 0 : 4) + (wide ? (l & 1) + (n & 2) : l & 3);
	*column = wide ? (n & 4) + (l & 2) + (n & 1) : n;
}

OP_FLOW(mma_volta, "mma.volta", "x!")
{
	const uint32_t before = w->mask;
	const bool a_columns = i->imm & 1, b_columns = i->imm & 2, c_wide = i->imm & 4,
		   d_wide = i->imm & 8;
	double a[4][8][4], b[4][4][8], c[4][8][8];
	unsigned row, column;

	if (!gather(w, i))
		return NULL;
	LANES
	{
		const unsigned q = l / 4 % 4, t = l & 3, lower = l < 16 ? 0 : 4;

		for (unsigned n = 0; n < 4; n++) {
			a[q][lower + (a_columns ? n : t)][a_columns ? t : n] =
				element(ptx_reg(w, i->a), E_F16, l, n);
			b[q][b_columns ? n : t][lower + (b_columns ? t : n)] =
				element(ptx_reg(w, i->b), E_F16, l, n);
		}
		for (unsigned n = 0; n < 8; n++) {
			volta_place(c_wide, l, n, &row, &column);
			c[q][row][column] = c_wide ? (double)REG(const float, c)[n * 32 + l]
						   : element(ptx_reg(w, i->c), E_F16, l, n);
		}
	}
	EACH(w->mask)
	for (unsigned n = 0; n < 8; n++) {
		const unsigned q = l / 4 % 4;
		double sum;

		volta_place(d_wide, l, n, &row, &column);
		sum = c[q][row][column];
		for (unsigned t = 0; t < 4; t++)
			sum += a[q][row][t] * b[q][t][column];
		if (d_wide)
			REG(float, d)[n * 32 + l] = (float)sum;
		else
			REG(uint16_t, d)[(n / 2 * 32 + l) * 2 + n % 2] = ptx_half_from(sum);
	}
	return NEXT(before);
}

/* Eight rows of eight halves a matrix; lane n of a group of eight names row n. */
INLINE uint16_t *row_of(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane)
{
	return ptx_generic(w, i, lane,
		PTX_SHARED_BASE + (uint32_t)(REG(const uint32_t, a)[lane] + (uint32_t)i->imm),
		16);
}

#define LDMATRIX(count, trans, suffix)                                                         \
	OP_FLOW(ldmatrix_x##count##_##trans, "ldmatrix.x" #count suffix, "x!")                 \
	{                                                                                      \
		const uint32_t before = w->mask, to[4] = {i->d, i->b, i->c, i->f};             \
		uint16_t m[4][8][8];                                                           \
		if (!gather(w, i))                                                             \
			return NULL;                                                           \
		for (unsigned n = 0; n < 8 * (count); n++)                                     \
			memcpy(m[n / 8][n % 8], row_of(w, i, n), 16);                          \
		for (unsigned n = 0; n < (count); n++) {                                       \
			uint32_t *d = (uint32_t *)(void *)ptx_reg(w, to[n]);                   \
			EACH(w->mask)                                                          \
			{                                                                      \
				const unsigned g = l >> 2, t = 2 * (l & 3);                    \
				d[l] = trans ? m[n][t][g] | (uint32_t)m[n][t + 1][g] << 16     \
					     : m[n][g][t] | (uint32_t)m[n][g][t + 1] << 16;    \
			}                                                                      \
		}                                                                              \
		return NEXT(before);                                                           \
	}                                                                                      \
	OP_FLOW(stmatrix_x##count##_##trans, "stmatrix.x" #count suffix, "x!")                 \
	{                                                                                      \
		const uint32_t before = w->mask, from[4] = {i->d, i->b, i->c, i->f};           \
		uint16_t m[4][8][8];                                                           \
		if (!gather(w, i))                                                             \
			return NULL;                                                           \
		for (unsigned n = 0; n < (count); n++) {                                       \
			const uint32_t *v =                                                    \
				(const uint32_t *)(const void *)ptx_reg(w, from[n]);           \
			LANES                                                                  \
			{                                                                      \
				const unsigned g = l >> 2, t = 2 * (l & 3);                    \
				m[n][trans ? t : g][trans ? g : t] = (uint16_t)v[l];           \
				m[n][trans ? t + 1 : g][trans ? g : t + 1] =                   \
					(uint16_t)(v[l] >> 16);                                \
			}                                                                      \
		}                                                                              \
		for (unsigned n = 0; n < 8 * (count); n++)                                     \
			memcpy(row_of(w, i, n), m[n / 8][n % 8], 16);                          \
		return NEXT(before);                                                           \
	}
LDMATRIX(1, false, "")
LDMATRIX(2, false, "")
LDMATRIX(4, false, "")
LDMATRIX(1, true, ".trans")
LDMATRIX(2, true, ".trans")
LDMATRIX(4, true, ".trans")

OP_FLOW(movmatrix, "movmatrix", "x!")
{
	const uint32_t before = w->mask;
	uint16_t m[8][8];

	if (!gather(w, i))
		return NULL;
	uint32_t *d = REG(uint32_t, d);
	const uint32_t *a = REG(const uint32_t, a);

	LANES
	{
		m[l >> 2][2 * (l & 3)] = (uint16_t)a[l];
		m[l >> 2][2 * (l & 3) + 1] = (uint16_t)(a[l] >> 16);
	}
	EACH(w->mask)
	d[l] = m[2 * (l & 3)][l >> 2] | (uint32_t)m[2 * (l & 3) + 1][l >> 2] << 16;
	return NEXT(before);
}
