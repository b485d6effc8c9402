/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of the store from their making to their end: who is told that one is sealed, who has
 * what is shared, what is evicted, pooled, and packed with others.
 */
#include "tests/unit/store/store_alone.h"

static void what_was_shared_is_had_once_sealed(void **state)
{
	struct tensor_message m;

	(void)state;
	begin();
	assert_int_equal(take(1, "a", 1, TENSOR_MAKE), 0);
	m = question(TENSOR_SHARE, 1, "a");
	strcpy(m.text, "blu");
	store_ask(&store, &m);
	assert_int_equal(m.status, 0);
	m = question(TENSOR_TAKE, 1, "a");
	store_ask(&store, &m);
	m.what = TENSOR_SEAL;
	store_ask(&store, &m);
	assert_int_equal(m.status, 0);
	assert_int_equal(take(2, "red/a", 1, 0), STATUS_NOT_FOUND); /* "blu" is not "blue" */
	m = question(TENSOR_SHARE, 1, "a");
	strcpy(m.text, "blue");
	store_ask(&store, &m);
	assert_int_equal(take(2, "red/a", 1, 0), 0);
	assert_int_equal(take(2, "red/a", 1, TENSOR_WRITE), STATUS_NOT_PERMITTED);
	/* Others read the list, so it is text. */
	for (int i = 0; i < 4; i++) {
		static const char *const wrong[] = {"b\xff", "b\n", "a,b", "a/b"};

		m = question(TENSOR_SHARE, 1, "a");
		strcpy(m.text, wrong[i]);
		store_ask(&store, &m);
		assert_int_equal(m.status, STATUS_INVALID_VALUE);
	}
	assert_string_equal(store.table->records[0].share, "blu,blue,");
	end_all();
}

static void writers_are_told_again_of_what_is_sealed(void **state)
{
	struct tensor_message m;

	(void)state;
	begin();
	assert_int_equal(take(1, "a", 1, TENSOR_MAKE), 0);
	assert_int_equal(take(3, "a", 1, TENSOR_WRITE), 0);
	assert_int_equal(take(5, "a", 1, 0), 0);
	assert_int_equal(take(1, "b", 1, TENSOR_MAKE), 0); /* stays as it is */
	sealed_said = 0;
	m = question(TENSOR_TAKE, 1, "a");
	store_ask(&store, &m);
	m.what = TENSOR_SEAL;
	store_ask(&store, &m);
	assert_int_equal(m.status, 0);
	assert_int_equal(sealed_said, 2);
	store_table_check(&store);
	store_table_tell_sealed(&store, UINT32_MAX);
	assert_int_equal(sealed_said, 4);
	/* Who has followed is not told again; before it is sealed nobody can have. */
	store_table_followed(&store, m.id, 1);
	store_table_followed(&store, m.id, 5);
	store_table_tell_sealed(&store, UINT32_MAX);
	assert_int_equal(sealed_said, 5);
	m = question(TENSOR_TAKE, 1, "b");
	store_ask(&store, &m);
	store_table_followed(&store, m.id, 1);
	m.what = TENSOR_SEAL;
	store_ask(&store, &m);
	assert_int_equal(sealed_said, 6);
	store_table_session_over(&store, 3);
	store_table_tell_sealed(&store, UINT32_MAX);
	assert_int_equal(sealed_said, 7);
	end_all();
}

static void what_is_asked_in_vain_evicts_nothing(void **state)
{
	struct tensor_message m;

	(void)state;
	begin();
	assert_int_equal(take(1, "a", 8 * MIB, TENSOR_MAKE | TENSOR_EVICTABLE), 0);
	m = question(TENSOR_TAKE, 1, "a");
	store_ask(&store, &m);
	m.what = TENSOR_SEAL;
	store_ask(&store, &m);
	store_table_session_over(&store, 1);
	m = question(TENSOR_TAKE, 2, "b");
	m.about.flags = TENSOR_MAKE;
	m.about.shape[0] = 32 * MIB;
	m.left = 16 * MIB;
	m.about.room = 8 * MIB;
	store_ask(&store, &m);
	assert_int_equal(m.status, STATUS_OUT_OF_MEMORY);
	assert_int_equal(store.table->counters.evicted, 0);
	m = question(TENSOR_TAKE, 2, "b");
	m.about.flags = TENSOR_MAKE;
	m.about.shape[0] = 32 * MIB;
	m.left = 24 * MIB;
	m.about.room = 8 * MIB;
	store_ask(&store, &m);
	assert_int_equal(m.status, 0);
	assert_int_equal(store.table->counters.evicted, 1);
	end_all();
}

/* The front counted what is left before it heard of the first. */
static void questions_of_one_batch_do_not_have_the_same_memory(void **state)
{
	struct tensor_message m;

	(void)state;
	begin();
	for (int i = 0; i < 3; i++) {
		m = question(TENSOR_TAKE, 1, i == 0 ? "a" : i == 1 ? "b" : "c");
		m.about.flags = TENSOR_MAKE;
		m.about.shape[0] = 8 * MIB;
		m.left = 16 * MIB;
		store_ask(&store, &m);
		assert_int_equal(m.status, i < 2 ? 0 : STATUS_OUT_OF_MEMORY);
	}
	end_all();
}

/* A worker that says it closed a tensor may have kept its descriptor. */
static void what_was_shared_is_not_pooled(void **state)
{
	struct tensor_message m;

	(void)state;
	begin();
	for (int shared = 0; shared < 2; shared++) {
		assert_int_equal(take(1, "a", 4 * MIB, TENSOR_MAKE), 0);
		m = question(TENSOR_SHARE, 1, "a");
		strcpy(m.text, "blue");
		if (shared)
			store_ask(&store, &m);
		assert_int_equal(m.status, 0);
		store_table_session_over(&store, 1);
		assert_int_equal(store_table_bytes(&store, NULL, NULL), shared ? 0 : 4 * MIB);
	}
	end_all();
}

static void small_ones_of_one_owner_share_a_piece(void **state)
{
	static const char *const names[] = {"a", "b", "c"};
	const struct tensor_record *r;
	struct tensor_message m;
	uint64_t end = 0;

	(void)state;
	begin();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(take(1, names[i], 5000, TENSOR_MAKE | TENSOR_PACKED), 0);
		r = &store.table->records[i];
		assert_true(r->offset >= end && r->offset % 512 == 0);
		assert_true(r->piece && r->piece == store.table->records[0].piece);
		end = r->offset + r->bytes;
	}
	assert_int_equal(store_table_bytes(&store, NULL, NULL), 2 * MIB);
	assert_int_equal(store_table_bytes(&store, "red", NULL), 2 * MIB);
	assert_int_equal(kept, 3);
	/* What is no more than the rest of it begins another one, as does another session's. */
	assert_int_equal(take(1, "d", MIB - 1, TENSOR_MAKE | TENSOR_PACKED), 0);
	assert_int_equal(take(1, "e", MIB - 1, TENSOR_MAKE | TENSOR_PACKED), 0);
	assert_int_equal(store_table_bytes(&store, NULL, NULL), 4 * MIB);
	assert_int_equal(take(3, "f", 5000, TENSOR_MAKE | TENSOR_PACKED), 0);
	assert_int_equal(take(1, "g", MIB, TENSOR_MAKE | TENSOR_PACKED), 0);
	assert_int_equal(store_table_bytes(&store, NULL, NULL), 8 * MIB);
	/* Who could write a neighbour, or read it in another namespace, does not get it. */
	assert_int_equal(take(3, "a", 1, TENSOR_WRITE), STATUS_NOT_PERMITTED);
	assert_int_equal(take(3, "a", 1, 0), 0);
	assert_int_equal(take(1, "a", 1, TENSOR_WRITE), 0);
	m = question(TENSOR_SHARE, 1, "a");
	strcpy(m.text, "blue");
	store_ask(&store, &m);
	assert_int_equal(m.status, STATUS_NOT_PERMITTED);
	assert_int_equal(take(1, "x", 1, TENSOR_MAKE | TENSOR_PACKED | TENSOR_EVICTABLE),
		STATUS_INVALID_VALUE);
	/* Sealed, it has no new neighbour. */
	m = question(TENSOR_TAKE, 3, "f");
	store_ask(&store, &m);
	m.what = TENSOR_SEAL;
	store_ask(&store, &m);
	assert_int_equal(m.status, 0);
	assert_int_equal(take(3, "h", 5000, TENSOR_MAKE | TENSOR_PACKED), 0);
	assert_int_equal(store_table_bytes(&store, NULL, NULL), 10 * MIB);
	/* The piece goes with the last in it. */
	store_table_session_over(&store, 3);
	assert_int_equal(store_table_bytes(&store, NULL, NULL), 6 * MIB);
	for (int i = 0; i < 3; i++) {
		m = question(TENSOR_TAKE, 1, names[i]);
		store_ask(&store, &m);
		m.what = TENSOR_CLOSE;
		store_ask(&store, &m);
		assert_int_equal(store_table_by_id(&store, m.id), UINT32_MAX);
	}
	assert_int_equal(store_table_bytes(&store, NULL, NULL), 6 * MIB); /* "d" is there */
	store_table_check(&store);
	assert_int_equal(store_table_bytes(&store, NULL, NULL), 6 * MIB);
	store_table_session_over(&store, 1);
	assert_int_equal(
		store_table_bytes(&store, NULL, NULL), 2 * MIB); /* the pool has "g"'s */
	end_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_shared_is_had_once_sealed),
		cmocka_unit_test(what_was_shared_is_not_pooled),
		cmocka_unit_test(questions_of_one_batch_do_not_have_the_same_memory),
		cmocka_unit_test(what_is_asked_in_vain_evicts_nothing),
		cmocka_unit_test(writers_are_told_again_of_what_is_sealed),
		cmocka_unit_test(small_ones_of_one_owner_share_a_piece),
	};

	log_level = LOG_ERROR;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
