/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products by a warp: ldmatrix brings rows of shared memory into the places that mma
 * wants, so that a wrong place in either shows as a wrong product.
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_products),
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_doubles),
	};

	text_init(1);
	out = text_memory(4096);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
