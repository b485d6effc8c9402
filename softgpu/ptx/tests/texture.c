/* SPDX-License-Identifier: Apache-2.0
 *
 * Textures and surfaces as instructions name them: by number, by a variable that holds the
 * number, by the address of such a variable.
 */
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

static uint32_t *out;
static unsigned char *texels;

/* 8 by 4, in rows of 64 bytes: two levels, the second one behind the first. */
static struct ptx_texture make(enum ptx_texel texel, uint32_t channels)
{
	return (struct ptx_texture){
		.levels = {{(uint64_t)(uintptr_t)texels, 64, 256, 8, 4, 1},
			{(uint64_t)(uintptr_t)texels + 256, 64, 128, 4, 2, 1}},
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_references),
	};

	text_init(1);
	out = text_memory(4096);
	texels = text_memory(4096);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
