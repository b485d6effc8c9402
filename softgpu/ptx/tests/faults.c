/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes wrong in a kernel, or before it: each with its status, and the line of the
 * instruction at fault.
 */
#include "softgpu/ptx/tests/run_text.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD                                                                                   \
	".visible .entry k(.param .u64 at)\n{ .reg .b64 d<9>; .reg .b32 r<9>; .reg .pred "     \
	"p<9>;\n"
#define FIRST 5 /* the line behind HEAD */

struct fault {
	const char *body; /* the instruction at fault stands alone in its last line */
	enum ptx_status status;
	uint64_t at; /* the parameter; 0: good memory */
	const char *says;
};

static uint64_t good;

static void expect(const struct fault *fault)
{
	struct ptx_error error;
	struct ptx_module *module;
	uint64_t at = fault->at ? fault->at : good;
	char text[2048];
	int line = FIRST;
	enum ptx_status status;

	for (const char *p = fault->body; *p; p++)
		line += *p == '\n';
	snprintf(text, sizeof(text), "%s%s\nret; }", HEAD, fault->body);
	module = text_load("sm_90", text);
	status = text_launch(module, "k", 3, 64, 64, &at, &error);
	if (status != fault->status || error.line != line || !strstr(error.text, fault->says))
		fail_msg("%s:\nstatus %d, line %d: %s\nnot status %d, line %d: ...%s...",
			fault->body, status, error.line, error.text, fault->status, line,
			fault->says);
	ptx_module_free(module);
}

static void test_memory(void **state)
{
	const struct fault faults[] = {
		{"ld.param.u64 d1, [at];\nst.global.u32 [d1], 1;", PTX_ILLEGAL_ADDRESS, 16,
			"0x10"},
		{"ld.param.u64 d1, [at];\nld.global.u32 r1, [d1];", PTX_ILLEGAL_ADDRESS,
			text_hole(), "no memory"},
		{"ld.param.u64 d1, [at];\nld.u32 r1, [d1];", PTX_ILLEGAL_ADDRESS, text_hole(),
			"no memory"},
		{"ld.param.u64 d1, [at];\nst.u8 [d1], 1;", PTX_ILLEGAL_ADDRESS,
			(uint64_t)(uintptr_t)&good, "illegal"},
		{"ld.param.u64 d1, [at];\natom.global.add.u32 r1, [d1], 1;",
			PTX_ILLEGAL_ADDRESS, text_hole(), "no memory"},
		{"ld.param.u64 d1, [at];\nld.global.u32 r1, [d1+2];", PTX_MISALIGNED_ADDRESS, 0,
			"misaligned"},
		{"ld.param.u64 d1, [at];\nld.global.v4.u32 {r1,r2,r3,r4}, [d1+8];",
			PTX_MISALIGNED_ADDRESS, 0, "misaligned"},
		{"ld.param.u64 d1, [at];\natom.global.add.u64 d2, [d1+4], 1;",
			PTX_MISALIGNED_ADDRESS, 0, "misaligned"},
		{"mov.u32 r1, 128;\nld.shared.u32 r2, [r1];", PTX_ILLEGAL_ADDRESS, 0, "shared"},
		{"mov.u32 r1, -4;\nst.shared.u32 [r1], r2;", PTX_ILLEGAL_ADDRESS, 0,
			"illegal address"},
		{".local .align 8 .b8 x[16]; mov.u64 d1, x;\nld.local.u32 r2, [d1+1048576];",
			PTX_ILLEGAL_ADDRESS, 0, "local"},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(faults) / sizeof(faults[0]); k++)
		expect(&faults[k]);
}

static void test_others(void **state)
{
	const struct fault faults[] = {
		{"mov.u32 r1, 1;\ntrap;", PTX_TRAP, 0, "trap"},
		{"mov.u32 r1, 1;\nbrkpt;", PTX_TRAP, 0, "brkpt"},
		{"mov.u32 r1, 99;\nbar.sync r1;", PTX_TRAP, 0, "barrier 99"},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(faults) / sizeof(faults[0]); k++)
		expect(&faults[k]);
}

/* Good memory stays usable after a fault, and so does the module. */
static void test_goes_on(void **state)
{
	struct ptx_module *module =
		text_load("sm_90", HEAD "ld.param.u64 d1, [at]; st.global.u32 [d1], 7; ret; }");
	uint64_t bad = text_hole();
	struct ptx_error error;

	(void)state;
	for (int k = 0; k < 20; k++) {
		*(volatile uint32_t *)(uintptr_t)good = 0;
		assert_int_equal(
			text_launch(module, "k", 5, 64, 0, &bad, &error), PTX_ILLEGAL_ADDRESS);
		assert_int_equal(text_launch(module, "k", 5, 64, 0, &good, &error), PTX_OK);
		assert_int_equal(*(volatile uint32_t *)(uintptr_t)good, 7);
	}
	ptx_module_free(module);
}

static void test_stack(void **state)
{
	struct ptx_module *module = text_load("sm_90",
		".func deep(.param .b32 n)\n{ .reg .b32 r<4>; .local .b8 x[4096];\n"
		"ld.param.b32 r1, [n]; add.u32 r1, r1, 1;\n"
		"{ .param .b32 q; st.param.b32 [q], r1;\ncall.uni deep, (q); }\nret; }\n"
		".visible .entry k() { .param .b32 q; st.param.b32 [q], 0; call.uni deep, (q); "
		"ret; }");
	struct ptx_error error;

	(void)state;
	assert_int_equal(text_launch(module, "k", 1, 32, 0, NULL, &error), PTX_STACK_ERROR);
	assert_int_equal(error.line, 7);
	ptx_module_free(module);
}

static void *cancel_soon(void *arg)
{
	usleep(50000);
	atomic_store((atomic_bool *)arg, true);
	return NULL;
}

static void endless(const char *text)
{
	struct ptx_module *module = text_load("sm_90", text);
	atomic_bool cancel = false;
	struct ptx_launch launch = {
		.kernel = ptx_module_kernel(module, "k"),
		.grid = {4, 1, 1},
		.block = {64, 1, 1},
		.cluster = {1, 1, 1},
		.params = &good,
		.timeout_ns = 50000000,
	};
	struct ptx_error error;
	pthread_t thread;

	assert_int_equal(ptx_launch(&launch, &error), PTX_TIMEOUT);
	launch.timeout_ns = 0;
	launch.cancel = &cancel;
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &cancel), 0);
	assert_int_equal(ptx_launch(&launch, &error), PTX_TIMEOUT);
	assert_non_null(strstr(error.text, "cancelled"));
	pthread_join(thread, NULL);
	ptx_module_free(module);
}

static void test_endless(void **state)
{
	(void)state;
	endless(HEAD "L: bra L; }");
	/* A few lanes go round while the others wait behind the loop. */
	endless(HEAD "mov.u32 r1, %laneid; setp.lt.u32 p1, r1, 5; L: @p1 bra L; bar.warp.sync "
		     "-1; }");
	/* Two calls in each call: deep enough for years. */
	endless(".func twice(.param .b32 n) { .reg .b32 r<4>; .reg .pred p; ld.param.b32 r1, "
		"[n]; "
		"sub.u32 r1, r1, 1; setp.eq.u32 p, r1, 0; @p ret; { .param .b32 q; "
		"st.param.b32 [q], "
		"r1; call.uni twice, (q); call.uni twice, (q); } ret; }\n" HEAD
		"{ .param .b32 q; st.param.b32 [q], 60; call.uni twice, (q); } ret; }");
}

/* Half of the block waits at a barrier of 64 that the other half has left for good. */
static void test_deadlock(void **state)
{
	struct ptx_module *module =
		text_load("sm_90", HEAD "mov.u32 r1, %tid.x; setp.lt.u32 p1, r1, 32; @p1 bra "
					"OUT; bar.sync 1, 96; OUT: ret; }");
	struct ptx_error error;

	(void)state;
	assert_int_equal(text_launch(module, "k", 1, 64, 0, &good, &error), PTX_TIMEOUT);
	assert_non_null(strstr(error.text, "deadlock"));
	ptx_module_free(module);
}

/* A thread may invalidate a mbarrier that others have yet to arrive at and to wait for: on a
 * GPU they do so meanwhile. */
static void test_late_arrival(void **state)
{
	struct ptx_module *module = text_load("sm_90",
		".visible .entry k(.param .u64 at)\n{ .reg .pred p<2>; .reg .b64 d<3>; "
		".shared .b64 bar;\n"
		"mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive.shared.b64 d1, [bar];\n"
		"mbarrier.inval.shared.b64 [bar]; mbarrier.arrive.shared.b64 d1, [bar];\n"
		"WAIT: mbarrier.test_wait.parity.shared.b64 p1, [bar], 0; @!p1 bra WAIT;\n"
		"ld.param.u64 d2, [at]; st.global.u64 [d2], 9; ret; }");
	struct ptx_error error;

	(void)state;
	*(volatile uint64_t *)(uintptr_t)good = 7;
	assert_int_equal(text_launch(module, "k", 1, 1, 0, &good, &error), PTX_OK);
	assert_int_equal(*(volatile uint64_t *)(uintptr_t)good, 9);
	ptx_module_free(module);
}

/* One kernel of a module lacks an instruction; the others run. */
static void test_not_served(void **state)
{
	struct ptx_module *module =
		text_load("sm_90", ".visible .entry bad()\n{ .reg .b32 "
				   "r<4>;\nwmma.load.a.sync.row {r1}, [r2];\nret; }\n"
				   ".visible .entry fine() { ret; }");
	struct ptx_error error;

	(void)state;
	assert_int_equal(ptx_module_kernel_count(module), 2);
	assert_int_equal(text_launch(module, "bad", 1, 1, 0, NULL, &error), PTX_NOT_SUPPORTED);
	assert_int_equal(error.line, 5);
	assert_non_null(strstr(error.text, "wmma"));
	assert_int_equal(text_launch(module, "fine", 1, 1, 0, NULL, &error), PTX_OK);
	ptx_module_free(module);
}

static uint64_t no_memory(void *arg, size_t size, size_t align)
{
	(void)arg, (void)size, (void)align;
	return 0;
}

static void test_not_ptx(void **state)
{
	static const struct {
		const char *text;
		enum ptx_status status;
		int line;
	} rows[] = {
		{"", PTX_SYNTAX, 1},
		{"hello", PTX_SYNTAX, 1},
		{".version 8.0\n.target sm_80\n.entry k() {\n.reg .b32 r;\nfrobnicate.b32 r, "
		 "r;\n}",
			PTX_SYNTAX, 5},
		{".version 8.0\n.target sm_80\n.address_size 32\n", PTX_SYNTAX, 3},
		{".version 8.0\n.target sm_80\n.entry k() {\n.reg .b32 r;\nbra NOWHERE;\n}",
			PTX_SYNTAX, 5},
		{".version 8.0\n.entry k() {\nret;", PTX_SYNTAX, 3},
		{".version 8.0\n.global .u32 x[4] = {1,2,3,4,5};\n", PTX_SYNTAX, 2},
		/* Initial values that behind a page of others would lie outside. */
		{".version 8.0\n.target sm_80\n.global .align 4096 .b8 x[4096];\n"
		 ".global .b128 g[0] = 4;\n",
			PTX_SYNTAX, 4},
		{".version 8.0\n.target sm_80\n.global .u32 g[0] = {4};\n", PTX_SYNTAX, 3},
		{".version 8.0\n.target sm_80\n.global .u64 g[2][0] = g;\n", PTX_SYNTAX, 3},
		{".version 8.0\n.target sm_80\n.global .u64 x = nowhere;\n", PTX_NO_MEMORY, 0},
		{".version 8.0\n.target sm_80\n.global .u32 x;\n", PTX_NO_MEMORY, 0},
		{".target sm_80\n.entry k() { ret; }\n", PTX_SYNTAX, 1},
		{".version 8.0\n.entry k() { ret; }\n", PTX_SYNTAX, 1},
		{".version 8.0\n.target sm_80\n.extern .func f();\n.entry k() { call f; }\n",
			PTX_SYNTAX, 0},
		{".version 8.0\n.entry k() {\n@9 ret;\n}", PTX_SYNTAX, 3},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct ptx_error error;
		struct ptx_module *module = ptx_module_load(rows[k].text, strlen(rows[k].text),
			no_memory, NULL, PTX_HEAP_BYTES, &error);

		if (module || error.status != rows[k].status || error.line != rows[k].line ||
			!error.text[0])
			fail_msg("%s: status %d, line %d: %s", rows[k].text, error.status,
				error.line, error.text);
	}
}

/* Every prefix of a good text: refused or loaded, never worse. */
static void test_truncated(void **state)
{
	static const char text[] =
		".version 8.0\n.target sm_80\n.address_size 64\n.global .align 4 .b8 t[8] = "
		"{1, 2};\n"
		".func (.param .b32 x) f(.param .b64 y) { .reg .b32 %r<3>; mov.u32 %r1, 0x3f;\n"
		"st.param.b32 [x+0], %r1; ret; }\n"
		".visible .entry k(.param .align 8 .b8 p[16]) .maxntid 64, 1, 1 {\n"
		".reg .pred %p<3>; .reg .b32 %r<9>; .reg .f32 %f<3>; .reg .b64 %rd<3>;\n"
		"$L1: ld.param.v2.u32 {%r1, %r2}, [p+8]; setp.lt.and.s32 %p1|%p2, %r1, 5, "
		"!%p1;\n"
		"@!%p1 bra $L1; fma.rn.ftz.f32 %f1, %f1, 0f3F800000, %f2; mov.u32 %r4, "
		"%tid.x;\n"
		"{ .param .b32 r0; .param .b64 a0; st.param.b64 [a0], %rd1; call.uni (r0), f, "
		"(a0); }\n"
		"ret; }\n";
	unsigned loaded = 0;

	(void)state;
	for (size_t n = 0; n <= sizeof(text) - 1; n++) {
		char *copy = malloc(n + 1);
		struct ptx_error error;
		struct ptx_module *module;

		assert_non_null(copy);
		memcpy(copy, text, n);
		copy[n] = 'x'; /* behind the end: must not be read as text */
		module = ptx_module_load(copy, n, no_memory, NULL, PTX_HEAP_BYTES, &error);
		loaded += module != NULL;
		ptx_module_free(module);
		free(copy);
	}
	assert_true(loaded > 0); /* before the variable there is nothing to allocate */
}

static void test_arguments(void **state)
{
	struct ptx_module *module = text_load(
		"sm_90", ".visible .entry k(.param .u64 at) .maxntid 64, 1, 1 { ret; }");
	struct ptx_error error;

	(void)state;
	assert_int_equal(text_launch(module, "k", 1, 64, 0, &good, &error), PTX_OK);
	assert_int_equal(text_launch(module, "k", 1, 65, 0, &good, &error), PTX_INVALID);
	assert_int_equal(text_launch(module, "k", 0, 64, 0, &good, &error), PTX_INVALID);
	assert_int_equal(text_launch(module, "k", 1, 0, 0, &good, &error), PTX_INVALID);
	assert_int_equal(text_launch(module, "k", 1, 64, 1 << 20, &good, &error), PTX_INVALID);
	ptx_module_free(module);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_stack),
		cmocka_unit_test(test_endless),
		cmocka_unit_test(test_deadlock),
		cmocka_unit_test(test_late_arrival),
		cmocka_unit_test(test_not_served),
		cmocka_unit_test(test_not_ptx),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_arguments),
	};

	text_init(2);
	good = (uint64_t)(uintptr_t)text_memory(4096);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
