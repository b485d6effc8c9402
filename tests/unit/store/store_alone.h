/* SPDX-License-Identifier: Apache-2.0
 *
 * The store of tensors alone in the test's process: its memory, the supervisor that keeps
 * descriptors and the index are the test's. Included once in a program: it defines what they
 * are.
 */
#ifndef VCUDA_TESTS_UNIT_STORE_ALONE_H
#define VCUDA_TESTS_UNIT_STORE_ALONE_H

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

static inline uint32_t roll(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 20) % below;
}

static inline void begin(void)
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
static inline struct tensor_message question(uint32_t what, uint64_t session, const char *name)
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

static inline uint32_t take(uint64_t session, const char *name, uint64_t bytes, uint32_t flags)
{
	struct tensor_message m = question(TENSOR_TAKE, session, name);
	int fd;

	m.about.shape[0] = (int64_t)bytes;
	m.about.flags = flags;
	fd = store_ask(&store, &m);
	assert_true(m.status ? fd < 0 && m.text[0] : fd >= 0);
	return m.status;
}

static inline void end_all(void)
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

#endif
