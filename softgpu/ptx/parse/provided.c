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

/* What libcudadevrt has: each name behind __cudaCDP2 (CUDA 12 and later) or cuda, with _ptsz
 * where a stream is named. */
static const struct {
	const char *name;
	enum ptx_builtin builtin;
} runtime[] = {
	{"DeviceGetAttribute", PTX_RUNTIME_ATTRIBUTE},
	{"DeviceGetCacheConfig", PTX_RUNTIME_CACHE},
	{"DeviceGetLimit", PTX_RUNTIME_LIMIT},
	{"DeviceGetSharedMemConfig", PTX_RUNTIME_BANKS},
	{"EventCreateWithFlags", PTX_RUNTIME_CREATE},
	{"EventDestroy", PTX_RUNTIME_ORDER},
	{"EventRecord", PTX_RUNTIME_ORDER},
	{"EventRecordWithFlags", PTX_RUNTIME_ORDER},
	{"Free", PTX_RUNTIME_FREE},
	{"FuncGetAttributes", PTX_RUNTIME_KERNEL},
	{"GetDevice", PTX_RUNTIME_DEVICE},
	{"GetDeviceCount", PTX_RUNTIME_DEVICES},
	{"GetErrorName", PTX_RUNTIME_ERROR_NAME},
	{"GetErrorString", PTX_RUNTIME_ERROR_TEXT},
	{"GetLastError", PTX_RUNTIME_LAST_ERROR},
	{"GetParameterBuffer", PTX_RUNTIME_BUFFER},
	{"GetParameterBufferV2", PTX_RUNTIME_BUFFER_OF},
	{"GraphKernelNodeSetEnabled", PTX_RUNTIME_GRAPH},
	{"GraphKernelNodeSetGridDim", PTX_RUNTIME_GRAPH},
	{"GraphKernelNodeSetParam", PTX_RUNTIME_GRAPH},
	{"GraphKernelNodeUpdatesApply", PTX_RUNTIME_GRAPH},
	{"GraphLaunch", PTX_RUNTIME_GRAPH},
	{"LaunchDevice", PTX_RUNTIME_LAUNCH},
	{"LaunchDeviceV2", PTX_RUNTIME_LAUNCH_OF},
	{"Malloc", PTX_RUNTIME_MALLOC},
	{"Memcpy2DAsync", PTX_RUNTIME_COPY_2D},
	{"Memcpy3DAsync", PTX_RUNTIME_COPY_3D},
	{"MemcpyAsync", PTX_RUNTIME_COPY},
	{"Memset2DAsync", PTX_RUNTIME_FILL_2D},
	{"Memset3DAsync", PTX_RUNTIME_FILL_3D},
	{"MemsetAsync", PTX_RUNTIME_FILL},
	{"OccupancyMaxActiveBlocksPerMultiprocessor", PTX_RUNTIME_OCCUPANCY},
	{"OccupancyMaxActiveBlocksPerMultiprocessorWithFlags", PTX_RUNTIME_OCCUPANCY_FLAGS},
	{"PeekAtLastError", PTX_RUNTIME_PEEK_ERROR},
	{"RuntimeGetVersion", PTX_RUNTIME_VERSION},
	{"StreamCreateWithFlags", PTX_RUNTIME_CREATE},
	{"StreamDestroy", PTX_RUNTIME_ORDER},
	{"StreamWaitEvent", PTX_RUNTIME_ORDER},
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

/* The handle of a condition is the address of its word (softgpu/driver/graph/conditional.c). */
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

/* NAME with `prefix` taken from its head; false: it does not begin so. */
static bool behind(struct ptx_word *name, const char *prefix)
{
	uint32_t n = (uint32_t)strlen(prefix);

	if (name->n <= n || memcmp(name->p, prefix, n))
		return false;
	*name = (struct ptx_word){name->p + n, name->n - n};
	return true;
}

static enum ptx_builtin of_runtime(struct ptx_word name)
{
	if (!behind(&name, "__cudaCDP2") && !behind(&name, "cuda"))
		return PTX_NOT_BUILTIN;
	if (name.n > 5 && !memcmp(name.p + name.n - 5, "_ptsz", 5))
		name.n -= 5;
	for (size_t k = 0; k < sizeof(runtime) / sizeof(runtime[0]); k++)
		if (ptx_word_is(name, runtime[k].name))
			return runtime[k].builtin;
	return PTX_NOT_BUILTIN;
}

enum ptx_builtin ptx_provided_builtin(struct ptx_word name)
{
	for (size_t k = 0; k < sizeof(builtins) / sizeof(builtins[0]); k++)
		if (ptx_word_is(name, builtins[k].name))
			return builtins[k].builtin;
	return of_runtime(name);
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
