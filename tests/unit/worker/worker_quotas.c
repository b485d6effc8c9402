/* SPDX-License-Identifier: Apache-2.0
 *
 * Quotas of a tenant: in a storm of making and destroying a session never has more than they
 * say, what is refused is refused with a status and a sentence, and what works goes on working.
 */
#include "protocol/generated/cuda_wire.h"
#include "protocol/wire/mirror.h"
#include "tests/unit/worker/worker_image.h"
#include "tests/unit/worker/worker_quotas.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

#define EVENTS 96 /* tried; */
#define OPS 20000

/* A number that depends on the ones before it alone. */
static uint32_t roll(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32);
}

/* What stands on the program's stderr. */
static const char *program_is_told(struct peer *p)
{
	struct wire_vcudaOutput ask = {.which = OUTPUT_STDERR};
	const struct wire_vcudaOutput_reply *answer = (const void *)peer_body;
	static char text[2048];

	expect_alive(p);
	assert_int_equal(CALL_OF(OP_vcudaOutput, ask), CUDA_SUCCESS);
	memcpy(text, peer_body + answer->text.offset, answer->bytes);
	text[answer->bytes] = 0;
	return text;
}

static void no_handle_over_the_quota_in_a_storm(void **state)
{
	uint32_t generations[EVENTS] = {0}, live = 0, refused = 0;
	bool is[EVENTS] = {false};
	struct handoff stats;
	struct peer peer, *p = &peer;

	(void)state;
	peer_quotas[QUOTA_HANDLES] = HANDLES;
	peer_start(p);
	for (int i = 0; i < OPS; i++) {
		uint32_t at = roll() % EVENTS;
		struct wire_vcudaEventCreate create = {.flags = CU_EVENT_DISABLE_TIMING};
		struct wire_vcudaEventDestroy destroy = {0};

		if (is[at] && roll() % 3)
			continue;
		if (is[at]) {
			destroy.event = handle_make(generations[at], KIND_CUevent, at + 1);
			assert_int_equal(CALL_OF(OP_vcudaEventDestroy, destroy), CUDA_SUCCESS);
			is[at] = false;
			live--;
			continue;
		}
		create.event = handle_make(generations[at] + 1, KIND_CUevent, at + 1);
		if (live == HANDLES) {
			assert_int_equal(
				CALL_OF(OP_vcudaEventCreate, create), CUDA_ERROR_OUT_OF_MEMORY);
			refused++;
			continue;
		}
		assert_int_equal(CALL_OF(OP_vcudaEventCreate, create), CUDA_SUCCESS);
		generations[at]++;
		is[at] = true;
		live++;
	}
	assert_true(refused > 100);
	assert_non_null(strstr(program_is_told(p),
		"vcuda: the agent's quota handles of this tenant is used up: its sessions "
		"may have 64, have 64, this one 64, which wants 1 more\n"));
	expect_alive(p);
	close(p->commands);
	p->commands = dup(p->replies);
	do
		hear_stats(p, &stats);
	while (stats.what != HANDOFF_ENDED);
	assert_int_equal(stats.quotas[QUOTA_HANDLES], live);
	assert_int_equal(stats.quotas_refused[QUOTA_HANDLES], refused);
	peer_stop_within(p, 5);
	memset(peer_quotas, 0, sizeof(peer_quotas));
}

/* ---- modules ---- */

static CUresult load(struct peer *p, const char *name, uint32_t generation)
{
	static const char format[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
				     ".visible .entry %s()\n{\n	ret;\n}\n";
	char ptx[256];

	snprintf(ptx, sizeof(ptx), format, name);
	return image_load(p, ptx, handle_make(generation, KIND_CUmodule, (uint32_t)name[0]));
}

static CUresult unload(struct peer *p, const char *name, uint32_t generation)
{
	struct wire_vcudaModuleUnload unload = {
		.module = handle_make(generation, KIND_CUmodule, (uint32_t)name[0])};

	return CALL_OF(OP_vcudaModuleUnload, unload);
}

static void modules_are_counted_and_their_bytes(void **state)
{
	struct peer peer, *p = &peer;

	(void)state;
	peer_quotas[QUOTA_MODULES] = 2;
	peer_start(p);
	assert_int_equal(load(p, "a", 1), CUDA_SUCCESS);
	assert_int_equal(load(p, "b", 1), CUDA_SUCCESS);
	for (int i = 0; i < 10; i++)
		assert_int_equal(load(p, "c", 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_non_null(strstr(program_is_told(p), "quota modules of this tenant"));
	assert_int_equal(unload(p, "a", 1), CUDA_SUCCESS);
	assert_int_equal(load(p, "c", 1), CUDA_SUCCESS);
	assert_int_equal(load(p, "a", 2), CUDA_ERROR_OUT_OF_MEMORY);
	peer_stop(p);
	memset(peer_quotas, 0, sizeof(peer_quotas));

	peer_quotas[QUOTA_MODULE_BYTES] = 160; /* two of some 75 */
	peer_start(p);
	assert_int_equal(load(p, "a", 1), CUDA_SUCCESS);
	assert_int_equal(load(p, "b", 1), CUDA_SUCCESS);
	assert_int_equal(load(p, "c", 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_non_null(strstr(program_is_told(p), "quota module_bytes of this tenant"));
	/* One that the driver refuses takes nothing. */
	assert_int_equal(unload(p, "b", 1), CUDA_SUCCESS);
	for (int i = 0; i < 10; i++)
		assert_int_not_equal(load(p, "(", 1), CUDA_SUCCESS);
	assert_int_equal(load(p, "b", 2), CUDA_SUCCESS);
	peer_stop(p);
	memset(peer_quotas, 0, sizeof(peer_quotas));
}

/* ---- pinned memory ---- */

static void pinned_memory_is_counted(void **state)
{
	struct wire_vcudaMirrorMap map = {.bytes = 1 << 20};
	struct wire_vcudaMirrorUnmap unmap;
	struct peer peer, *p = &peer;
	uint64_t at[4];

	(void)state;
	peer_quotas[QUOTA_PINNED] = 3 << 20;
	peer_start(p);
	for (uint64_t i = 0; i < 4; i++)
		at[i] = 0x500000000000ull + i * (4 << 20);
	for (int i = 0; i < 3; i++) {
		map.address = at[i];
		assert_int_equal(CALL_OF(OP_vcudaMirrorMap, map), CUDA_SUCCESS);
	}
	map.address = at[3];
	assert_int_equal(CALL_OF(OP_vcudaMirrorMap, map), CUDA_ERROR_OUT_OF_MEMORY);
	assert_non_null(strstr(program_is_told(p), "quota pinned_bytes of this tenant"));
	unmap.address = at[1];
	assert_int_equal(CALL_OF(OP_vcudaMirrorUnmap, unmap), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaMirrorMap, map), CUDA_SUCCESS);
	peer_stop(p);
	memset(peer_quotas, 0, sizeof(peer_quotas));
}

static void the_log_has_so_many_lines(void **state)
{
	static char log[1 << 20];
	int file = memfd_create("log", MFD_CLOEXEC), saved = dup(STDERR_FILENO);
	time_t begun = time(NULL);
	unsigned lines = 0;
	struct peer peer, *p = &peer;

	(void)state;
	setenv("VCUDA_LOG", "info", 1);
	peer_quotas[QUOTA_LOG] = 5;
	dup2(file, STDERR_FILENO);
	peer_start(p);
	dup2(saved, STDERR_FILENO);
	close(saved);
	for (int i = 0; i < 5000; i++)
		send_post(p, 65000, "", 0);
	expect_alive(p);
	peer_stop(p);
	setenv("VCUDA_LOG", "warn", 1);
	assert_true(pread(file, log, sizeof(log) - 1, 0) > 0);
	for (const char *at = log; (at = strchr(at, '\n')); at++)
		lines++;
	assert_in_range(lines, 1, 10 * (unsigned)(time(NULL) - begun + 2));
	close(file);
	memset(peer_quotas, 0, sizeof(peer_quotas));
}

/* Pieces of a large copy for a stream; how many bytes were taken before half a second passed
 * without any. */
static size_t copy_in(struct peer *p, uint64_t stream)
{
	enum { PIECE = 512 << 10, PIECES = 48 };
	static unsigned char
		bytes[sizeof(struct frame_header) + sizeof(struct wire_vcudaCopyIn) + PIECE];
	size_t taken = 0;

	for (unsigned i = 0; i < PIECES; i++) {
		struct wire_vcudaCopyIn copy = {.dst = 0x200000000000ull + i * PIECE,
			.width = PIECE,
			.height = 1,
			.depth = 1,
			.stream = stream};
		struct frame_header h = call_header(p, OP_vcudaCopyIn, sizeof(copy));

		h.kind = FRAME_POST;
		h.length += PIECE;
		memcpy(bytes, &h, sizeof(h));
		memcpy(bytes + sizeof(h), &copy, sizeof(copy));
		for (size_t at = 0; at < sizeof(bytes);) {
			struct pollfd poller = {.fd = p->commands, .events = POLLOUT};
			ssize_t n = send(p->commands, bytes + at, sizeof(bytes) - at,
				MSG_NOSIGNAL | MSG_DONTWAIT);

			if (n < 0 && poll(&poller, 1, 500) != 1)
				return taken;
			at += n > 0 ? (size_t)n : 0;
			taken += n > 0 ? (size_t)n : 0;
		}
	}
	return taken;
}

/* What waits for a GPU that does not come on is held back at the client; what goes on arrives.
 */
static void what_is_under_way_is_bounded(void **state)
{
	struct wire_vcudaMemMap map = {.address = 0x200000000000ull, .bytes = 32 << 20};
	const uint64_t blocked = handle_make(1, KIND_CUstream, 3);
	struct wire_vcudaStreamCreate create = {
		.stream = blocked, .flags = CU_STREAM_NON_BLOCKING};
	struct wire_cuStreamWaitValue32_v2 wait = {
		.stream = blocked, .addr = map.address + (31 << 20), .value = 12345};
	struct peer peer, *p = &peer;

	(void)state;
	peer_quotas[QUOTA_INFLIGHT] = 4 << 20;
	peer_start(p);
	assert_int_equal(CALL_OF(OP_vcudaMemMap, map), CUDA_SUCCESS);
	assert_true(copy_in(p, 0) > 24 << 20);
	expect_alive(p);
	send_post(p, OP_vcudaStreamCreate, &create, sizeof(create));
	send_post(p, OP_cuStreamWaitValue32_v2, &wait, sizeof(wait));
	assert_in_range(copy_in(p, blocked), 1 << 20, 8 << 20);
	peer_stop_within(p, 5);
	memset(peer_quotas, 0, sizeof(peer_quotas));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_handle_over_the_quota_in_a_storm),
		cmocka_unit_test(modules_are_counted_and_their_bytes),
		cmocka_unit_test(pinned_memory_is_counted),
		cmocka_unit_test(the_log_has_so_many_lines),
		cmocka_unit_test(what_is_under_way_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
