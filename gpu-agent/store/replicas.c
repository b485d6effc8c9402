/* SPDX-License-Identifier: Apache-2.0
 *
 * See replicas.h.
 */
#include "gpu-agent/store/replicas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/log.h"
#include "gpu-agent/store/calls_core.h"
#include "gpu-agent/store/index_core.h"

struct replica_wait {
	struct replica_wait *next;
	struct tensor_message message; /* as it was asked */
};

struct replica {
	struct replica *next;
	uint64_t number;
	uint8_t id[16]; /* of the record that it fills */
	uint8_t ticket[16];
	uint8_t source[16]; /* of the record on another GPU that it is a copy of; 0: it is not
			     */
	bool local;
	char name[TENSOR_SPACE + TENSOR_NAME], node[REGISTRY_NODE + 1];
	struct replica_wait *waits;
};

/* What the registry is asked: the copy may be no more when it answers. */
struct replica_ask {
	struct store *store;
	uint64_t number;
};

bool replicas_may_have(const char *space, const struct registry_tensor *t)
{
	char own[REGISTRY_NAMESPACE + 1];
	size_t n = strlen(space);

	registry_namespace(own, t->name);
	if (!strcmp(own, space))
		return true;
	if (t->state != REGISTRY_SEALED)
		return false;
	for (const char *at = t->share; strchr(at, ','); at = strchr(at, ',') + 1)
		if (!strncmp(at, "*,", 2) || (!strncmp(at, space, n) && at[n] == ','))
			return true;
	return false;
}

/* ---- those under way ---- */

static struct replica *numbered(const struct store *s, uint64_t number)
{
	struct replica *r = s->replicas;

	while (r && r->number != number)
		r = r->next;
	return r;
}

static struct tensor_record *record_of(const struct store *s, const struct replica *r)
{
	uint32_t i = store_table_by_id(s, r->id);

	return i == UINT32_MAX ? NULL : &s->table->records[i];
}

static struct replica *under_way(const struct store *s, const char *name, const uint8_t gpu[16])
{
	for (struct replica *r = s->replicas; r; r = r->next) {
		const struct tensor_record *record = record_of(s, r);

		if (!strcmp(r->name, name) && record && !memcmp(record->gpu, gpu, 16))
			return r;
	}
	return NULL;
}

static void refuse(
	struct store *s, const struct tensor_message *asked, uint32_t status, const char *text)
{
	struct tensor_message told = *asked;

	calls_refuse(&told, status, "%s", text);
	s->table->counters.refused++;
	store_say(s, &told, -1);
}

/* Takes it out of the list; its waits stay. */
static void unlink_one(struct store *s, struct replica *r)
{
	struct replica **at = &s->replicas;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
}

static void drop_memory(struct store *s, const struct replica *r)
{
	uint32_t i = store_table_by_id(s, r->id);

	/* Not to the pool: a worker may have it mapped yet. */
	if (i != UINT32_MAX && s->table->records[i].state == TENSOR_COPYING)
		store_table_release(s, i);
}

static void fail(struct store *s, struct replica *r, uint32_t status, const char *text)
{
	char said[TENSOR_TEXT];

	snprintf(said, sizeof(said), "'%.48s' of agent %.20s: %.72s", r->name, r->node, text);
	log_warn("replica.failed", "name=\"%s\" agent=%s status=%u text=\"%s\"", r->name,
		r->node, status, text);
	unlink_one(s, r);
	drop_memory(s, r);
	for (struct replica_wait *w = r->waits, *next; w; w = next) {
		next = w->next;
		refuse(s, &w->message, status, said);
		free(w);
	}
	free(r);
}

void replicas_front_gone(struct store *s)
{
	while (s->replicas) {
		struct replica *r = s->replicas;

		unlink_one(s, r);
		drop_memory(s, r);
		for (struct replica_wait *w = r->waits, *next; w; w = next) {
			next = w->next;
			free(w);
		}
		free(r);
	}
}

void replicas_session_over(struct store *s, uint64_t session)
{
	for (struct replica *r = s->replicas; r; r = r->next) {
		struct replica_wait **at = &r->waits;

		while (*at) {
			struct replica_wait *w = *at;

			if (w->message.session != session) {
				at = &w->next;
				continue;
			}
			*at = w->next;
			free(w);
		}
	}
}

/* ---- the way of one: ticket, copy, index ---- */

static struct replica_ask *ask(struct store *s, const struct replica *r)
{
	struct replica_ask *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->store = s;
	a->number = r->number;
	return a;
}

static struct replica *asked(void *argument, struct store **s)
{
	struct replica_ask *a = argument;
	struct replica *r = numbered(a->store, a->number);

	*s = a->store;
	free(a);
	return r;
}

static void fail_as(struct store *s, struct replica *r, const struct registry_result *result)
{
	fail(s, r, result->status == REGISTRY_AWAY ? TENSOR_NOT_READY : TENSOR_NOT_FOUND,
		result->text[0] ? result->text : "it was deleted meanwhile");
}

/* It has a name here, and who waited asks anew. */
static void finish(struct store *s, struct replica *r, uint32_t i)
{
	const struct tensor_record *record = &s->table->records[i];

	unlink_one(s, r);
	/* One that came in another way is as good. */
	if (store_table_find_on(s, record->space, record->name, record->gpu) != UINT32_MAX)
		drop_memory(s, r);
	else
		store_table_name(s, i, TENSOR_SEALED);
	log_info("replica.made", "name=\"%s\" agent=%s bytes=%llu", r->name, r->node,
		(unsigned long long)s->table->records[i].bytes);
	for (struct replica_wait *w = r->waits, *next; w; w = next) {
		next = w->next;
		store_hear(s, &w->message);
		free(w);
	}
	free(r);
}

/* Redis agrees. */
static void replicated(void *argument, const struct registry_result *result)
{
	struct store *s;
	struct replica *r = asked(argument, &s);
	uint32_t i = r ? store_table_by_id(s, r->id) : UINT32_MAX;

	if (!r)
		return;
	if (result->status != REGISTRY_OK || i == UINT32_MAX)
		fail_as(s, r, result);
	else
		finish(s, r, i);
}

/* What it is a copy of still has its name. */
static void finish_local(struct store *s, struct replica *r)
{
	uint32_t i = store_table_by_id(s, r->id), from = store_table_by_id(s, r->source);

	if (i == UINT32_MAX || from == UINT32_MAX ||
		s->table->records[from].state != TENSOR_SEALED)
		fail(s, r, TENSOR_NOT_FOUND, "it was deleted meanwhile");
	else
		finish(s, r, i);
}

void replicas_copied(struct store *s, const struct tensor_message *m)
{
	struct replica *r = numbered(s, m->tag);
	const struct tensor_record *record = r ? record_of(s, r) : NULL;
	struct registry_tensor t;
	struct replica_ask *a;

	if (!r)
		return;
	if (m->status || !record) {
		fail(s, r, m->status ? m->status : TENSOR_NOT_FOUND, m->text);
		return;
	}
	if (r->local) {
		finish_local(s, r);
		return;
	}
	a = ask(s, r);
	if (!a) {
		fail(s, r, TENSOR_OUT_OF_MEMORY, "the store has no memory for the question");
		return;
	}
	index_about(record, &t, s);
	t.state = REGISTRY_SEALED;
	registry_replica(s->registry, &t, replicated, a);
}

/* The bytes that the ticket is for must be those that there is memory for. */
static const char *unlike(const struct tensor_record *record, const struct registry_tensor *t)
{
	if (t->state != REGISTRY_SEALED || t->bytes != record->bytes ||
		(uint64_t)t->ctime != record->ctime)
		return "it was made anew meanwhile; try again";
	return t->address[0] ? NULL : "the agent has not said where it is";
}

static void ticketed(void *argument, const struct registry_result *result)
{
	struct tensor_message copy = {.version = TENSOR_VERSION, .what = TENSOR_COPY};
	struct store *s;
	struct replica *r = asked(argument, &s);
	uint32_t i = r ? store_table_by_id(s, r->id) : UINT32_MAX;
	struct tensor_record *record;
	const char *why;

	if (!r)
		return;
	if (result->status != REGISTRY_OK || !result->tensor || i == UINT32_MAX) {
		fail_as(s, r, result);
		return;
	}
	record = &s->table->records[i];
	why = unlike(record, result->tensor);
	if (why) {
		fail(s, r, TENSOR_NOT_READY, why);
		return;
	}
	snprintf(r->node, sizeof(r->node), "%s", result->tensor->node);
	copy.tag = r->number;
	memcpy(copy.id, r->ticket, sizeof(copy.id));
	memcpy(copy.gpu, record->gpu, sizeof(copy.gpu));
	snprintf(copy.name, sizeof(copy.name), "%s", r->name);
	snprintf(copy.text, sizeof(copy.text), "%.159s", result->tensor->address);
	copy.about.bytes = record->bytes;
	copy.about.room = record->room;
	store_say(s, &copy, s->fds[i]);
}

/* ---- who asks ---- */

static bool wait_for(struct store *s, struct replica *r, const struct tensor_message *asked)
{
	struct tensor_message later = *asked;
	struct replica_wait *w = calloc(1, sizeof(*w));

	if (!w)
		return false;
	w->message = *asked;
	w->next = r->waits;
	r->waits = w;
	later.what = TENSOR_LATER;
	store_say(s, &later, -1);
	return true;
}

static uint32_t dtype_of(const char *name)
{
	uint32_t dtype = 1;

	while (dtype < TENSOR_DTYPES && strcmp(tensor_dtype_name(dtype), name))
		dtype++;
	return dtype;
}

/* The record, as the first has it. */
static void describe(struct tensor_record *record, const struct tensor_message *m,
	const struct registry_tensor *t)
{
	record->flags = TENSOR_REPLICA | TENSOR_EVICTABLE;
	memcpy(record->space, m->space, sizeof(record->space));
	snprintf(record->name, sizeof(record->name), "%.263s", m->name);
	record->dtype = m->about.dtype;
	record->rank = t->dimensions;
	memset(record->shape, 0, sizeof(record->shape));
	for (uint32_t i = 0; i < t->dimensions; i++)
		record->shape[i] = (int64_t)t->shape[i];
	record->bytes = t->bytes;
	record->owner = 0;
	record->version = t->version;
	record->ctime = (uint64_t)t->ctime;
	record->mtime = (uint64_t)t->mtime;
	snprintf(record->share, sizeof(record->share), "%s", t->share);
}

/* A copy of T, in the account of its namespace, on the GPU that ASKED is for. NULL: *ASKED says
 * why not. */
static struct replica *begin(
	struct store *s, struct tensor_message *asked, const struct registry_tensor *t)
{
	struct tensor_message m = *asked;
	const char *slash = strchr(t->name, '/');
	struct replica_ask *a = NULL;
	struct replica *r = calloc(1, sizeof(*r));
	char digits[REGISTRY_TICKET];
	uint32_t i;

	m.status = 0;
	m.about.flags = 0;
	m.about.dtype = dtype_of(t->dtype);
	registry_namespace(m.space, t->name);
	snprintf(m.name, sizeof(m.name), "%s", slash ? slash + 1 : t->name);
	if (r && getrandom(r->ticket, sizeof(r->ticket), 0) == sizeof(r->ticket)) {
		r->number = ++s->replica_numbers;
		a = ask(s, r);
	}
	i = !a ? UINT32_MAX : calls_memory(s, &m, t->dimensions <= TENSOR_RANK ? t->bytes : 0);
	if (i == UINT32_MAX) {
		calls_refuse(asked, m.status ? m.status : TENSOR_OUT_OF_MEMORY, "%s",
			m.status ? m.text : "the store has no memory for a copy");
		free(a);
		free(r);
		return NULL;
	}
	describe(&s->table->records[i], &m, t);
	__atomic_store_n(&s->table->records[i].state, TENSOR_COPYING, __ATOMIC_RELEASE);
	store_table_tell(s, s->table->records[i].gpu);
	memcpy(r->id, s->table->records[i].id, sizeof(r->id));
	snprintf(r->name, sizeof(r->name), "%s", t->name);
	snprintf(r->node, sizeof(r->node), "%s", t->node);
	for (unsigned k = 0; k < sizeof(r->ticket); k++)
		snprintf(digits + 2 * k, 3, "%02x", r->ticket[k]);
	r->next = s->replicas;
	s->replicas = r;
	registry_ticket(s->registry, t->name, digits, asked->space, ticketed, a);
	return r;
}

/* It is here by now, or has been shared with the session's namespace since it came. */
static bool is_here(
	struct store *s, const struct tensor_message *m, const struct registry_tensor *t)
{
	char space[REGISTRY_NAMESPACE + 1];
	const char *slash = strchr(t->name, '/');
	struct tensor_record *record;
	uint32_t i;

	registry_namespace(space, t->name);
	i = store_table_find(s, space, slash ? slash + 1 : t->name);
	record = i == UINT32_MAX ? NULL : &s->table->records[i];
	if (!record || !(record->flags & TENSOR_REPLICA) || record->ctime != (uint64_t)t->ctime)
		return false;
	snprintf(record->share, sizeof(record->share), "%s", t->share);
	return calls_may_have(record, m);
}

void replicas_get(
	struct store *s, const struct tensor_message *m, const struct registry_tensor *t)
{
	struct tensor_message told = *m;
	struct replica *r;
	char gpu[48];

	if (!replicas_may_have(m->space, t)) {
		calls_refuse(&told, TENSOR_NOT_FOUND, "there is no tensor '%.120s'", m->name);
	} else if (t->state != REGISTRY_SEALED) {
		index_gpu_text(gpu, m->gpu);
		calls_refuse(&told, TENSOR_INVALID_DEVICE,
			"'%.20s', not sealed, is on %.40s of agent %.20s, not on %.40s",
			t->name, t->gpu_uuid, t->node, gpu);
	} else if (m->about.flags & TENSOR_WRITE) {
		calls_refuse(&told, TENSOR_NOT_PERMITTED,
			"'%.100s' is sealed: nobody writes it", t->name);
	} else if (is_here(s, m, t)) {
		store_hear(s, m);
		return;
	} else {
		r = under_way(s, t->name, m->gpu);
		if (!r)
			r = begin(s, &told, t);
		if (r && wait_for(s, r, m))
			return;
		if (r)
			calls_refuse(&told, TENSOR_OUT_OF_MEMORY,
				"the store has no memory for the question");
	}
	s->table->counters.refused++;
	store_say(s, &told, -1);
}

/* ---- another GPU of this agent ---- */

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
		calls_refuse(asked, m.status ? m.status : TENSOR_OUT_OF_MEMORY, "%s",
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
	return numbered(s, s->replica_numbers); /* the front may be gone by now */
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
	r = under_way(s, name, m->gpu);
	if (!r)
		r = begin_local(s, &told, i);
	if (r && wait_for(s, r, m))
		return true;
	if (!r && !told.status)
		return true; /* there is no front that could be told */
	s->table->counters.refused++;
	store_say(s, &told, -1);
	return true;
}

/* ---- the agent that has it ---- */

struct redeem {
	struct store *store;
	struct tensor_message message;
};

/* The index says what the ticket was for; the table, whether that may be had. */
static void redeemed(void *argument, const struct registry_result *result)
{
	struct redeem *a = argument;
	struct store *s = a->store;
	struct tensor_message *m = &a->message;
	const struct registry_tensor *t = result->tensor;
	uint32_t i = UINT32_MAX;

	if (result->status == REGISTRY_OK && t) {
		char space[REGISTRY_NAMESPACE + 1];
		const char *slash = strchr(t->name, '/');

		registry_namespace(space, t->name);
		snprintf(m->space, sizeof(m->space), "%s", t->for_space);
		i = store_table_find(s, space, slash ? slash + 1 : t->name);
		if (i != UINT32_MAX && (s->table->records[i].state != TENSOR_SEALED ||
					       !calls_may_have(&s->table->records[i], m)))
			i = UINT32_MAX;
	}
	if (i == UINT32_MAX) {
		calls_refuse(m,
			result->status == REGISTRY_AWAY ? TENSOR_NOT_READY
							: TENSOR_NOT_PERMITTED,
			result->status == REGISTRY_AWAY
				? "the agent's Redis is away"
				: "the ticket is for nothing that this agent has");
	} else {
		m->status = 0;
		calls_tell(s, m, i);
		snprintf(m->text, sizeof(m->text), "%s", t->by);
	}
	store_say(s, m, i == UINT32_MAX ? -1 : s->fds[i]);
	free(a);
}

void replicas_redeem(struct store *s, const struct tensor_message *m)
{
	struct redeem *a = s->registry ? calloc(1, sizeof(*a)) : NULL;
	struct tensor_message told = *m;
	char digits[REGISTRY_TICKET];

	if (!a) {
		calls_refuse(&told, TENSOR_NOT_PERMITTED,
			"this agent has no index of tensors (store.registry)");
		store_say(s, &told, -1);
		return;
	}
	a->store = s;
	a->message = *m;
	for (unsigned k = 0; k < sizeof(m->id); k++)
		snprintf(digits + 2 * k, 3, "%02x", m->id[k]);
	registry_redeem(s->registry, digits, redeemed, a);
}

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
		const struct tensor_record *record = record_of(s, r);

		next = r->next;
		if (record && !memcmp(record->gpu, m->gpu, sizeof(m->gpu)))
			fail(s, r, TENSOR_NOT_READY, m->text);
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
