/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: any bytes as a handle of a tensor, and as questions to the store. Only the
 * handle that the store wrote is a tensor, no question passes a limit, and all end when the
 * sessions do.
 *
 * The first byte chooses: 'h' 64 bytes that are laid over the right handle by exclusive or; 't'
 * the text in a handle's place; else questions, each its length and so many bytes over a sound
 * one.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "gpu-agent/store/index.h"
#include "gpu-agent/store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

#define MIB (1ull << 20)
#define QUESTIONS 16
#define SESSIONS 3

static struct agent_config config;
static struct store store;
static int kept;
static const uint8_t gpu[16] = {1};

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* ---- what the store stands on ---- */

struct memory {
	int none;
};
static struct memory memory;

uint64_t store_memory_granularity(const struct memory *m, const uint8_t of[16])
{
	(void)m;
	return memcmp(of, gpu, sizeof(gpu)) ? 0 : 2 * MIB;
}

int store_memory_make(
	struct memory *m, const uint8_t of[16], uint64_t bytes, struct error *error)
{
	(void)m;
	(void)of;
	(void)error;
	check(bytes && bytes % (2 * MIB) == 0);
	return dup(0);
}

bool store_keep(struct store *s, const uint8_t name[16], int fd)
{
	(void)s;
	(void)name;
	(void)fd;
	kept++;
	return true;
}

void store_let_go(struct store *s, const uint8_t name[16])
{
	(void)s;
	(void)name;
	kept--;
}

void store_say(struct store *s, const struct tensor_message *message, int fd)
{
	(void)s;
	(void)message;
	(void)fd;
}

void index_deleted(struct store *s, uint32_t index)
{
	store_table_unname(s, index);
}

void index_unnamed(struct store *s, uint32_t index)
{
	(void)s;
	(void)index;
}

void index_dropped(struct store *s, uint32_t index, uint64_t session)
{
	(void)s;
	(void)index;
	(void)session;
}

/* ---- what is asked ---- */

static struct tensor_message sound(uint32_t what, uint64_t session, const char *name)
{
	struct tensor_message m = {.version = TENSOR_VERSION,
		.what = what,
		.session = session,
		.left = UINT64_MAX,
		.about = {
			.flags = TENSOR_MAKE, .dtype = TENSOR_U8, .rank = 1, .shape = {4096}}};

	memcpy(m.gpu, gpu, sizeof(m.gpu));
	strcpy(m.space, session % 2 ? "red" : "blue");
	snprintf(m.name, sizeof(m.name), "%s", name);
	return m;
}

static void as_handle(const uint8_t *over, size_t n)
{
	struct tensor_message m = sound(TENSOR_TAKE, 1, "");
	struct tensor_handle handle;
	unsigned char at[sizeof(handle)];
	bool same = true;

	store_handle(&store.table->records[0], &handle);
	memcpy(at, &handle, sizeof(at));
	for (size_t i = 0; i < n && i < sizeof(at); i++) {
		at[i] ^= over[i];
		same &= !over[i];
	}
	for (size_t i = 0; i < sizeof(at); i++)
		snprintf(m.name + 2 * i, 3, "%02x", at[i]);
	m.about.flags = TENSOR_BY_HANDLE;
	check((store_ask(&store, &m) >= 0) == same);
}

static void as_text(const uint8_t *text, size_t n)
{
	struct tensor_message m = sound(TENSOR_TAKE, 1, "");

	memcpy(m.name, text, n < sizeof(m.name) ? n : sizeof(m.name) - 1);
	m.about.flags = TENSOR_BY_HANDLE;
	check(store_ask(&store, &m) < 0 && m.status && m.text[0]);
}

static void as_questions(const uint8_t *bytes, size_t n)
{
	for (int i = 0; i < QUESTIONS && n > 4; i++) {
		/* What the front does not overwrite begins with `id`; of that, any place. */
		size_t first = offsetof(struct tensor_message, id);
		struct tensor_message m = sound(TENSOR_TAKE, 1 + bytes[0] % SESSIONS, "a");
		char space[TENSOR_SPACE];
		size_t at = first + (bytes[1] | (size_t)bytes[2] << 8) % (sizeof(m) - first);
		size_t length = bytes[3];

		m.what = 1 + (bytes[0] >> 4);
		memcpy(space, m.space, sizeof(space));
		bytes += 4;
		n -= 4;
		length = length < n ? length : n;
		length = length < sizeof(m) - at ? length : sizeof(m) - at;
		memcpy((char *)&m + at, bytes, length);
		bytes += length;
		n -= length;
		/* As the loop and the front hand it on. */
		memcpy(m.space, space, sizeof(space));
		m.name[sizeof(m.name) - 1] = m.text[sizeof(m.text) - 1] = 0;
		store_ask(&store, &m);
		check(store_table_bytes(&store, NULL, NULL) <= config.store.bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct tensor_message m;

	if (!store.table) {
		log_level = LOG_ERROR;
		config.store.bytes = 16 * MIB;
		config.store.tensors_per_namespace = TENSORS_MAX / 2;
		store.config = &config;
		store.memory = &memory;
		store.table = calloc(1, sizeof(*store.table));
		for (uint32_t i = 0; i < TENSORS_MAX; i++)
			store.fds[i] = -1;
	}
	m = sound(TENSOR_TAKE, 1, "x");
	check(store_ask(&store, &m) >= 0);
	if (n && bytes[0] == 'h')
		as_handle(bytes + 1, n - 1);
	else if (n && bytes[0] == 't')
		as_text(bytes + 1, n - 1);
	else if (n)
		as_questions(bytes, n);
	for (uint64_t s = 1; s <= SESSIONS; s++)
		store_table_session_over(&store, s);
	for (uint32_t i = 0; i < store.table->count; i++) {
		check(!store.table->records[i].holders || !store.table->records[i].state);
		if (store.table->records[i].state)
			store_table_release(&store, i); /* what was to be kept */
	}
	check(!kept && !store.table->hold_count);
	store.table->count = 0;
	return 0;
}
