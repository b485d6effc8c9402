/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker against a client that violates the protocol: every frame that it serves, cut short
 * at every length, and frames with each bit of the header flipped.  A real worker process on
 * the software GPU; this program plays front and client.
 */
#include "protocol/libraries/cublaslt.h"
#include "protocol/generated/cublaslt_ops.h"
#include "tests/unit/worker/worker_peer.h"

static void every_op_is_refused_when_cut_short(void **state)
{
	static const unsigned char zeros[4096];
	struct peer p;
	unsigned ops = 0, frames = 0;

	(void)state;
	peer_start(&p);
	for (unsigned op = 1; op < 65536; op++) {
		const struct serve_entry *entry = serve_find((uint16_t)op);

		if (!entry)
			continue;
		ops++;
		for (uint32_t n = 0; n < entry->body_bytes; n++) {
			struct frame_header h = call_header(&p, (uint16_t)op, n);
			bool lost;

			peer_send(&p, &h, zeros);
			assert_int_equal(peer_reply(&p, &h, &lost), 0);
			assert_false(lost);
			assert_int_equal(h.tag, 5);
			if (h.status != CUDA_ERROR_INVALID_VALUE)
				fail_msg("%s, %u of %u bytes: status %u", entry->name, n,
					entry->body_bytes, h.status);
			frames++;
		}
	}
	assert_true(ops > 40);
	assert_true(frames > 1000);
	expect_alive(&p);
	peer_stop(&p);
}

static void an_unknown_op_is_not_supported(void **state)
{
	struct peer p;
	struct frame_header h;
	bool lost;

	(void)state;
	peer_start(&p);
	h = call_header(&p, 65000, 0);
	peer_send(&p, &h, "");
	assert_int_equal(peer_reply(&p, &h, &lost), 0);
	assert_int_equal(h.status, CUDA_ERROR_NOT_SUPPORTED);
	expect_alive(&p);
	peer_stop(&p);
}

/* 4 by 4, of floats. */
static struct cublaslt_problem small_problem(void)
{
	struct cublaslt_problem problem = {
		.major = 13,
		.layouts = 15,
		.desc = {.compute = 68,
			.fill = CUBLASLT_FILL_FULL,
			.epilogue = CUBLASLT_EPILOGUE_DEFAULT,
			.aux_type = -1,
			.bias_type = -1},
	};

	for (int i = 0; i < CUBLASLT_MATRICES; i++)
		problem.layout[i] =
			(struct cublaslt_layout){.rows = 4, .cols = 4, .ld = 4, .batch = 1};
	return problem;
}

/* A call of cuBLASLt as its items: a key with room behind it, and addresses. */
struct small_call {
	struct library_body head;
	uint32_t key[112];
	uint64_t varying[12];
};

static void put_item(
	struct small_call *c, uint32_t *used, uint32_t kind, const void *words, uint32_t bytes)
{
	c->key[(*used)++] = kind << 16 | bytes / 4;
	memcpy(c->key + *used, words, bytes);
	*used += bytes / 4;
}

/* 4 by 4, of floats: all matrices where the window of other tests begins. */
static struct small_call small_call(uint32_t kind, uint32_t matrices)
{
	const struct cublaslt_problem problem = small_problem();
	const struct cublaslt_matmul_words product = {.desc = problem.desc};
	const struct cublaslt_transform transform = {0};
	struct small_call c = {.head = {.state.word = {13}, .key_words = 112, .present = 3}};
	uint32_t used = 0, at = 2; /* behind alpha */

	if (kind == CUBLASLT_ITEM_MATMUL)
		put_item(&c, &used, kind, &product,
			offsetof(struct cublaslt_matmul_words, emulation));
	else
		put_item(&c, &used, kind, &transform, sizeof(transform));
	for (uint32_t i = 0; i < matrices; i++) {
		if (i == matrices - 2)
			at += 2; /* beta */
		c.varying[at++] = 0x200000000000;
		used++; /* how it is aligned */
		put_item(&c, &used, CUBLASLT_ITEM_LAYOUT, &problem.layout[i],
			sizeof(problem.layout[i]));
	}
	return c;
}

/* Each bit of the body of frames with handles, addresses, geometry and runs: an error or a
 * success, never the worker's end. */
static void flipped_bodies_are_answered(void **state)
{
	struct wire_vcudaFill fill = {
		.dst = 0x200000000000, .element = 1, .width = 16, .height = 1};
	struct wire_vcudaCopyOut copy = {
		.src = 0x200000000000, .width = 16, .height = 1, .depth = 1};
	struct wire_vcudaMemMap map = {.address = 0x200000000000, .bytes = 2 << 20};
	struct wire_vcudaLaunch launch = {.gridX = 1, .gridY = 1, .gridZ = 1, .blockX = 1};
	struct wire_cublasLtMatmulAlgoGetHeuristic heuristic = {.problem = small_problem(),
		.preference = CUBLASLT_PREFERENCE_DEFAULTS,
		.wanted = 1};
	struct wire_cublasLtMatmulAlgoGetHeuristicForStream grouped = {.plain = heuristic,
		.more = {.desc = CUBLASLT_MATMUL_MORE_DEFAULTS,
			.grouped = 15,
			.stream = CUBLASLT_NO_STREAM}};
	struct small_call matmul = small_call(CUBLASLT_ITEM_MATMUL, 4);
	struct small_call transform = small_call(CUBLASLT_ITEM_TRANSFORM, 3);
	struct wire_cublasLtMatmulAlgoCapGetAttribute attribute = {
		.major = 13, .attribute = CUBLASLT_ALGO_CAP_TILE_IDS, .bytes = 4000, .from = 1};
	struct {
		uint16_t op;
		void *body;
		uint32_t n;
	} frames[] = {
		{OP_vcudaFill, &fill, sizeof(fill)},
		{OP_vcudaCopyOut, &copy, sizeof(copy)},
		{OP_vcudaMemMap, &map, sizeof(map)},
		{OP_vcudaLaunch, &launch, sizeof(launch)},
		{OP_cublasLtMatmulAlgoGetHeuristic, &heuristic, sizeof(heuristic)},
		{OP_cublasLtMatmulAlgoGetHeuristicForStream, &grouped, sizeof(grouped)},
		{OP_cublasLtMatmulAlgoCapGetAttribute, &attribute, sizeof(attribute)},
		{OP_cublasLtMatrixTransform, &transform, sizeof(transform)},
		{OP_cublasLtMatmul, &matmul, sizeof(matmul)},
	};
	struct peer p;

	struct frame_header right;
	bool gone;

	(void)state;
	for (int i = 0; i < CUBLASLT_MATRICES; i++)
		grouped.plain.problem.layout[i].batch_mode = CUBLASLT_BATCH_MODE_GROUPED;
	peer_start(&p);
	/* As they are, they reach the library. */
	right = call_header(&p, OP_cublasLtMatmulAlgoGetHeuristic, sizeof(heuristic));
	peer_send(&p, &right, &heuristic);
	assert_int_equal(peer_reply(&p, &right, &gone), 0);
	assert_int_equal(right.status, CUDA_SUCCESS);
	right = call_header(&p, OP_cublasLtMatmulAlgoGetHeuristicForStream, sizeof(grouped));
	peer_send(&p, &right, &grouped);
	assert_int_equal(peer_reply(&p, &right, &gone), 0);
	assert_int_equal(right.status, CUDA_SUCCESS);
	for (size_t f = 0; f < sizeof(frames) / sizeof(frames[0]); f++)
		for (uint32_t bit = 0; bit < 8 * frames[f].n; bit++) {
			unsigned char body[1024];
			struct frame_header h = call_header(&p, frames[f].op, frames[f].n);
			bool lost;

			memcpy(body, frames[f].body, frames[f].n);
			body[bit / 8] ^= (unsigned char)(1u << bit % 8);
			peer_send(&p, &h, body);
			assert_int_equal(peer_reply(&p, &h, &lost), 0);
			assert_false(lost);
		}
	expect_alive(&p);
	peer_stop(&p);
}

/* Each bit of the header: the frame is answered, or the session ends with a reason; the worker
 * itself ends in order (peer_stop looks at its exit status). */
static void flipped_headers_end_at_most_the_session(void **state)
{
	unsigned ended = 0, answered = 0;

	(void)state;
	for (unsigned bit = 0; bit < 8 * sizeof(struct frame_header); bit++) {
		struct wire_vcudaSync body = {.scope = SYNC_CONTEXT};
		struct frame_header h;
		struct peer p;
		bool lost;

		/* `length` and `body` made larger announce bytes that do not come: the worker
		 * waits for them, which is right. op, seq and the rest are what this is about.
		 */
		if (bit < 32 || (bit >= 128 && bit < 160))
			continue;
		peer_start(&p);
		h = call_header(&p, OP_vcudaSync, sizeof(body));
		((unsigned char *)&h)[bit / 8] ^= (unsigned char)(1u << bit % 8);
		peer_send(&p, &h, &body);
		/* A kind that is not answered (a post, a pong) is followed by one that is. */
		if (h.kind == FRAME_CALL)
			p.seq = h.seq;
		else if (h.kind != FRAME_POST)
			p.seq = 0;
		h = call_header(&p, OP_vcudaSync, sizeof(body));
		send(p.commands, &h, sizeof(h), MSG_NOSIGNAL);
		send(p.commands, &body, sizeof(body), MSG_NOSIGNAL);
		if (peer_reply(&p, &h, &lost) || lost)
			ended++;
		else
			answered++;
		peer_stop(&p);
	}
	assert_true(ended > 50);
	assert_true(answered > 10);
}

static void a_forged_handle_is_refused(void **state)
{
	struct wire_vcudaStreamCreate create = {.stream = handle_make(1, KIND_CUstream, 3)};
	struct wire_vcudaSync sync = {.scope = SYNC_STREAM, .handle = create.stream};
	struct wire_vcudaStreamDestroy gone = {.stream = create.stream};
	struct frame_header h;
	struct peer p;
	bool lost;

	(void)state;
	peer_start(&p);
	CALL(OP_vcudaStreamCreate, create, CUDA_SUCCESS);
	CALL(OP_vcudaStreamCreate, create, CUDA_ERROR_INVALID_HANDLE); /* in use */
	CALL(OP_vcudaSync, sync, CUDA_SUCCESS);
	sync.handle = handle_make(1, KIND_CUevent, 3); /* another kind */
	CALL(OP_vcudaSync, sync, CUDA_ERROR_INVALID_HANDLE);
	sync.handle = handle_make(2, KIND_CUstream, 3); /* another generation */
	CALL(OP_vcudaSync, sync, CUDA_ERROR_INVALID_HANDLE);
	sync.handle = handle_make(1, KIND_CUstream, 0xffffff); /* beyond the table */
	CALL(OP_vcudaSync, sync, CUDA_ERROR_INVALID_HANDLE);
	CALL(OP_vcudaStreamDestroy, gone, CUDA_SUCCESS);
	CALL(OP_vcudaStreamDestroy, gone, CUDA_ERROR_INVALID_HANDLE); /* stale */
	CALL(OP_vcudaStreamCreate, create,
		CUDA_ERROR_INVALID_HANDLE); /* an old number come again */
	create.stream = handle_make(2, KIND_CUstream, 3);
	CALL(OP_vcudaStreamCreate, create, CUDA_SUCCESS);
	expect_alive(&p);
	peer_stop(&p);
}

static void memory_beyond_the_lease_is_refused(void **state)
{
	struct wire_vcudaMemMap map = {.bytes = 64 << 20};
	struct frame_header h;
	struct peer p;
	bool lost;

	(void)state;
	peer_start(&p);
	map.address = 0x200000000000;
	CALL(OP_vcudaMemMap, map, CUDA_SUCCESS);
	CALL(OP_vcudaMemMap, map, CUDA_ERROR_INVALID_VALUE); /* there is memory already */
	map.address += map.bytes;
	map.bytes = 2 << 20;
	CALL(OP_vcudaMemMap, map, CUDA_ERROR_OUT_OF_MEMORY);
	map.address = 0x1000;
	CALL(OP_vcudaMemMap, map, CUDA_ERROR_INVALID_VALUE); /* not the window */
	expect_alive(&p);
	peer_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_op_is_refused_when_cut_short),
		cmocka_unit_test(an_unknown_op_is_not_supported),
		cmocka_unit_test(flipped_bodies_are_answered),
		cmocka_unit_test(flipped_headers_end_at_most_the_session),
		cmocka_unit_test(a_forged_handle_is_refused),
		cmocka_unit_test(memory_beyond_the_lease_is_refused),
	};

	if (!getenv("SOFTGPU")) {
		fprintf(stderr, "worker_frames: SOFTGPU must name libvcuda-softgpu.so\n");
		return 1;
	}
	return cmocka_run_group_tests_name("worker_frames", tests, NULL, NULL);
}
