/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that a device program may call without bringing them: those in C
 * (run/builtin.c), and those of the device runtime that PTX itself can express.
 */
#include "softgpu/ptx/parse/read.h"

static const struct {
	const char *name;
	enum ptx_builtin builtin;
} builtins[] = {
	{"vprintf", PTX_VPRINTF},
	{"__assertfail", PTX_ASSERTFAIL},
	{"malloc", PTX_MALLOC},
	{"free", PTX_FREE},
};

/* The handle of a cooperative launch's grid is its workspace; 0 in any other launch, and for a
 * scope other than cudaCGScopeGrid. */
static const char grid_handle[] = R"(
.visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
	.reg .b32 high, low, s;
	.reg .b64 h;
	.reg .pred other;
	ld.param.u32 s, [scope];
	mov.u32 high, %envreg1;
	mov.u32 low, %envreg2;
	mov.b64 h, {low, high};
	setp.ne.u32 other, s, 1;
	@other mov.u64 h, 0;
	st.param.b64 [handle], h;
	ret;
}
)";

/* Bit 31 of the word at 4 changes each time that all blocks have come: block 0 adds what is
 * missing to it, the others 1 each. */
static const char grid_sync[] = R"(
.visible .func (.param .b32 status) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
	.reg .b32 x, y, z, blocks, more, old, now;
	.reg .b64 h;
	.reg .pred p, q;
	ld.param.u64 h, [handle];
	setp.eq.u64 p, h, 0;
	mov.u32 now, 1;
	@p bra DONE;
	bar.sync 0;
	mov.u32 x, %tid.x;
	mov.u32 y, %tid.y;
	mov.u32 z, %tid.z;
	or.b32 x, x, y;
	or.b32 x, x, z;
	setp.ne.u32 q, x, 0;
	@q bra ALL;
	mov.u32 x, %nctaid.x;
	mov.u32 y, %nctaid.y;
	mov.u32 z, %nctaid.z;
	mul.lo.u32 blocks, x, y;
	mul.lo.u32 blocks, blocks, z;
	sub.u32 blocks, 0x80000001, blocks;
	mov.u32 x, %ctaid.x;
	mov.u32 y, %ctaid.y;
	mov.u32 z, %ctaid.z;
	or.b32 x, x, y;
	or.b32 x, x, z;
	setp.eq.u32 q, x, 0;
	selp.b32 more, blocks, 1, q;
	membar.gl;
	atom.global.add.u32 old, [h+4], more;
WAIT:
	ld.volatile.global.u32 now, [h+4];
	xor.b32 now, now, old;
	setp.ge.s32 q, now, 0;
	@q bra WAIT;
	membar.gl;
ALL:
	bar.sync 0;
	mov.u32 now, 0;
DONE:
	st.param.b32 [status], now;
	ret;
}
)";

/* The handle of a condition is the address of its word (softgpu/driver/conditional.c). */
static const char set_conditional[] = R"(
.visible .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value)
{
	.reg .b32 v;
	.reg .b64 h;
	ld.param.u64 h, [handle];
	ld.param.u32 v, [value];
	st.global.u32 [h], v;
	ret;
}
)";

static const struct {
	const char *name;
	const char *text;
} texts[] = {
	{"cudaCGGetIntrinsicHandle", grid_handle},
	{"cudaCGSynchronize", grid_sync},
	{"cudaGraphSetConditional", set_conditional},
};

enum ptx_builtin ptx_provided_builtin(struct ptx_word name)
{
	for (size_t k = 0; k < sizeof(builtins) / sizeof(builtins[0]); k++)
		if (ptx_word_is(name, builtins[k].name))
			return builtins[k].builtin;
	return PTX_NOT_BUILTIN;
}

const char *ptx_provided_text(struct ptx_word name)
{
	for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
		if (ptx_word_is(name, texts[k].name))
			return texts[k].text;
	return NULL;
}

bool ptx_provides(const char *name, size_t n)
{
	struct ptx_word word = {name, (uint32_t)n};

	return ptx_provided_builtin(word) != PTX_NOT_BUILTIN || ptx_provided_text(word);
}
