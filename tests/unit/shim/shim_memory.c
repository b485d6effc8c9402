/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocator of device memory, with a worker that is played here: it checks what is mapped
 * and unmapped, and confirms tickets only when the test lets it. What is freed must not be
 * given out before that, nothing may overlap, and the lease is never exceeded without asking.
 */
#include "tests/unit/shim/shim_memory_worker.h"

static int start(void **state)
{
	(void)state;
	devices.at[0].session = &session_first;
	devices.at[0].open.window = WINDOW;
	devices.at[0].open.window_bytes = GRANULES * GRANULE;
	devices.at[0].open.granularity = GRANULE;
	devices.at[0].open.lease = lease = LEASE;
	return memory_open() != CUDA_SUCCESS;
}

static void test_random(void **state)
{
	static struct {
		CUdeviceptr at;
		size_t bytes;
	} held[200];

	(void)state;
	srand(7);
	for (int i = 0; i < 60000; i++) {
		int slot = rand() % 200;
		size_t bytes = 1 + (size_t)rand() % (rand() % 20 ? 5000 : 5000000);
		struct memory_range range;
		CUresult status;

		if (rand() % 50 == 0)
			confirm_all();
		if (held[slot].at) {
			assert_true(memory_find(held[slot].at + held[slot].bytes - 1, &range));
			assert_int_equal(range.base, held[slot].at);
			assert_int_equal(range.bytes, held[slot].bytes);
			assert_int_equal(memory_free(held[slot].at), CUDA_SUCCESS);
			assert_int_equal(memory_free(held[slot].at), CUDA_ERROR_INVALID_VALUE);
			held[slot].at = 0;
			continue;
		}
		status = memory_alloc(0, bytes, false, &held[slot].at);
		if (status) {
			assert_int_equal(status, CUDA_ERROR_OUT_OF_MEMORY);
			held[slot].at = 0;
			continue;
		}
		held[slot].bytes = bytes;
		assert_int_equal(held[slot].at % 512, 0);
		for (int j = 0; j < 200; j++)
			if (j != slot && held[j].at)
				assert_true(held[j].at + held[j].bytes <= held[slot].at ||
					    held[slot].at + bytes <= held[j].at);
		assert_true(memory_inside(held[slot].at, bytes));
		assert_false(memory_inside(held[slot].at, bytes + 512 * 1024 * 1024));
	}
	for (int j = 0; j < 200; j++)
		if (held[j].at)
			memory_free(held[j].at);
}

/* A chunk that was freed comes again only after its ticket. */
static void test_quarantine(void **state)
{
	CUdeviceptr seen[2000], again;
	int n;

	(void)state;
	confirm_all();
	for (n = 0; n < 2000; n++) {
		assert_int_equal(memory_alloc(0, 4096, false, &seen[n]), CUDA_SUCCESS);
		assert_int_equal(memory_free(seen[n]), CUDA_SUCCESS);
		for (int i = 0; i < n; i++)
			assert_int_not_equal(seen[i], seen[n]);
	}
	confirm_all();
	assert_int_equal(memory_alloc(0, 4096, false, &again), CUDA_SUCCESS);
	for (n = 0; n < 2000 && seen[n] != again; n++)
		;
	assert_true(n < 2000);
	memory_free(again);
}

static void churn(size_t bytes, int times)
{
	CUdeviceptr at;

	for (int i = 0; i < times; i++) {
		assert_int_equal(memory_alloc(0, bytes, false, &at), CUDA_SUCCESS);
		assert_int_equal(memory_free(at), CUDA_SUCCESS);
		if (waiting_next > 90000)
			waiting_first = waiting_next = 0;
	}
}

/* In steady state, with a worker that keeps up, nothing is mapped or asked for. */
static void test_steady_state(void **state)
{
	(void)state;
	confirm_at_once = true;
	churn(100000, 1000);
	asked = posts = 0;
	churn(100000, 100000);
	assert_int_equal(asked, 0);
	/* One post for a batch of frees; a few slabs may come and go. */
	assert_true(posts < 100000 / 4);
	confirm_at_once = false;
}

/* Nor with one that is BEHIND steps behind, whose chunks come and go as a library's do that
 * takes its workspace anew in each call. */
static void test_workspaces(void **state)
{
	enum { BEHIND = 4, STEPS = 1000 };
	static const size_t sizes[] = {256000, 8000, 32000};
	unsigned posted[STEPS], maps_before = 0;
	CUdeviceptr at[3];

	(void)state;
	confirm_all();
	for (int i = 0; i < STEPS; i++) {
		if (i == 100)
			maps_before = maps;
		for (int j = 0; j < 3; j++)
			assert_int_equal(
				memory_alloc(0, sizes[j], false, &at[j]), CUDA_SUCCESS);
		for (int j = 0; j < 3; j++)
			assert_int_equal(memory_free(at[j]), CUDA_SUCCESS);
		posted[i] = waiting_next;
		if (i >= BEHIND)
			confirm_before(posted[i - BEHIND]);
	}
	assert_int_equal(maps, maps_before);
	confirm_all();
}

/* A whole block stays mapped for the next of its size, but not before its ticket, nor where
 * others may have it; what is told as free is so, and where memory is short it goes. */
static void test_spares(void **state)
{
	const size_t bytes = 3 * GRANULE - 5;
	CUdeviceptr first, second, third;
	uint64_t kept, before, slab;

	(void)state;
	confirm_all();
	/* The last empty slab. */
	assert_int_equal(memory_drain(0, &slab), CUDA_SUCCESS);
	before = mapped_bytes;
	assert_int_equal(memory_alloc(0, bytes, false, &first), CUDA_SUCCESS);
	assert_int_equal(memory_free(first), CUDA_SUCCESS);
	assert_false(memory_find(first, &(struct memory_range){0}));
	assert_int_equal(memory_free(first), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(memory_alloc(0, bytes, false, &second), CUDA_SUCCESS);
	assert_int_not_equal(second, first);
	confirm_all();
	maps = 0;
	assert_int_equal(memory_alloc(0, bytes - 100, false, &third), CUDA_SUCCESS);
	assert_int_equal(third, first);
	assert_int_equal(maps, 0);
	memory_shared(second);
	assert_int_equal(memory_free(second), CUDA_SUCCESS);
	assert_int_equal(memory_free(third), CUDA_SUCCESS);
	confirm_all();
	assert_int_equal(mapped_bytes, before + 3 * GRANULE);
	assert_int_equal(memory_drain(0, &kept), CUDA_SUCCESS);
	assert_int_equal(mapped_bytes, before);
	assert_int_equal(kept, slab);

	churn(bytes, 1);
	churn(lease - before, 1);
	assert_int_equal(memory_drain(0, &kept), CUDA_SUCCESS);
	assert_int_equal(mapped_bytes, before);
}

/* A program far ahead of the worker, with no room in the lease: each free is one post, and
 * nothing is unmapped to be mapped again. */
static void test_spares_are_awaited(void **state)
{
	const size_t left = 3 * 8 * GRANULE;
	CUdeviceptr big;
	uint64_t kept;

	(void)state;
	memory_drain(0, &kept);
	assert_int_equal(memory_alloc(0, lease - mapped_bytes - left, false, &big), 0);
	maps = posts = waited = 0;
	churn(left / 3, 300);
	assert_int_equal(maps, 3);
	assert_int_equal(posts, 300 + 3);
	assert_in_range(waited, 99, 100);
	assert_int_equal(memory_free(big), CUDA_SUCCESS);
}

static void test_out_of_memory_is_told_at_the_call(void **state)
{
	CUdeviceptr at;

	(void)state;
	confirm_all();
	asked = 0;
	assert_int_equal(memory_alloc(0, LEASE + 1, false, &at), CUDA_ERROR_OUT_OF_MEMORY);
	assert_true(asked > 0);
	assert_int_equal(memory_alloc(0, UINT64_MAX - 5, false, &at), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(memory_alloc(0, 0, false, &at), CUDA_ERROR_INVALID_VALUE);
	/* What was freed counts until the worker has said so, and is waited for. */
	churn(LEASE / 4 * 3, 2);
	assert_true(most_mapped <= LEASE);
}

static void test_addresses_that_are_nobodys(void **state)
{
	struct memory_range range;
	CUdeviceptr at;
	int device;

	(void)state;
	assert_int_equal(memory_alloc(0, 1000, false, &at), CUDA_SUCCESS);
	assert_int_equal(memory_free(at + 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(memory_free(at + 512), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(memory_free(0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(memory_free(UINT64_MAX), CUDA_ERROR_INVALID_VALUE);
	assert_true(memory_find(at + 999, &range));
	assert_false(memory_find(at + 1000, &range));
	assert_false(memory_inside(at, 1001));
	assert_true(memory_inside_one(0, at + 1, 999));
	assert_false(memory_inside_one(0, at + 1, 1000));
	assert_false(memory_inside_one(0, at - 1, 1));
	assert_true(memory_in_window(at, &device));
	assert_false(memory_in_window((CUdeviceptr)(uintptr_t)&at, &device));
	memory_global(0, 0x7000, 100);
	memory_global(0, 0x6000, 100);
	assert_true(memory_inside(0x6063, 1));
	assert_false(memory_inside(0x6064, 1));
	assert_true(memory_find(0x7010, &range) && range.global && range.base == 0x7000);
	memory_free(at);
}

/* It may need a lock of the thread that asks for memory: so it is waited for only where there
 * is no other memory. */
static void test_a_host_function_is_not_waited_for(void **state)
{
	CUdeviceptr at;
	uint64_t kept;

	(void)state;
	confirm_all();
	churn(LEASE / 2, 1);
	outstanding = grants = true;
	waited = 0;
	assert_int_equal(memory_drain(0, &kept), CUDA_SUCCESS);
	assert_int_equal(kept, LEASE / 2);
	assert_int_equal(memory_alloc(0, LEASE - 4 * GRANULE, false, &at), CUDA_SUCCESS);
	assert_int_equal(waited, 0);
	memory_free(at);
	grants = false;
	assert_int_equal(memory_alloc(0, LEASE + GRANULE, false, &at), CUDA_SUCCESS);
	assert_int_equal(waited, 1);
	memory_free(at);
	outstanding = false;
	assert_int_equal(memory_drain(0, &kept), CUDA_SUCCESS);
	assert_int_equal(kept, GRANULE); /* the last empty slab */
}

/* What a context has goes with it, slabs and what waits in them too; what another one has, and
 * what is the device's, stays. */
static void test_a_context_goes(void **state)
{
	struct context own = {.number = CONTEXT_CREATED, .home = &own, .live = true};
	CUdeviceptr kept[3], gone[300], pools, at;
	struct memory_range range;
	uint64_t before, none;

	(void)state;
	assert_int_equal(memory_drain(0, &none), CUDA_SUCCESS);
	before = mapped_bytes;
	assert_int_equal(memory_alloc(0, 1000, false, &kept[0]), CUDA_SUCCESS);
	assert_int_equal(memory_alloc(0, 3 * GRANULE, false, &kept[1]), CUDA_SUCCESS);
	assert_int_equal(memory_reserve(0, GRANULE, 0, 0, &kept[2]), CUDA_SUCCESS);
	thread_self.current = &own;
	for (int i = 0; i < 300; i++)
		assert_int_equal(memory_alloc(0, i % 50 ? 20000 : GRANULE, false, &gone[i]),
			CUDA_SUCCESS);
	assert_int_equal(memory_alloc(0, 1000, true, &pools), CUDA_SUCCESS);
	assert_true(memory_find(gone[0], &range) && range.context == CONTEXT_CREATED);
	for (int i = 0; i < 300; i += 3)
		memory_free(gone[i]);
	thread_self.current = NULL;
	memory_free(gone[1]);
	memory_context_gone(&own, false);
	for (int i = 0; i < 300; i++)
		assert_false(memory_find(gone[i], &range));
	for (int i = 0; i < 3; i++)
		assert_true(
			memory_find(kept[i], &range) && range.context == CONTEXT_PRIMARY(0));
	assert_true(memory_find(pools, &range) && range.async && range.context == CONTEXT_NONE);
	/* Not before the worker says so. */
	assert_int_equal(memory_alloc(0, 1000, false, &at), CUDA_SUCCESS);
	for (int i = 0; i < 300; i++)
		assert_int_not_equal(at, gone[i]);
	assert_int_equal(memory_drain(0, &none), CUDA_SUCCESS);
	assert_true(mapped_bytes <= before + 6 * GRANULE);
	own.number = CONTEXT_PRIMARY(0);
	memory_context_gone(&own, false);
	assert_false(memory_find(kept[0], &range) || memory_find(kept[1], &range));
	assert_true(memory_find(kept[2], &range) && memory_find(pools, &range));
	memory_context_gone(&own, true);
	assert_false(memory_find(kept[2], &range) || memory_find(pools, &range));
	assert_int_equal(memory_drain(0, &none), CUDA_SUCCESS);
	assert_int_equal(mapped_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_quarantine),
		cmocka_unit_test(test_steady_state),
		cmocka_unit_test(test_workspaces),
		cmocka_unit_test(test_spares),
		cmocka_unit_test(test_spares_are_awaited),
		cmocka_unit_test(test_out_of_memory_is_told_at_the_call),
		cmocka_unit_test(test_addresses_that_are_nobodys),
		cmocka_unit_test(test_a_host_function_is_not_waited_for),
		cmocka_unit_test(test_a_context_goes),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
