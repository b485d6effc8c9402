/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions that know each other's names: each tries the handles and addresses of all others, in
 * every call that takes one, and gets none of them.  Names are the client's to choose, so each
 * session takes others than its neighbours.  $APART_SESSIONS and $APART_ROUNDS make it longer:
 * 64 and 12 are a million tries.
 */
#include "protocol/generated/cuda_wire.h"
#include "tests/unit/worker/worker_peer.h"

#define BYTES (2ull << 20)
#define WINDOW 0x200000000000ull
#define SESSIONS_MAX 64
#define BATCH 32 /* calls on their way at once */

static struct peer sessions[SESSIONS_MAX];
static unsigned count, tries, got;
static bool may; /* what is tried now is the session's own */

/* What session S has, and nobody else: the generation alone tells them apart. */
static uint64_t handle_of(unsigned s, enum handle_kind kind)
{
	return handle_make(1000 + s, kind, 100 + (uint32_t)kind);
}

static uint64_t memory_of(unsigned s)
{
	return WINDOW + (16 + s) * BYTES;
}

static unsigned setting(const char *name, unsigned value)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 0) : value;
}

static int start(void **state)
{
	(void)state;
	count = setting("APART_SESSIONS", 12);
	assert_in_range(count, 2, SESSIONS_MAX);
	for (unsigned s = 0; s < count; s++) {
		struct wire_vcudaMemMap map = {.address = memory_of(s), .bytes = BYTES};
		struct wire_vcudaStreamCreate stream = {.stream = handle_of(s, KIND_CUstream)};
		struct wire_vcudaEventCreate event = {.event = handle_of(s, KIND_CUevent)};
		struct wire_vcudaFill fill = {.dst = memory_of(s),
			.value = s + 1,
			.element = 1,
			.width = BYTES,
			.height = 1};
		struct peer *p = &sessions[s];

		peer_start(p);
		assert_int_equal(CALL_OF(OP_vcudaMemMap, map), CUDA_SUCCESS);
		assert_int_equal(CALL_OF(OP_vcudaStreamCreate, stream), CUDA_SUCCESS);
		assert_int_equal(CALL_OF(OP_vcudaEventCreate, event), CUDA_SUCCESS);
		assert_int_equal(CALL_OF(OP_vcudaFill, fill), CUDA_SUCCESS);
	}
	return 0;
}

static int stop(void **state)
{
	(void)state;
	/* The later ones have copies of the earlier ones' connections. */
	while (count--)
		peer_stop(&sessions[count]);
	return 0;
}

/* Calls that are sent together; what each is answered with is looked at at the end. */
static struct {
	unsigned char bytes[BATCH * (sizeof(struct frame_header) + 256)];
	size_t used;
	unsigned calls;
	uint16_t ops[BATCH];
} batch;

static void flush(struct peer *p)
{
	struct frame_header h;
	bool lost;

	if (!batch.used)
		return;
	assert_int_equal(
		send(p->commands, batch.bytes, batch.used, MSG_NOSIGNAL), (ssize_t)batch.used);
	for (unsigned i = 0; i < batch.calls; i++) {
		assert_int_equal(peer_reply(p, &h, &lost), 0);
		assert_false(lost);
		tries++;
		got += !h.status;
		if (!h.status && !may)
			print_error("op %u got it\n", batch.ops[i]);
	}
	batch.used = batch.calls = 0;
}

static void attempt(struct peer *p, uint16_t op, const void *body, uint32_t n)
{
	struct frame_header h = call_header(p, op, n);

	memcpy(batch.bytes + batch.used, &h, sizeof(h));
	memcpy(batch.bytes + batch.used + sizeof(h), body, n);
	batch.used += sizeof(h) + n;
	batch.ops[batch.calls++] = op;
	if (batch.calls == BATCH)
		flush(p);
}
#define TRY(OP, ...)                                                                           \
	attempt(p, OP_##OP, &(struct wire_##OP){__VA_ARGS__}, sizeof(struct wire_##OP))

static void try_handles(struct peer *p, uint64_t stream, uint64_t event, uint64_t own)
{
	TRY(vcudaSync, .scope = SYNC_STREAM, .handle = stream);
	TRY(vcudaSync, .scope = SYNC_EVENT, .handle = event);
	TRY(vcudaStreamDestroy, .stream = stream);
	TRY(vcudaEventDestroy, .event = event);
	TRY(cuEventRecord, .hEvent = event, .hStream = 0);
	TRY(cuStreamWaitEvent, .hStream = stream, .hEvent = event);
	TRY(vcudaFill, .dst = own, .element = 1, .width = 1, .height = 1, .stream = stream);
	TRY(vcudaModuleUnload, .module = stream);
}

static void try_memory(struct peer *p, uint64_t at, uint64_t own)
{
	static const uint64_t widths[] = {1, 4096, BYTES, BYTES + 1};

	for (int i = 0; i < 4; i++) {
		uint64_t n = widths[i];

		TRY(vcudaFill, .dst = at, .element = 1, .width = n, .height = 1, .pitch = n);
		TRY(vcudaCopy, .dst = own, .src = at, .width = n, .height = 1, .depth = 1,
			.dstPitch = n, .srcPitch = n, .dstSlice = n, .srcSlice = n);
		TRY(vcudaCopy, .dst = at, .src = own, .width = n, .height = 1, .depth = 1,
			.dstPitch = n, .srcPitch = n, .dstSlice = n, .srcSlice = n);
	}
	TRY(cuStreamWriteValue64_v2, .addr = at, .value = 99);
	TRY(cuStreamWriteValue32_v2, .addr = at + BYTES - 4, .value = 99);
	/* From its own memory into the neighbour's, and the other way round. */
	TRY(vcudaFill, .dst = own + BYTES - 1, .element = 1, .width = at, .height = 1);
}

static void nobody_names_what_is_anothers(void **state)
{
	unsigned rounds = setting("APART_ROUNDS", 7);

	(void)state;
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned s = 0; s < count; s++) {
			struct peer *p = &sessions[s];

			for (unsigned o = 0; o < count; o++) {
				uint64_t stream = handle_of(o, KIND_CUstream);
				uint64_t event = handle_of(o, KIND_CUevent);

				if (o == s)
					continue;
				/* Its own kinds of names too, and generations beside it. */
				if (round % 3 == 1) {
					uint64_t swap = stream;

					stream = event;
					event = swap;
				} else if (round % 3 == 2) {
					stream += 1ull << 32;
					event -= 1ull << 32;
				}
				/* ... which may be what this session has itself. */
				if (stream != handle_of(s, KIND_CUstream) &&
					event != handle_of(s, KIND_CUevent))
					try_handles(p, stream, event, memory_of(s));
				try_memory(p, memory_of(o), memory_of(s));
			}
			flush(p);
		}
	print_message("%u tries, %u of them got something\n", tries, got);
	assert_true(tries >= rounds * count * (count - 1) * 15);
	assert_int_equal(got, 0);
}

/* And nobody's is changed or gone. */
static void all_have_what_they_had(void **state)
{
	(void)state;
	for (unsigned s = 0; s < count; s++) {
		struct peer *p = &sessions[s];
		struct wire_vcudaCopyOut out = {
			.src = memory_of(s), .width = 4096, .height = 1, .depth = 1};
		struct wire_vcudaSync sync = {
			.scope = SYNC_STREAM, .handle = handle_of(s, KIND_CUstream)};
		struct wire_vcudaEventDestroy event = {.event = handle_of(s, KIND_CUevent)};

		assert_int_equal(CALL_OF(OP_vcudaSync, sync), CUDA_SUCCESS);
		assert_int_equal(CALL_OF(OP_vcudaEventDestroy, event), CUDA_SUCCESS);
		expect_alive(p);
		assert_int_equal(CALL_OF(OP_vcudaCopyOut, out), CUDA_SUCCESS);
		for (unsigned i = 0; i < 4096; i++)
			assert_int_equal(
				peer_body[sizeof(struct frame_destination) + i], s + 1);
		/* The same calls get what is its own. */
		may = true;
		got = 0;
		try_memory(p, memory_of(s), memory_of(s));
		flush(p);
		assert_in_range(got, 9, 14);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_names_what_is_anothers),
		cmocka_unit_test(all_have_what_they_had),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
