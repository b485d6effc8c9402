/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk copies and reductions, of bytes and of a tensor's boxes, what they count on barriers;
 * asynchronous stores into another block of a cluster; atomics of 128 bits.
 */
#include "softgpu/ptx/bulk.h"
#include "softgpu/ptx/tests/run_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* One warp; `one` holds in lane 0.  Shared: the barrier, and 8 KiB from `data`. */
#define HEAD(attributes)                                                                       \
	".visible .entry k(.param .u64 out)" attributes                                        \
	"\n{ .reg .b64 d<20>, base, in; .reg .b32 r<20>, t, rank; .reg .pred p<9>, one; .reg " \
	".b128 q<5>;\n.reg .b16 h<5>; .shared .align 8 .b64 bar; .shared .align 1024 .b8 "     \
	"data[8192];\n"                                                                        \
	"ld.param.u64 base, [out]; add.u64 in, base, 8192; mov.u32 t, %tid.x;\n"               \
	"setp.eq.u32 one, t, 0; mov.u32 rank, %cluster_ctarank;\n"
#define INIT(n)                                                                                \
	"@one mbarrier.init.shared.b64 [bar], " n "; fence.mbarrier_init.release.cluster;\n"
#define EXPECT(n) "@one mbarrier.arrive.expect_tx.shared.b64 d9, [bar], " n ";\n"
#define WAIT "WAIT: mbarrier.try_wait.parity.shared.b64 p1, [bar], 0; @!p1 bra WAIT;\n"
#define CLUSTER "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
#define TAIL "ret; }"

static uint32_t *out, *in;

static void run(const char *text, uint32_t blocks)
{
	memset(out, 0, 8192);
	text_run(text, blocks, 32, out);
}

static void count_up(void)
{
	for (uint32_t k = 0; k < 8192; k++)
		in[k] = k + 1;
}

static void test_bytes(void **state)
{
	(void)state;
	count_up();
	/* There and back; the barrier lets nobody go before the bytes have come. */
	run(HEAD("") INIT("1") EXPECT(
		    "256") "@one "
			   "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
			   " [data], [in], 256, [bar];\n" WAIT
			   "@one cp.async.bulk.global.shared::cta.bulk_group [base], "
			   "[data+16], "
			   "64;\ncp.async.bulk.commit_group; cp.async.bulk.wait_group.read "
			   "0;\n" TAIL,
		1);
	for (uint32_t k = 0; k < 16; k++)
		assert_int_equal(out[k], k + 5);
	assert_int_equal(out[16], 0);
	/* Each element added to what is there; with a sign in minima. */
	run(HEAD("") "mov.u32 r1, data; mad.lo.u32 r1, t, 4, r1; sub.u32 r2, t, 5; "
		     "st.shared.u32 [r1], r2; bar.sync 0;\n"
		     "@one cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [in], "
		     "[data], 64;\n"
		     "@one cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 "
		     "[base+16], [data], 64;\n" TAIL,
		1);
	for (uint32_t k = 0; k < 16; k++) {
		assert_int_equal(in[k], k + 1 + k - 5);
		assert_int_equal((int32_t)out[k + 4], (int32_t)k < 5 ? (int32_t)k - 5 : 0);
	}
	assert_int_equal(in[16], 17);
}

static void test_cluster(void **state)
{
	(void)state;
	count_up();
	/* Block 1 of each cluster fetches for blocks 0 and 2; both barriers hear of it. */
	run(HEAD(".reqnctapercluster 4") INIT("1") CLUSTER
		"setp.eq.u32 p2, rank, 1; and.pred p2, p2, one; mov.b16 h0, 5;\n"
		"@p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
		"multicast::cluster [data], [in], 128, [bar], h0;\n"
		"and.b32 r2, rank, 1; setp.eq.u32 p3, r2, 1; @p3 bra END;\n" EXPECT("128") WAIT
		"mov.u32 r1, data; mad.lo.u32 r1, t, 4, r1; ld.shared.u32 r3, [r1];\n"
		"mov.u32 r4, %ctaid.x; mad.lo.u32 r4, r4, 32, t; mad.wide.u32 d1, r4, 4, "
		"base;\n"
		"st.global.u32 [d1], r3;\nEND: " CLUSTER TAIL,
		8);
	for (uint32_t k = 0; k < 256; k++)
		assert_int_equal(out[k], k / 32 % 2 ? 0 : k % 32 + 1);
	/* Every block stores its rank, and adds to a sum, in the next one's memory. */
	run(HEAD(".reqnctapercluster 4") INIT("1") EXPECT(
		    "16") "st.shared.u32 [data+64], 100;\n" CLUSTER
			  "add.u32 r1, rank, 1; and.b32 r1, r1, 3; mapa.shared::cluster.u32 "
			  "r2, "
			  "data, r1; mapa.shared::cluster.u32 r3, bar, r1;\n"
			  "add.u32 r5, rank, 50;\n"
			  "@one st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 "
			  "[r2], rank, [r3];\n"
			  "@one st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 "
			  "[r2+8], {r5, r1}, [r3];\n"
			  "@one "
			  "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::"
			  "bytes.add.u32 [r2+64], r5, [r3];\n" WAIT
			  "mad.wide.u32 d1, rank, 16, base; ld.shared.u32 r6, [data]; "
			  "st.global.u32 [d1], r6;\nld.shared.v2.u32 {r7, r8}, [data+8]; "
			  "st.global.v2.u32 [d1+8], {r7, r8}; ld.shared.u32 r9, [data+64];\n"
			  "st.global.u32 [d1+4], r9;\n" CLUSTER TAIL,
		4);
	for (uint32_t k = 0; k < 4; k++) {
		const uint32_t from = (k + 3) % 4;

		assert_int_equal(out[4 * k], from);
		assert_int_equal(out[4 * k + 1], 150 + from);
		assert_int_equal(out[4 * k + 2], 50 + from);
		assert_int_equal(out[4 * k + 3], k);
	}
}

/* A tensor of 10 rows of 20 numbers, 24 of which a row has room for, and a box of 8 x 4. */
static struct tensor_map tensor(unsigned swizzle)
{
	return (struct tensor_map){.magic = TENSOR_MAGIC,
		.type = BULK_U32,
		.rank = 2,
		.swizzle = (uint8_t)swizzle,
		.address = (uint64_t)(uintptr_t)in,
		.stride = {96},
		.last = {19, 9},
		.box = {8, 4},
		.step = {1, 1}};
}

#define FETCH(x, y)                                                                            \
	INIT("1")                                                                              \
	EXPECT("128")                                                                          \
	"add.u64 d2, base, 4096; mov.u32 r1, " x "; mov.u32 r2, " y ";\n"                      \
	"@one cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::"     \
	"bytes [data], [d2, {r1, r2}], [bar];\n" WAIT
#define TELL                                                                                   \
	"mov.u32 r3, data; mad.lo.u32 r3, t, 4, r3; ld.shared.u32 r4, [r3];\n"                 \
	"mad.wide.u32 d1, t, 4, base; st.global.u32 [d1], r4;\n"

static void test_tensor(void **state)
{
	struct tensor_map map = tensor(0);

	(void)state;
	count_up();
	memset(out, 0, 8192);
	memcpy(out + 1024, &map, sizeof(map));
	text_run(HEAD("") FETCH("4", "5") TELL TAIL, 1, 32, out);
	for (uint32_t k = 0; k < 32; k++)
		assert_int_equal(out[k], 24 * (5 + k / 8) + 4 + k % 8 + 1);
	/* Outside is 0: left and above, right and below. */
	text_run(HEAD("") FETCH("-4", "-1") TELL TAIL, 1, 32, out);
	for (int k = 0; k < 32; k++)
		assert_int_equal(
			out[k], k / 8 < 1 || k % 8 < 4 ? 0 : 24 * (k / 8 - 1) + k % 8 - 4 + 1);
	text_run(HEAD("") FETCH("16", "8") TELL TAIL, 1, 32, out);
	for (uint32_t k = 0; k < 32; k++)
		assert_int_equal(
			out[k], k / 8 > 1 || k % 8 > 3 ? 0 : 24 * (8 + k / 8) + 16 + k % 8 + 1);
	/* Every third row. */
	map.step[1] = 3;
	map.box[1] = 12;
	memcpy(out + 1024, &map, sizeof(map));
	text_run(HEAD("") FETCH("0", "0") TELL TAIL, 1, 32, out);
	for (uint32_t k = 0; k < 32; k++)
		assert_int_equal(out[k], k / 8 > 3 ? 0 : 24 * 3 * (k / 8) + k % 8 + 1);
	/* Rows of 32 bytes: the two units change places in every other group of four rows. */
	map = tensor(1);
	map.box[1] = 10;
	memcpy(out + 1024, &map, sizeof(map));
	text_run(HEAD("") INIT("1") EXPECT(
			 "320") "add.u64 d2, base, 4096; mov.u32 r1, 0;\n"
				"@one "
				"cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_"
				"tx::"
				"bytes [data], [d2, {r1, r1}], [bar];\n" WAIT
				"mov.u32 r3, data; mad.lo.u32 r3, t, 4, r3; ld.shared.u32 r4, "
				"[r3+128];\nmad.wide.u32 d1, t, 4, base; st.global.u32 [d1], "
				"r4;\n" TAIL,
		1, 32, out);
	for (uint32_t k = 0; k < 32; k++)
		assert_int_equal(out[k], 24 * (4 + k / 8) + ((k % 8) ^ 4) + 1);
	/* Back: what is outside of the tensor stays. */
	map = tensor(0);
	memcpy(out + 1024, &map, sizeof(map));
	text_run(
		HEAD("") "mov.u32 r3, data; mad.lo.u32 r3, t, 4, r3; st.shared.u32 [r3], 7000; "
			 "bar.sync 0;\nadd.u64 d2, base, 4096; mov.u32 r1, 16; mov.u32 r2, "
			 "8;\n@one cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
			 "[d2, {r1, r2}], [data];\nmov.u32 r1, 0;\n"
			 "@one cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile."
			 "bulk_group [d2, {r1, r1}], [data];\n" TAIL,
		1, 32, out);
	for (uint32_t k = 0; k < 240; k++) {
		const uint32_t x = k % 24, y = k / 24;

		assert_int_equal(in[k], x >= 16 && x < 20 && y >= 8 ? 7000
					: x < 8 && y < 4	    ? k + 1 + 7000
								    : k + 1);
	}
}

/* Two images of 4 by 3 pixels of 8 halves each, one after the other; a filter that may lie one
 * pixel outside on the left and above, and one inside of the last on the right and below. */
static struct tensor_map pixels(void)
{
	return (struct tensor_map){.magic = TENSOR_MAGIC,
		.type = BULK_F16,
		.rank = 4,
		.im2col = true,
		.fill_nan = 1,
		.address = (uint64_t)(uintptr_t)in,
		.stride = {16, 64, 192},
		.last = {7, 3, 2, 1},
		.box = {8, 16},
		.step = {1, 1, 1, 1},
		.lower = {-1, -1},
		.upper = {-1, -1}};
}

#define COLUMN(how, w, h, n, offsets)                                                          \
	INIT("1")                                                                              \
	EXPECT("256")                                                                          \
	"add.u64 d2, base, 4096; mov.u16 h1, 1; mov.u16 h2, 0; mov.u16 h3, 2; mov.u32 r5, "    \
	"0;\n"                                                                                 \
	"mov.u32 r1, " w "; mov.u32 r2, " h "; mov.u32 r6, " n ";\n"                           \
	"@one cp.async.bulk.tensor.4d.shared::cluster.global." how ".mbarrier::complete_tx::"  \
	"bytes [data], [d2, {r5, r1, r2, r6}], [bar]" offsets ";\n" WAIT

/* Half a pixel of 16 bytes of each lane. */
#define TELL_COLUMN                                                                            \
	"mov.u32 r3, data; mad.lo.u32 r3, t, 8, r3; ld.shared.v2.u32 {r4, r5}, [r3];\n"        \
	"mad.wide.u32 d1, t, 8, base; st.global.v2.u32 [d1], {r4, r5};\n"

/* Pixel after pixel from the base W, H of image N on, at the offset DW, DH. */
static void check_column(const struct tensor_map *map, int w, int h, int n, int dw, int dh)
{
	const uint16_t *got = (const uint16_t *)out, *from = (const uint16_t *)in;

	for (unsigned p = 0; p < 16; p++) {
		const int x = w + dw, y = h + dh;
		const bool inside = x >= 0 && x < 4 && y >= 0 && y < 3 && n < 2;

		for (int c = 0; c < 8; c++)
			assert_int_equal(got[p * 8 + (unsigned)c],
				inside ? from[n * 96 + y * 32 + x * 8 + c] : 0x7ff7);
		w += map->step[1];
		if (w <= 3 + map->upper[0])
			continue;
		w = map->lower[0];
		h += map->step[2];
		if (h <= 2 + map->upper[1])
			continue;
		h = map->lower[1];
		n++;
	}
}

static void test_columns(void **state)
{
	struct tensor_map map = pixels();
	struct ptx_module *module;
	struct ptx_error error;

	(void)state;
	count_up();
	memset(out, 0, 8192);
	memcpy(out + 1024, &map, sizeof(map));
	text_run(HEAD("") COLUMN("im2col", "-1", "-1", "0", ", {h2, h2}") TELL_COLUMN TAIL, 1,
		32, out);
	check_column(&map, -1, -1, 0, 0, 0);
	/* In the middle of the second image, past whose end there is nothing. */
	text_run(HEAD("") COLUMN("im2col", "1", "1", "1", ", {h3, h1}") TELL_COLUMN TAIL, 1, 32,
		out);
	check_column(&map, 1, 1, 1, 2, 1);
	/* Every other place. */
	map.step[1] = map.step[2] = 2;
	memcpy(out + 1024, &map, sizeof(map));
	text_run(HEAD("") COLUMN("im2col", "-1", "-1", "0", ", {h1, h3}") TELL_COLUMN TAIL, 1,
		32, out);
	check_column(&map, -1, -1, 0, 1, 2);
	/* A map of one kind under an instruction of the other. */
	module = text_load("sm_90", HEAD("") COLUMN("tile", "0", "0", "0", "") TAIL);
	assert_int_equal(text_launch(module, NULL, 1, 32, 0, &out, &error), PTX_TRAP);
	assert_non_null(strstr(error.text, "im2col"));
	ptx_module_free(module);
}

static void test_column_back(void **state)
{
	struct tensor_map map = pixels();
	uint16_t *to = (uint16_t *)in;

	(void)state;
	memset(in, 0, 4096);
	memset(out, 0, 8192);
	map.type = BULK_U16;
	map.lower[0] = map.lower[1] = map.upper[0] = map.upper[1] = 0;
	memcpy(out + 1024, &map, sizeof(map));
	/* The last ten pixels of image 0 and the first six of image 1, stored; four pixels more
	 * at the end of image 1, added; and what would be a third image, nowhere. */
	text_run(
		HEAD("") "mov.u32 r3, data; mad.lo.u32 r3, t, 8, r3; shl.b32 r1, t, 16; or.b32 "
			 "r1, r1, t; st.shared.v2.b32 [r3], {r1, r1};\nbar.sync 0; add.u64 d2, "
			 "base, 4096; mov.u32 r5, 0; mov.u32 r1, 2; mov.u32 r2, 1; mov.u32 r6, "
			 "2;\n@one cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs."
			 "bulk_group [d2, {r5, r1, r5, r5}], [data];\n"
			 "@one "
			 "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.im2col_no_offs"
			 ".bulk_group [d2, {r5, r5, r1, r2}], [data];\n"
			 "@one cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs."
			 "bulk_group [d2, {r5, r5, r5, r6}], [data];\n" TAIL,
		1, 32, out);
	for (unsigned p = 0; p < 24; p++)
		for (unsigned c = 0; c < 8; c++) {
			const unsigned stored = p >= 2 && p < 18 ? (p - 2) * 2 + c / 4 : 0;
			const unsigned added = p >= 20 ? (p - 20) * 2 + c / 4 : 0;

			assert_int_equal(to[p * 8 + c], stored + added);
		}
	for (unsigned k = 192; k < 1024; k++)
		assert_int_equal(to[k], 0);
}

static void test_map(void **state)
{
	struct tensor_map map = tensor(0);
	struct ptx_module *module;
	struct ptx_error error;

	(void)state;
	/* A kernel makes another map of the one it has. */
	count_up();
	memset(out, 0, 8192);
	memcpy(out + 1024, &map, sizeof(map));
	text_run(HEAD("") "add.u64 d2, base, 4096; mov.u64 d3, d2; add.u64 d4, in, 4096;\n"
			  "@one tensormap.replace.tile.global_address.global.b1024.b64 [d2], "
			  "d4;\n@one tensormap.replace.tile.global_dim.global.b1024.b32 [d2], "
			  "0, "
			  "2;\nbar.sync 0;\n" FETCH("0", "0") TELL TAIL,
		1, 32, out);
	for (uint32_t k = 0; k < 32; k++)
		assert_int_equal(out[k], k % 8 > 1 ? 0 : 1024 + 24 * (k / 8) + k % 8 + 1);
	/* What is no map, and a box that cannot be. */
	map.box[1] = 0;
	memcpy(out + 1024, &map, sizeof(map));
	module = text_load("sm_90", HEAD("") FETCH("0", "0") TELL TAIL);
	assert_int_equal(text_launch(module, NULL, 1, 32, 0, &out, &error), PTX_TRAP);
	memset(out, 0, 8192);
	assert_int_equal(text_launch(module, NULL, 1, 32, 0, &out, &error), PTX_TRAP);
	ptx_module_free(module);
}

static void test_wide_atomics(void **state)
{
	(void)state;
	count_up();
	/* Lane 0: exchange, then a compare that holds and one that does not. */
	run(HEAD("") "@!one exit; mov.b64 d1, 11; mov.b64 d2, 22; mov.b128 q0, {d1, d2};\n"
		     "atom.global.exch.b128 q1, [in], q0; mov.b128 {d3, d4}, q1; "
		     "st.global.v2.b64 [base], {d3, d4};\n"
		     "mov.b64 d5, 33; mov.b128 q2, {d5, d5}; atom.cas.b128 q3, [in], q0, q2;\n"
		     "atom.cas.b128 q4, [in], q0, q1; mov.b128 {d3, d4}, q4;\n"
		     "st.global.v2.b64 [base+16], {d3, d4}; ld.global.v2.b64 {d3, d4}, [in];\n"
		     "st.global.v2.b64 [base+32], {d3, d4}; " TAIL,
		1);
	for (uint32_t k = 0; k < 4; k++)
		assert_int_equal(out[k], k + 1);
	assert_int_equal(out[4], 33);
	assert_int_equal(out[6], 33);
	assert_int_equal(out[8], 33);
	assert_int_equal(out[10], 33);
}

static void test_small_copies(void **state)
{
	(void)state;
	count_up();
	/* Where the predicate holds nothing is read. */
	run(HEAD("") "mov.u32 r1, data; mad.lo.u32 r1, t, 16, r1; mad.wide.u32 d1, t, 16, in;\n"
		     "and.b32 r2, t, 1; setp.ne.u32 p1, r2, 0;\n"
		     "cp.async.cg.shared.global [r1], [d1], 16, p1; cp.async.wait_all;\n"
		     "ld.shared.u32 r3, [r1]; mad.wide.u32 d1, t, 4, base; st.global.u32 [d1], "
		     "r3; " TAIL,
		1);
	for (uint32_t k = 0; k < 32; k++)
		assert_int_equal(out[k], k & 1 ? 0 : 4 * k + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_cluster),
		cmocka_unit_test(test_tensor),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_column_back),
		cmocka_unit_test(test_map),
		cmocka_unit_test(test_wide_atomics),
		cmocka_unit_test(test_small_copies),
	};

	text_init(0);
	out = text_memory(8192);
	in = text_memory(32768);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
