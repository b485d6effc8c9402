/* SPDX-License-Identifier: Apache-2.0
 *
 * The store of tensors against questions of every kind: no limit is passed, no foreign tensor
 * is had, nothing leaks, and a store that ends between any two writes is taken over by the
 * next.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/log.h"
#include "gpu-agent/store/index.h"
#include "gpu-agent/store/store.h"

#define MIB (1ull << 20)
#define ROUNDS 1000000
#define SESSIONS 6

static struct agent_config config;
static struct store store;
static uint32_t kept, made; /* descriptors that the supervisor has; that were ever made */
static const uint8_t gpus[2][16] = {{1}, {2}};
static const char *const spaces[] = {"red", "blue"};

/* ---- what the store stands on ---- */

struct memory {
	int none;
};
static struct memory memory;

uint64_t store_memory_granularity(const struct memory *m, const uint8_t gpu[16])
{
	(void)m;
	return gpu[0] == 1 || gpu[0] == 2 ? 2 * MIB : 0;
}

int store_memory_make(
	struct memory *m, const uint8_t gpu[16], uint64_t bytes, struct error *error)
{
	(void)m;
	(void)gpu;
	assert_int_equal(bytes % (2 * MIB), 0);
	(void)error;
	made++;
	return dup(0);
}

bool store_keep(struct store *s, const uint8_t name[16], int fd)
{
	uint32_t i = 0;

	(void)fd;
	/* Killed here, the next store looks for what is kept among these. */
	while (i < s->table->count && memcmp(s->table->records[i].id, name, 16))
		i++;
	assert_true(i < s->table->count);
	kept++;
	return true;
}

void store_let_go(struct store *s, const uint8_t name[16])
{
	(void)s;
	(void)name;
	kept--;
}

static uint32_t sealed_said;

void store_say(struct store *s, const struct tensor_message *message, int fd)
{
	(void)s;
	(void)fd;
	sealed_said += message->what == TENSOR_READ_ONLY;
}

/* No index is configured; yet what it hears of has its name until then, so each once. */
void index_deleted(struct store *s, uint32_t index)
{
	store_table_unname(s, index);
}

void index_unnamed(struct store *s, uint32_t index)
{
	assert_true(s->table->records[index].state == TENSOR_CREATED ||
		    s->table->records[index].state == TENSOR_SEALED);
}

void index_dropped(struct store *s, uint32_t index, uint64_t session)
{
	(void)session;
	assert_true(index < s->table->count);
}

/* ---- helpers ---- */

static uint64_t seed = 88172645463325252u;

static uint32_t roll(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 20) % below;
}

static void begin(void)
{
	memset(&config, 0, sizeof(config));
	config.store.bytes = 64 * MIB;
	config.store.tensors_per_namespace = TENSORS_MAX;
	config.store.bytes_per_namespace = 40 * MIB;
	config.store.pool_bytes = 8 * MIB;
	free(store.table);
	memset(&store, 0, sizeof(store));
	store.config = &config;
	store.memory = &memory;
	store.table = calloc(1, sizeof(*store.table));
	assert_non_null(store.table);
	for (uint32_t i = 0; i < TENSORS_MAX; i++)
		store.fds[i] = -1;
	kept = 0;
}

/* Sessions 1, 3, 5 are red's, the others blue's. */
static struct tensor_message question(uint32_t what, uint64_t session, const char *name)
{
	struct tensor_message m = {.version = TENSOR_VERSION,
		.what = what,
		.session = session,
		.left = UINT64_MAX,
		.about = {.dtype = TENSOR_U8, .rank = 1, .shape = {1}}};

	memcpy(m.gpu, gpus[0], sizeof(m.gpu));
	strcpy(m.space, spaces[session % 2 ? 0 : 1]);
	snprintf(m.name, sizeof(m.name), "%s", name);
	return m;
}

static uint32_t take(uint64_t session, const char *name, uint64_t bytes, uint32_t flags)
{
	struct tensor_message m = question(TENSOR_TAKE, session, name);
	int fd;

	m.about.shape[0] = (int64_t)bytes;
	m.about.flags = flags;
	fd = store_ask(&store, &m);
	assert_true(m.status ? fd < 0 && m.text[0] : fd >= 0);
	return m.status;
}

static void end_all(void)
{
	for (uint64_t s = 1; s <= SESSIONS; s++)
		store_table_session_over(&store, s);
	for (uint32_t i = 0; i < store.table->count; i++)
		if (store.table->records[i].state) {
			assert_int_equal(store.table->records[i].holders, 0);
			store_table_release(&store, i);
		}
	assert_int_equal(kept, 0);
	assert_int_equal(store.table->hold_count, 0);
	for (uint32_t i = 0; i < TENSORS_MAX; i++)
		assert_int_equal(store.fds[i], -1);
}

static void check_limits(void)
{
	assert_true(store_table_bytes(&store, NULL, NULL) <= config.store.bytes);
	for (int i = 0; i < 2; i++)
		assert_true(store_table_bytes(&store, spaces[i], NULL) <=
			    config.store.bytes_per_namespace);
}

/* ---- tests ---- */

static void no_question_passes_a_limit_or_gets_a_foreign_tensor(void **state)
{
	static const uint32_t flags[] = {0, TENSOR_MAKE, TENSOR_MAKE | TENSOR_KEEP,
		TENSOR_MAKE | TENSOR_EVICTABLE, TENSOR_WRITE, TENSOR_MAKE | TENSOR_NEW,
		TENSOR_MAKE | TENSOR_PACKED};
	uint32_t had = 0;

	(void)state;
	begin();
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t session = 1 + roll(SESSIONS);
		struct tensor_message m =
			question(1 + roll(TENSOR_OPERATIONS - 1), session, "");
		bool foreign = !roll(4);
		uint32_t index = store.table->count ? roll(store.table->count) : 0;

		snprintf(m.name, sizeof(m.name), "%s%st%u",
			foreign ? spaces[session % 2 ? 1 : 0] : "", foreign ? "/" : "",
			roll(12));
		m.about.flags = flags[roll(sizeof(flags) / sizeof(flags[0]))];
		m.about.shape[0] = (int64_t)((1 + roll(20)) * MIB);
		if (m.about.flags & TENSOR_PACKED)
			m.about.shape[0] = (int64_t)(1 + roll(MIB));
		m.again = !roll(8);
		memcpy(m.gpu, gpus[roll(2)], sizeof(m.gpu));
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
		if (!(i % 64))
			check_limits();
	}
	assert_true(had > ROUNDS / 50);
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
	assert_int_equal(take(1, name, 1, TENSOR_MAKE), TENSOR_INVALID_VALUE);
	name[256] = 0;
	assert_int_equal(take(1, name, 1, TENSOR_MAKE), 0);
	assert_int_equal(take(1, "", 1, TENSOR_MAKE), TENSOR_INVALID_VALUE);
	assert_int_equal(take(1, "a\n", 1, TENSOR_MAKE), TENSOR_INVALID_VALUE);
	assert_int_equal(take(1, "\xc3", 1, TENSOR_MAKE), TENSOR_INVALID_VALUE);
	assert_int_equal(take(1, "a\xff", 1, TENSOR_MAKE), TENSOR_INVALID_VALUE);
	assert_int_equal(take(1, "\xed\xa0\x80", 1, TENSOR_MAKE), TENSOR_INVALID_VALUE);
	assert_int_equal(take(1, "\xc3\xa4", 1, TENSOR_MAKE), 0);
	assert_int_equal(take(1, "/a", 1, TENSOR_MAKE), TENSOR_INVALID_VALUE);
	assert_int_equal(take(1, "red/", 1, TENSOR_MAKE), TENSOR_INVALID_VALUE);
	assert_int_equal(take(1, "red/a/b", 1, TENSOR_MAKE), TENSOR_INVALID_VALUE);
	assert_int_equal(take(1, "blue/a", 1, TENSOR_MAKE), TENSOR_NOT_PERMITTED);
	assert_int_equal(take(1, "a", 0, TENSOR_MAKE), TENSOR_INVALID_VALUE);
	assert_int_equal(take(1, "a", 1ull << 63, TENSOR_MAKE), TENSOR_INVALID_VALUE);
	m = question(TENSOR_TAKE, 1, "a");
	m.about.flags = TENSOR_MAKE;
	m.about.rank = TENSOR_RANK + 1;
	store_ask(&store, &m);
	assert_int_equal(m.status, TENSOR_INVALID_VALUE);
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
	assert_int_equal(take(2, "red/a", 1, 0), TENSOR_NOT_FOUND); /* "blu" is not "blue" */
	m = question(TENSOR_SHARE, 1, "a");
	strcpy(m.text, "blue");
	store_ask(&store, &m);
	assert_int_equal(take(2, "red/a", 1, 0), 0);
	assert_int_equal(take(2, "red/a", 1, TENSOR_WRITE), TENSOR_NOT_PERMITTED);
	/* Others read the list, so it is text. */
	for (int i = 0; i < 4; i++) {
		static const char *const wrong[] = {"b\xff", "b\n", "a,b", "a/b"};

		m = question(TENSOR_SHARE, 1, "a");
		strcpy(m.text, wrong[i]);
		store_ask(&store, &m);
		assert_int_equal(m.status, TENSOR_INVALID_VALUE);
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
	store_table_session_over(&store, 3);
	store_table_tell_sealed(&store, UINT32_MAX);
	assert_int_equal(sealed_said, 5);
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
	assert_int_equal(m.status, TENSOR_OUT_OF_MEMORY);
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
		assert_int_equal(m.status, i < 2 ? 0 : TENSOR_OUT_OF_MEMORY);
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
	assert_int_equal(take(3, "a", 1, TENSOR_WRITE), TENSOR_NOT_PERMITTED);
	assert_int_equal(take(3, "a", 1, 0), 0);
	assert_int_equal(take(1, "a", 1, TENSOR_WRITE), 0);
	m = question(TENSOR_SHARE, 1, "a");
	strcpy(m.text, "blue");
	store_ask(&store, &m);
	assert_int_equal(m.status, TENSOR_NOT_PERMITTED);
	assert_int_equal(take(1, "x", 1, TENSOR_MAKE | TENSOR_PACKED | TENSOR_EVICTABLE),
		TENSOR_INVALID_VALUE);
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
			assert_int_equal(take_handle(1, &forged), TENSOR_INVALID_VALUE);
	}
	assert_int_equal(take_handle(1, &handle), 0);
	assert_int_equal(take_handle(2, &handle), TENSOR_INVALID_VALUE); /* another namespace */
	assert_int_equal(take(1, "00", 0, TENSOR_BY_HANDLE), TENSOR_INVALID_VALUE);
	assert_int_equal(take(1, "a", 0, TENSOR_BY_HANDLE), TENSOR_INVALID_VALUE);
	m = question(TENSOR_DELETE, 1, "a");
	store_ask(&store, &m);
	assert_int_equal(take_handle(1, &handle), TENSOR_INVALID_VALUE); /* it has no name */
	/* The pool's memory has the same id. */
	store_table_session_over(&store, 1);
	assert_int_equal(take(1, "b", 4 * MIB, TENSOR_MAKE), 0);
	assert_memory_equal(store.table->records[0].id, handle.id, sizeof(handle.id));
	assert_int_equal(take_handle(1, &handle), TENSOR_INVALID_VALUE);
	end_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_shapes_that_cannot_be_are_refused),
		cmocka_unit_test(what_was_shared_is_had_once_sealed),
		cmocka_unit_test(what_was_shared_is_not_pooled),
		cmocka_unit_test(questions_of_one_batch_do_not_have_the_same_memory),
		cmocka_unit_test(what_is_asked_in_vain_evicts_nothing),
		cmocka_unit_test(writers_are_told_again_of_what_is_sealed),
		cmocka_unit_test(the_next_store_goes_on),
		cmocka_unit_test(no_forged_handle_is_a_tensor),
		cmocka_unit_test(small_ones_of_one_owner_share_a_piece),
		cmocka_unit_test(no_question_passes_a_limit_or_gets_a_foreign_tensor),
		cmocka_unit_test(any_bytes_are_answered),
	};

	log_level = LOG_ERROR;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
