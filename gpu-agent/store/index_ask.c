/* SPDX-License-Identifier: Apache-2.0
 *
 * What sessions, and commands of Redis' lists, ask of store and index together, see index.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/store/calls_core.h"
#include "gpu-agent/store/index_core.h"
#include "gpu-agent/store/index_holder.h"
#include "gpu-agent/store/registry/registry.h"
#include "gpu-agent/store/replicas.h"

/* What the index was asked, for a session or for a command. */
struct asked {
	struct store *store;
	bool command; /* of Redis' lists; else MESSAGE is to be answered */
	bool is_new;  /* the session did not hold it before */
	enum registry_op op;
	uint64_t ticket;
	uint8_t id[16];
	struct tensor_message message;
	struct tensor_message asked; /* of a session, as the front said it */
};

/* ---- what sessions ask ---- */

bool index_allows(const struct store *s, struct tensor_message *m)
{
	char name[REGISTRY_NAME + 1];
	struct error error;
	const char *slash = strchr(m->name, '/');

	if (!s->registry || m->what != TENSOR_TAKE || !(m->about.flags & TENSOR_MAKE) ||
		slash || index_full_name(name, m->space, m->name, &error))
		return true;
	m->status = STATUS_INVALID_VALUE;
	snprintf(m->text, sizeof(m->text), "%.150s", error.text);
	return false;
}

static uint32_t status_of(enum registry_status status)
{
	switch (status) {
	case REGISTRY_AWAY: return STATUS_NOT_READY;
	case REGISTRY_MISSING: return STATUS_NOT_FOUND;
	case REGISTRY_ELSEWHERE: return STATUS_INVALID_DEVICE;
	default: return STATUS_INVALID_VALUE;
	}
}

static void answer(struct asked *a, const struct registry_result *result, uint32_t i)
{
	struct tensor_message *m = &a->message;
	struct store *s = a->store;

	if (a->command) {
		registry_answer(s->registry, a->ticket, result);
		return;
	}
	if (result->status > REGISTRY_HERE || i == UINT32_MAX) {
		m->status = result->status > REGISTRY_HERE ? status_of(result->status)
							   : STATUS_NOT_FOUND;
		snprintf(m->text, sizeof(m->text), "%.150s",
			result->text[0] ? result->text : "the tensor was deleted meanwhile");
	}
	/* Sealed meanwhile, which the session was told before it had it. */
	if (!m->status && index_record(s, i)->state != TENSOR_CREATED)
		m->about.flags &= ~TENSOR_WRITABLE;
	if (m->status)
		index_refuse(s, m);
	else
		store_say(s, m, s->fds[i]);
}

/* What another agent has is copied; and a replica that is of nothing any more is none. True:
 * the question is answered by that. */
static bool elsewhere(struct asked *a, const struct registry_result *result, uint32_t i)
{
	struct store *s = a->store;
	const bool copy = i != UINT32_MAX && index_record(s, i)->flags & TENSOR_REPLICA;

	if (copy && result->status == REGISTRY_OK && result->tensor &&
		!strcmp(result->tensor->node, s->node))
		s->table->records[i].flags &= ~TENSOR_REPLICA;
	if (copy &&
		(result->status == REGISTRY_ELSEWHERE || result->status == REGISTRY_MISSING)) {
		index_forget(s, i);
		store_hear(s, &a->asked);
		return true;
	}
	if (result->status != REGISTRY_ELSEWHERE || a->asked.about.flags & TENSOR_NEW)
		return false;
	replicas_get(s, &a->asked, result->tensor);
	return true;
}

/* Redis has answered what a take or create asked. */
static void agreed(void *argument, const struct registry_result *result)
{
	struct asked *a = argument;
	struct store *s = a->store;
	uint64_t session = a->message.session;
	uint32_t i = store_table_by_id(s, a->id);

	if (result->status > REGISTRY_HERE) {
		if (i != UINT32_MAX && a->is_new)
			store_table_drop(s, i, session);
	} else if (i != UINT32_MAX && !store_table_holds(s, i, session)) {
		/* It ended meanwhile, and a filling may have come between. */
		index_dropped(s, i, session);
	}
	if (a->command || !elsewhere(a, result, i))
		answer(a, result, i);
	free(a);
}

/* Nothing here has the name; another agent may. */
static void looked(void *argument, const struct registry_result *result)
{
	struct asked *a = argument;
	const struct registry_result missing = {REGISTRY_MISSING, NULL, a->message.text};
	const bool secret =
		result->status != REGISTRY_AWAY && strchr(a->asked.name, '/') &&
		(!result->tensor || !replicas_may_have(a->asked.space, result->tensor));

	if (result->status == REGISTRY_ELSEWHERE && !secret)
		replicas_get(a->store, &a->asked, result->tensor);
	else /* Here it would be in the table. */
		answer(a, result->status == REGISTRY_OK || secret ? &missing : result,
			UINT32_MAX);
	free(a);
}

/* Whether what was a replica has become the first, which nobody has told yet. */
static void looked_whose(void *argument, const struct registry_result *result)
{
	struct asked *a = argument;

	if (result->status == REGISTRY_OK && result->tensor) {
		index_first(a->store, result->tensor->name, false);
		store_hear(a->store, &a->asked);
	} else {
		index_refuse(a->store, &a->message);
	}
	free(a);
}

/* NULL: there is no memory for it. */
static struct asked *ask(struct store *s, const struct tensor_message *m)
{
	struct asked *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->store = s;
	a->message = *m;
	memcpy(a->id, m->id, sizeof(a->id));
	return a;
}

/* The table has taken it for the session; Redis is asked for the name. */
static void ask_take(struct store *s, struct asked *a, uint32_t i, bool made)
{
	char holder[REGISTRY_HOLDER + 1];
	struct registry_tensor tensor;

	index_about(index_record(s, i), &tensor, s);
	index_holder_text(holder, a->message.session);
	if (made)
		registry_create(s->registry, &tensor, holder, agreed, a);
	else
		registry_take(s->registry, tensor.name, holder, agreed, a);
}

static bool name_of(const struct tensor_message *m, char name[REGISTRY_NAME + 1])
{
	struct tensor_message parsed = *m;
	struct calls_name p = {0};
	struct error error;

	return calls_parse_name(&parsed, &p) && index_full_name(name, p.space, p.name, &error);
}

/* Redis has the change, or is away and hears of it when the index is filled. */
static void recorded(void *argument, const struct registry_result *result)
{
	struct asked *a = argument;

	(void)result;
	store_say(a->store, &a->message, -1);
	free(a);
}

/* True: it is answered once Redis has it. Who asks another agent next is to find it sealed, and
 * shared with him. */
static bool changed(struct store *s, const struct tensor_message *m)
{
	struct registry_tensor tensor;
	uint32_t i = store_table_by_id(s, m->id);
	struct asked *a;

	if (i == UINT32_MAX || !index_has_name(index_record(s, i)))
		return false;
	a = m->what == TENSOR_TOUCH ? NULL : ask(s, m);
	index_about(index_record(s, i), &tensor, s);
	registry_update(s->registry, &tensor, a ? recorded : NULL, a);
	return a != NULL;
}

/* What the table has taken for the session, it drops again. */
static void no_memory(struct store *s, const struct tensor_message *m, uint32_t i, bool is_new)
{
	struct tensor_message told = *m;

	if (i != UINT32_MAX && is_new)
		store_table_drop(s, i, m->session);
	told.status = STATUS_OUT_OF_MEMORY;
	snprintf(told.text, sizeof(told.text), "the store has no memory for the question");
	index_refuse(s, &told);
}

void index_say(struct store *s, const struct tensor_message *asked,
	const struct tensor_message *m, int fd, uint32_t holds)
{
	char name[REGISTRY_NAME + 1];
	struct asked *a;
	uint32_t i;

	if (s->registry && m->what == TENSOR_TAKE && !m->status &&
		(i = store_table_by_id(s, m->id)) != UINT32_MAX &&
		!(index_record(s, i)->flags & TENSOR_LOCAL)) {
		a = ask(s, m);
		if (!a) {
			no_memory(s, m, i, s->table->hold_count > holds);
			return;
		}
		a->asked = *asked;
		a->is_new = s->table->hold_count > holds;
		ask_take(s, a, i, m->about.flags & TENSOR_MADE);
		return;
	}
	if (s->registry && m->what == TENSOR_TAKE && m->status == STATUS_NOT_FOUND &&
		name_of(m, name)) {
		a = ask(s, m);
		if (!a) {
			no_memory(s, m, UINT32_MAX, false);
			return;
		}
		a->asked = *asked;
		registry_take(s->registry, name, "", looked, a);
		return;
	}
	if (s->registry && m->what != TENSOR_TAKE && m->status == STATUS_INVALID_DEVICE &&
		name_of(m, name) && (a = ask(s, m))) {
		a->asked = *asked;
		registry_take(s->registry, name, "", looked_whose, a);
		return;
	}
	if (s->registry && !m->status &&
		(m->what == TENSOR_SEAL || m->what == TENSOR_TOUCH ||
			m->what == TENSOR_SHARE) &&
		changed(s, m))
		return;
	if (m->status)
		index_refuse(s, m);
	else
		store_say(s, m, fd);
}

/* ---- what Redis' commands ask ---- */

static void refuse_command(struct store *s, uint64_t ticket, const char *text)
{
	const struct registry_result result = {REGISTRY_BAD, NULL, text};

	registry_answer(s->registry, ticket, &result);
}

static void command_create(struct store *s, struct asked *a, const struct registry_tensor *t)
{
	struct tensor_message *m = &a->message;
	const char *slash = strchr(t->name, '/');
	uint32_t holds = s->table->hold_count;

	if (t->dimensions > TENSOR_RANK || !s->memory ||
		!store_memory_gpu(s->memory, t->device, m->gpu)) {
		refuse_command(s, a->ticket,
			t->dimensions > TENSOR_RANK
				? "the store's tensors have at most 8 dimensions"
				: "the store has no memory of that device");
		free(a);
		return;
	}
	m->what = TENSOR_TAKE;
	m->left = UINT64_MAX; /* the ledger counts it when it is told; store.bytes holds */
	registry_namespace(m->space, t->name);
	snprintf(m->name, sizeof(m->name), "%s", slash ? slash + 1 : t->name);
	while (strcmp(tensor_dtype_name(m->about.dtype), t->dtype))
		m->about.dtype++;
	m->about.rank = t->dimensions;
	for (uint32_t i = 0; i < t->dimensions; i++)
		m->about.shape[i] = (int64_t)t->shape[i];
	m->about.flags = TENSOR_MAKE | TENSOR_KEEP;
	store_ask(s, m);
	if (m->status) {
		refuse_command(s, a->ticket, m->text);
		free(a);
		return;
	}
	memcpy(a->id, m->id, sizeof(a->id));
	a->is_new = s->table->hold_count > holds;
	ask_take(s, a, store_table_by_id(s, m->id), m->about.flags & TENSOR_MADE);
}

static void deleted(void *argument, const struct registry_result *result)
{
	struct asked *a = argument;
	uint32_t i = store_table_by_id(a->store, a->id);

	if (result->status == REGISTRY_OK && i != UINT32_MAX &&
		index_has_name(index_record(a->store, i))) {
		a->store->table->counters.deleted++;
		index_forget(a->store, i);
		store_table_drop(a->store, i, a->message.session);
	}
	answer(a, result, i);
	free(a);
}

void index_command(void *owner, const struct registry_command *wanted)
{
	const struct tensor_message none = {.version = TENSOR_VERSION};
	struct store *s = owner;
	struct asked *a = ask(s, &none);
	uint32_t i = index_find(s, wanted->tensor.name), holds = s->table->hold_count;

	if (!a) {
		refuse_command(s, wanted->ticket, "the store has no memory for the command");
		return;
	}
	a->command = true;
	a->ticket = wanted->ticket;
	a->op = wanted->op;
	a->message.session = index_holder_number(wanted->holder);
	if (i != UINT32_MAX)
		memcpy(a->id, index_record(s, i)->id, sizeof(a->id));
	if (wanted->op == REGISTRY_CREATE) {
		command_create(s, a, &wanted->tensor);
		return;
	}
	if (wanted->op == REGISTRY_DELETE) {
		registry_delete(
			s->registry, wanted->tensor.name, wanted->holder, true, deleted, a);
		return;
	}
	if (i != UINT32_MAX && wanted->holder[0]) {
		store_table_hold(s, i, a->message.session, false);
		a->is_new = s->table->hold_count > holds;
	}
	registry_take(s->registry, wanted->tensor.name, i == UINT32_MAX ? "" : wanted->holder,
		agreed, a);
}
