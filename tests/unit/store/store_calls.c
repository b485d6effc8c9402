/* SPDX-License-Identifier: Apache-2.0
 *
 * The store of tensors against questions of every kind: no limit is passed, no foreign tensor
 * is had, nothing leaks, and a store that ends between any two writes is taken over by the
 * next.
 */
#include "tests/unit/store/store_alone.h"

#define ROUNDS 1000000

static void check_limits(void)
{
	assert_true(store_table_bytes(&store, NULL, NULL) <= config.store.bytes);
	for (int i = 0; i < 2; i++)
		assert_true(store_table_bytes(&store, spaces[i], NULL) <=
			    config.store.bytes_per_namespace);
}

static void no_question_passes_a_limit_or_gets_a_foreign_tensor(void **state)
{
	static const uint32_t flags[] = {0, TENSOR_MAKE, TENSOR_MAKE | TENSOR_KEEP,
		TENSOR_MAKE | TENSOR_EVICTABLE, TENSOR_WRITE, TENSOR_MAKE | TENSOR_NEW,
		TENSOR_MAKE | TENSOR_PACKED, TENSOR_PEER, TENSOR_PEER | TENSOR_WRITE};
	uint32_t had = 0, peers = 0;

	(void)state;
	begin();
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t session = 1 + roll(SESSIONS);
		struct tensor_message m =
			question(1 + roll(TENSOR_OPERATIONS - 1), session, "");
		bool foreign = !roll(4);
		uint8_t gpu[16];
		uint32_t wanted;
		uint32_t index = store.table->count ? roll(store.table->count) : 0;

		snprintf(m.name, sizeof(m.name), "%s%st%u",
			foreign ? spaces[session % 2 ? 1 : 0] : "", foreign ? "/" : "",
			roll(12));
		m.about.flags = flags[roll(sizeof(flags) / sizeof(flags[0]))];
		m.about.shape[0] = (int64_t)((1 + roll(20)) * MIB);
		if (m.about.flags & TENSOR_PACKED)
			m.about.shape[0] = (int64_t)(1 + roll(MIB));
		m.again = !roll(8);
		memcpy(gpu, gpus[roll(2)], sizeof(gpu));
		memcpy(m.gpu, gpu, sizeof(m.gpu));
		wanted = m.about.flags;
		memcpy(m.id, store.table->records[index].id, sizeof(m.id));
		if (m.what == TENSOR_SHARE) /* with nobody who asks here */
			strcpy(m.text, "green");
		if (!roll(50)) {
			store_table_session_over(&store, session);
			continue;
		}
		if (store_ask(&store, &m) >= 0)
			had++;
		if (!m.status && foreign && m.what != TENSOR_SEAL && m.what != TENSOR_CLOSE &&
			m.what != TENSOR_LIST)
			assert_true(m.what == TENSOR_DELETE && m.again); /* did nothing */
		/* Another GPU's memory is for who asked for it, and is told that it is. */
		if (!m.status && m.what == TENSOR_TAKE) {
			bool peer = memcmp(m.gpu, gpu, sizeof(gpu));

			assert_true(peer == !!(m.about.flags & TENSOR_PEER));
			assert_true(!peer || wanted & TENSOR_PEER);
			peers += peer;
		}
		check_limits();
	}
	assert_true(had > ROUNDS / 50 && peers > ROUNDS / 1000);
	end_all();
}

static void any_bytes_are_answered(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < ROUNDS; i++) {
		struct tensor_message m = question(TENSOR_TAKE, 1 + roll(SESSIONS), "x");
		unsigned char *bytes = (unsigned char *)&m.name;
		uint32_t n = roll(40);

		m.what = roll(12);
		m.about.flags = TENSOR_MAKE;
		for (uint32_t k = 0; k < n; k++)
			bytes[roll(sizeof(m.name) + sizeof(m.about) + sizeof(m.text))] =
				(unsigned char)roll(256);
		/* As the loop hands it on. */
		m.name[sizeof(m.name) - 1] = m.text[sizeof(m.text) - 1] = 0;
		m.cursor = roll(2) ? seed : roll(8);
		store_ask(&store, &m);
		if (!(i % 64))
			check_limits();
		if (!roll(100))
			store_table_session_over(&store, 1 + roll(SESSIONS));
	}
	check_limits();
	end_all();
}

static void names_and_shapes_that_cannot_be_are_refused(void **state)
{
	struct tensor_message m;
	char name[300];

	(void)state;
	begin();
	memset(name, 'x', sizeof(name));
	name[257] = 0;
	assert_int_equal(take(1, name, 1, TENSOR_MAKE), STATUS_INVALID_VALUE);
	name[256] = 0;
	assert_int_equal(take(1, name, 1, TENSOR_MAKE), 0);
	assert_int_equal(take(1, "", 1, TENSOR_MAKE), STATUS_INVALID_VALUE);
	assert_int_equal(take(1, "a\n", 1, TENSOR_MAKE), STATUS_INVALID_VALUE);
	assert_int_equal(take(1, "\xc3", 1, TENSOR_MAKE), STATUS_INVALID_VALUE);
	assert_int_equal(take(1, "a\xff", 1, TENSOR_MAKE), STATUS_INVALID_VALUE);
	assert_int_equal(take(1, "\xed\xa0\x80", 1, TENSOR_MAKE), STATUS_INVALID_VALUE);
	assert_int_equal(take(1, "\xc3\xa4", 1, TENSOR_MAKE), 0);
	assert_int_equal(take(1, "/a", 1, TENSOR_MAKE), STATUS_INVALID_VALUE);
	assert_int_equal(take(1, "red/", 1, TENSOR_MAKE), STATUS_INVALID_VALUE);
	assert_int_equal(take(1, "red/a/b", 1, TENSOR_MAKE), STATUS_INVALID_VALUE);
	assert_int_equal(take(1, "blue/a", 1, TENSOR_MAKE), STATUS_NOT_PERMITTED);
	assert_int_equal(take(1, "a", 0, TENSOR_MAKE), STATUS_INVALID_VALUE);
	assert_int_equal(take(1, "a", 1ull << 63, TENSOR_MAKE), STATUS_INVALID_VALUE);
	m = question(TENSOR_TAKE, 1, "a");
	m.about.flags = TENSOR_MAKE;
	m.about.rank = TENSOR_RANK + 1;
	store_ask(&store, &m);
	assert_int_equal(m.status, STATUS_INVALID_VALUE);
	end_all();
}

/* What a memory of the table at that moment is to the next store: descriptors stay. */
static void the_next_store_goes_on(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 20000; i++) {
		uint64_t session = 1 + roll(SESSIONS);
		char name[8];

		snprintf(name, sizeof(name), "t%u", roll(9));
		take(session, name, (1 + roll(6)) * MIB,
			TENSOR_MAKE | (roll(3) ? 0 : TENSOR_EVICTABLE));
		if (!roll(3))
			store_table_session_over(&store, 1 + roll(SESSIONS));
		if (roll(10))
			continue;
		/* A hold that was being moved is there twice; a record was not named yet. */
		if (store.table->hold_count && store.table->hold_count < TENSOR_HOLDS &&
			roll(2)) {
			struct tensor_hold *holds = store.table->holds;

			holds[store.table->hold_count] = holds[roll(store.table->hold_count)];
			store.table->hold_count++;
		}
		if (roll(2))
			store_table_new(&store, gpus[0], 2 * MIB, dup(0));
		store_table_check(&store);
		for (uint32_t k = 0; k < store.table->count; k++) {
			const struct tensor_record *r = &store.table->records[k];
			uint32_t holders = 0;

			for (uint32_t h = 0; h < store.table->hold_count; h++)
				holders += store.table->holds[h].tensor == k;
			assert_int_equal(r->state ? r->holders : 0, r->state ? holders : 0);
			assert_int_equal(r->state != 0, store.fds[k] >= 0);
		}
		check_limits();
	}
	end_all();
}

static uint32_t take_handle(uint64_t session, const struct tensor_handle *handle)
{
	char digits[TENSOR_HANDLE_DIGITS + 1];
	unsigned char bytes[sizeof(*handle)];

	memcpy(bytes, handle, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(digits + 2 * i, 3, "%02x", bytes[i]);
	return take(session, digits, 0, TENSOR_BY_HANDLE);
}

static void no_forged_handle_is_a_tensor(void **state)
{
	struct tensor_handle handle, forged;
	struct tensor_message m;

	(void)state;
	begin();
	assert_int_equal(take(1, "a", 4 * MIB, TENSOR_MAKE), 0);
	store_handle(&store.table->records[0], &handle);
	for (int i = 0; i < ROUNDS; i++) {
		unsigned changes = 1 + roll(4);

		forged = handle;
		for (unsigned k = 0; k < changes; k++)
			((unsigned char *)&forged)[roll(sizeof(forged))] ^=
				(unsigned char)(1 + roll(255));
		if (memcmp(&forged, &handle, sizeof(handle)))
			assert_int_equal(take_handle(1, &forged), STATUS_INVALID_VALUE);
	}
	assert_int_equal(take_handle(1, &handle), 0);
	assert_int_equal(take_handle(2, &handle), STATUS_INVALID_VALUE); /* another namespace */
	assert_int_equal(take(1, "00", 0, TENSOR_BY_HANDLE), STATUS_INVALID_VALUE);
	assert_int_equal(take(1, "a", 0, TENSOR_BY_HANDLE), STATUS_INVALID_VALUE);
	m = question(TENSOR_DELETE, 1, "a");
	store_ask(&store, &m);
	assert_int_equal(take_handle(1, &handle), STATUS_INVALID_VALUE); /* it has no name */
	/* The pool's memory has the same id. */
	store_table_session_over(&store, 1);
	assert_int_equal(take(1, "b", 4 * MIB, TENSOR_MAKE), 0);
	assert_memory_equal(store.table->records[0].id, handle.id, sizeof(handle.id));
	assert_int_equal(take_handle(1, &handle), STATUS_INVALID_VALUE);
	end_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_shapes_that_cannot_be_are_refused),
		cmocka_unit_test(the_next_store_goes_on),
		cmocka_unit_test(no_forged_handle_is_a_tensor),
		cmocka_unit_test(no_question_passes_a_limit_or_gets_a_foreign_tensor),
		cmocka_unit_test(any_bytes_are_answered),
	};

	log_level = LOG_ERROR;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
