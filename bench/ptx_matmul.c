/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast the interpreter is: a tiled matrix product (16 x 16 tiles in shared memory, as nvcc
 * 13 compiles it), in million thread instructions a second a core.
 *
 *   build/bench/ptx_matmul [N [THREADS]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "softgpu/ptx/ptx.h"

#define WINDOW (UINT64_C(1) << 30)

/* The loop over k is written by main(): 16 steps. */
static const char head[] =
	".version 9.0\n.target sm_75\n.address_size 64\n"
	".visible .entry matmul(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 "
	"pn)\n{\n"
	".reg .pred %p<3>; .reg .f32 %f<64>; .reg .b32 %r<40>; .reg .b64 %rd<30>;\n"
	".shared .align 4 .b8 sa[1024]; .shared .align 4 .b8 sb[1024];\n"
	"ld.param.u64 %rd8, [pa]; ld.param.u64 %rd9, [pb]; ld.param.u64 %rd10, [pc];\n"
	"ld.param.u32 %r12, [pn];\n"
	"mov.u32 %r13, %ctaid.y; shl.b32 %r14, %r13, 4; mov.u32 %r1, %tid.y;\n"
	"add.s32 %r15, %r14, %r1; mov.u32 %r16, %ctaid.x; shl.b32 %r2, %r16, 4;\n"
	"mov.u32 %r3, %tid.x; mul.lo.s32 %r4, %r15, %r12; mov.f32 %f56, 0f00000000;\n"
	"shl.b32 %r18, %r1, 6; mov.u32 %r19, sa; add.s32 %r7, %r19, %r18;\n"
	"shl.b32 %r20, %r3, 2; add.s32 %r5, %r7, %r20; mov.u32 %r21, sb;\n"
	"add.s32 %r22, %r21, %r18; add.s32 %r6, %r22, %r20; add.s32 %r8, %r21, %r20;\n"
	"add.s32 %r23, %r3, %r4; cvta.to.global.u64 %rd11, %rd8;\n"
	"mul.wide.s32 %rd12, %r23, 4; add.s64 %rd19, %rd11, %rd12;\n"
	"mad.lo.s32 %r24, %r1, %r12, %r3; add.s32 %r25, %r24, %r2;\n"
	"cvta.to.global.u64 %rd13, %rd9; mul.wide.s32 %rd14, %r25, 4;\n"
	"add.s64 %rd18, %rd13, %rd14; shl.b32 %r26, %r12, 4; mul.wide.s32 %rd3, %r26, 4;\n"
	"shr.s32 %r9, %r12, 4; mov.u32 %r32, 0;\n"
	"LOOP:\n"
	"ld.global.f32 %f6, [%rd19]; st.shared.f32 [%r5], %f6;\n"
	"ld.global.f32 %f7, [%rd18]; st.shared.f32 [%r6], %f7; bar.sync 0;\n";
static const char tail[] =
	"bar.sync 0; add.s64 %rd19, %rd19, 64; add.s64 %rd18, %rd18, %rd3;\n"
	"add.s32 %r32, %r32, 1; setp.lt.s32 %p2, %r32, %r9; @%p2 bra LOOP;\n"
	"add.s32 %r30, %r2, %r3; add.s32 %r31, %r4, %r30; cvta.to.global.u64 %rd15, %rd10;\n"
	"mul.wide.s32 %rd16, %r31, 4; add.s64 %rd17, %rd15, %rd16;\n"
	"st.global.f32 [%rd17], %f56; ret;\n}\n";

static uint64_t no_memory(void *arg, size_t size, size_t align)
{
	(void)arg, (void)size, (void)align;
	return 0;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 512;
	unsigned threads = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	char text[16384];
	struct ptx_window window = {.span = WINDOW};
	struct ptx_error error;
	struct ptx_module *module;
	struct {
		uint64_t a, b, c;
		uint32_t n;
	} params;
	double start, took;
	uint64_t count;
	float *a, *b, *c;

	if (n % 16 || !n || n > 4096 || !threads) {
		fprintf(stderr,
			"usage: ptx_matmul [N, a multiple of 16 up to 4096 [THREADS]]\n");
		return 2;
	}
	window.base = (uint64_t)(uintptr_t)mmap(NULL, WINDOW, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ptx_init(&window, threads);

	strcpy(text, head);
	for (int k = 0; k < 16; k++)
		sprintf(text + strlen(text),
			"ld.shared.f32 %%f8, [%%r8+%d]; ld.shared.f32 %%f9, [%%r7+%d];\n"
			"fma.rn.f32 %%f56, %%f9, %%f8, %%f56;\n",
			64 * k, 4 * k);
	strcat(text, tail);
	module = ptx_module_load(text, strlen(text), no_memory, NULL, 0, &error);
	if (!module) {
		fprintf(stderr, "line %d: %s\n", error.line, error.text);
		return 1;
	}

	params.a = window.base + 4096;
	params.b = params.a + 4ull * n * n;
	params.c = params.b + 4ull * n * n;
	params.n = n;
	a = (float *)(uintptr_t)params.a;
	b = (float *)(uintptr_t)params.b;
	c = (float *)(uintptr_t)params.c;
	for (uint32_t k = 0; k < n * n; k++) {
		a[k] = (float)(k % 7) - 3.0f;
		b[k] = (float)(k % 5) - 2.0f;
	}

	struct ptx_launch launch = {
		.kernel = ptx_module_kernel(module, "matmul"),
		.grid = {n / 16, n / 16, 1},
		.block = {16, 16, 1},
		.cluster = {1, 1, 1},
		.params = &params,
	};
	count = ptx_instructions();
	start = seconds();
	if (ptx_launch(&launch, &error)) {
		fprintf(stderr, "line %d: %s\n", error.line, error.text);
		return 1;
	}
	took = seconds() - start;
	count = ptx_instructions() - count;

	for (uint32_t k = 0; k < n * n; k += n + 1) {
		float want = 0;

		for (uint32_t j = 0; j < n; j++)
			want += a[k / n * n + j] * b[j * n + k % n];
		if (fabsf(want - c[k]) > 1e-3f * (float)n) {
			fprintf(stderr, "wrong at %u: %g, should be %g\n", k, (double)c[k],
				(double)want);
			return 1;
		}
	}
	printf("matmul %ux%u: %.3f s, %llu thread instructions, %.0f million a second a core\n",
		n, n, took, (unsigned long long)count, (double)count / took / threads / 1e6);
	ptx_module_free(module);
	return 0;
}
