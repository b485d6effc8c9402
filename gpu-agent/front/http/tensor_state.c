/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors with names, for people and Prometheus: read from the store's table, which changes
 * meanwhile, so a record is copied and counts only if it was itself before and after.
 */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/wait.h"
#include "gpu-agent/front/tensor/tensor_copy.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/http/state.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/tensor/tensors.h"
#include "gpu-agent/front/http/viewer.h"
#include "gpu-agent/sandbox/sandbox.h"
#include "gpu-agent/tensor_pieces.h"

static bool read_record(
	const struct tensor_table *table, uint32_t index, struct tensor_record *r)
{
	const struct tensor_record *from = &table->records[index];
	uint32_t state = __atomic_load_n(&from->state, __ATOMIC_ACQUIRE);

	memcpy(r, from, sizeof(*r));
	wait_fence();
	r->space[sizeof(r->space) - 1] = 0;
	r->name[sizeof(r->name) - 1] = 0;
	r->share[sizeof(r->share) - 1] = 0;
	return state && r->rank <= TENSOR_RANK && !memcmp(r->id, from->id, sizeof(r->id)) &&
	       __atomic_load_n(&from->state, __ATOMIC_RELAXED) == state && r->state == state;
}

static uint32_t count_of(const struct tensor_table *table)
{
	return table && table->count < TENSORS_MAX ? table->count : table ? TENSORS_MAX : 0;
}

static bool sees(const struct viewer *viewer, const struct tensor_record *r)
{
	char space[TENSOR_SPACE];

	if (viewer->all)
		return true;
	if (!viewer->tenant)
		return false;
	tensors_space(viewer->tenant, space);
	return !strcmp(space, r->space);
}

static cJSON *tensor_json(const struct tensor_record *r)
{
	cJSON *object = cJSON_CreateObject(), *list;
	char uuid[48], share[sizeof(r->share)], *rest = share, *one;

	state_uuid_text(uuid, sizeof(uuid), r->gpu);
	cJSON_AddStringToObject(object, "namespace", r->space);
	cJSON_AddStringToObject(object, "name", r->name);
	cJSON_AddStringToObject(object, "dtype", tensor_dtype_name(r->dtype));
	list = cJSON_AddArrayToObject(object, "shape");
	for (uint32_t i = 0; i < r->rank; i++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber((double)r->shape[i]));
	cJSON_AddNumberToObject(object, "bytes", (double)r->bytes);
	cJSON_AddNumberToObject(object, "memory_bytes", (double)r->room);
	cJSON_AddStringToObject(object, "gpu", uuid);
	cJSON_AddStringToObject(
		object, "state", r->state == TENSOR_SEALED ? "sealed" : "created");
	cJSON_AddBoolToObject(object, "keep", (r->flags & TENSOR_KEEP) != 0);
	cJSON_AddBoolToObject(object, "evictable", (r->flags & TENSOR_EVICTABLE) != 0);
	cJSON_AddBoolToObject(object, "packed", (r->flags & TENSOR_PACKED) != 0);
	cJSON_AddBoolToObject(object, "replica", (r->flags & TENSOR_REPLICA) != 0);
	cJSON_AddNumberToObject(object, "holders", r->holders);
	cJSON_AddNumberToObject(object, "version", (double)r->version);
	cJSON_AddNumberToObject(object, "created", (double)r->ctime / 1e9);
	cJSON_AddNumberToObject(object, "modified", (double)r->mtime / 1e9);
	list = cJSON_AddArrayToObject(object, "shared_with");
	strcpy(share, r->share);
	while ((one = strsep(&rest, ",")))
		if (*one)
			cJSON_AddItemToArray(list, cJSON_CreateString(one));
	return object;
}

char *tensors_status(const struct front *front, const struct viewer *viewer)
{
	const struct tensor_table *table = tensors_table(front);
	cJSON *root = cJSON_CreateObject();
	cJSON *list = cJSON_AddArrayToObject(root, "tensors");
	struct tensor_record r;
	char *text;

	cJSON_AddNumberToObject(root, "limit_bytes", (double)front->config->store.bytes);
	for (uint32_t i = 0; i < count_of(table); i++)
		if (read_record(table, i, &r) &&
			(r.state == TENSOR_CREATED || r.state == TENSOR_SEALED) &&
			sees(viewer, &r))
			cJSON_AddItemToArray(list, tensor_json(&r));
	text = cJSON_Print(root);
	cJSON_Delete(root);
	return text;
}

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_bytes(FILE *out, const struct tensor_table *table)
{
	static const char *const states[] = {[TENSOR_CREATED] = "created",
		[TENSOR_SEALED] = "sealed",
		[TENSOR_GONE] = "deleted",
		[TENSOR_POOLED] = "pooled",
		[TENSOR_COPYING] = "copying"};
	uint64_t bytes[TENSOR_COPYING + 1] = {0}, count[TENSOR_COPYING + 1] = {0};
	uint64_t replicas = 0;
	struct piece_set met = {0};
	struct tensor_record r;

	for (uint32_t i = 0; i < count_of(table); i++) {
		if (!read_record(table, i, &r) || r.state > TENSOR_COPYING)
			continue;
		replicas += r.state == TENSOR_SEALED && r.flags & TENSOR_REPLICA;
		bytes[r.state] += piece_met(&met, r.piece) ? 0 : r.room;
		count[r.state]++;
	}
	head(out, "vcuda_agent_tensor_bytes", "gauge",
		"Memory of the store: of tensors by state, and of its pool.");
	for (int s = TENSOR_CREATED; s <= TENSOR_COPYING; s++)
		fprintf(out, "vcuda_agent_tensor_bytes{state=\"%s\"} %" PRIu64 "\n", states[s],
			bytes[s]);
	head(out, "vcuda_agent_tensors", "gauge", "Tensors with names, by state.");
	for (int s = TENSOR_CREATED; s <= TENSOR_GONE; s++)
		fprintf(out, "vcuda_agent_tensors{state=\"%s\"} %" PRIu64 "\n", states[s],
			count[s]);
	head(out, "vcuda_agent_tensor_replicas", "gauge", "Replicas of other agents' tensors.");
	fprintf(out, "vcuda_agent_tensor_replicas %" PRIu64 "\n", replicas);
}

static void print_sandbox(FILE *out, uint32_t parts)
{
	head(out, "vcuda_agent_store_sandbox", "gauge",
		"1: this part of the store's sandbox holds.");
	for (uint32_t part = 1; part < SANDBOX_ALL; part <<= 1)
		fprintf(out, "vcuda_agent_store_sandbox{part=\"%s\"} %d\n",
			sandbox_part_name(part), (parts & part) != 0);
	head(out, "vcuda_agent_store_isolation", "gauge",
		"1: what keeps the store in, as a word.");
	fprintf(out, "vcuda_agent_store_isolation{mode=\"%s\"} 1\n", sandbox_mode(parts));
}

void tensors_metrics(FILE *out, const struct front *front)
{
	const struct tensor_table *table = tensors_table(front);

	if (!table)
		return;
	print_bytes(out, table);
	const struct {
		const char *event;
		uint64_t number;
	} rows[] = {
		{"created", table->counters.created},
		{"hit", table->counters.hits},
		{"miss", table->counters.misses},
		{"sealed", table->counters.sealed},
		{"deleted", table->counters.deleted},
		{"evicted", table->counters.evicted},
		{"unfinished", table->counters.unfinished},
		{"lost", table->counters.lost},
		{"refused", table->counters.refused},
		{"pool_hit", table->counters.pool_hits},
	};

	head(out, "vcuda_agent_tensor_events_total", "counter",
		"What happened to tensors with names.");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		fprintf(out, "vcuda_agent_tensor_events_total{event=\"%s\"} %" PRIu64 "\n",
			rows[i].event, rows[i].number);
	head(out, "vcuda_agent_store_restarts_total", "counter", "Stores that died.");
	fprintf(out, "vcuda_agent_store_restarts_total %u\n",
		table->restarts ? table->restarts - 1 : 0);
	tensor_copy_metrics(out, front);
	print_sandbox(out, table->sandbox);
}
