/* SPDX-License-Identifier: Apache-2.0
 *
 * Quotas of a tenant's sessions together: their sum is never above one, whoever asks at once
 * and whoever is killed, and where they have too much memory the one with most of it ends.
 */
#include "gpu-agent/worker/worker_state.h"
#include "tests/unit/worker/worker_quotas.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define TOGETHER 4 /* sessions, */
#define ROUNDS 50
#define ASK 40 /* each of which asks for so many: 2.5 times of what there is */

static struct tally *map_tally(void)
{
	struct tally *tally;

	peer_tally = peer_tally_make();
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED, peer_tally, 0);
	assert_true(tally != MAP_FAILED);
	atomic_store(&tally->slots, TOGETHER);
	return tally;
}

/* Sent, not awaited: all the workers are at it at once. */
static void ask_for_events(struct peer *p, uint32_t generation)
{
	for (uint32_t i = 0; i < ASK; i++) {
		struct wire_vcudaEventCreate create = {
			.event = handle_make(generation, KIND_CUevent, i + 1),
			.flags = CU_EVENT_DISABLE_TIMING};
		struct frame_header h = call_header(p, OP_vcudaEventCreate, sizeof(create));

		peer_send(p, &h, &create);
	}
}

/* Which of them were granted, as bits. */
static uint64_t granted_events(struct peer *p)
{
	uint64_t granted = 0;
	struct frame_header h;
	bool lost;

	for (uint32_t i = 0; i < ASK; i++) {
		assert_int_equal(peer_reply(p, &h, &lost), 0);
		assert_false(lost);
		if (h.status)
			assert_int_equal(h.status, CUDA_ERROR_OUT_OF_MEMORY);
		else
			granted |= 1ull << i;
	}
	return granted;
}

static void destroy_events(struct peer *p, uint32_t generation, uint64_t which)
{
	for (uint32_t i = 0; i < ASK; i++) {
		struct wire_vcudaEventDestroy gone = {
			.event = handle_make(generation, KIND_CUevent, i + 1)};

		if (which >> i & 1)
			assert_int_equal(CALL_OF(OP_vcudaEventDestroy, gone), CUDA_SUCCESS);
	}
}

static int count(uint64_t bits)
{
	return __builtin_popcountll(bits);
}

/* The sum is never above the quota, whoever asks at once, and nothing of it gets lost. */
static void a_storm_of_sessions(struct peer peers[TOGETHER], const struct tally *tally)
{
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		uint64_t granted[TOGETHER];
		int sum = 0;

		for (int s = 0; s < TOGETHER; s++)
			ask_for_events(&peers[s], round);
		for (int s = 0; s < TOGETHER; s++) {
			granted[s] = granted_events(&peers[s]);
			sum += count(granted[s]);
			assert_int_equal(
				atomic_load(&tally->used[QUOTA_HANDLES][s]), count(granted[s]));
		}
		assert_in_range(sum, HANDLES * 3 / 4, HANDLES);
		for (int s = 0; s < TOGETHER; s++)
			destroy_events(&peers[s], round, granted[s]);
		assert_int_equal(tally_sum(tally, QUOTA_HANDLES), 0);
	}
}

/* What a killed session had is its tenant's again once its slot is cleared, and not before. */
static void one_is_killed(struct peer peers[TOGETHER], struct tally *tally)
{
	ask_for_events(&peers[0], ROUNDS + 1);
	assert_int_equal(count(granted_events(&peers[0])), ASK);
	ask_for_events(&peers[1], ROUNDS + 1);
	assert_int_equal(count(granted_events(&peers[1])), HANDLES - ASK);
	kill(peers[0].worker, SIGKILL);
	waitpid(peers[0].worker, NULL, 0);
	close(peers[0].commands);
	close(peers[0].replies);
	close(peers[0].handoff);
	ask_for_events(&peers[2], ROUNDS + 1);
	assert_int_equal(count(granted_events(&peers[2])), 0);
	for (int q = 0; q < QUOTAS; q++)
		atomic_store(&tally->used[q][0], 0);
	ask_for_events(&peers[2], ROUNDS + 1);
	assert_int_equal(count(granted_events(&peers[2])), ASK);
}

static void sessions_of_a_tenant_have_a_quota_together(void **state)
{
	struct tally *tally = map_tally();
	struct peer peers[TOGETHER];

	(void)state;
	peer_quotas[QUOTA_HANDLES] = HANDLES;
	for (peer_slot = 0; peer_slot < TOGETHER; peer_slot++)
		peer_start(&peers[peer_slot]);
	a_storm_of_sessions(peers, tally);
	one_is_killed(peers, tally);
	for (int s = TOGETHER - 1; s > 0; s--) /* each has what those before it had open */
		peer_stop_within(&peers[s], 5);
	munmap(tally, sizeof(*tally));
	close(peer_tally);
	peer_tally = -1;
	peer_slot = 0;
	memset(peer_quotas, 0, sizeof(peer_quotas));
}

/* Of two that have too much memory together the one that has more ends, and the other goes on.
 */
static void the_session_with_most_memory_ends(void **state)
{
	struct tally *tally = map_tally();
	struct handoff stats;
	struct peer peer, *p = &peer;
	char text[256] = "";
	struct frame_header h;

	(void)state;
	atomic_store(&tally->used[QUOTA_HOST][0], 1ull << 40); /* somebody's who has more */
	peer_quotas[QUOTA_HOST] = 1ull << 30;
	peer_slot = 1;
	peer_start(p);
	expect_alive(p);
	hear_stats(p, &stats);
	hear_stats(p, &stats);
	assert_int_equal(stats.what, HANDOFF_STATS);
	assert_in_range(stats.quotas[QUOTA_HOST], 1, 1ull << 30);
	assert_int_equal(atomic_load(&tally->used[QUOTA_HOST][1]), stats.quotas[QUOTA_HOST]);
	expect_alive(p);
	/* Many that have less. */
	for (uint32_t s = 2; s < 4096; s++)
		atomic_store(&tally->used[QUOTA_HOST][s], 1 << 19);
	atomic_store(&tally->slots, 4096);
	atomic_store(&tally->used[QUOTA_HOST][0], 0);
	while (next_frame(p, &h) != FRAME_LOST)
		;
	assert_int_equal(h.status, CUDA_ERROR_OUT_OF_MEMORY);
	hear_stats(p, &stats);
	while (stats.what != HANDOFF_ENDED)
		hear_stats(p, &stats);
	memcpy(text, stats.text, sizeof(stats.text));
	assert_non_null(
		strstr(text, "its quota host_memory (1024 MiB), and this one holds most"));
	peer_stop_within(p, 5);
	munmap(tally, sizeof(*tally));
	close(peer_tally);
	peer_tally = -1;
	peer_slot = 0;
	memset(peer_quotas, 0, sizeof(peer_quotas));
}

/* ---- a million operations ---- */

#define LIMIT 100
#define TAKES 1000000 /* by each of TOGETHER threads */

static struct {
	struct tally *tally;
	atomic_long granted; /* counted behind a grant and before it is given back */
	atomic_long most, refused;
} many;

/* Takes and gives as chance has it, as the loop of one worker does. */
static void *takes_and_gives(void *argument)
{
	static _Thread_local struct worker w;
	uint64_t seed = 1 + (uintptr_t)argument, has = 0;

	w.quotas.tally = many.tally;
	w.quotas.slot = (uint32_t)(uintptr_t)argument;
	w.quotas.most[QUOTA_MODULE_BYTES] = LIMIT;
	w.stats.quotas_refused[QUOTA_MODULE_BYTES] = 1; /* it was said */
	for (int i = 0; i < TAKES; i++) {
		uint64_t n =
			1 + (seed = seed * 6364136223846793005ull + 1) / 7 % (LIMIT * 3 / 4);

		if (has) {
			atomic_fetch_sub(&many.granted, (long)has);
			quotas_uncharge(&w, QUOTA_MODULE_BYTES, has);
			has = 0;
		} else if (quotas_charge(&w, QUOTA_MODULE_BYTES, n)) {
			long now = atomic_fetch_add(&many.granted, (long)n) + (long)n;
			long most = atomic_load(&many.most);

			has = n;
			while (now > most &&
				!atomic_compare_exchange_weak(&many.most, &most, now))
				;
		} else {
			atomic_fetch_add(&many.refused, 1);
		}
	}
	atomic_fetch_sub(&many.granted, (long)has);
	quotas_uncharge(&w, QUOTA_MODULE_BYTES, has);
	return NULL;
}

static void nothing_over_in_a_million_operations(void **state)
{
	pthread_t threads[TOGETHER];

	(void)state;
	many.tally = map_tally();
	for (uintptr_t t = 0; t < TOGETHER; t++)
		assert_int_equal(
			pthread_create(&threads[t], NULL, takes_and_gives, (void *)t), 0);
	for (int t = 0; t < TOGETHER; t++)
		pthread_join(threads[t], NULL);
	assert_in_range(atomic_load(&many.most), LIMIT / 2, LIMIT);
	/* Where few cores run the threads one after the other, nothing need be refused. */
	print_message("%ld refused\n", (long)atomic_load(&many.refused));
	assert_int_equal(tally_sum(many.tally, QUOTA_MODULE_BYTES), 0);
	munmap(many.tally, sizeof(*many.tally));
	close(peer_tally);
	peer_tally = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sessions_of_a_tenant_have_a_quota_together),
		cmocka_unit_test(the_session_with_most_memory_ends),
		cmocka_unit_test(nothing_over_in_a_million_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
