/* SPDX-License-Identifier: Apache-2.0
 *
 * Constant expressions in place of numbers, elements of arrays in place of addresses, and
 * variables that are defined behind the functions that name them.  What each gives is what
 * ptxas 13.0 makes of it; of 2700 random expressions, it and this gave the same.
 */
#include "softgpu/ptx/tests/run_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint64_t *out;

static void test_values(void **state)
{
	static const struct {
		const char *text;
		uint64_t is;
	} rows[] = {
		{"~0x2", ~UINT64_C(2)},
		{"3+4*2", 11},
		{"(3+4)*2", 14},
		{"(1<<4)|2", 18},
		{"-5/2", (uint64_t)-2},
		{"-5 % 3", 2}, /* unsigned, as bits are */
		{"~1 < 13", 0},
		{"(-1 & -1) > 0", 1},
		{"1 << 65", 2},
		{"5 > 3 ? 7 : 9", 7},
		{"5 < 3 ? 7 : 2 ? 4 : 9", 4},
		{"-1 > 1", 0},
		{"-1 > 1U", 1},
		{"-8 >> 1", (uint64_t)-4},
		{"(.u64)-8 >> 1", UINT64_C(0x7ffffffffffffffc)},
		{"(.s64)0xffffffffffffffff < 0", 1},
		{"0xffffffffffffffff < 0", 0},
		{"!5", 0},
		{"!0 && 2 || 0", 1},
		{"6 & 3 ^ 1 | 8", 11},
		{"10 - 4 - 3", 3},
		{"100 / 10 / 2", 5},
		{"1 << 2 + 1", 8},
		{"WARP_SZ * 2", 64},
		{"10 - -3", 13},
		{"1 /* one */ + /* and */ 2", 3},
		{"1 == 1 != 0", 1},
		{"2 >= 2", 1},
		{"0.5 + 1.0 > 1", 1},
	};
	char text[512];

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		snprintf(text, sizeof(text),
			".visible .entry k(.param .u64 at) { .reg .b64 d<3>;\n"
			"ld.param.u64 d1, [at]; mov.u64 d2, %s; st.global.u64 [d1], d2; ret; }",
			rows[k].text);
		text_run(text, 1, 1, out);
		if (out[0] != rows[k].is)
			fail_msg("%s is %llx, not %llx", rows[k].text,
				(unsigned long long)out[0], (unsigned long long)rows[k].is);
	}
}

static void test_places_of_expressions(void **state)
{
	float value;

	(void)state;
	memset(out, 0, 4096);
	text_run(".global .u32 g[2*2] = {1+1, 1<<4, ~0, 3*(4-1)};\n"
		 ".global .f32 h = 1.0/4;\n"
		 ".global .u64 p = g+2*4;\n"
		 ".visible .entry k(.param .u64 at) .maxntid 2*16 { .reg .b64 d<9>; .reg .b32 "
		 "r<9>; .reg .pred q;\n"
		 "ld.param.u64 d1, [at];\n"
		 "ld.global.u32 r1, [g+3*4]; st.global.u32 [d1], r1;\n"
		 "ld.global.u32 r2, [g+4]; st.global.u32 [d1+(2+2)], r2;\n"
		 "ld.global.u64 d2, [p]; ld.global.u32 r3, [d2]; st.global.u32 [d1+2*4], r3;\n"
		 "ld.global.u32 r4, [h]; st.global.u32 [d1+16-4], r4;\n"
		 "setp.eq.u32 q, r1, 3*3; @!q bra OUT; and.b32 r5, r1, ~1; st.global.u32 "
		 "[d1+16], r5;\n"
		 "mov.f32 r6, 0.5+1.0; st.global.u32 [d1+20], r6; OUT: ret; }",
		1, 1, out);
	const uint32_t *words = (const uint32_t *)out;

	assert_int_equal(words[0], 9);
	assert_int_equal(words[1], 16);
	assert_int_equal(words[2], 0xffffffff);
	memcpy(&value, &words[3], 4);
	assert_true(value == 0.25f);
	assert_int_equal(words[4], 8);
	memcpy(&value, &words[5], 4);
	assert_true(value == 1.5f);
}

/* An index counts elements, in every space. */
static void test_elements(void **state)
{
	(void)state;
	memset(out, 0, 4096);
	text_run(".global .u64 g[4] = {10, 11, 12, 13};\n"
		 ".const .b16 c[3] = {5, 6, 7};\n"
		 ".visible .entry k(.param .u64 at, .param .align 4 .b8 n[8]) { .reg .b64 "
		 "d<9>, o; .reg .b32 r<9>; .reg .b16 h;\n"
		 ".shared .b32 s[8]; .local .b64 l[4];\n"
		 "ld.param.u64 o, [at]; mov.u32 r1, 2;\n"
		 "ld.global.u64 d1, g[r1]; st.global.u64 [o], d1;\n"
		 "ld.global.u64 d1, g[r1+1]; st.global.u64 [o+8], d1;\n"
		 "ld.global.u64 d1, g[r1-1]; st.global.u64 [o+16], d1;\n"
		 "ld.global.u64 d1, g[1]; st.global.u64 [o+24], d1;\n"
		 "mov.u64 d2, g[3]; ld.global.u64 d1, [d2]; st.global.u64 [o+32], d1;\n"
		 "ld.const.b16 h, c[r1]; cvt.u64.u16 d1, h; st.global.u64 [o+40], d1;\n"
		 "st.shared.b32 s[r1], 77; ld.shared.b32 r2, [s+8]; cvt.u64.u32 d1, r2; "
		 "st.global.u64 [o+48], d1;\n"
		 "mov.u64 d3, 1; st.local.b64 l[d3], 88; ld.local.b64 d1, l[1]; st.global.u64 "
		 "[o+56], d1;\n"
		 "st.global.u64 g[r1], 99; ld.global.u64 d1, [g+16]; st.global.u64 [o+64], "
		 "d1; ret; }",
		1, 1, out);
	const uint64_t want[] = {12, 13, 11, 11, 13, 7, 77, 88, 99};

	for (size_t k = 0; k < sizeof(want) / sizeof(want[0]); k++)
		if (out[k] != want[k])
			fail_msg("word %zu is %llu, not %llu", k, (unsigned long long)out[k],
				(unsigned long long)want[k]);
}

/* Dr.Jit's tables of functions stand behind the kernels that call by them. */
static void test_defined_below(void **state)
{
	(void)state;
	text_run(".extern .global .u64 table[2];\n"
		 ".extern .global .u32 never;\n"
		 ".visible .entry k(.param .u64 at) { .reg .b64 d<9>; .reg .b32 r<9>;\n"
		 "ld.param.u64 d1, [at]; mov.u32 r1, %tid.x; ld.global.u64 d2, table[r1];\n"
		 "{ proto: .callprototype (.param .b32 o) _ (.param .b32 i); .param .b32 o; "
		 ".param .b32 i;\n"
		 "st.param.b32 [i], r1; call (o), d2, (i), proto; ld.param.b32 r2, [o]; }\n"
		 "mad.wide.u32 d3, r1, 4, d1; st.global.u32 [d3], r2; ret; }\n"
		 ".visible .func (.param .b32 o) one(.param .b32 i) { .reg .b32 r<3>;\n"
		 "ld.param.b32 r1, [i]; add.u32 r1, r1, 100; st.param.b32 [o], r1; ret; }\n"
		 ".visible .func (.param .b32 o) two(.param .b32 i) { .reg .b32 r<3>;\n"
		 "ld.param.b32 r1, [i]; add.u32 r1, r1, 200; st.param.b32 [o], r1; ret; }\n"
		 ".visible .global .align 8 .u64 table[2] = { one, two };",
		1, 2, out);
	assert_int_equal(((const uint32_t *)out)[0], 100);
	assert_int_equal(((const uint32_t *)out)[1], 201);
}

/* Only the kernel that names it cannot run. */
static void test_never_defined(void **state)
{
	struct ptx_module *module =
		text_load("sm_90", ".extern .global .u32 never;\n"
				   ".visible .entry k(.param .u64 at) { .reg .b32 r<3>;\n"
				   "ld.global.u32 r1, [never]; ret; }\n"
				   ".visible .entry good(.param .u64 at) { ret; }");
	uint64_t param = (uint64_t)(uintptr_t)out;
	struct ptx_error error;

	(void)state;
	assert_int_equal(text_launch(module, "k", 1, 1, 0, &param, &error), PTX_NOT_SUPPORTED);
	assert_non_null(strstr(error.text, "never"));
	assert_int_equal(error.line, 5);
	assert_int_equal(text_launch(module, "good", 1, 1, 0, &param, &error), PTX_OK);
	ptx_module_free(module);
}

static void test_vectors(void **state)
{
	(void)state;
	text_run(".visible .entry k(.param .u64 at) { .reg .b64 d<3>; .reg .b32 r<9>;\n"
		 "ld.param.u64 d1, [at]; mov.v4.b32 {r1, r2, r3, r4}, {1, 2, 3, 4};\n"
		 "mov.v2.b32 {r1, r2}, {r2, r1}; st.global.v4.b32 [d1], {r1, r2, r3, r4}; ret; "
		 "}",
		1, 1, out);
	const uint32_t want[] = {2, 1, 3, 4};

	assert_memory_equal(out, want, sizeof(want));
}

/* A % begins a name, without a space before it too: compilers' inline text has it. */
static void names_begin_with_a_percent_sign(void **state)
{
	(void)state;
	out[0] = 0;
	text_run(".visible .entry k(.param .u64 at) { .reg .b64 %d1; .reg .u32 %q;\n"
		 "ld.param.u64%d1, [at]; mov.u32%q, %ntid.x; st.global.u32 [%d1],%q; ret; }",
		1, 32, out);
	assert_int_equal(out[0], 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_begin_with_a_percent_sign),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_places_of_expressions),
		cmocka_unit_test(test_elements),
		cmocka_unit_test(test_defined_below),
		cmocka_unit_test(test_never_defined),
		cmocka_unit_test(test_vectors),
	};

	text_init(1);
	out = text_memory(4096);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
