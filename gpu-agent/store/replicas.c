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
#include "gpu-agent/store/replicas_core.h"

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

struct replica *replicas_numbered(const struct store *s, uint64_t number)
{
	struct replica *r = s->replicas;

	while (r && r->number != number)
		r = r->next;
	return r;
}

struct tensor_record *replicas_record(const struct store *s, const struct replica *r)
{
	uint32_t i = store_table_by_id(s, r->id);

	return i == UINT32_MAX ? NULL : &s->table->records[i];
}

struct replica *replicas_under_way(
	const struct store *s, const char *name, const uint8_t gpu[16])
{
	for (struct replica *r = s->replicas; r; r = r->next) {
		const struct tensor_record *record = replicas_record(s, r);

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
	index_refuse(s, &told);
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

void replicas_fail(struct store *s, struct replica *r, uint32_t status, const char *text)
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
	struct replica *r = replicas_numbered(a->store, a->number);

	*s = a->store;
	free(a);
	return r;
}

static void fail_as(struct store *s, struct replica *r, const struct registry_result *result)
{
	replicas_fail(s, r,
		result->status == REGISTRY_AWAY ? STATUS_NOT_READY : STATUS_NOT_FOUND,
		result->text[0] ? result->text : "it was deleted meanwhile");
}

void replicas_finish(struct store *s, struct replica *r, uint32_t i)
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
		replicas_finish(s, r, i);
}

void replicas_copied(struct store *s, const struct tensor_message *m)
{
	struct replica *r = replicas_numbered(s, m->tag);
	const struct tensor_record *record = r ? replicas_record(s, r) : NULL;
	struct registry_tensor t;
	struct replica_ask *a;

	if (!r)
		return;
	if (m->status || !record) {
		replicas_fail(s, r, m->status ? m->status : STATUS_NOT_FOUND, m->text);
		return;
	}
	if (r->local) {
		replicas_finish_local(s, r);
		return;
	}
	a = ask(s, r);
	if (!a) {
		replicas_fail(
			s, r, STATUS_OUT_OF_MEMORY, "the store has no memory for the question");
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
		replicas_fail(s, r, STATUS_NOT_READY, why);
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

bool replicas_wait(struct store *s, struct replica *r, const struct tensor_message *asked)
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
		calls_refuse(asked, m.status ? m.status : STATUS_OUT_OF_MEMORY, "%s",
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
		calls_refuse(&told, STATUS_NOT_FOUND, "there is no tensor '%.120s'", m->name);
	} else if (t->state != REGISTRY_SEALED) {
		index_gpu_text(gpu, m->gpu);
		calls_refuse(&told, STATUS_INVALID_DEVICE,
			"'%.20s', not sealed, is on %.40s of agent %.20s, not on %.40s",
			t->name, t->gpu_uuid, t->node, gpu);
	} else if (m->about.flags & TENSOR_WRITE) {
		calls_refuse(&told, STATUS_NOT_PERMITTED,
			"'%.100s' is sealed: nobody writes it", t->name);
	} else if (is_here(s, m, t)) {
		store_hear(s, m);
		return;
	} else {
		r = replicas_under_way(s, t->name, m->gpu);
		if (!r)
			r = begin(s, &told, t);
		if (r && replicas_wait(s, r, m))
			return;
		if (r)
			calls_refuse(&told, STATUS_OUT_OF_MEMORY,
				"the store has no memory for the question");
	}
	index_refuse(s, &told);
}
