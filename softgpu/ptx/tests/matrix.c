/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products by a warp, mma: ldmatrix brings rows of shared memory into the places that
 * mma wants, so that a wrong place in either shows as a wrong product.
 */
#include "softgpu/ptx/tests/run_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define A(r, c) (((r) * 3 + (c)) % 7)
#define B(r, c) (((r) + 2 * (c)) % 5)

/* A is 16 x 16 and B 16 x 8, both by rows in shared memory, then 16 x 8 sums behind base. */
static const char *const text =
	".visible .entry k(.param .u64 out)\n{ .reg .b64 d<9>, base; .reg .b32 r<20>, a<4>, "
	"b<2>, l;\n"
	".reg .pred p; .reg .b16 h; .reg .f32 f<4>; .shared .align 16 .b8 sa[512];\n"
	".shared .align 16 .b8 sb[256]; ld.param.u64 base, [out]; mov.u32 l, %%tid.x; mov.u32 "
	"r1, l;\n"
	"FILLA: shr.u32 r2, r1, 4; and.b32 r3, r1, 15; mad.lo.u32 r4, r2, 3, r3; rem.u32 r4, "
	"r4, 7;\n"
	"cvt.rn.f16.u32 h, r4; mov.u32 r5, sa; mad.lo.u32 r5, r1, 2, r5; st.shared.b16 [r5], "
	"h;\n"
	"add.u32 r1, r1, 32; setp.lt.u32 p, r1, 256; @p bra FILLA; mov.u32 r1, l;\n"
	"FILLB: shr.u32 r2, r1, 3; and.b32 r3, r1, 7; mad.lo.u32 r4, r3, 2, r2; rem.u32 r4, "
	"r4, 5;\n"
	"cvt.rn.f16.u32 h, r4; mov.u32 r5, sb; mad.lo.u32 r5, r1, 2, r5; st.shared.b16 [r5], "
	"h;\n"
	"add.u32 r1, r1, 32; setp.lt.u32 p, r1, 128; @p bra FILLB; bar.warp.sync -1;\n"
	"and.b32 r2, l, 15; shr.u32 r3, l, 4; mov.u32 r5, sa; mad.lo.u32 r5, r2, 32, r5;\n"
	"mad.lo.u32 r5, r3, 16, r5; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a0, a1, a2, a3}, "
	"[r5];\n"
	"mov.u32 r6, sb; mad.lo.u32 r6, r2, 16, r6;\n"
	"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {b0, b1}, [r6];\n"
	"mov.f32 f0, 0f3F800000; mov.f32 f1, f0; mov.f32 f2, f0; mov.f32 f3, f0;\n"
	"%s\n"
	"shr.u32 r7, l, 2; and.b32 r8, l, 3; mul.lo.u32 r7, r7, 32; mad.lo.u32 r7, r8, 8, r7;\n"
	"cvt.u64.u32 d1, r7; add.u64 d1, d1, base; st.global.v2.f32 [d1], {f0, f1};\n"
	"st.global.v2.f32 [d1+256], {f2, f3}; ret; }";

static float *out;

static void check(const char *mma, unsigned depth)
{
	char whole[4096];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(whole, sizeof(whole), text, mma);
#pragma GCC diagnostic pop
	memset(out, 0, 512);
	text_run(whole, 1, 32, out);
	for (unsigned r = 0; r < 16; r++)
		for (unsigned c = 0; c < 8; c++) {
			unsigned want = 1;

			for (unsigned t = 0; t < depth; t++)
				want += A(r, t) * B(t, c);
			if (out[r * 8 + c] != (float)want)
				fail_msg("%s: row %u, column %u: %g, not %u", mma, r, c,
					(double)out[r * 8 + c], want);
		}
}

static void test_products(void **state)
{
	(void)state;
	check("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {a0,a1,a2,a3}, "
	      "{b0,b1}, {f0,f1,f2,f3};",
		16);
	check("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {a0,a1}, {b0}, "
	      "{f0,f1,f2,f3};",
		8);
	/* Transposed twice is as it was. */
	check("movmatrix.sync.aligned.m8n8.trans.b16 a0, a0; "
	      "movmatrix.sync.aligned.m8n8.trans.b16 a0, a0;\n"
	      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {f0,f1,f2,f3}, {a0,a1,a2,a3}, "
	      "{b0,b1}, {f0,f1,f2,f3};",
		16);
}

/* Small integers: a lane's bytes are all its number in A, and 1 in B, so each sum is known. */
static void test_integers(void **state)
{
	int32_t *sums = (int32_t *)(void *)out;

	(void)state;
	text_run(".visible .entry k(.param .u64 out)\n{ .reg .b64 d<4>; .reg .b32 l, a, c<4>, "
		 "t;\n"
		 "ld.param.u64 d1, [out]; mov.u32 l, %tid.x; neg.s32 t, l; and.b32 t, t, 255;\n"
		 "mul.lo.u32 a, t, 0x01010101; mov.u32 c0, 5; mov.u32 c1, 5; mov.u32 c2, 5; "
		 "mov.u32 c3, 5;\n"
		 "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {c0,c1,c2,c3}, {a,a,a,a}, "
		 "{0x01010101,0x01010101}, {c0,c1,c2,c3};\n"
		 "mad.wide.u32 d1, l, 4, d1; st.global.u32 [d1], c0; st.global.u32 [d1+128], "
		 "c3; ret; }",
		1, 32, out);
	for (int l = 0; l < 32; l++) {
		int g = l / 4, row = 8 * (4 * g + 4 * g + 1 + 4 * g + 2 + 4 * g + 3);

		if (sums[l] != 5 - row || sums[l + 32] != 5 - row)
			fail_msg("lane %d: %d and %d, not %d", l, sums[l], sums[l + 32],
				5 - row);
	}
}

static void test_doubles(void **state)
{
	double *sums = (double *)(void *)out;

	(void)state;
	text_run(".visible .entry k(.param .u64 out)\n{ .reg .b64 d<4>; .reg .f64 a, b, c<2>; "
		 ".reg .b32 l, t;\n"
		 "ld.param.u64 d1, [out]; mov.u32 l, %tid.x; and.b32 t, l, 3; cvt.rn.f64.u32 "
		 "a, l;\n"
		 "cvt.rn.f64.u32 b, t; mov.f64 c0, 0d3FE0000000000000; mov.f64 c1, c0;\n"
		 "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {c0,c1}, {a}, {b}, {c0,c1};\n"
		 "mad.wide.u32 d1, l, 16, d1; st.global.v2.f64 [d1], {c0, c1}; ret; }",
		1, 32, out);
	for (int l = 0; l < 32; l++) {
		/* Row g of A is 4g .. 4g+3, every column of B is 0 1 2 3. */
		double want = 0.5 + 6.0 * (l / 4 * 4) + 14.0;

		if (sums[2 * l] != want || sums[2 * l + 1] != want)
			fail_msg("lane %d: %g, not %g", l, sums[2 * l], want);
	}
}

/* Any shape m x 8 x k by its fragments: words of `bits` a number, of which a lane holds runs
 * that fill a register (or a double); the runs of A go through the rows g and g + 8 first. */
struct shape {
	const char *mma, *result; /* without its operands; s32, f32 or f64 */
	unsigned m, k, bits;
	unsigned numbers[4]; /* the bits of 0, 1, 2 and 3; of b1 0 and 1 */
	bool differ;	     /* counts where they differ */
};

static const struct shape shapes[] = {
	{"m16n8k4.row.col.f64.f64.f64.f64", "f64", 16, 4, 64, {0}, false},
	{"m16n8k8.row.col.f64.f64.f64.f64", "f64", 16, 8, 64, {0}, false},
	{"m16n8k16.row.col.f64.f64.f64.f64", "f64", 16, 16, 64, {0}, false},
	{"m16n8k16.row.col.f32.e4m3.e4m3.f32", "f32", 16, 16, 8, {0, 0x38, 0x40, 0x44}, false},
	{"m16n8k32.row.col.f32.e4m3.e4m3.f32", "f32", 16, 32, 8, {0, 0x38, 0x40, 0x44}, false},
	{"m16n8k32.row.col.f32.e5m2.e5m2.f32", "f32", 16, 32, 8, {0, 0x3c, 0x40, 0x42}, false},
	{"m16n8k16.row.col.s32.u8.s8.s32", "s32", 16, 16, 8, {0, 1, 2, 3}, false},
	{"m8n8k32.row.col.s32.s4.u4.s32", "s32", 8, 32, 4, {0, 1, 2, 3}, false},
	{"m16n8k32.row.col.s32.u4.s4.s32", "s32", 16, 32, 4, {0, 1, 2, 3}, false},
	{"m16n8k64.row.col.satfinite.s32.s4.s4.s32", "s32", 16, 64, 4, {0, 1, 2, 3}, false},
	{"m8n8k128.row.col.s32.b1.b1.s32.xor.popc", "s32", 8, 128, 1, {0, 1}, true},
	{"m16n8k128.row.col.s32.b1.b1.s32.and.popc", "s32", 16, 128, 1, {0, 1}, false},
	{"m16n8k256.row.col.s32.b1.b1.s32.xor.popc", "s32", 16, 256, 1, {0, 1}, true},
};

static unsigned number_of(const struct shape *shape, bool of_a, unsigned major, unsigned k)
{
	unsigned v = of_a ? major * 5 + k * 3 + major * k : major * 7 + k + k / 5;

	return shape->bits == 1 ? (v >> 1) & 1 : v & 3;
}

static void put_fragments(const struct shape *shape, bool of_a, uint64_t *words)
{
	unsigned run = shape->bits == 64 ? 1 : 32 / shape->bits, rows = of_a ? shape->m / 8 : 1;
	unsigned n = (of_a ? shape->m : 8) * shape->k / 32;

	memset(words, 0, 32 * 8 * sizeof(*words));
	for (unsigned l = 0; l < 32; l++)
		for (unsigned e = 0; e < n; e++) {
			unsigned part = e / run, major = l / 4 + part % rows * 8;
			unsigned k = l % 4 * run + e % run + part / rows * 4 * run;
			unsigned v = number_of(shape, of_a, major, k);
			double d = v;

			if (shape->bits == 64)
				memcpy(&words[l * 8 + part], &d, sizeof(d));
			else
				words[l * 8 + part] |= (uint64_t)shape->numbers[v]
						       << e % run * shape->bits;
		}
}

/* The lane's words of A, of B, and the result's, 8 of each; C is 3. */
static void shape_text(const struct shape *shape, char *to, size_t room)
{
	const char *type = shape->bits == 64 ? "b64" : "b32", *three;
	unsigned run = shape->bits == 64 ? 1 : 32 / shape->bits;
	unsigned n[3] = {shape->m / 4, shape->m * shape->k / 32 / run, shape->k / 4 / run};
	size_t at;

	three = shape->result[0] == 's' ? "3"
		: shape->bits == 64	? "0d4008000000000000"
					: "0f40400000";
	at = (size_t)snprintf(to, room,
		".visible .entry k(.param .u64 out)\n{ .reg .b64 p, q; .reg .b32 l; .reg .%s "
		"x0_<8>, x1_<8>, x2_<8>;\nld.param.u64 p, [out]; mov.u32 l, %%tid.x; "
		"mad.wide.u32 q, l, 64, p;\n",
		type);
	for (unsigned o = 0; o < 3; o++)
		for (unsigned e = 0; e < n[o]; e++)
			at += o ? (size_t)snprintf(to + at, room - at,
					  "ld.global.%s x%u_%u, [q+%u];\n", type, o, e,
					  o * 2048 + e * 8)
				: (size_t)snprintf(to + at, room - at, "mov.%s x0_%u, %s;\n",
					  type, e, three);
	at += (size_t)snprintf(to + at, room - at, "mma.sync.aligned.%s ", shape->mma);
	for (unsigned o = 0; o < 4; o++) {
		for (unsigned e = 0; e < n[o % 3]; e++)
			at += (size_t)snprintf(
				to + at, room - at, "%sx%u_%u", e ? "," : "{", o % 3, e);
		at += (size_t)snprintf(to + at, room - at, o < 3 ? "}, " : "};\n");
	}
	for (unsigned e = 0; e < n[0]; e++)
		at += (size_t)snprintf(
			to + at, room - at, "st.global.%s [q+%u], x0_%u;\n", type, e * 8, e);
	(void)snprintf(to + at, room - at, "ret; }");
}

static double result_at(const struct shape *shape, const uint64_t *word)
{
	int32_t whole;
	double wide;
	float f;

	memcpy(&whole, word, sizeof(whole));
	memcpy(&f, word, sizeof(f));
	memcpy(&wide, word, sizeof(wide));
	return shape->result[0] == 's' ? whole : shape->bits == 64 ? wide : (double)f;
}

static void test_shapes(void **state)
{
	uint64_t *memory = (uint64_t *)(void *)out;

	(void)state;
	for (size_t n = 0; n < sizeof(shapes) / sizeof(shapes[0]); n++) {
		const struct shape *shape = &shapes[n];
		char whole[8192];

		put_fragments(shape, true, memory + 256);
		put_fragments(shape, false, memory + 512);
		shape_text(shape, whole, sizeof(whole));
		text_run(whole, 1, 32, out);
		for (unsigned l = 0; l < 32; l++)
			for (unsigned e = 0; e < shape->m / 4; e++) {
				unsigned row = l / 4 + e / 2 * 8, column = 2 * (l % 4) + e % 2;
				double want = 3, got = result_at(shape, &memory[l * 8 + e]);

				for (unsigned k = 0; k < shape->k; k++) {
					unsigned a = number_of(shape, true, row, k);
					unsigned b = number_of(shape, false, column, k);

					want += shape->differ ? a != b : a * b;
				}
				if (got != want)
					fail_msg("%s: row %u, column %u: %g, not %g",
						shape->mma, row, column, got, want);
			}
	}
}

/* A whole number below 2048 as f16. */
static uint16_t float_to_half(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return value == 0.0f ? 0 : (uint16_t)((bits >> 13) - (112u << 10));
}

/* Volta's: four products of 8 x 8 x 4, each by the lanes 4q .. 4q + 3 and those 16 above.  A
 * lane has four numbers of A and of B, words 0 and 1 of its row, and eight of C, which are 1.
 */
#define VOLTA_A(q, r, k) (((q) + (r) * 3 + (k)) % 5)
#define VOLTA_B(q, k, c) (((q) * 2 + (k) + (c) * 2) % 4)

static void check_volta(bool a_columns, bool b_columns, bool wide)
{
	static const char *const body =
		".visible .entry k(.param .u64 out)\n{ .reg .b64 p, q; .reg .b32 l, a<2>, "
		"b<2>, c<8>;\n"
		"ld.param.u64 p, [out]; mov.u32 l, %%tid.x; mad.wide.u32 q, l, 32, p;\n"
		"ld.global.v2.b32 {a0, a1}, [q]; ld.global.v2.b32 {b0, b1}, [q+8];\n"
		"mov.b32 c0, %s; mov.b32 c1, c0; mov.b32 c2, c0; mov.b32 c3, c0; mov.b32 c4, "
		"c0;\n"
		"mov.b32 c5, c0; mov.b32 c6, c0; mov.b32 c7, c0;\n"
		"mma.sync.aligned.m8n8k4.%s.%s.%s.f16.f16.%s {%s}, {a0, a1}, {b0, b1}, {%s};\n"
		"st.global.v4.b32 [q], {c0, c1, c2, c3}; st.global.v4.b32 [q+16], {c4, c5, c6, "
		"c7}; "
		"ret; }";
	const char *type = wide ? "f32" : "f16",
		   *regs = wide ? "c0,c1,c2,c3,c4,c5,c6,c7" : "c0,c1,c2,c3";
	uint16_t(*halves)[16] = (uint16_t(*)[16])(void *)out;
	char whole[2048];

	for (unsigned l = 0; l < 32; l++)
		for (unsigned n = 0; n < 4; n++) {
			unsigned q = l / 4 % 4, line = l % 4 + (l < 16 ? 0 : 4);
			unsigned deep = n + (l < 16 ? 0 : 4);

			text_number(&halves[l][n], "f16",
				a_columns ? VOLTA_A(q, deep, l % 4) : VOLTA_A(q, line, n));
			text_number(&halves[l][4 + n], "f16",
				b_columns ? VOLTA_B(q, n, line) : VOLTA_B(q, l % 4, deep));
		}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(whole, sizeof(whole), body, wide ? "0f3F800000" : "0x3c003c00",
		a_columns ? "col" : "row", b_columns ? "col" : "row", type, type, regs, regs);
#pragma GCC diagnostic pop
	text_run(whole, 1, 32, out);
	for (unsigned l = 0; l < 32; l++)
		for (unsigned n = 0; n < 8; n++) {
			unsigned q = l / 4 % 4, row = (l < 16 ? 0 : 4) + l % 4, column = n,
				 want = 1;
			uint16_t half;

			if (wide) {
				row = (l < 16 ? 0 : 4) + (l & 1) + (n & 2);
				column = (n & 4) + (l & 2) + (n & 1);
			}
			for (unsigned k = 0; k < 4; k++)
				want += VOLTA_A(q, row, k) * VOLTA_B(q, k, column);
			half = float_to_half((float)want);
			if (wide ? out[l * 8 + n] != (float)want : halves[l][n] != half)
				fail_msg("%s, %d %d: lane %u, %u is not %u", type, a_columns,
					b_columns, l, n, want);
		}
}

static void test_volta(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 8; n++)
		check_volta(n & 1, n & 2, n & 4);
}

/* 1/3 of ulp more or less than a double: rounded as the instruction says. */
static void test_rounding(void **state)
{
	static const struct {
		const char *how;
		double up, down;
	} rows[] = {{"", 1.0, -1.0}, {".rn", 1.0, -1.0}, {".rz", 1.0, -1.0},
		{".rp", 1.0 + 0x1p-52, -1.0}, {".rm", 1.0, -1.0 - 0x1p-52}};
	double *sums = (double *)(void *)out;
	char whole[1024];

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		/* One number of each row of A is not 0, and B is the same everywhere. */
		snprintf(whole, sizeof(whole),
			".visible .entry k(.param .u64 out)\n{ .reg .b64 d<4>; .reg .f64 a, b, "
			"c<2>; "
			".reg .b32 l, t; .reg .pred p;\n"
			"ld.param.u64 d1, [out]; mov.u32 l, %%tid.x; and.b32 t, l, 3;\n"
			"setp.eq.u32 p, t, 0; selp.f64 a, 0d3C80000000000000, "
			"0d0000000000000000, p;\n"
			"and.b32 t, l, 4; setp.eq.u32 p, t, 0; mov.f64 b, 0d3FE0000000000000;\n"
			"selp.f64 c0, 0d3FF0000000000000, 0dBFF0000000000000, p; mov.f64 c1, "
			"c0;\n"
			"@!p neg.f64 a, a;\n"
			"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64%s {c0,c1}, {a}, {b}, "
			"{c0,c1};\n"
			"mad.wide.u32 d1, l, 16, d1; st.global.v2.f64 [d1], {c0, c1}; ret; }",
			rows[n].how);
		text_run(whole, 1, 32, out);
		for (int l = 0; l < 32; l++) {
			double want = l & 4 ? rows[n].down : rows[n].up;

			if (sums[2 * l] != want || sums[2 * l + 1] != want)
				fail_msg("%s: lane %d: %a, not %a", rows[n].how, l, sums[2 * l],
					want);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_doubles),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_volta),
		cmocka_unit_test(test_rounding),
	};

	text_init(1);
	out = text_memory(32768);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
