/* SPDX-License-Identifier: Apache-2.0
 *
 * The store joined to its index, see index.h.
 */
#include "gpu-agent/store/index_core.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/log.h"
#include "gpu-agent/store/calls_core.h"
#include "gpu-agent/store/index_holder.h"
#include "gpu-agent/store/registry.h"
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

static const struct tensor_record *record(const struct store *s, uint32_t i)
{
	return &s->table->records[i];
}

static bool has_name(const struct tensor_record *r)
{
	return r->state == TENSOR_CREATED || r->state == TENSOR_SEALED;
}

bool index_full_name(
	char out[REGISTRY_NAME + 1], const char *space, const char *name, struct error *error)
{
	char all[TENSOR_SPACE + 2 * TENSOR_NAME + 1];

	snprintf(all, sizeof(all), "%s/%s", space, name);
	return !registry_name(out, REGISTRY_DEFAULT, all, error);
}

void index_gpu_text(char out[48], const uint8_t gpu[16])
{
	size_t n = (size_t)snprintf(out, 48, "GPU-");

	for (unsigned i = 0; i < 16; i++) {
		const bool dash = i == 4 || i == 6 || i == 8 || i == 10;

		n += (size_t)snprintf(out + n, 48 - n, "%s%02x", dash ? "-" : "", gpu[i]);
	}
}

void index_about(
	const struct tensor_record *r, struct registry_tensor *t, const struct store *s)
{
	struct tensor_handle handle;
	struct error error;

	memset(t, 0, sizeof(*t));
	index_full_name(t->name, r->space, r->name, &error);
	snprintf(t->dtype, sizeof(t->dtype), "%s", tensor_dtype_name(r->dtype));
	t->dimensions = r->rank;
	for (uint32_t i = 0; i < r->rank && i < TENSOR_RANK; i++)
		t->shape[i] = (uint64_t)r->shape[i];
	t->bytes = r->bytes;
	t->offset = r->offset;
	t->device = s->memory ? store_memory_device(s->memory, r->gpu) : 0;
	index_gpu_text(t->gpu_uuid, r->gpu);
	store_handle(r, &handle);
	memcpy(t->ipc_handle, &handle, sizeof(handle));
	t->owner_pid = index_holder_pid(r->owner);
	t->state = r->state == TENSOR_SEALED ? REGISTRY_SEALED : REGISTRY_CREATED;
	t->version = r->version;
	t->ctime = (int64_t)r->ctime;
	t->mtime = (int64_t)r->mtime;
	snprintf(t->share, sizeof(t->share), "%s", r->share);
	t->replica = (r->flags & TENSOR_REPLICA) != 0;
}

/* ---- what the table loses ---- */

void index_dropped(struct store *s, uint32_t index, uint64_t session)
{
	char name[REGISTRY_NAME + 1], holder[REGISTRY_HOLDER + 1];
	struct error error;

	if (!s->registry || !has_name(record(s, index)) ||
		!index_full_name(name, record(s, index)->space, record(s, index)->name, &error))
		return;
	index_holder_text(holder, session);
	if (holder[0])
		registry_drop(s->registry, name, holder);
}

void index_unnamed(struct store *s, uint32_t index)
{
	char name[REGISTRY_NAME + 1];
	struct error error;

	if (s->registry && !s->index_knows &&
		index_full_name(name, record(s, index)->space, record(s, index)->name, &error))
		registry_yield(s->registry, name, "");
}

void index_deleted(struct store *s, uint32_t index)
{
	char name[REGISTRY_NAME + 1];
	struct error error;

	if (s->registry &&
		index_full_name(name, record(s, index)->space, record(s, index)->name, &error))
		registry_delete(s->registry, name, "", false, NULL, NULL);
	index_forget(s, index);
}

void index_forget(struct store *s, uint32_t index)
{
	s->index_knows = true;
	store_table_unname(s, index);
	s->index_knows = false;
}

/* ---- what sessions ask ---- */

bool index_allows(const struct store *s, struct tensor_message *m)
{
	char name[REGISTRY_NAME + 1];
	struct error error;
	const char *slash = strchr(m->name, '/');

	if (!s->registry || m->what != TENSOR_TAKE || !(m->about.flags & TENSOR_MAKE) ||
		slash || index_full_name(name, m->space, m->name, &error))
		return true;
	m->status = TENSOR_INVALID_VALUE;
	snprintf(m->text, sizeof(m->text), "%.150s", error.text);
	return false;
}

static uint32_t status_of(enum registry_status status)
{
	switch (status) {
	case REGISTRY_AWAY: return TENSOR_NOT_READY;
	case REGISTRY_MISSING: return TENSOR_NOT_FOUND;
	case REGISTRY_ELSEWHERE: return TENSOR_INVALID_DEVICE;
	default: return TENSOR_INVALID_VALUE;
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
							   : TENSOR_NOT_FOUND;
		snprintf(m->text, sizeof(m->text), "%.150s",
			result->text[0] ? result->text : "the tensor was deleted meanwhile");
		s->table->counters.refused++;
	}
	store_say(s, m, m->status ? -1 : s->fds[i]);
}

/* What another agent has is copied; and a replica that is of nothing any more is none. True:
 * the question is answered by that. */
static bool elsewhere(struct asked *a, const struct registry_result *result, uint32_t i)
{
	struct store *s = a->store;
	const bool copy = i != UINT32_MAX && record(s, i)->flags & TENSOR_REPLICA;

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

	index_about(record(s, i), &tensor, s);
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

static void changed(struct store *s, const struct tensor_message *m)
{
	struct registry_tensor tensor;
	uint32_t i = store_table_by_id(s, m->id);

	if (i == UINT32_MAX || !has_name(record(s, i)))
		return;
	index_about(record(s, i), &tensor, s);
	registry_update(s->registry, &tensor, NULL, NULL);
}

/* What the table has taken for the session, it drops again. */
static void no_memory(struct store *s, const struct tensor_message *m, uint32_t i, bool is_new)
{
	struct tensor_message told = *m;

	if (i != UINT32_MAX && is_new)
		store_table_drop(s, i, m->session);
	told.status = TENSOR_OUT_OF_MEMORY;
	snprintf(told.text, sizeof(told.text), "the store has no memory for the question");
	s->table->counters.refused++;
	store_say(s, &told, -1);
}

void index_say(struct store *s, const struct tensor_message *asked,
	const struct tensor_message *m, int fd, uint32_t holds)
{
	char name[REGISTRY_NAME + 1];
	struct asked *a;
	uint32_t i;

	if (s->registry && m->what == TENSOR_TAKE && !m->status &&
		(i = store_table_by_id(s, m->id)) != UINT32_MAX) {
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
	if (s->registry && m->what == TENSOR_TAKE && m->status == TENSOR_NOT_FOUND &&
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
	if (s->registry && !m->status &&
		(m->what == TENSOR_SEAL || m->what == TENSOR_TOUCH || m->what == TENSOR_SHARE))
		changed(s, m);
	if (m->status)
		s->table->counters.refused++;
	store_say(s, m, m->status ? -1 : fd);
}

/* ---- what Redis' commands ask ---- */

static void refuse_command(struct store *s, uint64_t ticket, const char *text)
{
	const struct registry_result result = {REGISTRY_BAD, NULL, text};

	registry_answer(s->registry, ticket, &result);
}

static uint32_t find(const struct store *s, const char *full)
{
	char space[REGISTRY_NAMESPACE + 1];
	const char *slash = strchr(full, '/');

	registry_namespace(space, full);
	return store_table_find(s, space, slash ? slash + 1 : full);
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

	if (result->status == REGISTRY_OK && i != UINT32_MAX && has_name(record(a->store, i))) {
		a->store->table->counters.deleted++;
		index_forget(a->store, i);
		store_table_drop(a->store, i, a->message.session);
	}
	answer(a, result, i);
	free(a);
}

static void command(void *owner, const struct registry_command *wanted)
{
	const struct tensor_message none = {.version = TENSOR_VERSION};
	struct store *s = owner;
	struct asked *a = ask(s, &none);
	uint32_t i = find(s, wanted->tensor.name), holds = s->table->hold_count;

	if (!a) {
		refuse_command(s, wanted->ticket, "the store has no memory for the command");
		return;
	}
	a->command = true;
	a->ticket = wanted->ticket;
	a->op = wanted->op;
	a->message.session = index_holder_number(wanted->holder);
	if (i != UINT32_MAX)
		memcpy(a->id, record(s, i)->id, sizeof(a->id));
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

static void gone(void *owner, const char *holder)
{
	store_table_session_over(owner, index_holder_number(holder));
}

static void renamed(void *owner, const char *name, const char *node)
{
	struct store *s = owner;
	uint32_t i = find(s, name);

	if (!node[0] && (i == UINT32_MAX || !(record(s, i)->flags & TENSOR_REPLICA)))
		return; /* another one has the name by now */
	if (node[0])
		log_warn("tensor.renamed", "name=\"%s\" node=%s", name, node);
	if (i != UINT32_MAX)
		index_forget(s, i);
}

static void first(void *owner, const char *name)
{
	struct store *s = owner;
	uint32_t i = find(s, name);

	if (i != UINT32_MAX)
		s->table->records[i].flags &= ~TENSOR_REPLICA;
}

static bool next(void *owner, uint64_t *cursor, struct registry_tensor *tensor,
	const char *const **holders, size_t *count)
{
	static const char *at[TENSOR_HOLDS];
	static char texts[TENSOR_HOLDS][INDEX_HOLDER];
	const struct store *s = owner;
	size_t n = 0;
	uint64_t i = *cursor;

	while (i < s->table->count && !has_name(record(s, (uint32_t)i)))
		i++;
	if (i >= s->table->count)
		return false;
	for (uint32_t k = 0; k < s->table->hold_count; k++) {
		if (s->table->holds[k].tensor != i)
			continue;
		index_holder_text(texts[n], s->table->holds[k].session);
		at[n] = texts[n];
		n += texts[n][0] != 0;
	}
	index_about(record(s, (uint32_t)i), tensor, s);
	*cursor = i + 1;
	*holders = at;
	*count = n;
	return true;
}

static uint32_t devices(void *owner)
{
	const struct store *s = owner;

	return s->memory ? store_memory_devices(s->memory) : 0;
}

static void ready(struct watch *watch, uint32_t mask)
{
	(void)mask;
	registry_turn(((struct store *)watch->owner)->registry);
}

/* Where other agents find this one: HOST or HOST:PORT of the configuration, else its ID where
 * that is given, else what the index makes of it. */
static void where(char *out, size_t n, const struct store *s)
{
	const char *host = s->config->store.address, *port = strrchr(host, ':');

	if (!host[0])
		host = s->config->store.node;
	if (!host[0])
		out[0] = 0;
	else if (port && !strchr(port, ']') && (host[0] == '[' || strchr(host, ':') == port))
		snprintf(out, n, "%s", host);
	else
		snprintf(out, n, "%s:%u", host, s->config->bound[LISTEN_RECV]);
}

int index_open(struct store *s, struct error *error)
{
	static const struct registry_store calls = {
		next, command, gone, renamed, first, devices};
	const struct agent_store *from = &s->config->store;
	struct registry_config config = {.commands = true, .memory = from->bytes};
	int ret;

	if (!from->registry[0])
		return 0;
	snprintf(config.address, sizeof(config.address), "%s", from->registry);
	snprintf(config.user, sizeof(config.user), "%s", from->registry_user);
	snprintf(config.password_file, sizeof(config.password_file), "%s",
		from->registry_password_file);
	snprintf(config.node, sizeof(config.node), "%s", from->node);
	if (!config.node[0] && gethostname(config.node, sizeof(config.node) - 1))
		return error_set(error, errno, "store.node");
	snprintf(s->node, sizeof(s->node), "%s", config.node);
	where(config.at, sizeof(config.at), s);
	config.port = s->config->bound[LISTEN_RECV];
	config.epoch = s->table->epoch;
	ret = registry_open(&s->registry, &config, &calls, s, error);
	if (!ret)
		ret = events_watch(
			&s->events, &s->index, registry_fd(s->registry), EPOLLIN, ready);
	return ret;
}
