/* SPDX-License-Identifier: Apache-2.0
 *
 * The records.  They lie in memory that outlives this process: each change leaves a table that
 * store_table_check() can make right.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/log.h"
#include "gpu-agent/store/index.h"
#include "gpu-agent/store/index_holder.h"
#include "gpu-agent/tensor_pieces.h"

static uint64_t hash_of(const char *space, const char *name)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *space; space++)
		h = (h ^ (unsigned char)*space) * 0x100000001b3u;
	h = (h ^ '/') * 0x100000001b3u;
	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3u;
	return h ? h : 1;
}

static struct tensor_record *at(const struct store *s, uint32_t index)
{
	return &s->table->records[index];
}

static bool named(const struct tensor_record *r)
{
	return r->state == TENSOR_CREATED || r->state == TENSOR_SEALED;
}

uint32_t store_table_find(const struct store *s, const char *space, const char *name)
{
	uint64_t hash = hash_of(space, name);

	for (uint32_t i = 0; i < s->table->count; i++)
		if (s->table->hash[i] == hash && named(at(s, i)) &&
			!(at(s, i)->flags & TENSOR_LOCAL) && !strcmp(at(s, i)->space, space) &&
			!strcmp(at(s, i)->name, name))
			return i;
	return UINT32_MAX;
}

uint32_t store_table_find_on(
	const struct store *s, const char *space, const char *name, const uint8_t gpu[16])
{
	uint64_t hash = hash_of(space, name);

	for (uint32_t i = 0; i < s->table->count; i++)
		if (s->table->hash[i] == hash && named(at(s, i)) &&
			!memcmp(at(s, i)->gpu, gpu, 16) && !strcmp(at(s, i)->space, space) &&
			!strcmp(at(s, i)->name, name))
			return i;
	return UINT32_MAX;
}

uint32_t store_table_by_id(const struct store *s, const uint8_t id[16])
{
	for (uint32_t i = 0; i < s->table->count; i++)
		if (at(s, i)->state && !memcmp(at(s, i)->id, id, 16))
			return i;
	return UINT32_MAX;
}

uint32_t store_table_new(struct store *s, const uint8_t gpu[16], uint64_t room, int fd)
{
	struct tensor_record *r;
	uint32_t i = 0;

	while (i < s->table->count && (at(s, i)->state || s->fds[i] >= 0))
		i++;
	if (i == TENSORS_MAX)
		return UINT32_MAX;
	r = at(s, i);
	memset(r, 0, sizeof(*r));
	if (getrandom(r->id, sizeof(r->id), 0) != sizeof(r->id))
		return UINT32_MAX;
	/* Before it is kept: the store after this one looks at these records only. */
	if (i == s->table->count)
		s->table->count++;
	if (!store_keep(s, r->id, fd))
		return UINT32_MAX;
	memcpy(r->gpu, gpu, sizeof(r->gpu));
	r->room = room;
	s->fds[i] = fd;
	return i;
}

void store_table_name(struct store *s, uint32_t index, uint32_t state)
{
	struct tensor_record *r = at(s, index);

	r->used = ++s->table->clock;
	s->table->hash[index] = hash_of(r->space, r->name);
	__atomic_store_n(&r->state, state, __ATOMIC_RELEASE);
}

void store_table_release(struct store *s, uint32_t index)
{
	struct tensor_record *r = at(s, index);
	uint8_t gpu[16];

	memcpy(gpu, r->gpu, sizeof(gpu));
	__atomic_store_n(&r->state, TENSOR_FREE, __ATOMIC_RELEASE);
	s->table->hash[index] = 0;
	store_let_go(s, r->id);
	if (s->fds[index] >= 0)
		close(s->fds[index]);
	s->fds[index] = -1;
	store_table_tell(s, gpu);
}

static uint64_t pooled(const struct store *s)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < s->table->count; i++)
		if (at(s, i)->state == TENSOR_POOLED)
			bytes += at(s, i)->room;
	return bytes;
}

void store_table_free(struct store *s, uint32_t index)
{
	struct tensor_record *r = at(s, index);

	/* Another namespace's worker may have kept what it was lent, whatever it says. */
	if (s->fds[index] < 0 || r->share[0] || r->piece ||
		r->room > s->config->store.pool_bytes ||
		pooled(s) > s->config->store.pool_bytes - r->room) {
		store_table_release(s, index);
		return;
	}
	r->used = ++s->table->clock;
	s->table->hash[index] = 0;
	__atomic_store_n(&r->state, TENSOR_POOLED, __ATOMIC_RELEASE);
}

/* Nobody finds it any more, nor what it has on other GPUs. */
static void name_goes(struct store *s, uint32_t index)
{
	const struct tensor_record *r = at(s, index);

	if (r->flags & TENSOR_LOCAL)
		return;
	index_unnamed(s, index);
	for (uint32_t i = 0; i < s->table->count; i++)
		if (i != index && named(at(s, i)) && at(s, i)->flags & TENSOR_LOCAL &&
			!strcmp(at(s, i)->space, r->space) && !strcmp(at(s, i)->name, r->name))
			store_table_unname(s, i);
}

void store_table_unname(struct store *s, uint32_t index)
{
	name_goes(s, index);
	s->table->hash[index] = 0;
	__atomic_store_n(&at(s, index)->state, TENSOR_GONE, __ATOMIC_RELEASE);
	/* What a command made for nobody was held by its name alone. */
	if (store_table_holds(s, index, INDEX_NOBODY))
		store_table_drop(s, index, INDEX_NOBODY);
	else if (!at(s, index)->holders)
		store_table_free(s, index);
}

/* ---- holders ---- */

static struct tensor_hold *find_hold(const struct store *s, uint32_t index, uint64_t session)
{
	for (uint32_t i = 0; i < s->table->hold_count; i++)
		if (s->table->holds[i].tensor == index && s->table->holds[i].session == session)
			return &s->table->holds[i];
	return NULL;
}

bool store_table_holds(const struct store *s, uint32_t index, uint64_t session)
{
	return find_hold(s, index, session) != NULL;
}

bool store_table_hold(struct store *s, uint32_t index, uint64_t session, bool writes)
{
	struct tensor_table *t = s->table;
	struct tensor_hold *hold = find_hold(s, index, session);

	at(s, index)->used = ++t->clock;
	if (hold) {
		hold->writes |= writes;
		return true;
	}
	if (t->hold_count == TENSOR_HOLDS)
		return false;
	t->holds[t->hold_count] =
		(struct tensor_hold){.session = session, .tensor = index, .writes = writes};
	__atomic_store_n(&t->hold_count, t->hold_count + 1, __ATOMIC_RELEASE);
	at(s, index)->holders++;
	return true;
}

/* Nobody holds it any more, or its owner has ended. */
static void left(struct store *s, uint32_t index)
{
	struct tensor_record *r = at(s, index);

	r->used = ++s->table->clock;
	if (r->state == TENSOR_CREATED && !r->owner) {
		/* What nobody will finish. */
		s->table->counters.unfinished++;
		store_table_unname(s, index);
	} else if (r->state == TENSOR_SEALED && !r->holders &&
		   !(r->flags & (TENSOR_KEEP | TENSOR_EVICTABLE))) {
		store_table_unname(s, index);
	} else if (r->state == TENSOR_GONE && !r->holders) {
		store_table_free(s, index);
	}
}

static void remove_hold(struct store *s, struct tensor_hold *hold)
{
	struct tensor_table *t = s->table;

	at(s, hold->tensor)->holders--;
	*hold = t->holds[t->hold_count - 1];
	__atomic_store_n(&t->hold_count, t->hold_count - 1, __ATOMIC_RELEASE);
}

void store_table_drop(struct store *s, uint32_t index, uint64_t session)
{
	struct tensor_hold *hold = find_hold(s, index, session);
	struct tensor_record *r = at(s, index);

	if (!hold)
		return;
	/* First: without its hold, the session's end would not be seen here. */
	if (r->state == TENSOR_CREATED && r->owner == session)
		r->owner = 0;
	remove_hold(s, hold);
	index_dropped(s, index, session);
	left(s, index);
}

void store_table_session_over(struct store *s, uint64_t session)
{
	for (uint32_t i = 0; i < s->table->hold_count;) {
		struct tensor_hold *hold = &s->table->holds[i];

		if (hold->session == session)
			store_table_drop(s, hold->tensor, session);
		else
			i++;
	}
}

/* ---- after a restart ---- */

static void check_holds(struct store *s)
{
	struct tensor_table *t = s->table;
	uint32_t n = 0;

	if (t->hold_count > TENSOR_HOLDS)
		t->hold_count = 0;
	for (uint32_t i = 0; i < t->count; i++)
		t->records[i].holders = 0;
	for (uint32_t i = 0; i < t->hold_count; i++) {
		struct tensor_hold hold = t->holds[i];
		uint32_t k = i + 1 == t->hold_count ? 0 : n;

		/* The last one may have been moved, and be there twice. */
		while (k < n && (t->holds[k].session != hold.session ||
					t->holds[k].tensor != hold.tensor))
			k++;
		if (k < n || hold.tensor >= t->count || !t->records[hold.tensor].state)
			continue;
		t->holds[n++] = hold;
		t->records[hold.tensor].holders++;
	}
	t->hold_count = n;
}

void store_table_check(struct store *s)
{
	struct tensor_table *t = s->table;

	if (t->count > TENSORS_MAX)
		t->count = TENSORS_MAX;
	for (uint32_t i = 0; i < t->count; i++) {
		struct tensor_record *r = at(s, i);

		if (r->state > TENSOR_POOLED || (r->state && s->fds[i] < 0))
			r->state = TENSOR_FREE;
		t->hash[i] = named(r) ? hash_of(r->space, r->name) : 0;
	}
	check_holds(s);
	for (uint32_t i = 0; i < t->count; i++) {
		if (at(s, i)->state == TENSOR_FREE && s->fds[i] >= 0)
			store_table_release(s, i); /* made, and not named before the end */
		else if (at(s, i)->state)
			left(s, i);
	}
}

/* ---- bytes ---- */

uint64_t store_table_bytes(const struct store *s, const char *space, const uint8_t *gpu)
{
	struct piece_set met = {0};
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < s->table->count; i++) {
		const struct tensor_record *r = at(s, i);

		if (r->state && (!gpu || !memcmp(r->gpu, gpu, 16)) &&
			(!space || (r->state != TENSOR_POOLED && !strcmp(r->space, space))) &&
			!piece_met(&met, r->piece))
			bytes += r->room;
	}
	return bytes;
}

uint32_t store_table_tensors(const struct store *s, const char *space)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->table->count; i++)
		count += at(s, i)->state && !strcmp(at(s, i)->space, space);
	return count;
}

bool store_table_unpool(struct store *s, const char *space)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t i = 0; i < s->table->count; i++)
		if (at(s, i)->state == TENSOR_POOLED && !strcmp(at(s, i)->space, space) &&
			(found == UINT32_MAX || at(s, i)->used < at(s, found)->used))
			found = i;
	if (found == UINT32_MAX)
		return false;
	store_table_release(s, found);
	return true;
}

static bool may_go(const struct tensor_record *r, const uint8_t gpu[16])
{
	return !memcmp(r->gpu, gpu, 16) && !r->holders &&
	       (r->state == TENSOR_POOLED ||
		       (r->state == TENSOR_SEALED && r->flags & TENSOR_EVICTABLE));
}

/* What goes next: of the pool first, then an evictable tensor. UINT32_MAX: nothing. */
static uint32_t victim(const struct store *s, const uint8_t gpu[16])
{
	uint32_t found = UINT32_MAX;

	for (uint32_t i = 0; i < s->table->count; i++) {
		const struct tensor_record *r = at(s, i);
		bool pool = r->state == TENSOR_POOLED, better;

		if (!may_go(r, gpu))
			continue;
		better = found == UINT32_MAX || (pool != (at(s, found)->state == TENSOR_POOLED)
								? pool
								: r->used < at(s, found)->used);
		if (better)
			found = i;
	}
	return found;
}

bool store_table_evict(struct store *s, const uint8_t gpu[16], uint64_t bytes)
{
	uint64_t all = 0;

	/* What is asked in vain takes nothing from anybody. */
	for (uint32_t i = 0; i < s->table->count; i++)
		all += may_go(at(s, i), gpu) ? at(s, i)->room : 0;
	if (all < bytes)
		return false;
	while (bytes) {
		uint32_t i = victim(s, gpu);

		if (i == UINT32_MAX)
			return false;
		bytes -= bytes < at(s, i)->room ? bytes : at(s, i)->room;
		if (at(s, i)->state == TENSOR_SEALED) {
			s->table->counters.evicted++;
			log_info("tensor.evicted", "name=\"%s/%s\" bytes=%llu", at(s, i)->space,
				at(s, i)->name, (unsigned long long)at(s, i)->bytes);
			name_goes(s, i);
		}
		store_table_release(s, i);
	}
	return true;
}

void store_table_tell(struct store *s, const uint8_t gpu[16])
{
	struct tensor_message message = {.version = TENSOR_VERSION, .what = TENSOR_USED};

	memcpy(message.gpu, gpu, sizeof(message.gpu));
	message.about.room = store_table_bytes(s, NULL, gpu);
	store_say(s, &message, -1);
}

void store_table_tell_sealed(struct store *s, uint32_t index)
{
	for (uint32_t i = 0; i < s->table->hold_count; i++) {
		const struct tensor_hold *hold = &s->table->holds[i];
		struct tensor_message word = {.version = TENSOR_VERSION,
			.what = TENSOR_READ_ONLY,
			.session = hold->session};

		if (!hold->writes || at(s, hold->tensor)->state != TENSOR_SEALED ||
			(index != UINT32_MAX && hold->tensor != index))
			continue;
		memcpy(word.id, at(s, hold->tensor)->id, sizeof(word.id));
		if (at(s, hold->tensor)->owner == hold->session)
			word.about.flags = TENSOR_OWNED;
		store_say(s, &word, -1);
	}
}

void store_table_followed(struct store *s, const uint8_t id[16], uint64_t session)
{
	uint32_t i = store_table_by_id(s, id);
	struct tensor_hold *hold = i == UINT32_MAX ? NULL : find_hold(s, i, session);

	/* Before it is sealed nobody has told the session anything. */
	if (hold && at(s, i)->state == TENSOR_SEALED)
		hold->writes = false;
}
