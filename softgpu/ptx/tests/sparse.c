/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with a sparse A: of four numbers along k two are there (of two tf32 one), and
 * metadata of some lanes of each quad says which.  The fragments are built here as PTX
 * describes them.
 */
#include "softgpu/ptx/tests/run_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A lane's row in memory, in words: A, B, metadata; the result comes over the first four. */
#define ROW 16
#define AT_B 4
#define AT_META 8

struct shape {
	const char *types; /* d.a.b.c behind .row.col */
	unsigned k, bits;
	unsigned sharp[4]; /* the bits of 0, 1, 2 and 3 */
	unsigned selector;
};

static const struct shape shapes[] = {
	{"f32.f16.f16.f32", 16, 16, {0, 0x3c00, 0x4000, 0x4200}, 0},
	{"f32.f16.f16.f32", 16, 16, {0, 0x3c00, 0x4000, 0x4200}, 3},
	{"f32.f16.f16.f32", 32, 16, {0, 0x3c00, 0x4000, 0x4200}, 0},
	{"f32.bf16.bf16.f32", 32, 16, {0, 0x3f80, 0x4000, 0x4040}, 1},
	{"f32.tf32.tf32.f32", 8, 32, {0, 0x3f800000, 0x40000000, 0x40400000}, 2},
	{"f32.tf32.tf32.f32", 16, 32, {0, 0x3f800000, 0x40000000, 0x40400000}, 1},
	{"s32.s8.u8.s32", 32, 8, {0, 1, 2, 3}, 1},
	{"satfinite.s32.u8.s8.s32", 64, 8, {0, 1, 2, 3}, 0},
	{"f32.e4m3.e4m3.f32", 64, 8, {0, 0x38, 0x40, 0x44}, 0},
	{"s32.s4.u4.s32", 64, 4, {0, 1, 2, 3}, 1},
	{"s32.u4.u4.s32", 128, 4, {0, 1, 2, 3}, 0},
};

static uint32_t *out;

/* Which of a chunk's columns is its number N; N grows with it.  Row g + 8 is not row g further
 * on. */
static unsigned place(const struct shape *s, unsigned row, unsigned chunk, unsigned n)
{
	static const unsigned pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};

	return s->bits == 32 ? (row + chunk) % 2 : pairs[(row * 5 + row / 8 + chunk) % 6][n];
}

static unsigned a_at(unsigned row, unsigned n)
{
	return (row * 3 + n + row * n) % 4;
}

static unsigned b_at(unsigned k, unsigned column)
{
	return (k * 5 + column + k / 3) % 4;
}

/* Numbers of the lane: runs that fill a register; those of A go through rows g and g + 8. */
static void put_fragments(const struct shape *s)
{
	const unsigned run = 32 / s->bits, held = s->k / 2;

	for (unsigned l = 0; l < 32; l++) {
		for (unsigned n = 0; n < held / 2; n++) {
			unsigned part = n / run, row = l / 4 + part % 2 * 8;
			unsigned at = l % 4 * run + n % run + part / 2 * 4 * run;

			out[l * ROW + part] |= s->sharp[a_at(row, at)] << n % run * s->bits;
		}
		for (unsigned n = 0; n < s->k / 4; n++) {
			unsigned k = l % 4 * run + n % run + n / run * 4 * run;

			out[l * ROW + AT_B + n / run] |= s->sharp[b_at(k, l / 4)]
							 << n % run * s->bits;
		}
	}
}

/* The bits of one chunk. */
static uint32_t chunk_bits(const struct shape *s, unsigned row, unsigned chunk)
{
	const unsigned first = place(s, row, chunk, 0);

	if (s->bits == 32)
		return first ? 0xe : 0x4;
	return first | place(s, row, chunk, 1) << 2;
}

/* Of numbers of 16 bits and more a lane has four chunks of row g and four of row g + 8; of
 * narrower ones eight chunks of one row: g, g + 8, g, g + 8, as an H200 reads it.  Other lanes
 * have nonsense. */
static void put_metadata(const struct shape *s)
{
	const unsigned each = s->bits == 32 ? 1 : 2, unit = s->bits == 4 ? 2 : 1;
	const unsigned lanes = s->k / 2 / each / unit / 4;

	for (unsigned l = 0; l < 32; l++) {
		const unsigned first = s->selector * lanes, part = l % 4 - first;
		uint32_t word = 0;

		if (l % 4 < first || part >= lanes) {
			out[l * ROW + AT_META] = 0x12345678;
			continue;
		}
		for (unsigned c = 0; c < 8; c++) {
			unsigned row = s->bits < 16 ? part % 2 : c / 4;
			unsigned chunk = s->bits < 16 ? part / 2 * 8 + c : part * 4 + c % 4;

			word |= chunk_bits(s, l / 4 + row * 8, chunk) << c * 4;
		}
		out[l * ROW + AT_META] = word;
	}
}

static void run(const struct shape *s)
{
	const unsigned words = s->k * s->bits / 128;
	const char *a = words > 2 ? "a0,a1,a2,a3" : "a0,a1",
		   *b = words > 2 ? "b0,b1,b2,b3" : "b0,b1";
	char text[2048];

	memset(out, 0, 32 * ROW * sizeof(*out));
	put_fragments(s);
	put_metadata(s);
	snprintf(text, sizeof(text),
		".visible .entry k(.param .u64 out)\n{ .reg .b64 p, q; .reg .b32 l, a<4>, "
		"b<4>, c<4>, e;\n"
		"ld.param.u64 p, [out]; mov.u32 l, %%tid.x; mad.wide.u32 q, l, %u, p;\n"
		"ld.global.v4.b32 {a0, a1, a2, a3}, [q]; ld.global.v4.b32 {b0, b1, b2, b3}, "
		"[q+%u];\n"
		"ld.global.b32 e, [q+%u]; mov.b32 c0, %s; mov.b32 c1, c0; mov.b32 c2, c0; "
		"mov.b32 c3, c0;\n"
		"mma.sp%s.sync.aligned.m16n8k%u.row.col.%s {c0,c1,c2,c3}, {%s}, {%s}, "
		"{c0,c1,c2,c3}, e, "
		"%u;\nst.global.v4.b32 [q], {c0, c1, c2, c3}; ret; }",
		ROW * 4, AT_B * 4, AT_META * 4, s->types[0] == 'f' ? "0f40E00000" : "7",
		s->selector ? "::ordered_metadata" : "", s->k, s->types, a, b, s->selector);
	text_run(text, 1, 32, out);
}

static void test_sparse(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof(shapes) / sizeof(shapes[0]); n++) {
		const struct shape *s = &shapes[n];
		const unsigned each = s->bits == 32 ? 1 : 2, unit = s->bits == 4 ? 2 : 1;

		run(s);
		for (unsigned l = 0; l < 32; l++)
			for (unsigned e = 0; e < 4; e++) {
				unsigned row = l / 4 + e / 2 * 8, column = l % 4 * 2 + e % 2,
					 want = 7;
				float f;

				for (unsigned at = 0; at < s->k / 2; at++) {
					unsigned chunk = at / unit / each;
					unsigned of = place(s, row, chunk, at / unit % each);
					unsigned k = (chunk * 2 * each + of) * unit + at % unit;

					want += a_at(row, at) * b_at(k, column);
				}
				memcpy(&f, &out[l * ROW + e], sizeof(f));
				if (s->types[0] == 'f' ? f != (float)want
						       : out[l * ROW + e] != want)
					fail_msg("k%u.%s: row %u, column %u is not %u", s->k,
						s->types, row, column, want);
			}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_sparse)};

	text_init(1);
	out = text_memory(32 * ROW * sizeof(*out));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
