/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products by a warp, wmma: what wmma.load brings from memory, wmma.mma multiplies and
 * wmma.store writes, so that a wrong place in any of them shows as a wrong product.
 */
#include "softgpu/ptx/tests/run_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static float *out;

/* A is 3r + c by rows, B r + 2c by columns with a stride of its own, C 1 everywhere: the
 * product of each shape and type whose numbers are exact. */
static void check_wmma(const char *shape, unsigned m, unsigned n, unsigned k, const char *type,
	unsigned bytes, const char *regs_a, const char *regs_b)
{
	static const char *const body =
		".visible .entry k(.param .u64 out)\n{ .reg .b64 d<4>; .reg .b32 a<8>, b<8>; "
		".reg .f32 c<8>;\nld.param.u64 d1, [out]; add.u64 d2, d1, 8192; add.u64 d3, "
		"d1, "
		"16384;\n"
		"wmma.load.a.sync.aligned.row.%s.global.%s {%s}, [d2];\n"
		"wmma.load.b.sync.aligned.col.%s.%s {%s}, [d3], 40;\n"
		"wmma.load.c.sync.aligned.row.%s.f32 {c0,c1,c2,c3,c4,c5,c6,c7}, [d1], %u;\n"
		"wmma.mma.sync.aligned.row.col.%s.f32%s {c0,c1,c2,c3,c4,c5,c6,c7}, {%s}, {%s}, "
		"{c0,c1,c2,c3,c4,c5,c6,c7};\n"
		"wmma.store.d.sync.aligned.col.%s.f32 [d1], {c0,c1,c2,c3,c4,c5,c6,c7}, %u; "
		"ret; }";
	char whole[4096], types[40] = ".f32";
	unsigned char *at = (unsigned char *)out;

	if (strcmp(type, "f16"))
		snprintf(types, sizeof(types), ".%s.%s.f32", type, type);
	for (unsigned e = 0; e < m * n; e++)
		out[e] = 1.0f;
	for (unsigned r = 0; r < m; r++)
		for (unsigned t = 0; t < k; t++)
			text_number(at + 8192 + (r * k + t) * bytes, type, (3 * r + t) % 7);
	for (unsigned c = 0; c < n; c++)
		for (unsigned t = 0; t < k; t++)
			text_number(at + 16384 + (c * 40 + t) * bytes, type, (t + 2 * c) % 5);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(whole, sizeof(whole), body, shape, type, regs_a, shape, type, regs_b, shape, n,
		shape, types, regs_a, regs_b, shape, m);
#pragma GCC diagnostic pop
	text_run(whole, 1, 32, out);
	for (unsigned r = 0; r < m; r++)
		for (unsigned c = 0; c < n; c++) {
			unsigned want = 1;

			for (unsigned t = 0; t < k; t++)
				want += (3 * r + t) % 7 * ((t + 2 * c) % 5);
			if (out[c * m + r] != (float)want)
				fail_msg("%s %s: row %u, column %u: %g, not %u", shape, type, r,
					c, (double)out[c * m + r], want);
		}
}

static void test_wmma(void **state)
{
	static const char a8[] = "a0,a1,a2,a3,a4,a5,a6,a7", b8[] = "b0,b1,b2,b3,b4,b5,b6,b7";

	(void)state;
	check_wmma("m16n16k16", 16, 16, 16, "f16", 2, a8, b8);
	check_wmma("m8n32k16", 8, 32, 16, "f16", 2, a8, b8);
	check_wmma("m32n8k16", 32, 8, 16, "f16", 2, a8, b8);
	check_wmma("m16n16k16", 16, 16, 16, "bf16", 2, "a0,a1,a2,a3", "b0,b1,b2,b3");
	check_wmma("m8n32k16", 8, 32, 16, "bf16", 2, "a0,a1", b8);
	check_wmma("m16n16k8", 16, 16, 8, "tf32", 4, "a0,a1,a2,a3", "b0,b1,b2,b3");
}

/* A is -1 and B 1 everywhere; bits: every second one of A, all of B. */
static void test_wmma_integers(void **state)
{
	static const struct {
		const char *shape, *load_b, *type, *how;
		uint32_t a, b;
		int32_t want;
	} rows[] = {
		{"m8n8k32", "col", "s4", "", 0xffffffff, 0x11111111, 7 - 32},
		{"m8n8k32", "col", "u4", "", 0xffffffff, 0x11111111, 7 + 15 * 32},
		{"m8n8k128", "col", "b1", ".xor.popc", 0x55555555, 0xffffffff, 7 + 64},
		{"m8n8k128", "col", "b1", ".and.popc", 0x0f55ffff, 0xffffffff, 7 + 4 * 24},
	};
	int32_t *sums = (int32_t *)(void *)out;
	char whole[2048];

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		const char *s = rows[k].shape, *t = rows[k].type;

		for (unsigned n = 0; n < 64; n++)
			sums[n] = 7;
		for (unsigned n = 0; n < 64; n++) {
			memcpy((char *)out + 8192 + 4 * n, &rows[k].a, 4);
			memcpy((char *)out + 16384 + 4 * n, &rows[k].b, 4);
		}
		snprintf(whole, sizeof(whole),
			".visible .entry k(.param .u64 out)\n{ .reg .b64 d<4>; .reg .b32 a, b, "
			"c<2>;\n"
			"ld.param.u64 d1, [out];\n"
			"wmma.load.a.sync.aligned.row.%s.%s {a}, [d1+8192];\n"
			"wmma.load.b.sync.aligned.%s.%s.global.%s {b}, [d1+16384];\n"
			"wmma.load.c.sync.aligned.row.%s.global.s32 {c0,c1}, [d1];\n"
			"wmma.mma%s.sync.aligned.row.col.%s.s32.%s.%s.s32 {c0,c1}, {a}, {b}, "
			"{c0,c1};\n"
			"wmma.store.d.sync.aligned.row.%s.s32 [d1], {c0,c1}; ret; }",
			s, t, rows[k].load_b, s, t, s, rows[k].how, s, t, t, s);
		text_run(whole, 1, 32, out);
		for (unsigned n = 0; n < 64; n++)
			if (sums[n] != rows[k].want)
				fail_msg("%s: %d, not %d", t, sums[n], rows[k].want);
	}
}

/* ptxas leaves out a load whose registers nothing reads; the address is none here.  In a loop
 * what stands before the load may read it. */
static void test_wmma_load_unread(void **state)
{
	(void)state;
	*(uint32_t *)(void *)out = 0;
	text_run(".visible .entry k(.param .u64 out)\n{ .reg .b64 d<4>; .reg .b32 a<9>, i, s; "
		 ".reg .pred p;\nld.param.u64 d1, [out]; mov.u64 d2, 0; mov.u32 s, 16;\n"
		 "wmma.load.a.sync.aligned.row.m16n16k16.f16 {a0,a1,a2,a3,a4,a5,a6,a7}, [d2], "
		 "s;\n"
		 "{ .reg .b32 a<4>; wmma.load.a.sync.aligned.row.m16n16k16.global.bf16 "
		 "{a0,a1,a2,a3}, [d2+64]; }\n"
		 "mov.u32 a8, 7; st.global.u32 [d1], a8; ret; }",
		1, 32, out);
	assert_int_equal(*(uint32_t *)(void *)out, 7);
	for (unsigned n = 0; n < 128; n++)
		((uint32_t *)(void *)out)[2048 + n] = 5;
	text_run(".visible .entry k(.param .u64 out)\n{ .reg .b64 d<4>; .reg .b32 a<8>, i; "
		 ".reg .pred p;\nld.param.u64 d1, [out]; add.u64 d2, d1, 8192; mov.u32 i, 0;\n"
		 "LOOP: setp.eq.u32 p, i, 2; @p bra DONE; st.global.u32 [d1+4], a3;\n"
		 "wmma.load.a.sync.aligned.row.m16n16k16.f16 {a0,a1,a2,a3,a4,a5,a6,a7}, [d2];\n"
		 "add.u32 i, i, 1; bra LOOP;\nDONE: ret; }",
		1, 32, out);
	assert_int_equal(((uint32_t *)(void *)out)[1], 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wmma),
		cmocka_unit_test(test_wmma_integers),
		cmocka_unit_test(test_wmma_load_unread),
	};

	text_init(1);
	out = text_memory(32768);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
