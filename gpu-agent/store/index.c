/* SPDX-License-Identifier: Apache-2.0
 *
 * The store joined to its index, see index.h.
 */
#include "gpu-agent/store/index_core.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/log.h"
#include "gpu-agent/store/index_holder.h"
#include "gpu-agent/store/registry/registry.h"

bool index_full_name(
	char out[REGISTRY_NAME + 1], const char *space, const char *name, struct error *error)
{
	char all[TENSOR_SPACE + 2 * TENSOR_NAME + 1];

	snprintf(all, sizeof(all), "%s/%s", space, name);
	return !registry_name(out, REGISTRY_DEFAULT, all, error);
}

void index_refuse(struct store *s, const struct tensor_message *refusal)
{
	s->table->counters.refused++;
	store_say(s, refusal, -1);
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

	if (!s->registry || !index_has_name(index_record(s, index)) ||
		index_record(s, index)->flags & TENSOR_LOCAL ||
		!index_full_name(name, index_record(s, index)->space,
			index_record(s, index)->name, &error))
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
		index_full_name(name, index_record(s, index)->space,
			index_record(s, index)->name, &error))
		registry_yield(s->registry, name, "");
}

void index_deleted(struct store *s, uint32_t index)
{
	char name[REGISTRY_NAME + 1];
	struct error error;

	if (s->registry && index_full_name(name, index_record(s, index)->space,
				   index_record(s, index)->name, &error))
		registry_delete(s->registry, name, "", false, NULL, NULL);
	index_forget(s, index);
}

void index_lost(struct store *s, uint32_t index, const char *why)
{
	char name[REGISTRY_NAME + 1];
	struct error error;

	if (s->registry && index_full_name(name, index_record(s, index)->space,
				   index_record(s, index)->name, &error))
		registry_yield(s->registry, name, why);
	index_forget(s, index);
}

void index_moved(struct store *s, uint32_t index)
{
	struct registry_tensor tensor;

	if (!s->registry)
		return;
	index_about(index_record(s, index), &tensor, s);
	if (tensor.replica)
		registry_replica(s->registry, &tensor, NULL, NULL);
	else
		registry_update(s->registry, &tensor, NULL, NULL);
}

void index_forget(struct store *s, uint32_t index)
{
	s->index_knows = true;
	store_table_unname(s, index);
	s->index_knows = false;
}

/* ---- what the registry asks ---- */

uint32_t index_find(const struct store *s, const char *full)
{
	char space[REGISTRY_NAMESPACE + 1];
	const char *slash = strchr(full, '/');

	registry_namespace(space, full);
	return store_table_find(s, space, slash ? slash + 1 : full);
}

static void gone(void *owner, const char *holder)
{
	store_table_session_over(owner, index_holder_number(holder));
}

static void renamed(void *owner, const char *name, const char *node)
{
	struct store *s = owner;
	uint32_t i = index_find(s, name);

	if (!node[0] && (i == UINT32_MAX || !(index_record(s, i)->flags & TENSOR_REPLICA)))
		return; /* another one has the name by now */
	if (node[0])
		log_warn("tensor.renamed", "name=\"%s\" node=%s", name, node);
	if (i != UINT32_MAX)
		index_forget(s, i);
}

void index_first(struct store *s, const char *name, bool heir)
{
	uint32_t i = index_find(s, name);
	struct tensor_record *record;

	if (i == UINT32_MAX || !(index_record(s, i)->flags & TENSOR_REPLICA))
		return;
	record = &s->table->records[i];
	record->flags &= ~TENSOR_REPLICA;
	if (!heir)
		return;
	record->flags &= ~TENSOR_EVICTABLE;
	if (!record->holders)
		store_table_unname(s, i); /* the last one left before the word came */
}

static void first(void *owner, const char *name, bool heir)
{
	index_first(owner, name, heir);
}

static bool next(void *owner, uint64_t *cursor, struct registry_tensor *tensor,
	const char *const **holders, size_t *count)
{
	static const char *at[TENSOR_HOLDS];
	static char texts[TENSOR_HOLDS][INDEX_HOLDER];
	const struct store *s = owner;
	size_t n = 0;
	uint64_t i = *cursor;

	while (i < s->table->count &&
		(!index_has_name(index_record(s, (uint32_t)i)) ||
			index_record(s, (uint32_t)i)->flags & TENSOR_LOCAL))
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
	index_about(index_record(s, (uint32_t)i), tensor, s);
	*cursor = i + 1;
	*holders = at;
	*count = n;
	return true;
}

static void lost(void *owner, uint32_t count)
{
	struct store *s = owner;

	s->table->counters.lost += count;
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
		next, index_command, gone, renamed, first, lost, devices};
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
