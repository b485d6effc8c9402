/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared memory is a kernel's: it has the variables that it and what it calls name, also where
 * those of all kernels of the module would not fit a block; two that it has never overlap.
 * After a barrier every warp reads before the first one goes on to write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "softgpu/ptx/tests/run_text.h"

static uint32_t *out;

/* Fills the variable with a number and the thread's; adds what it holds to the thread's sum. */
#define WRITE(name, number)                                                                    \
	"mov.u32 r2, " name "; mad.lo.u32 r2, t, 4, r2; add.u32 r3, t, " number                \
	"; st.shared.u32 [r2], r3;\n"
#define ADD(name)                                                                              \
	"mov.u32 r2, " name "; mad.lo.u32 r2, t, 4, r2; ld.shared.u32 r3, [r2]; add.u32 sum, " \
	"sum, r3;\n"
#define KERNEL(name)                                                                           \
	".visible .entry " name                                                                \
	"(.param .u64 out)\n{ .reg .b64 d<3>; .reg .pred p; .reg .b32 r<9>, t, "               \
	"sum;\nld.param.u64 d1, [out]; mov.u32 t, %tid.x; mov.u32 sum, 0;\n"
#define END "mad.wide.u32 d2, t, 4, d1; st.global.u32 [d2], sum; ret; }\n"
#define BIG(name, bytes) ".shared .align 4 .b8 " name "[" bytes "];\n"

static void launch(struct ptx_module *module, const char *kernel, uint32_t own, uint32_t sum)
{
	struct ptx_kernel_info info;
	struct ptx_error error;
	uint64_t param = (uint64_t)(uintptr_t)out;

	ptx_kernel_info(ptx_module_kernel(module, kernel), &info);
	assert_int_equal(info.static_shared, own);
	memset(out, 0, 128);
	assert_int_equal(text_launch(module, kernel, 1, 32, 0, &param, &error), PTX_OK);
	for (uint32_t k = 0; k < 32; k++)
		assert_int_equal(out[k], sum + k * (sum / 1000));
}

/* 360 KB in all, 120 KB for each, with names at module scope and in the kernel. */
static void each_kernel_has_its_own(void **state)
{
	struct ptx_module *module = text_load("sm_90",
		BIG("a", "122880") BIG("b", "122880") KERNEL("ka") WRITE("a", "1000") ADD(
			"a") END KERNEL("kb") WRITE("b", "1000") ADD("b") END KERNEL("kc")
			BIG("c", "122880") WRITE("c", "1000") ADD("c") END KERNEL("none") END);

	(void)state;
	launch(module, "ka", 122880, 1000);
	launch(module, "kb", 122880, 1000);
	launch(module, "kc", 122880, 1000);
	launch(module, "none", 0, 0);
	ptx_module_free(module);
}

/* A function's variable, at one place for all who call it, by way of another; beside those of
 * either kernel. */
static void what_is_called_has_its_place_in_each(void **state)
{
	struct ptx_module *module = text_load("sm_90",
		BIG("common", "128") BIG("a", "128") BIG("b",
			"4096") ".func inner(.reg .b32 t)\n{ .reg .b32 r<9>;\n" WRITE("common",
			"1000") "ret; }\n"
				".func outer(.reg .b32 t)\n{ .reg .b32 r<9>;\n"
				"{ call inner, (t); } ret; }\n" KERNEL("ka") WRITE(
					"a", "1000") "call outer, (t);\n" ADD("a") ADD("common")
					END KERNEL("kb") BIG("own", "128") WRITE("b", "1000")
						WRITE("own", "1000") "call outer, (t);\n" ADD(
							"b") ADD("own") ADD("common") END);

	(void)state;
	launch(module, "ka", 256, 2000);
	launch(module, "kb", 128 + 4096 + 128, 3000);
	ptx_module_free(module);
}

/* What is called by its address may name any function's variable; what memory holds the address
 * of, any kernel may. */
static void by_address_all_are_there(void **state)
{
	struct ptx_module *module = text_load("sm_90",
		BIG("a", "128") BIG("b", "128") BIG("unused",
			"128") ".global .align 4 .u32 where = b;\n"
			       ".func f(.reg .b32 t)\n{ .reg .b32 r<9>;\n" WRITE("a",
				       "1000") "ret; }\n"
					       ".global .align 8 .u64 function = f;\n" KERNEL(
						       "k") "{ .reg .b64 to; ld.global.u64 to, "
							    "[function];\n"
							    "P: .callprototype _ (.reg .b32 "
							    "t);\ncall to, (t), P; }\n"
							    "ld.global.u32 r4, [where]; "
							    "mad.lo.u32 r4, t, 4, r4; add.u32 "
							    "r3, t, 1000; "
							    "st.shared.u32 [r4], r3; "
							    "ld.shared.u32 sum, [r4];\n" ADD(
								    "a") END);

	(void)state;
	launch(module, "k", 256, 2000);
	ptx_module_free(module);
}

static void too_much_is_said_with_its_kernel(void **state)
{
	static const char text[] =
		".version 8.7\n.target sm_90\n.address_size 64\n" BIG("a", "200000")
			BIG("b", "200000") KERNEL("small") WRITE("a", "1") END KERNEL("large")
				WRITE("a", "1") WRITE("b", "1") END;
	struct ptx_error error;

	(void)state;
	assert_null(ptx_module_load(text, strlen(text), NULL, NULL, PTX_HEAP_BYTES, &error));
	assert_int_equal(error.status, PTX_SYNTAX);
	assert_string_equal(error.text, "large has too much shared memory");
}

/* Runs "k" in a block of four warps; each thread of them writes WANT. Takes MODULE. */
static void four_warps_write(struct ptx_module *module, uint32_t want)
{
	struct ptx_error error;
	uint64_t param = (uint64_t)(uintptr_t)out;

	memset(out, 0, 512);
	assert_int_equal(text_launch(module, "k", 1, 128, 0, &param, &error), PTX_OK);
	for (uint32_t k = 0; k < 128; k++)
		assert_int_equal(out[k], want);
	ptx_module_free(module);
}

/* Each warp's number, seven times it in the second round, is summed by the first thread. */
#define ROUND(factor, sum)                                                                     \
	"mul.lo.u32 r3, warp, " factor "; @lead st.shared.u32 [own], r3; bar.sync 0;\n"        \
	"@first ld.shared.v4.u32 {r4, r5, r6, r7}, [s];\n"                                     \
	"@first add.u32 r4, r4, r5; @first add.u32 r6, r6, r7; @first add.u32 r4, r4, r6;\n"   \
	"@first st.shared.u32 [s], r4; bar.sync 0;\nld.shared.u32 " sum ", [s];\n"

/* A usual sum over a block, which lacks a barrier before its memory is used again. */
static void the_first_warp_comes_last(void **state)
{
	struct ptx_module *module = text_load("sm_80",
		KERNEL("k") ".shared .align 16 .b8 s[16];\n"
			    ".reg .b32 warp, own, one, two; .reg .pred lead, first;\n"
			    "shr.u32 warp, t, 5; mov.u32 own, s; mad.lo.u32 own, warp, 4, "
			    "own;\n"
			    "and.b32 r1, t, 31; setp.eq.u32 lead, r1, 0;\n"
			    "setp.eq.u32 first, t, 0; add.u32 warp, warp, 1;\n" ROUND(
				    "1", "one")
				    ROUND("7", "two") "mad.lo.u32 sum, two, 1000, one;\n" END);

	(void)state;
	four_warps_write(module, 70 * 1000 + 10);
}

/* As MLX's sums over a block, twice with the same memory: each warp writes its own place, which
 * others still have to read. */
static void all_read_before_one_writes(void **state)
{
	struct ptx_module *module = text_load("sm_80",
		KERNEL("k") ".shared .align 16 .b8 s[16];\n"
			    ".reg .b32 warp, own, a, b; .reg .pred lead;\n"
			    "shr.u32 warp, t, 5; mov.u32 own, s; mad.lo.u32 own, warp, 4, "
			    "own;\n"
			    "and.b32 r1, t, 31; setp.ne.u32 lead, r1, 0; add.u32 r2, warp, 1;\n"
			    "@lead bra A; st.shared.u32 [own], r2;\nA: bar.sync 0;\n"
			    "ld.shared.v4.u32 {r3, r4, r5, r6}, [s]; add.u32 a, r3, r4; "
			    "add.u32 a, a, r5; add.u32 a, a, r6; mul.lo.u32 r2, r2, a;\n"
			    "@lead bra B; st.shared.u32 [own], r2;\nB: bar.sync 0;\n"
			    "ld.shared.v4.u32 {r3, r4, r5, r6}, [s]; add.u32 b, r3, r4; "
			    "add.u32 b, b, r5; add.u32 b, b, r6; mad.lo.u32 sum, a, 1000, "
			    "b;\n" END);

	(void)state;
	four_warps_write(module, 10 * 1000 + 100);
}

/* It is given out in pieces of 128 bytes: a kernel may read behind what it asked for, as
 * Dr.Jit's reductions of 64 elements do, and not behind the piece. */
static void it_comes_in_pieces(void **state)
{
	struct ptx_module *module = text_load("sm_80",
		".extern .shared .align 4 .b8 s[];\n" KERNEL(
			"k") "mov.u32 r1, s; mad.lo.u32 r1, t, 4, r1; setp.eq.u32 p, t, 0;\n"
			     "@p st.shared.u32 [r1], 7; ld.shared.u32 sum, [r1];\n" END);
	struct ptx_error error;
	uint64_t param = (uint64_t)(uintptr_t)out;

	(void)state;
	memset(out, 0xff, 512);
	assert_int_equal(text_launch(module, "k", 1, 32, 8, &param, &error), PTX_OK);
	assert_int_equal(out[0], 7);
	assert_int_equal(
		text_launch(module, "k", 1, 33, 8, &param, &error), PTX_ILLEGAL_ADDRESS);
	assert_int_equal(
		text_launch(module, "k", 1, 1, 0, &param, &error), PTX_ILLEGAL_ADDRESS);
	ptx_module_free(module);
}

/* A variable's address stands where 128 bits are wanted: the low half of them. */
static void an_address_is_widened(void **state)
{
	struct ptx_module *module =
		text_load("sm_90", ".visible .entry k(.param .u64 out)\n{ .reg .b64 d; .reg "
				   ".b128 v; .shared .align 16 "
				   ".b8 first[48]; .shared .b128 second; .reg .b32 "
				   "a;\nld.param.u64 d, [out]; mov.u32 "
				   "a, first; st.global.u32 [d+16], a; atom.global.exch.b128 "
				   "v, [d], second; ret; }");
	struct ptx_error error;
	uint64_t param = (uint64_t)(uintptr_t)out;

	(void)state;
	memset(out, 0xff, 32);
	assert_int_equal(text_launch(module, "k", 1, 1, 0, &param, &error), PTX_OK);
	assert_int_equal(out[0], out[4] + 48);
	assert_int_equal(out[1] | out[2] | out[3], 0);
	ptx_module_free(module);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kernel_has_its_own),
		cmocka_unit_test(what_is_called_has_its_place_in_each),
		cmocka_unit_test(by_address_all_are_there),
		cmocka_unit_test(too_much_is_said_with_its_kernel),
		cmocka_unit_test(the_first_warp_comes_last),
		cmocka_unit_test(all_read_before_one_writes),
		cmocka_unit_test(it_comes_in_pieces),
		cmocka_unit_test(an_address_is_widened),
	};

	text_init(1);
	out = text_memory(4096);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
