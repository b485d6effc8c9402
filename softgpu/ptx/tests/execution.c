/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes, warps, blocks: divergence, what lanes do together, barriers, atomics, calls, memory
 * spaces, variables with initialisers, printf and the device's heap.
 */
#include "softgpu/ptx/tests/run_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* at: out + 4 * (global thread index); t: the thread, l: the lane. */
#define HEAD                                                                                   \
	".visible .entry k(.param .u64 out)\n{ .reg .b64 d<20>, at, base; .reg .b32 r<20>, "   \
	"t, l;\n"                                                                              \
	".reg .pred p<9>; .reg .f32 f<9>;\n"                                                   \
	"ld.param.u64 base, [out]; mov.u32 r1, %ctaid.x; mov.u32 r2, %ntid.x; mov.u32 r3, "    \
	"%tid.x;\n"                                                                            \
	"mad.lo.u32 t, r1, r2, r3; mad.wide.u32 at, t, 4, base; mov.u32 l, %laneid;\n"
#define TAIL "ret; }"

static uint32_t *out;

static uint32_t *run(const char *text, uint32_t blocks, uint32_t threads)
{
	memset(out, 0, 65536);
	text_run(text, blocks, threads, out);
	return out;
}

#define EACH(n, want)                                                                          \
	for (uint32_t k = 0; k < (n); k++)                                                     \
		if (out[k] != (uint32_t)(want))                                                \
	fail_msg("thread %u has %#x, not %#x", k, out[k], (uint32_t)(want))

static void test_divergence(void **state)
{
	(void)state;
	/* A loop of as many turns as the lane's number, then all meet again. */
	run(HEAD "mov.u32 r4, 0; mov.u32 r5, l;\n"
		 "L: setp.eq.u32 p1, r5, 0; @p1 bra OUT; add.u32 r4, r4, r5; sub.u32 r5, r5, "
		 "1; bra L;\n"
		 "OUT: activemask.b32 r6; shl.b32 r6, r6, 0; setp.ne.u32 p2, r6, 0xffffffff;\n"
		 "@p2 add.u32 r4, r4, 1000; st.global.u32 [at], r4; " TAIL,
		2, 64);
	EACH(128, (k & 31) * ((k & 31) + 1) / 2);

	/* Nested branches, early exits, a partial warp. */
	run(HEAD "and.b32 r4, l, 1; setp.eq.u32 p1, r4, 0; @p1 bra EVEN;\n"
		 "setp.gt.u32 p2, l, 20; @p2 exit; st.global.u32 [at], 1; bra OUT;\n"
		 "EVEN: setp.lt.u32 p3, l, 8; @!p3 bra BIG; st.global.u32 [at], 2; bra OUT;\n"
		 "BIG: st.global.u32 [at], 3;\nOUT: ld.global.u32 r5, [at]; add.u32 r5, r5, "
		 "10;\n"
		 "st.global.u32 [at], r5; " TAIL,
		1, 27);
	EACH(27, k & 1 ? (k > 20 ? 0 : 11) : k < 8 ? 12 : 13);

	/* brx.idx */
	run(HEAD "and.b32 r4, l, 3; ts: .branchtargets A, B, C, D;\nbrx.idx r4, ts;\n"
		 "A: st.global.u32 [at], 5; bra OUT; B: st.global.u32 [at], 6; bra OUT;\n"
		 "C: st.global.u32 [at], 7; bra OUT; D: st.global.u32 [at], 8; OUT: " TAIL,
		1, 32);
	EACH(32, 5 + (k & 3));
}

/* A lane takes a lock that its warp may hold, or waits for a flag that a later one sets. */
static void test_progress(void **state)
{
	(void)state;
	run(HEAD "add.u64 d1, base, 32768;\n"
		 "L: atom.global.cas.b32 r4, [d1], 0, 1; setp.ne.u32 p1, r4, 0; @p1 bra L;\n"
		 "ld.volatile.global.u32 r5, [d1+4]; add.u32 r5, r5, 1; st.volatile.global.u32 "
		 "[d1+4], r5;\n"
		 "membar.gl; atom.global.exch.b32 r6, [d1], 0; " TAIL,
		3, 96);
	assert_int_equal(out[8193], 288);

	run(HEAD "add.u64 d1, base, 32768; setp.eq.u32 p1, l, 31; @p1 bra SET;\n"
		 "L: ld.volatile.global.u32 r4, [d1]; setp.eq.u32 p2, r4, 0; @p2 bra L; bra "
		 "OUT;\n"
		 "SET: st.volatile.global.u32 [d1], 9;\n"
		 "OUT: ld.volatile.global.u32 r5, [d1]; st.global.u32 [at], r5; " TAIL,
		1, 32);
	EACH(32, 9);
}

static void test_together(void **state)
{
	(void)state;
	run(HEAD "shfl.sync.bfly.b32 r4, l, 3, 31, -1; st.global.u32 [at], r4; " TAIL, 1, 32);
	EACH(32, k ^ 3);
	run(HEAD "shfl.sync.up.b32 r4|p1, l, 2, 0, -1; @!p1 mov.u32 r4, 77; st.global.u32 "
		 "[at], r4; " TAIL,
		1, 32);
	EACH(32, k < 2 ? 77 : k - 2);
	run(HEAD "shfl.sync.down.b32 r4|p1, l, 3, 0x181f, -1; selp.b32 r5, 100, 0, p1;\n"
		 "add.u32 r4, r4, r5; st.global.u32 [at], r4; " TAIL,
		1, 32);
	EACH(32, (k & 7) + 3 < 8 ? k + 103 : k);
	run(HEAD "shfl.sync.idx.b32 r4, l, 5, 0x1c1f, -1; st.global.u32 [at], r4; " TAIL, 1,
		32);
	EACH(32, (k & 28) + 1);
	/* The members of each half come by other ways. */
	run(HEAD "setp.lt.u32 p1, l, 16; @p1 bra LOW;\n"
		 "vote.sync.ballot.b32 r4, p1, 0xffff0000; redux.sync.add.s32 r5, l, "
		 "0xffff0000; bra OUT;\n"
		 "LOW: vote.sync.ballot.b32 r4, p1, 0xffff; redux.sync.add.s32 r5, l, 0xffff;\n"
		 "OUT: add.u32 r4, r4, r5; st.global.u32 [at], r4; " TAIL,
		1, 32);
	EACH(32, k < 16 ? 0xffff + 120 : 376);
	/* All lanes, from two places of the code: they wait for one another. */
	run(HEAD "setp.lt.u32 p1, l, 7; mov.u32 r4, 0; @p1 bra A; add.u32 r4, r4, 1; bra B;\n"
		 "A: add.u32 r4, r4, 2; B: bar.warp.sync -1; redux.sync.max.u32 r5, r4, -1;\n"
		 "match.any.sync.b32 r6, r4, -1; popc.b32 r6, r6; mad.lo.u32 r5, r5, 100, r6;\n"
		 "st.global.u32 [at], r5; " TAIL,
		1, 32);
	EACH(32, k < 7 ? 207 : 225);
	run(HEAD "shr.u32 r4, l, 5; match.all.sync.b32 r5|p1, r4, -1; vote.sync.all.pred p2, "
		 "p1, -1;\n"
		 "elect.sync r6|p3, -1; selp.b32 r7, 1, 0, p3; selp.b32 r8, 10, 0, p2; add.u32 "
		 "r7, r7, r8;\n"
		 "st.global.u32 [at], r7; " TAIL,
		1, 32);
	EACH(32, k ? 10 : 11);
}

static void test_barriers(void **state)
{
	(void)state;
	/* Reverses a block through shared memory. */
	run(".visible .entry k(.param .u64 out) { .reg .b64 d<9>; .reg .b32 r<9>; .shared "
	    ".align 4 .b8 s[1024];\n"
	    "ld.param.u64 d1, [out]; mov.u32 r1, %tid.x; mov.u32 r2, s; mad.lo.u32 r3, r1, 4, "
	    "r2;\n"
	    "st.shared.u32 [r3], r1; bar.sync 0; sub.u32 r4, 255, r1; mad.lo.u32 r3, r4, 4, "
	    "r2;\n"
	    "ld.shared.u32 r5, [r3]; mov.u32 r6, %ctaid.x; mad.lo.u32 r7, r6, 256, r1;\n"
	    "mad.wide.u32 d2, r7, 4, d1; st.global.u32 [d2], r5; ret; }",
		4, 256);
	EACH(1024, 255 - (k & 255));
	run(HEAD "setp.lt.u32 p1, r3, 70; bar.red.popc.u32 r4, 0, p1; bar.red.and.pred p2, 1, "
		 "p1;\n"
		 "bar.red.or.pred p3, 2, p1; selp.b32 r5, 1000, 0, p2; selp.b32 r6, 500, 0, "
		 "p3;\n"
		 "add.u32 r4, r4, r5; add.u32 r4, r4, r6; st.global.u32 [at], r4; " TAIL,
		2, 128);
	EACH(256, 570);
	/* A producer warp arrives, two warps wait; threads that left do not count. */
	run(HEAD "setp.gt.u32 p1, r3, 95; @p1 exit; setp.gt.u32 p2, r3, 31; @p2 bra WAIT;\n"
		 "st.global.u32 [at], 1; bar.arrive 3, 96; bra OUT;\n"
		 "WAIT: bar.sync 3, 96; and.b32 r4, l, 31; mad.wide.u32 d1, r4, 4, base; "
		 "ld.global.u32 r5, [d1];\n"
		 "add.u32 r5, r5, 1; st.global.u32 [at], r5; OUT: bar.sync 0; " TAIL,
		1, 128);
	EACH(96, k < 32 ? 1 : 2);
}

static void test_atomics(void **state)
{
	static const struct {
		const char *op;
		uint32_t start, want;
	} rows[] = {
		/* 128 threads, v = 1 .. 128. */
		{"add.u32", 5, 5 + 8256},
		{"min.s32", 5, 1},
		{"max.u32", 5, 128},
		{"and.b32", 0xff, 0},
		{"or.b32", 0, 255},
		{"xor.b32", 0, 128},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		char text[2048];

		snprintf(text, sizeof(text), "%sadd.u32 r4, t, 1; red.global.%s [base], r4; %s",
			HEAD, rows[k].op, TAIL);
		memset(out, 0, 64);
		out[0] = rows[k].start;
		text_run(text, 4, 32, out);
		if (out[0] != rows[k].want)
			fail_msg("%s: %u, not %u", rows[k].op, out[0], rows[k].want);
	}
	/* inc and dec wrap; each old value is seen once. */
	run(HEAD "atom.global.inc.u32 r4, [base+4096], 99; mad.wide.u32 d1, r4, 4, base;\n"
		 "red.global.add.u32 [d1], 1; " TAIL,
		4, 50);
	EACH(100, 2);
	/* Floats, 64 bits, shared and generic. */
	run(HEAD ".shared .align 8 .b8 s[16]; mov.u32 r4, s; cvt.u64.u32 d1, r4; "
		 "cvta.shared.u64 d1, d1;\n"
		 "setp.eq.u32 p1, r3, 0; @p1 st.shared.v4.u32 [r4], {0, 0, 0, 0}; bar.sync 0;\n"
		 "red.shared.add.f32 [r4], 0f3F000000; atom.add.u64 d2, [d1+8], 0x100000001; "
		 "bar.sync 0;\n"
		 "@!p1 bra OUT; ld.shared.v4.u32 {r5, r6, r7, r8}, [r4]; st.global.v4.u32 "
		 "[base], {r5, r6, r7, r8};\n"
		 "OUT: " TAIL,
		1, 64);
	assert_int_equal(out[0], 0x42000000);
	assert_int_equal(out[2], 64);
	assert_int_equal(out[3], 64);
	run(HEAD "mov.b32 r4, 0x3c004000; red.global.add.noftz.f16x2 [base], r4; " TAIL, 1, 4);
	assert_int_equal(out[0], 0x44004800);
}

static void test_calls(void **state)
{
	(void)state;
	/* Recursion by lane, arguments and results in registers and parameters. */
	run(".func (.param .b32 v) fib(.param .b32 n)\n{ .reg .b32 r<9>; .reg .pred p;\n"
	    "ld.param.b32 r1, [n]; setp.lt.u32 p, r1, 2; @p bra LEAF; sub.u32 r2, r1, 1; "
	    "sub.u32 r3, r1, 2;\n"
	    "{ .param .b32 q; .param .b32 w; st.param.b32 [q], r2; call.uni (w), fib, (q); "
	    "ld.param.b32 r4, [w]; }\n"
	    "{ .param .b32 q; .param .b32 w; st.param.b32 [q], r3; call.uni (w), fib, (q); "
	    "ld.param.b32 r5, [w]; }\n"
	    "add.u32 r1, r4, r5;\nLEAF: st.param.b32 [v], r1; ret; }\n" HEAD
	    "and.b32 r4, l, 7; { .param .b32 q; .param .b32 w; st.param.b32 [q], r4; call (w), "
	    "fib, (q);\n"
	    "ld.param.b32 r5, [w]; } st.global.u32 [at], r5; " TAIL,
		1, 64);
	static const uint32_t fib[] = {0, 1, 1, 2, 3, 5, 8, 13};

	EACH(64, fib[k & 7]);
	/* A table of functions in memory, called by pointer; a structure by value. */
	run(".func (.reg .b32 v) one(.param .align 8 .b8 s[16]) { .reg .b32 r; ld.param.u32 r, "
	    "[s]; add.u32 v, r, 1; ret; }\n"
	    ".func (.reg .b32 v) two(.param .align 8 .b8 s[16]) { .reg .b32 r; ld.param.u32 r, "
	    "[s+8]; add.u32 v, r, 2; ret; }\n"
	    ".global .align 8 .u64 table[2] = {one, two};\n" HEAD
	    "and.b32 r4, l, 1; mov.u64 d1, table; mad.wide.u32 d1, r4, 8, d1; ld.global.u64 "
	    "d2, [d1];\n"
	    "proto: .callprototype (.reg .b32 _) _ (.param .align 8 .b8 _[16]);\n"
	    "{ .param .align 8 .b8 q[16]; st.param.u32 [q], 100; st.param.u32 [q+8], 200;\n"
	    "call (r5), d2, (q), proto; } st.global.u32 [at], r5; " TAIL,
		1, 40);
	EACH(40, k & 1 ? 202 : 101);
}

static void test_memory(void **state)
{
	struct ptx_module *module;
	uint64_t address, wide[4] = {0, 0, 7, 0};
	size_t size;

	(void)state;
	/* Local arrays by lane, through generic addresses. */
	run(HEAD ".local .align 4 .b8 x[64]; mov.u64 d1, x; cvta.local.u64 d2, d1; and.b32 r4, "
		 "l, 15;\n"
		 "mad.wide.u32 d3, r4, 4, d2; st.u32 [d3], t; isspacep.local p1, d3; "
		 "isspacep.global p2, d3;\n"
		 "mad.wide.u32 d4, r4, 4, d1; ld.local.u32 r5, [d4]; @!p1 mov.u32 r5, 0; @p2 "
		 "mov.u32 r5, 0;\n"
		 "st.global.u32 [at], r5; " TAIL,
		2, 64);
	EACH(128, k);
	/* Byte by byte, sign and zero extension, scattered. */
	run(HEAD "mul.lo.u32 r4, t, 7; and.b32 r4, r4, 63; cvt.u64.u32 d1, r4; add.u64 d1, d1, "
		 "base;\n"
		 "st.global.u8 [d1+8192], t; ld.global.s8 r5, [d1+8192]; st.global.u32 [at], "
		 "r5; " TAIL,
		1, 64);
	EACH(64, k);
	/* Directives without blanks between, as Numba's inline assembly has them. */
	run(HEAD "{.reg.b16 h; .local.align 8 .b8 x[8]; mov.b16 h, 7; cvt.u32.u16 r4, h; "
		 "st.local.u32 [x], r4; ld.local.u32 r5, [x]; st.global.u32 [at], r5; }" TAIL,
		1, 32);
	EACH(32, 7);
	/* What a loop takes from the stack it gives back: in all, more than there is. */
	run(HEAD "mov.u32 r4, 0; L: stacksave.u64 d1; alloca.u64 d2, 65536; st.local.u32 "
		 "[d2+65532], t; "
		 "ld.local.u32 r5, [d2+65532]; stackrestore.u64 d1; add.u32 r4, r4, 1; "
		 "setp.lt.u32 p1, r4, 200; @p1 bra L; st.global.u32 [at], r5; " TAIL,
		1, 32);
	EACH(32, k);
	/* Dynamic shared memory behind the static. */
	module = text_load("sm_90", ".extern .shared .align 16 .b8 dyn[];\n" HEAD
				    ".shared .align 4 .b8 own[64]; mov.u32 r4, dyn; mov.u32 "
				    "r5, own; mov.u32 r6, %dynamic_smem_size;\n"
				    "mad.lo.u32 r7, r3, 4, r4; st.shared.u32 [r7], t; "
				    "setp.ge.u32 p1, r4, 64; selp.b32 r8, 1000, 0, p1;\n"
				    "ld.shared.u32 r9, [r7]; add.u32 r9, r9, r8; add.u32 r9, "
				    "r9, r6; st.global.u32 [at], r9; " TAIL);
	struct ptx_error error;
	uint64_t param = (uint64_t)(uintptr_t)out;

	assert_int_equal(text_launch(module, "k", 1, 64, 256, &param, &error), PTX_OK);
	EACH(64, k + 1256);
	ptx_module_free(module);

	/* Variables: values, an address of another, an array of arrays, constants. */
	module = text_load("sm_90",
		".global .align 4 .u32 a = 42; .global .align 8 .u64 pa = a; .global .align 8 "
		".u64 pg = generic(b)+4;\n"
		".global .align 4 .b8 b[8] = {1, 0, 0, 0, 2}; .const .align 4 .f32 c[2] = "
		"{0f3F800000, 2.0};\n"
		".visible .global .align 4 .u32 m[2][2] = {{1, 2}, {3, 4}};\n"
		".visible .global .align 16 .b128 wide[2] = {m, 7};\n" HEAD
		"ld.global.u64 d1, [pa]; ld.u32 r4, [d1]; ld.global.u64 d2, [pg]; ld.u32 r5, "
		"[d2];\n"
		"ld.const.f32 f1, [c+4]; cvt.rzi.u32.f32 r6, f1; ld.global.u32 r7, [m+12];\n"
		"add.u32 r4, r4, r5; add.u32 r4, r4, r6; add.u32 r4, r4, r7; st.global.u32 "
		"[at], r4; " TAIL);
	assert_int_equal(text_launch(module, "k", 1, 32, 0, &param, &error), PTX_OK);
	EACH(32, 42 + 2 + 2 + 4);
	assert_true(ptx_module_global(module, "m", &address, &size));
	assert_int_equal(size, 16);
	assert_int_equal(((const uint32_t *)(uintptr_t)address)[2], 3);
	wide[0] = address;
	assert_true(ptx_module_global(module, "wide", &address, &size));
	assert_memory_equal((const void *)(uintptr_t)address, wide, sizeof(wide));
	assert_false(ptx_module_global(module, "none", &address, &size));
	ptx_module_free(module);
}

static char printed[4096];

static void keep(void *arg, const char *text, size_t n)
{
	size_t have = strlen(printed);

	(void)arg;
	assert_true(have + n < sizeof(printed));
	memcpy(printed + have, text, n);
}

static void test_builtins(void **state)
{
	(void)state;
	ptx_set_print(keep, NULL);
	run(".extern .func (.param .b32 v) vprintf(.param .b64 f, .param .b64 a);\n"
	    ".global .align 1 .b8 fmt[24] = {37, 100, 32, 37, 46, 50, 102, 32, 37, 115, 32, "
	    "37, 108, 108, 120, 32, 37, 37, 10, 0};\n"
	    ".global .align 1 .b8 word[4] = {121, 101, 115, 0};\n" HEAD
	    ".local .align 8 .b8 args[32]; setp.ne.u32 p1, l, 3; @p1 exit; mov.u64 d1, args; "
	    "cvta.local.u64 d2, d1;\n"
	    "st.local.u32 [d1], -7; mov.f64 d3, 0d3FF8000000000000; st.local.f64 [d1+8], d3;\n"
	    "mov.u64 d4, word; cvta.global.u64 d4, d4; st.local.u64 [d1+16], d4; st.local.u64 "
	    "[d1+24], 0xabcdef0123;\n"
	    "mov.u64 d5, fmt; cvta.global.u64 d5, d5; { .param .b64 q; .param .b64 s; .param "
	    ".b32 w;\n"
	    "st.param.b64 [q], d5; st.param.b64 [s], d2; call.uni (w), vprintf, (q, s); "
	    "ld.param.b32 r4, [w]; }\n"
	    "st.global.u32 [at], r4; " TAIL,
		1, 32);
	ptx_set_print(NULL, NULL);
	assert_string_equal(printed, "-7 1.50 yes abcdef0123 %\n");
	assert_int_equal(out[3], 4);

	/* Each lane's own piece of the heap. */
	run(".extern .func (.param .b64 v) malloc(.param .b64 n);\n.extern .func free(.param "
	    ".b64 p);\n" HEAD "{ .param .b64 q; .param .b64 w; st.param.b64 [q], 100; call.uni "
	    "(w), malloc, (q); ld.param.b64 d1, [w]; }\n"
	    "st.u32 [d1], t; st.u32 [d1+96], t; bar.sync 0; ld.u32 r4, [d1]; ld.u32 r5, "
	    "[d1+96]; add.u32 r4, r4, r5;\n"
	    "st.global.u32 [at], r4; { .param .b64 q; st.param.b64 [q], d1; call.uni free, "
	    "(q); } " TAIL,
		2, 64);
	EACH(128, 2 * k);
}

static void test_places(void **state)
{
	struct ptx_module *module = text_load("sm_90",
		".visible .entry k(.param .u64 out) { .reg .b64 d<9>; .reg .b32 r<20>;\n"
		"mov.u32 r1, %ctaid.x; mov.u32 r2, %ctaid.y; mov.u32 r3, %ctaid.z; mov.u32 r4, "
		"%nctaid.x;\n"
		"mov.u32 r5, %nctaid.y; mad.lo.u32 r6, r3, r5, r2; mad.lo.u32 r6, r6, r4, r1;\n"
		"mov.u32 r7, %tid.x; mov.u32 r8, %tid.y; mov.u32 r9, %tid.z; mov.u32 r10, "
		"%ntid.x; mov.u32 r11, %ntid.y;\n"
		"mov.u32 r12, %ntid.z; mad.lo.u32 r13, r9, r11, r8; mad.lo.u32 r13, r13, r10, "
		"r7;\n"
		"mul.lo.u32 r14, r10, r11; mul.lo.u32 r14, r14, r12; mad.lo.u32 r15, r6, r14, "
		"r13;\n"
		"ld.param.u64 d1, [out]; mad.wide.u32 d2, r15, 4, d1; red.global.add.u32 [d2], "
		"1; ret; }");
	uint64_t param = (uint64_t)(uintptr_t)out;
	struct ptx_launch launch = {
		.kernel = ptx_module_kernel(module, "k"),
		.grid = {3, 4, 5},
		.block = {7, 3, 2},
		.cluster = {1, 2, 1},
		.params = &param,
	};
	struct ptx_error error;

	(void)state;
	memset(out, 0, 65536);
	assert_int_equal(ptx_launch(&launch, &error), PTX_OK);
	EACH(3 * 4 * 5 * 42, 1);
	ptx_module_free(module);
}

static void test_aliases(void **state)
{
	struct ptx_module *module;
	struct ptx_error error;

	(void)state;
	/* Called by its other name before and behind the body, by a pointer, by itself. */
	module = text_load("sm_90",
		".weak .func (.param .b32 r) foo(.param .b32 a);\n"
		".shared .u32 seen;\n"
		".func (.param .b32 r) bar(.param .b32 a) { .reg .b32 x, y; .reg .pred p;\n"
		"ld.param.b32 x, [a]; st.shared.u32 [seen], x; setp.eq.u32 p, x, 0; mov.u32 y, "
		"0; @p bra OUT;\n"
		"sub.u32 y, x, 1; { .param .b32 q, s; st.param.b32 [q], y; call (s), foo, (q); "
		"ld.param.b32 y, "
		"[s]; } add.u32 y, y, x;\nOUT: st.param.b32 [r], y; ret; }\n"
		".alias foo, bar;\n"
		".visible .entry k(.param .u64 out) { .reg .b64 d, f; .reg .b32 x, y; "
		"ld.param.u64 d, [out];\n"
		"{ .param .b32 p, q; st.param.b32 [p], 4; call (q), foo, (p); ld.param.b32 x, "
		"[q]; }\n"
		"mov.u64 f, foo; { .param .b32 p, q; st.param.b32 [p], 3; call (q), f, (p), P; "
		"ld.param.b32 y, "
		"[q]; }\nP: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
		"st.global.v2.u32 [d], {x, y}; ret; }\n");
	assert_int_equal(text_launch(module, "k", 1, 1, 0, &out, &error), PTX_OK);
	assert_int_equal(out[0], 10);
	assert_int_equal(out[1], 6);
	ptx_module_free(module);
}

static void test_lists_of_variables(void **state)
{
	(void)state;
	text_run(".global .align 8 .u32 a, b = 3, c[2] = {4, 5};\n.const .f32 f = 0f3f800000, "
		 "g = 0f40000000;\n"
		 ".visible .entry k(.param .u64 out) { .reg .b64 d, e; .reg .b32 r<4>, x, "
		 "y<2>; .reg .pred p, q;\n"
		 ".local .u32 l, m[2]; .shared .align 8 .b8 s[4], t;\n"
		 "ld.param.u64 d, [out]; ld.global.u32 r0, [b]; ld.global.u32 r1, [c+4]; "
		 "ld.const.b32 x, [g];\n"
		 "st.local.u32 [m+4], 7; st.local.u32 [l], 1; ld.local.u32 r2, [m+4]; "
		 "st.shared.u8 [t], 9;\n"
		 "st.shared.u32 [s], 0; ld.shared.u8 r3, [t]; mov.u64 e, c; cvt.u32.u64 y1, e; "
		 "and.b32 y1, y1, 7;\n"
		 "st.global.v4.u32 [d], {r0, r1, r2, r3}; st.global.v2.u32 [d+16], {x, y1}; "
		 "ret; }\n",
		1, 1, out);
	assert_int_equal(out[0], 3);
	assert_int_equal(out[1], 5);
	assert_int_equal(out[2], 7);
	assert_int_equal(out[3], 9);
	assert_int_equal(out[4], 0x40000000);
	assert_int_equal(out[5], 0); /* each is aligned as the first says */
}

static void test_wrong_aliases(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{".func foo();\n.alias foo, bar;\n", "there is no function bar"},
		{".func foo();\n.func bar();\n.alias foo, bar;\n", "bar has no body"},
		{".func foo() { ret; }\n.func bar() { ret; }\n.alias foo, bar;\n",
			"foo has a body"},
		{".func foo();\n.entry bar() { ret; }\n.alias foo, bar;\n", "bar is a kernel"},
		{".func foo();\n.alias foo foo;\n", "',' is expected"},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
		char text[256];
		struct ptx_error error;
		int n = snprintf(text, sizeof(text),
			".version 8.7\n.target sm_90\n.address_size 64\n%s", wrong[k].text);

		assert_null(ptx_module_load(text, (size_t)n, NULL, NULL, 0, &error));
		assert_int_equal(error.status, PTX_SYNTAX);
		assert_non_null(strstr(error.text, wrong[k].says));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_divergence),
		cmocka_unit_test(test_progress),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_barriers),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_builtins),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_wrong_aliases),
		cmocka_unit_test(test_lists_of_variables),
	};

	text_init(2);
	out = text_memory(65536);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
