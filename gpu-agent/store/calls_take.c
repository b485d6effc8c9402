/* SPDX-License-Identifier: Apache-2.0
 *
 * Create and get: the same question, see calls.c.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpu-agent/store/calls_core.h"

#define GRANULES_EXACT 16u /* smaller memory is made as it is; */
#define CLASS_PARTS 32u	   /* larger in steps of a part of the next power of two */

/* As it is made: with a pool in classes, so that what comes back fits what is asked next. */
static uint64_t room_of(const struct store *s, uint64_t bytes, uint64_t granularity)
{
	uint64_t room = (bytes + granularity - 1) / granularity * granularity;
	uint64_t step = granularity;

	if (!s->config->store.pool_bytes || room <= GRANULES_EXACT * granularity)
		return room;
	while (step * CLASS_PARTS < room)
		step *= 2;
	return (room + step - 1) / step * step;
}

/* Memory of the pool, which that namespace had before. */
static uint32_t from_pool(struct store *s, const struct tensor_message *m, uint64_t room)
{
	for (uint32_t i = 0; i < s->table->count; i++) {
		struct tensor_record *r = &s->table->records[i];

		if (r->state != TENSOR_POOLED || r->room != room ||
			memcmp(r->gpu, m->gpu, 16) || strcmp(r->space, m->space))
			continue;
		s->table->counters.pool_hits++;
		return i;
	}
	return UINT32_MAX;
}

/* Whether the namespace may have so much more, of the pool or not. */
static bool within_space(struct store *s, struct tensor_message *m, uint64_t room)
{
	const struct agent_store *limit = &s->config->store;
	uint64_t own = store_table_bytes(s, m->space, NULL);

	if (limit->bytes_per_namespace && (room > limit->bytes_per_namespace ||
						  own > limit->bytes_per_namespace - room)) {
		calls_refuse(m, STATUS_OUT_OF_MEMORY,
			"namespace '%s' has %llu of its %llu bytes of tensors "
			"(store.bytes_per_namespace)",
			m->space, (unsigned long long)own,
			(unsigned long long)limit->bytes_per_namespace);
		return false;
	}
	return true;
}

/* Records are few: no namespace takes all of them. */
static bool within_records(struct store *s, struct tensor_message *m)
{
	uint32_t most = s->config->store.tensors_per_namespace;

	if (store_table_tensors(s, m->space) < most || store_table_unpool(s, m->space))
		return true;
	calls_refuse(m, STATUS_OUT_OF_MEMORY,
		"namespace '%s' has its %u tensors (store.tensors_per_namespace)", m->space,
		most);
	return false;
}

/* What the GPU has now: the front did not know of what came and went here since. */
static uint64_t left_of(const struct store *s, const struct tensor_message *m)
{
	uint64_t had = store_table_bytes(s, NULL, m->gpu), all;

	if (__builtin_add_overflow(m->left, m->about.room, &all))
		all = UINT64_MAX;
	return all > had ? all - had : 0;
}

/* Whether the store may, and the GPU can. What may go for that, goes. */
static bool within(struct store *s, struct tensor_message *m, uint64_t room)
{
	const struct agent_store *limit = &s->config->store;
	uint64_t all = store_table_bytes(s, NULL, NULL), left;

	if (room <= limit->bytes && all > limit->bytes - room &&
		store_table_evict(s, m->gpu, all - (limit->bytes - room)))
		all = store_table_bytes(s, NULL, NULL);
	if (room > limit->bytes || all > limit->bytes - room) {
		calls_refuse(m, STATUS_OUT_OF_MEMORY,
			"the store has %llu of its %llu bytes (store.bytes)",
			(unsigned long long)all, (unsigned long long)limit->bytes);
		return false;
	}
	left = left_of(s, m);
	if (left < room && !store_table_evict(s, m->gpu, room - left)) {
		calls_refuse(m, STATUS_OUT_OF_MEMORY, "the GPU has %llu bytes left, of %llu",
			(unsigned long long)left, (unsigned long long)room);
		return false;
	}
	return true;
}

static uint32_t make_memory(struct store *s, struct tensor_message *m, uint64_t room)
{
	struct error error = {0};
	uint32_t i;
	int fd = store_memory_make(s->memory, m->gpu, room, &error);

	/* Another process may have the rest of the GPU. */
	if (fd == -(int)STATUS_OUT_OF_MEMORY && store_table_evict(s, m->gpu, room))
		fd = store_memory_make(s->memory, m->gpu, room, &error);
	if (fd < 0) {
		calls_refuse(m, (uint32_t)-fd, "%s", error.text);
		return UINT32_MAX;
	}
	i = store_table_new(s, m->gpu, room, fd);
	if (i == UINT32_MAX) {
		close(fd);
		calls_refuse(
			m, STATUS_OUT_OF_MEMORY, "the store has its %u tensors", TENSORS_MAX);
	}
	return i;
}

/* A record with memory: in a piece, of the pool, or new. UINT32_MAX: refused. */
static uint32_t memory_for(
	struct store *s, struct tensor_message *m, uint64_t bytes, uint64_t granularity)
{
	uint64_t room = room_of(s, bytes, granularity);
	bool packed = pieces_wanted(m, bytes);
	uint32_t i;

	if (packed) {
		if (!within_records(s, m))
			return UINT32_MAX;
		i = pieces_place(s, m, bytes);
		if (i != UINT32_MAX)
			return i;
	}
	if (!within_space(s, m, room))
		return UINT32_MAX;
	i = from_pool(s, m, room);
	if (i == UINT32_MAX) {
		if (!within_records(s, m) || !within(s, m, room))
			return UINT32_MAX;
		i = make_memory(s, m, room);
		if (i == UINT32_MAX)
			return i;
	}
	s->table->records[i].offset = s->table->records[i].piece = 0;
	if (packed)
		pieces_begin(s, i);
	return i;
}

uint32_t calls_memory(struct store *s, struct tensor_message *m, uint64_t bytes)
{
	uint64_t granularity = s->memory ? store_memory_granularity(s->memory, m->gpu) : 0;

	if (!bytes) {
		calls_refuse(m, STATUS_INVALID_VALUE,
			"'%.80s': no such dtype, or a shape of no or too many bytes", m->name);
		return UINT32_MAX;
	}
	if (!granularity) {
		calls_refuse(m, STATUS_NOT_READY, "the store has no memory of that GPU: %s",
			s->memory ? "it does not see it" : s->memory_text);
		return UINT32_MAX;
	}
	return memory_for(s, m, bytes, granularity);
}

static uint32_t create(struct store *s, struct tensor_message *m, const struct calls_name *p)
{
	uint64_t bytes = tensor_shape_bytes(m->about.dtype, m->about.rank, m->about.shape);
	struct tensor_record *r;
	uint32_t i;

	if (strcmp(p->space, m->space)) {
		calls_refuse(m, STATUS_NOT_PERMITTED, "'%s/%.80s' is not of namespace '%s'",
			p->space, p->name, m->space);
		return UINT32_MAX;
	}
	if (m->about.flags & TENSOR_PACKED && m->about.flags & TENSOR_EVICTABLE) {
		calls_refuse(m, STATUS_INVALID_VALUE,
			"'%.80s': one that is packed cannot be evictable: its memory goes with "
			"others",
			p->name);
		return UINT32_MAX;
	}
	i = calls_memory(s, m, bytes);
	if (i == UINT32_MAX)
		return i;
	r = &s->table->records[i];
	memcpy(r->space, p->space, sizeof(r->space));
	memcpy(r->name, p->name, sizeof(r->name));
	r->flags = m->about.flags & (TENSOR_KEEP | TENSOR_EVICTABLE);
	if (r->piece)
		r->flags |= TENSOR_PACKED;
	r->dtype = m->about.dtype;
	r->rank = m->about.rank;
	memset(r->shape, 0, sizeof(r->shape));
	memcpy(r->shape, m->about.shape, m->about.rank * sizeof(r->shape[0]));
	r->bytes = bytes;
	r->owner = m->session;
	r->version = 1;
	r->ctime = r->mtime = calls_now();
	r->share[0] = 0;
	if (!store_table_hold(s, i, m->session, true)) {
		calls_refuse(
			m, STATUS_OUT_OF_MEMORY, "the store has its %u holders", TENSOR_HOLDS);
		r->state = TENSOR_POOLED;
		store_table_release(s, i);
		return UINT32_MAX;
	}
	store_table_name(s, i, TENSOR_CREATED);
	s->table->counters.created++;
	store_table_tell(s, r->gpu);
	return i;
}

/* One that is there, asked for by create too, must be what is asked for. */
static bool fits(struct tensor_message *m, const struct tensor_record *r)
{
	const struct tensor_about *want = &m->about;

	if (memcmp(r->gpu, m->gpu, 16) && !(want->flags & TENSOR_PEER)) {
		calls_refuse(m, STATUS_INVALID_DEVICE,
			"'%s/%.60s' is on GPU %02x%02x%02x%02x, not on %02x%02x%02x%02x",
			r->space, r->name, r->gpu[0], r->gpu[1], r->gpu[2], r->gpu[3],
			m->gpu[0], m->gpu[1], m->gpu[2], m->gpu[3]);
		return false;
	}
	if (!(want->flags & TENSOR_MAKE))
		return true;
	if (want->flags & TENSOR_NEW) {
		calls_refuse(m, STATUS_INVALID_VALUE, "there is a tensor '%s/%.80s' already",
			r->space, r->name);
		return false;
	}
	if (r->dtype != want->dtype || r->rank != want->rank ||
		memcmp(r->shape, want->shape, r->rank * sizeof(r->shape[0]))) {
		calls_refuse(m, STATUS_INVALID_VALUE,
			"'%s/%.80s' is there with another shape or dtype (%s)", r->space,
			r->name, tensor_dtype_name(r->dtype));
		return false;
	}
	return true;
}

/* What an unchanged program opens by cudaIpcOpenMemHandle is memory to it, which it writes. */
static uint32_t by_handle(struct store *s, struct tensor_message *m)
{
	uint32_t i = store_table_by_handle(s, m->name);
	const struct tensor_record *r = i == UINT32_MAX ? NULL : &s->table->records[i];

	if (!r || !calls_may_have(r, m)) {
		s->table->counters.misses++;
		calls_refuse(m, STATUS_INVALID_VALUE, "no tensor has that handle");
		return UINT32_MAX;
	}
	m->about.flags = TENSOR_BY_HANDLE | (r->state == TENSOR_CREATED ? TENSOR_WRITE : 0);
	return i;
}

/* UINT32_MAX: it is answered, with *FD where it was made. */
static uint32_t by_name(struct store *s, struct tensor_message *m, int *fd)
{
	struct calls_name p = {0};
	uint32_t i;

	if (!calls_parse_name(m, &p))
		return UINT32_MAX;
	i = store_table_find(s, p.space, p.name);
	if (i == UINT32_MAX && m->about.flags & TENSOR_MAKE) {
		i = create(s, m, &p);
		if (i == UINT32_MAX)
			return i;
		calls_tell(s, m, i);
		m->about.flags |= TENSOR_MADE | TENSOR_WRITABLE;
		*fd = s->fds[i];
		return UINT32_MAX;
	}
	i = calls_find(s, m, &p);
	s->table->counters.misses += i == UINT32_MAX;
	if (i != UINT32_MAX && memcmp(s->table->records[i].gpu, m->gpu, 16)) {
		uint32_t here = store_table_find_on(s, p.space, p.name, m->gpu);

		return here == UINT32_MAX ? i : here;
	}
	return i;
}

int calls_take(struct store *s, struct tensor_message *m)
{
	int fd = -1;
	uint32_t i = m->about.flags & TENSOR_BY_HANDLE ? by_handle(s, m) : by_name(s, m, &fd);
	uint32_t wants = m->about.flags;
	struct tensor_record *r;
	bool writes, peer;

	if (i == UINT32_MAX)
		return fd;
	r = &s->table->records[i];
	peer = memcmp(r->gpu, m->gpu, sizeof(m->gpu)) != 0;
	/* The store that made it died before it said so. */
	if (m->again && wants & TENSOR_MAKE && r->owner == m->session)
		m->about.flags &= ~TENSOR_NEW;
	if (!fits(m, r))
		return -1;
	writes = r->state == TENSOR_CREATED && (wants & TENSOR_WRITE || r->owner == m->session);
	if (wants & TENSOR_WRITE && r->state == TENSOR_SEALED)
		return calls_refuse(m, STATUS_NOT_PERMITTED,
			"'%s/%.80s' is sealed: nobody writes it", r->space, r->name);
	if (wants & TENSOR_WRITE && r->piece && r->owner != m->session) {
		if (!(wants & TENSOR_BY_HANDLE))
			return calls_refuse(m, STATUS_NOT_PERMITTED,
				"'%s/%.60s' is packed: its owner alone writes it", r->space,
				r->name);
		writes = false;
	}
	if (!store_table_hold(s, i, m->session, writes))
		return calls_refuse(
			m, STATUS_OUT_OF_MEMORY, "the store has its %u holders", TENSOR_HOLDS);
	s->table->counters.hits++;
	calls_tell(s, m, i);
	if (peer)
		m->about.flags |= TENSOR_PEER;
	if (writes)
		m->about.flags |= TENSOR_WRITABLE;
	if (m->again && wants & TENSOR_MAKE && r->owner == m->session &&
		r->state == TENSOR_CREATED)
		m->about.flags |= TENSOR_MADE;
	return s->fds[i];
}
