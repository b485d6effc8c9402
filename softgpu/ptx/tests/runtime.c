/* SPDX-License-Identifier: Apache-2.0
 *
 * The device runtime: launches from kernels, with wrong arguments and without end, copies that
 * fault. What programs do with it is in tests/programs/nested-launches.cu.
 */
#include "softgpu/ptx/tests/run_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                                                   \
	".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 f,\n"        \
	" .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);\n"             \
	".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 "   \
	"s);\n"                                                                                \
	".extern .func (.param .b32 r) __cudaCDP2MemsetAsync_ptsz(.param .b64 p,\n"            \
	" .param .b32 v, .param .b64 n, .param .b64 s);\n"                                     \
	".extern .func (.param .b64 r) __cudaCDP2GetErrorName(.param .b32 e);\n"

/* LAUNCH f, blocks, threads, stream, with `out` as the only parameter: status in r1 (-1: no
 * buffer), the buffer in d2. */
#define BUFFER(f, blocks, threads)                                                             \
	"{ .param .b64 a; .param .align 4 .b8 b[12]; .param .align 4 .b8 c[12]; .param .b32 "  \
	"e;\n .param .b64 o; st.param.b64 [a], " f "; st.param.b32 [b], " blocks               \
	"; st.param.b32 [b+4], 1;\n st.param.b32 [b+8], 1; st.param.b32 [c], " threads         \
	"; st.param.b32 [c+4], 1;\n st.param.b32 [c+8], 1; st.param.b32 [e], 0;\n"             \
	" call (o), __cudaCDP2GetParameterBufferV2, (a, b, c, e); ld.param.b64 d2, [o]; }\n"
#define START(stream)                                                                          \
	"{ .param .b64 a; .param .b64 b; .param .b32 o; st.param.b64 [a], d2; st.param.b64 "   \
	"[b], " stream ";\n call (o), __cudaCDP2LaunchDeviceV2, (a, b); ld.param.b32 r1, "     \
	"[o]; }\n"
#define LAUNCH(f, blocks, threads, stream)                                                     \
	"mov.u64 d1, " f ";\n" BUFFER(                                                         \
		"d1", blocks, threads) "mov.u32 r1, -1; setp.eq.u64 "                          \
				       "p, d2, 0;\n@p bra $none; st.u64 [d2], d0;\n" START(    \
					       stream) "$none:\n"
#define KERNEL(name)                                                                           \
	".visible .entry " name "(.param .u64 out)\n{ .reg .b64 d<9>; .reg .b32 r<9>; .reg "   \
	".pred p, q;\nld.param.u64 d0, [out];\n"
#define TAIL "ret; }\n"
/* Counts in out[0]. */
#define COUNT KERNEL("count") "atom.global.add.u32 r2, [d0], 1; " TAIL

static uint32_t *out;

static enum ptx_status try(const char *text, struct ptx_error *error)
{
	struct ptx_module *module = text_load("sm_90", text);
	enum ptx_status status;

	memset(out, 0, 4096);
	status = text_launch(module, "k", 1, 1, 0, &out, error);
	ptx_module_free(module);
	return status;
}

static void run(const char *text)
{
	struct ptx_error error;

	if (try(text, &error))
		fail_msg("line %d: %s", error.line, error.text);
}

static void test_status(void **state)
{
	(void)state;
	run(HEAD COUNT KERNEL("k")
			LAUNCH("count", "3", "64", "0") "st.global.u32 [d0+4], r1; " TAIL);
	assert_int_equal(out[0], 192);
	assert_int_equal(out[1], 0);
	/* Too many threads: cudaErrorInvalidConfiguration, and nothing runs. */
	run(HEAD COUNT KERNEL("k")
			LAUNCH("count", "1", "1025", "0") "st.global.u32 [d0+4], r1; " TAIL);
	assert_int_equal(out[0], 0);
	assert_int_equal(out[1], 9);
	/* A function that is no kernel, and no function at all: no buffer. */
	run(HEAD ".func f() { ret; }\n" KERNEL("k")
			LAUNCH("f", "1", "1", "0") "st.global.u32 [d0+4], r1; " TAIL);
	assert_int_equal(out[1], UINT32_MAX);
	run(HEAD KERNEL("k") "mov.u64 d1, 0x8000000777777;\n" BUFFER(
		"d1", "1", "1") "st.global.u64 [d0+8], d2; " TAIL);
	assert_int_equal(out[2] | out[3], 0);
}

/* A buffer that was never given, one that is used twice, and one whose head is overwritten. */
static void test_buffers(void **state)
{
	(void)state;
	run(HEAD COUNT KERNEL("k") "add.u64 d2, d0, 1024;\n" START(
		"0") "st.global.u32 [d0+4], r1; " TAIL);
	assert_int_equal(out[1], 1);
	run(HEAD COUNT KERNEL("k") LAUNCH("count", "1", "1", "0")
			START("0") "st.global.u32 [d0+4], r1; " TAIL);
	assert_int_equal(out[0], 1);
	assert_int_equal(out[1], 1);
	run(HEAD COUNT KERNEL("k") "mov.u64 d1, count;\n" BUFFER("d1", "1",
		"1") "st.u64 [d2], d0; st.u64 [d2-64], 12345;\n" START("0") "st.global.u32 "
									    "[d0+4], "
									    "r1; " TAIL);
	assert_int_equal(out[0], 0);
	assert_int_equal(out[1], 98);
}

static void test_depth(void **state)
{
	(void)state;
	/* Each launches itself, until it may not: 24 levels, and the first one. */
	run(HEAD KERNEL("k") "atom.global.add.u32 r2, [d0], 1;\n" LAUNCH(
		"k", "1", "1", "0") "st.global.u32 [d0+4], r1; " TAIL);
	assert_int_equal(out[0], 25);
	assert_int_equal(out[1], 65);
	/* Behind itself as often as it likes. */
	run(HEAD KERNEL("k") "atom.global.add.u32 r2, [d0], 1; setp.ge.u32 q, r2, 500; @q "
			     "exit;\n" LAUNCH("k", "1", "1", "3") TAIL);
	assert_int_equal(out[0], 501);
}

/* Every thread of a block launches another block behind itself, for ever: so many wait at last
 * that no more may. */
static void test_pending(void **state)
{
	struct ptx_error error;

	(void)state;
	assert_int_equal(try(HEAD KERNEL("k") LAUNCH("k", "1", "256",
				     "3") "setp.eq.u32 q, r1, 69; @q trap; " TAIL,
				 &error),
		PTX_TRAP);
}

static void test_faults(void **state)
{
	const char *set = "{ .param .b64 a; .param .b32 b; .param .b64 c; .param .b64 e; "
			  ".param .b32 o;\n st.param.b64 [a], d1; st.param.b32 [b], 0x15a; "
			  "st.param.b64 [c], 100;\n st.param.b64 [e], 0; call (o), "
			  "__cudaCDP2MemsetAsync_ptsz, (a, b, c, e); }\n";
	struct ptx_error error;
	char text[4096];

	(void)state;
	snprintf(text, sizeof(text), HEAD KERNEL("k") "add.u64 d1, d0, 4;\n%s" TAIL, set);
	run(text);
	assert_int_equal(out[0], 0);
	assert_int_equal(out[1], 0x5a5a5a5a);
	assert_int_equal(out[25], 0x5a5a5a5a);
	assert_int_equal(out[26], 0);
	snprintf(text, sizeof(text), HEAD KERNEL("k") "mov.u64 d1, %#llx;\n%s" TAIL,
		(unsigned long long)text_hole(), set);
	assert_int_equal(try(text, &error), PTX_ILLEGAL_ADDRESS);
	snprintf(text, sizeof(text), HEAD KERNEL("k") "mov.u64 d1, 64;\n%s" TAIL, set);
	assert_int_equal(try(text, &error), PTX_ILLEGAL_ADDRESS);
	/* A child's fault is the launch's; what was to follow does not run. */
	assert_int_equal(
		try(HEAD COUNT KERNEL("bad") "ld.global.u32 r2, [64]; st.global.u32 [d0], "
					     "r2; " TAIL KERNEL("k") LAUNCH("bad", "1", "1",
						     "0") "mov.u64 d1, count;\n" BUFFER("d1",
						     "1", "1") "st.u64 [d2], d0;\n" START("0")
						     TAIL,
			&error),
		PTX_ILLEGAL_ADDRESS);
	assert_int_equal(out[0], 0);
}

/* What cannot be copied, and answers that have no place. */
static void test_refused(void **state)
{
	(void)state;
	run(".extern .func (.param .b32 r) __cudaCDP2Memcpy3DAsync_ptsz(.param .b64 p, .param "
	    ".b64 s);\n"
	    ".extern .func (.param .b32 r) __cudaCDP2RuntimeGetVersion(.param .b64 p);\n"
	    ".func (.param .b32 o) copy(.param .b64 a) { .reg .b64 d; .reg .b32 r;\n"
	    "ld.param.b64 d, [a]; { .param .b64 b; .param .b64 c; .param .b32 q; st.param.b64 "
	    "[b], d;\nst.param.b64 [c], 0; call (q), __cudaCDP2Memcpy3DAsync_ptsz, (b, c); "
	    "ld.param.b32 r, [q]; }\nst.param.b32 [o], r; ret; }\n" KERNEL(
		    "k") "add.u64 d1, d0, 1024; mov.u64 d2, 0;\n"
			 "{ .param .b64 a; .param .b32 o; st.param.b64 [a], d2; call (o), "
			 "copy, (a);\n"
			 "ld.param.b32 r1, [o]; st.global.u32 [d0], r1; }\n"
			 "{ .param .b64 a; .param .b32 o; st.param.b64 [a], d1; call (o), "
			 "copy, (a);\n"
			 "ld.param.b32 r1, [o]; st.global.u32 [d0+4], r1; }\n"
			 /* Device to device, 2 rows of 8 bytes in a pitch of 4. */
			 "st.global.u32 [d1+152], 3; st.global.u64 [d1+128], 8; st.global.u64 "
			 "[d1+136], 2;\n"
			 "st.global.u64 [d1+144], 1; st.global.u64 [d1+40], 4; st.global.u64 "
			 "[d1+104], 8;\n"
			 "{ .param .b64 a; .param .b32 o; st.param.b64 [a], d1; call (o), "
			 "copy, (a);\n"
			 "ld.param.b32 r1, [o]; st.global.u32 [d0+8], r1; }\n"
			 /* From an array. */
			 "st.global.u64 [d1+40], 8; st.global.u64 [d1], d1;\n"
			 "{ .param .b64 a; .param .b32 o; st.param.b64 [a], d1; call (o), "
			 "copy, (a);\n"
			 "ld.param.b32 r1, [o]; st.global.u32 [d0+12], r1; }\n"
			 "{ .param .b64 a; .param .b32 o; st.param.b64 [a], d2; call (o), "
			 "__cudaCDP2RuntimeGetVersion, (a);\n"
			 "ld.param.b32 r1, [o]; st.global.u32 [d0+16], r1; }\n" TAIL);
	assert_int_equal(out[0], 1);
	assert_int_equal(out[1], 21);
	assert_int_equal(out[2], 1);
	assert_int_equal(out[3], 1);
	assert_int_equal(out[4], 1);
}

/* A module that launches graphs loads, and is told that it cannot. */
static void test_graphs(void **state)
{
	(void)state;
	run(HEAD
		".extern .func (.param .b32 r) cudaGraphLaunch(.param .b64 g, .param .b64 s);\n"
		".extern .func (.param .b32 r) __cudaCDP2GetLastError();\n" KERNEL(
			"k") "{ .param .b64 a; .param .b64 b; .param .b32 o; st.param.b64 [a], "
			     "d0; "
			     "st.param.b64 [b], 0;\n call (o), cudaGraphLaunch, (a, b); "
			     "ld.param.b32 r1, "
			     "[o]; st.global.u32 [d0], r1; }\n"
			     "{ .param .b32 o; call (o), __cudaCDP2GetLastError; ld.param.b32 "
			     "r1, [o]; "
			     "st.global.u32 [d0+4], r1; }\n" TAIL);
	assert_int_equal(out[0], 801);
	assert_int_equal(out[1], 801);
}

static void test_texts(void **state)
{
	(void)state;
	run(HEAD KERNEL(
		"k") "{ .param .b32 a; .param .b64 o; st.param.b32 [a], 65; call (o), "
		     "__cudaCDP2GetErrorName, (a);\n ld.param.b64 d1, [o]; ld.b64 d2, [d1]; "
		     "st.global.b64 [d0], d2; }\n" TAIL);
	assert_memory_equal(out, "cudaErro", 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_buffers),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_pending),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_graphs),
		cmocka_unit_test(test_texts),
	};

	text_init(0);
	out = text_memory(65536);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
