/* SPDX-License-Identifier: Apache-2.0
 *
 * Textures and surfaces as instructions name them: by number, by a variable that holds the
 * number, by the address of such a variable.
 */
#include "softgpu/ptx/internal.h"
#include "softgpu/ptx/texture.h"
#include "softgpu/ptx/tests/run_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                                                   \
	".visible .entry k(.param .u64 out, .param .u64 tex, .param .u64 surf)\n{\n"           \
	".reg .b64 d<20>, base, tn, sn; .reg .b32 r<20>; .reg .b16 h<20>; .reg .pred p<9>;\n"  \
	"ld.param.u64 base, [out]; ld.param.u64 tn, [tex]; ld.param.u64 sn, [surf];\n"

struct params {
	uint32_t *out;
	uint64_t texture, surface;
};

#define WINDOW_GRANULES 4096 /* of the tests' window, or more */

static uint32_t *out;
static unsigned char *texels;

/* 8 by 4, in rows of 64 bytes: two levels, the second one behind the first. */
static struct ptx_texture make(enum ptx_texel texel, uint32_t channels)
{
	return (struct ptx_texture){
		.levels = {{(uint64_t)(uintptr_t)texels, 64, 256, 8, 4, 1, {0}},
			{(uint64_t)(uintptr_t)texels + 256, 64, 128, 4, 2, 1, {0}}},
		.nlevels = 1,
		.texel = texel,
		.channels = channels,
		.address = {PTX_CLAMP, PTX_CLAMP, PTX_CLAMP},
		.integers = texel < PTX_TEXEL_F16};
}

/* One thread runs the module's kernel k; the status and what the text says of it. */
static enum ptx_status launch(struct ptx_module *module, struct params params)
{
	struct ptx_error error;
	enum ptx_status status;

	params.out = out;
	memset(out, 0xee, 4096);
	status = text_launch(module, "k", 1, 1, 0, &params, &error);
	if (status)
		print_message("line %d: %s\n", error.line, error.text);
	return status;
}

static void put_reference(struct ptx_module *module, const char *name, bool surface, uint64_t n)
{
	uint64_t address;

	assert_true(ptx_module_reference(module, name, surface, &address));
	memcpy((void *)(uintptr_t)address, &n, sizeof(n));
}

static void test_references(void **state)
{
	struct ptx_texture t = make(PTX_TEXEL_U8, 1);
	uint64_t number = ptx_texture_add(&t), surface;
	struct ptx_module *module;

	(void)state;
	t.surface = true;
	surface = ptx_texture_add(&t);
	assert_true(number && surface);
	for (unsigned k = 0; k < 256; k++)
		texels[k] = (unsigned char)(k + 1);
	module = text_load("sm_90",
		".global .u32 plain; .global .texref tx; .global .surfref sf; .global .texref "
		"none;\n" HEAD "mov.u64 d0, tx; mov.u64 d1, sf; mov.u64 d2, plain; mov.u32 r9, "
		"2; mov.u32 r8, 1;\n"
		/* Each kind, of each kind of variable, of none, and off by four bytes. */
		"istypep.texref p0, d0; selp.u32 r0, 1, 0, p0;\n"
		"istypep.surfref p0, d0; selp.u32 r1, 2, 0, p0; or.b32 r0, r0, r1;\n"
		"istypep.samplerref p0, d0; selp.u32 r1, 4, 0, p0; or.b32 r0, r0, r1;\n"
		"istypep.surfref p0, d1; selp.u32 r1, 8, 0, p0; or.b32 r0, r0, r1;\n"
		"istypep.texref p0, d1; selp.u32 r1, 16, 0, p0; or.b32 r0, r0, r1;\n"
		"istypep.texref p0, d2; selp.u32 r1, 32, 0, p0; or.b32 r0, r0, r1;\n"
		"add.u64 d3, d0, 4; istypep.texref p0, d3; selp.u32 r1, 64, 0, p0; or.b32 r0, "
		"r0, r1;\n"
		"istypep.texref p0, 0; selp.u32 r1, 128, 0, p0; or.b32 r0, r0, r1;\n"
		"istypep.texref p0, tn; selp.u32 r1, 256, 0, p0; or.b32 r0, r0, r1;\n"
		"st.global.u32 [base], r0;\n"
		"tex.2d.v4.u32.s32 {r0, r1, r2, r3}, [d0, {r9, r8}]; st.global.u32 [base+4], "
		"r0;\n"
		"tex.2d.v4.u32.s32 {r0, r1, r2, r3}, [tx, {r9, r8}]; st.global.u32 [base+8], "
		"r0;\n"
		"tex.2d.v4.u32.s32 {r0, r1, r2, r3}, [tn, {r9, r8}]; st.global.u32 [base+12], "
		"r0;\n"
		"txq.width.b32 r0, [d0]; suq.height.b32 r1, [d1]; st.global.u32 [base+16], "
		"r0;\n"
		"st.global.u32 [base+20], r1; suld.b.2d.b8.trap h0, [d1, {r9, r8}];\n"
		"cvt.u32.u16 r0, h0; st.global.u32 [base+24], r0;\nret; }\n");
	put_reference(module, "tx", false, number);
	put_reference(module, "sf", true, surface);
	assert_int_equal(launch(module, (struct params){.texture = number}), PTX_OK);
	assert_int_equal(out[0], 1 | 8);
	for (unsigned k = 1; k < 4; k++)
		assert_int_equal(out[k], 64 + 2 + 1);
	assert_int_equal(out[4], 8);
	assert_int_equal(out[5], 4);
	assert_int_equal(out[6], 64 + 2 + 1);
	/* A variable that nothing is bound to, and one of the other kind. */
	put_reference(module, "tx", false, 0);
	assert_int_equal(launch(module, (struct params){.texture = number}), PTX_TRAP);
	put_reference(module, "tx", false, surface);
	assert_int_equal(launch(module, (struct params){.texture = number}), PTX_TRAP);
	ptx_module_free(module);
	ptx_texture_remove(number);
	ptx_texture_remove(surface);
}

static void test_fetch_halves_and_questions(void **state)
{
	struct ptx_texture t = make(PTX_TEXEL_F32, 4);
	static const float texel[] = {1.0f, -2.5f, 65520.0f, 0.1f};
	uint64_t number, other;
	struct ptx_module *module;

	(void)state;
	memcpy(texels, texel, sizeof(texel));
	t.nlevels = 2;
	t.normalized = true;
	number = ptx_texture_add(&t);
	module = text_load("sm_90", HEAD
		"mov.u32 r9, 0; tex.2d.v4.f16.s32 {h0, h1, _, h3}, [tn, {r9, r9}];\n"
		"st.global.u16 [base], h0; st.global.u16 [base+2], h1; st.global.u16 [base+4], "
		"h3;\n"
		"tex.2d.v4.f16.s32 {_, _, h2, _}, [tn, {r9, r9}]; st.global.u16 [base+6], h2;\n"
		"mov.u32 r1, 1; txq.level.width.b32 r0, [tn], r1; st.global.u32 [base+8], r0;\n"
		"txq.level.height.b32 r0, [tn], 0; st.global.u32 [base+12], r0;\n"
		"txq.level.width.b32 r0, [tn], 2; st.global.u32 [base+16], r0;\n"
		"txq.num_samples.b32 r0, [tn]; st.global.u32 [base+20], r0;\n"
		"txq.level.depth.b32 r0, [tn], -1; st.global.u32 [base+24], r0; ret; }\n");
	assert_int_equal(launch(module, (struct params){.texture = number}), PTX_OK);
	assert_int_equal(out[0], 0xc1003c00);
	assert_int_equal(out[1], 0x7c002e66);
	assert_int_equal(out[2], 4);
	assert_int_equal(out[3], 4);
	assert_int_equal(out[4], 0);
	assert_int_equal(out[5], 0);
	assert_int_equal(out[6], 0);

	/* Removed, it can be read until its number is given again, which is not soon. */
	ptx_texture_remove(number);
	t.nlevels = 1;
	for (int i = 0; i < 100; i++) {
		other = ptx_texture_add(&t);
		assert_int_not_equal(other, number);
		ptx_texture_remove(other);
	}
	out[0] = out[2] = 0;
	assert_int_equal(launch(module, (struct params){.texture = number}), PTX_OK);
	assert_int_equal(out[0], 0xc1003c00);
	assert_int_equal(out[2], 4);
	ptx_module_free(module);
}

/* Whole coordinates count texels, of a texture with normalized ones and that goes round, too.
 */
static void test_fetch_by_whole_numbers(void **state)
{
	struct ptx_texture t = make(PTX_TEXEL_U8, 1);
	uint64_t number;
	struct ptx_module *module;

	(void)state;
	for (unsigned k = 0; k < 256; k++)
		texels[k] = (unsigned char)k;
	t.normalized = true;
	t.address[0] = t.address[1] = PTX_WRAP;
	number = ptx_texture_add(&t);
	module = text_load("sm_90", HEAD
		"mov.u32 r1, 5; mov.u32 r2, 2; mov.u32 r3, 0;\n"
		"tex.2d.v4.u32.s32 {r4, _, _, _}, [tn, {r1, r2}]; st.global.u32 [base], r4;\n"
		"tex.level.2d.v4.u32.s32 {r4, _, _, _}, [tn, {r1, r3}], r3;\n"
		"st.global.u32 [base+4], r4; ret; }\n");
	assert_int_equal(launch(module, (struct params){.texture = number}), PTX_OK);
	assert_int_equal(out[0], 2 * 64 + 5);
	assert_int_equal(out[1], 5);
	ptx_module_free(module);
	ptx_texture_remove(number);
}

#define AT_10_3                                                                                \
	"mov.u32 r1, 10; mov.u32 r2, 3; mov.u32 r3, 9;\n"                                      \
	"tex.2d.v4.u32.s32 {r4, _, _, _}, [tn, {r1, r2}]; st.global.u32 [base], r4;\n"         \
	"suld.b.2d.b8.trap h0, [sn, {r1, r2}]; cvt.u32.u16 r4, h0; st.global.u32 [base+4], "   \
	"r4;\ncvt.u16.u32 h1, r3; sust.b.2d.b8.trap [sn, {r1, r2}], h1; ret; }\n"

/* Memory in tiles of 8 bytes by 2 rows, two of them in a row; and where none is. */
static void test_tiles(void **state)
{
	static atomic_uchar absent[WINDOW_GRANULES];
	struct ptx_texture t = make(PTX_TEXEL_U8, 1);
	struct ptx_module *module = text_load("sm_90", HEAD AT_10_3);
	const uint64_t first = ptx_device_window.base >> PTX_ABSENT_SHIFT;
	struct params params;

	(void)state;
	for (unsigned k = 0; k < 64; k++)
		texels[k] = (unsigned char)k;
	t.levels[0].width = 16;
	t.levels[0].tiles = (struct ptx_tiles){.x = 3, .y = 1, .across = 2, .down = 2};
	t.sparse = true;
	params.texture = ptx_texture_add(&t);
	t.surface = true;
	params.surface = ptx_texture_add(&t);
	assert_int_equal(launch(module, params), PTX_OK);
	assert_int_equal(out[0], 3 * 16 + 8 + 2);
	assert_int_equal(out[1], 3 * 16 + 8 + 2);
	assert_int_equal(texels[3 * 16 + 8 + 2], 9);
	memset(texels, 5, 64);
	ptx_absent_set(absent);
	atomic_store(
		&absent[((uint64_t)(uintptr_t)texels >> PTX_ABSENT_SHIFT) - first], PTX_ABSENT);
	assert_int_equal(launch(module, params), PTX_OK);
	assert_int_equal(out[0], 0);
	assert_int_equal(out[1], 0);
	assert_int_equal(texels[3 * 16 + 8 + 2], 5);
	ptx_absent_set(NULL);
	ptx_module_free(module);
	ptx_texture_remove(params.texture);
	ptx_texture_remove(params.surface);
}

/* Two values that lie in two tiles, which no element does. */
static void test_between_tiles(void **state)
{
	struct ptx_texture t = make(PTX_TEXEL_U8, 1);
	struct ptx_module *module = text_load("sm_90",
		HEAD "mov.u32 r1, 7; mov.u32 r2, 0;\n"
		     "suld.b.2d.v2.b8.trap {h0, h1}, [sn, {r1, r2}]; ret; }\n");
	struct params params = {0};

	(void)state;
	t.levels[0].width = 16;
	t.levels[0].tiles = (struct ptx_tiles){.x = 3, .y = 1, .across = 2, .down = 2};
	t.surface = true;
	params.surface = ptx_texture_add(&t);
	assert_int_equal(launch(module, params), PTX_MISALIGNED_ADDRESS);
	ptx_module_free(module);
	ptx_texture_remove(params.surface);
}

/* One store of {VALUES} to element 3, 1; the element's first eight bytes. */
static uint64_t store(enum ptx_texel texel, uint32_t channels, const char *text)
{
	struct ptx_texture t = make(texel, channels);
	struct ptx_module *module = text_load("sm_90", text);
	uint64_t number, got;

	t.surface = true;
	number = ptx_texture_add(&t);
	memset(texels, 0x77, 4096);
	assert_int_equal(launch(module, (struct params){.surface = number}), PTX_OK);
	memcpy(&got, texels + 64 + 3 * ptx_texel_bytes(texel) * channels, sizeof(got));
	ptx_module_free(module);
	ptx_texture_remove(number);
	return got;
}

#define PUT(type, a, b, c, d)                                                                  \
	HEAD "mov.u32 r1, 3; mov.u32 r2, 1; mov.b32 r4, " a "; mov.b32 r5, " b ";\n"           \
	     "mov.b32 r6, " c "; mov.b32 r7, " d ";\nsust.p.2d." type                          \
	     ".b32.zero [sn, {r1, r2}], "

static void test_formatted_stores(void **state)
{
	(void)state;
	/* Numbers that an element cannot hold are its least and greatest. */
	assert_int_equal(
		store(PTX_TEXEL_U8, 4,
			PUT("v4", "300", "7", "0xffffffff", "255") "{r4, r5, r6, r7}; ret; }"),
		0x77777777ffff07ff);
	assert_int_equal(
		store(PTX_TEXEL_S8, 4,
			PUT("v4", "-300", "-7", "200", "127") "{r4, r5, r6, r7}; ret; }"),
		0x777777777f7ff980);
	assert_int_equal(store(PTX_TEXEL_S16, 2,
				 PUT("v2", "-40000", "40000", "0", "0") "{r4, r5}; ret; }"),
		0x777777777fff8000);
	assert_int_equal(
		(uint32_t)store(PTX_TEXEL_10_10_10_2, 4,
			PUT("v4", "1", "1024", "1023", "9") "{r4, r5, r6, r7}; ret; }"),
		0xfffffc01);
	assert_int_equal(store(PTX_TEXEL_F16, 4,
				 PUT("v4", "0f3f800000", "0fc0200000", "0f7f800000",
					 "0f00000001") "{r4, r5, r6, r7}; ret; }"),
		0x00007c00c1003c00);
	/* More values than the element has, and fewer. */
	assert_int_equal(
		store(PTX_TEXEL_U16, 1, PUT("v2", "70000", "9", "0", "0") "{r4, r5}; ret; }"),
		0x777777777777ffff);
	assert_int_equal(store(PTX_TEXEL_U32, 2,
				 HEAD "mov.u32 r1, 3; mov.u32 r2, 1; mov.u32 r4, -1;\n"
				      "sust.p.2d.b32.trap [sn, {r1, r2}], r4; ret; }"),
		0x00000000ffffffff);
	/* Outside: nothing is written, or the nearest element is. */
	assert_int_equal(store(PTX_TEXEL_U32, 1,
				 HEAD "mov.u32 r1, 8; mov.u32 r2, 1; mov.u32 r4, 5;\n"
				      "sust.p.2d.b32.zero [sn, {r1, r2}], r4; ret; }"),
		0x7777777777777777);
	assert_int_equal(store(PTX_TEXEL_U32, 1,
				 HEAD "mov.u32 r1, 99; mov.u32 r2, 1; mov.u32 r4, 5;\n"
				      "sust.p.2d.b32.clamp [sn, {r1, r2}], r4; ret; }"),
		0x7777777777777777);
	assert_int_equal(texels[64 + 7 * 4], 5);
}

#define REDUCE(op, type, value)                                                                \
	HEAD "mov.u32 r1, 3; mov.u32 r2, 1; mov.b64 d1, " value "; cvt.u32.u64 r4, d1;\n"      \
	     "sured.p." op ".2d." type ".trap [sn, {r1, r2}], "

static void test_formatted_reductions(void **state)
{
	(void)state;
	/* 0x77777777 is there; a number with its top bit set is the least only with a sign. */
	assert_int_equal(
		store(PTX_TEXEL_U32, 1, REDUCE("min", "b32", "0x80000001") "r4; ret; }"),
		0x7777777777777777);
	assert_int_equal(
		store(PTX_TEXEL_S32, 1, REDUCE("min", "b32", "0x80000001") "r4; ret; }"),
		0x7777777780000001);
	assert_int_equal(
		store(PTX_TEXEL_U32, 1, REDUCE("max", "b32", "0x80000001") "r4; ret; }"),
		0x7777777780000001);
	assert_int_equal(store(PTX_TEXEL_U32, 2,
				 REDUCE("max", "b64", "0x8000000000000001") "d1; ret; }"),
		0x8000000000000001);
	assert_int_equal(store(PTX_TEXEL_S32, 2,
				 REDUCE("max", "b64", "0x8000000000000001") "d1; ret; }"),
		0x7777777777777777);
	assert_int_equal(store(PTX_TEXEL_U32, 1, REDUCE("add", "b32", "2") "r4; ret; }"),
		0x7777777777777779);
	assert_int_equal(
		store(PTX_TEXEL_U32, 1, REDUCE("or", "b32", "0x88000000") "r4; ret; }"),
		0x77777777ff777777);
}

static void test_declarations(void **state)
{
	struct ptx_module *module;

	(void)state;
	/* What is said of a sampler and of a variable; and an instruction with a sampler, of
	 * whose kernel only the launch is refused. */
	module = text_load("sm_90, texmode_independent",
		".global .samplerref s = { addr_mode_0 = clamp_to_border, filter_mode = "
		"nearest };\n"
		".global .texref t;\n"
		".global .attribute(.unified(19, 95)) .u32 g = 7;\n"
		".func .attribute(.unified(0xAB, 0xCD)) f() { ret; }\n" HEAD
		"mov.u64 d0, s; istypep.samplerref p0, d0; selp.u32 r0, 1, 0, p0; call f;\n"
		"ld.global.u32 r1, [g].unified; st.global.v2.u32 [base], {r0, r1}; ret; }\n"
		".visible .entry other(.param .u64 out) { .reg .b32 r<9>;\n"
		"tex.2d.v4.f32.f32 {r0, r1, r2, r3}, [t, s, {r4, r5}]; ret; }\n");
	assert_int_equal(launch(module, (struct params){0}), PTX_OK);
	assert_int_equal(out[0], 1);
	assert_int_equal(out[1], 7);
	{
		struct ptx_error error;

		assert_int_equal(
			text_launch(module, "other", 1, 1, 0, &out, &error), PTX_NOT_SUPPORTED);
		assert_non_null(strstr(error.text, "a sampler of its own"));
	}
	ptx_module_free(module);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_references),
		cmocka_unit_test(test_fetch_halves_and_questions),
		cmocka_unit_test(test_fetch_by_whole_numbers),
		cmocka_unit_test(test_tiles),
		cmocka_unit_test(test_between_tiles),
		cmocka_unit_test(test_declarations),
		cmocka_unit_test(test_formatted_stores),
		cmocka_unit_test(test_formatted_reductions),
	};

	text_init(1);
	out = text_memory(4096);
	texels = text_memory(4096);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
