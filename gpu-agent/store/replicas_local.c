/* SPDX-License-Identifier: Apache-2.0
 *
 * Replicas and the GPUs of this agent: what one GPU has is copied to another, whose replica
 * takes its place when the first falls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "gpu-agent/store/calls_core.h"
#include "gpu-agent/store/index_core.h"
#include "gpu-agent/store/replicas_core.h"

static void say_local(struct store *s, const struct replica *r, uint32_t i, uint32_t from)
{
	const struct tensor_record *record = &s->table->records[i];
	struct tensor_message copy = {
		.version = TENSOR_VERSION, .what = TENSOR_COPY, .tag = r->number};

	memcpy(copy.gpu, record->gpu, sizeof(copy.gpu));
	snprintf(copy.name, sizeof(copy.name), "%s", r->name);
	copy.about.bytes = record->bytes;
	copy.about.room = record->room;
	store_say(s, &copy, s->fds[i]);
	record = &s->table->records[from];
	copy.what = TENSOR_SOURCE;
	memcpy(copy.gpu, record->gpu, sizeof(copy.gpu));
	copy.about.room = record->room;
	copy.about.offset = record->offset;
	store_say(s, &copy, s->fds[from]);
}

/* NULL: *ASKED says why not. */
static struct replica *begin_local(struct store *s, struct tensor_message *asked, uint32_t from)
{
	const struct tensor_record source = s->table->records[from];
	struct tensor_message m = *asked;
	struct replica *r = calloc(1, sizeof(*r));
	struct tensor_record *record;
	uint32_t i;

	m.status = 0;
	m.about.flags = 0;
	memcpy(m.space, source.space, sizeof(m.space));
	i = r ? calls_memory(s, &m, source.bytes) : UINT32_MAX;
	/* Making room may have evicted it. */
	if (i != UINT32_MAX &&
		memcmp(s->table->records[from].id, source.id, sizeof(source.id))) {
		store_table_release(s, i);
		i = UINT32_MAX;
	}
	if (i == UINT32_MAX) {
		calls_refuse(asked, m.status ? m.status : STATUS_OUT_OF_MEMORY, "%s",
			m.status ? m.text : "the store has no memory for a copy");
		free(r);
		return NULL;
	}
	record = &s->table->records[i];
	record->flags = TENSOR_REPLICA | TENSOR_LOCAL | TENSOR_EVICTABLE;
	memcpy(record->space, source.space, sizeof(record->space));
	memcpy(record->name, source.name, sizeof(record->name));
	record->dtype = source.dtype;
	record->rank = source.rank;
	memcpy(record->shape, source.shape, sizeof(record->shape));
	record->bytes = source.bytes;
	record->owner = 0;
	record->version = source.version;
	record->ctime = source.ctime;
	record->mtime = source.mtime;
	memcpy(record->share, source.share, sizeof(record->share));
	__atomic_store_n(&record->state, TENSOR_COPYING, __ATOMIC_RELEASE);
	store_table_tell(s, record->gpu);
	r->local = true;
	r->number = ++s->replica_numbers;
	memcpy(r->id, record->id, sizeof(r->id));
	memcpy(r->source, source.id, sizeof(r->source));
	snprintf(r->name, sizeof(r->name), "%s/%s", source.space, source.name);
	snprintf(r->node, sizeof(r->node), "(another GPU)");
	r->next = s->replicas;
	s->replicas = r;
	say_local(s, r, i, from);
	return replicas_numbered(s, s->replica_numbers); /* the front may be gone by now */
}

bool replicas_local(struct store *s, const struct tensor_message *m)
{
	struct tensor_message told = *m;
	struct calls_name p = {0};
	char name[TENSOR_SPACE + TENSOR_NAME];
	struct replica *r;
	uint32_t i;

	if (m->what != TENSOR_TAKE ||
		m->about.flags & (TENSOR_BY_HANDLE | TENSOR_WRITE | TENSOR_NEW) ||
		!calls_parse_name(&told, &p))
		return false;
	i = store_table_find(s, p.space, p.name);
	if (i == UINT32_MAX || !calls_may_have(&s->table->records[i], m) ||
		s->table->records[i].state != TENSOR_SEALED ||
		!memcmp(s->table->records[i].gpu, m->gpu, sizeof(m->gpu)))
		return false;
	snprintf(name, sizeof(name), "%s/%s", p.space, p.name);
	r = replicas_under_way(s, name, m->gpu);
	if (!r)
		r = begin_local(s, &told, i);
	if (r && replicas_wait(s, r, m))
		return true;
	if (!r && !told.status)
		return true; /* there is no front that could be told */
	index_refuse(s, &told);
	return true;
}

void replicas_finish_local(struct store *s, struct replica *r)
{
	uint32_t i = store_table_by_id(s, r->id), from = store_table_by_id(s, r->source);

	if (i == UINT32_MAX || from == UINT32_MAX ||
		s->table->records[from].state != TENSOR_SEALED)
		replicas_fail(s, r, STATUS_NOT_FOUND, "it was deleted meanwhile");
	else
		replicas_finish(s, r, i);
}

/* ---- the card ---- */

/* ---- the card ---- */

/* A replica on another GPU of this agent takes the place of what lay on one that fell. */
static bool moved(struct store *s, uint32_t from)
{
	struct tensor_record *old = &s->table->records[from];

	if (old->flags & TENSOR_LOCAL)
		return false;
	for (uint32_t i = 0; i < s->table->count; i++) {
		struct tensor_record *record = &s->table->records[i];

		if (!index_has_name(record) || !(record->flags & TENSOR_LOCAL) ||
			!memcmp(record->gpu, old->gpu, sizeof(old->gpu)) ||
			strcmp(record->space, old->space) || strcmp(record->name, old->name))
			continue;
		record->flags = (record->flags & ~(TENSOR_LOCAL | TENSOR_REPLICA)) |
				(old->flags & TENSOR_REPLICA);
		old->flags |= TENSOR_LOCAL;
		store_table_unname(s, from);
		index_moved(s, i);
		return true;
	}
	return false;
}

void replicas_fell(struct store *s, const struct tensor_message *m)
{
	uint32_t lost = 0;

	for (struct replica *r = s->replicas, *next; r; r = next) {
		const struct tensor_record *record = replicas_record(s, r);

		next = r->next;
		if (record && !memcmp(record->gpu, m->gpu, sizeof(m->gpu)))
			replicas_fail(s, r, STATUS_NOT_READY, m->text);
	}
	for (uint32_t i = 0; i < s->table->count; i++) {
		const struct tensor_record *record = &s->table->records[i];

		if (memcmp(record->gpu, m->gpu, sizeof(m->gpu)))
			continue;
		if (record->state == TENSOR_POOLED)
			store_table_release(s, i);
		if (!index_has_name(record) || moved(s, i))
			continue;
		index_lost(s, i, m->text);
		s->table->counters.lost++;
		lost++;
	}
	if (lost)
		log_error("tensors.lost", "tensors=%u text=\"%s\"", lost, m->text);
}
