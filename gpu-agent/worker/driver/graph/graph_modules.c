/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules whose kernels graphs have: see graph_modules.h.
 */
#include "gpu-agent/worker/driver/graph/graph_modules.h"

#include <stdlib.h>

#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/graph/graph.h"
#include "gpu-agent/worker/driver/module/module.h"
#include "gpu-agent/worker/handle.h"
#include "gpu-agent/worker/loop/closing.h"

static bool set_room(struct graph_modules *set)
{
	uint32_t room = set->room ? 2 * set->room : 8;
	struct graph_module **items;

	if (set->count < set->room)
		return true;
	items = realloc(set->items, room * sizeof(*items));
	if (!items)
		return false;
	set->items = items;
	set->room = room;
	return true;
}

static bool set_add(struct graph_modules *set, struct graph_module *kept)
{
	/* Kernels of one module mostly follow each other. */
	for (uint32_t i = set->count; i--;)
		if (set->items[i] == kept)
			return true;
	if (!set_room(set))
		return false;
	set->items[set->count++] = kept;
	kept->count++;
	return true;
}

static void kept_free(struct graph_module *kept)
{
	*kept->link = kept->next;
	if (kept->next)
		kept->next->link = kept->link;
	free(kept);
}

static CUresult kept_close(struct worker *w, void *object)
{
	struct graph_module *kept = object;
	CUresult status = CUDA_SUCCESS;

	/* Its context may have gone meanwhile. */
	if (kept->module) {
		status = worker_use(w, kept->context);
		if (!status)
			status = worker_module_unload(w, kept->module);
		module_dismiss(w, kept->bytes);
	}
	kept_free(kept);
	return status;
}

static void kept_put(struct worker *w, struct graph_module *kept)
{
	struct name *name;

	if (--kept->count || kept->closing)
		return;
	if (kept->unloaded) {
		kept->closing = true;
		(void)closing_do(w, kept_close, kept);
		return;
	}
	name = handles_find(w, kept->handle, KIND_CUmodule);
	if (name)
		name->kept = NULL;
	kept_free(kept);
}

static struct graph_module *kept_new(struct worker *w, struct name *name, uint64_t handle)
{
	struct graph_module *kept = calloc(1, sizeof(*kept));

	if (!kept)
		return NULL;
	*kept = (struct graph_module){.module = name->object,
		.handle = handle,
		.bytes = name->bytes,
		.context = name->context,
		.link = &w->graphs.modules,
		.next = w->graphs.modules};
	if (kept->next)
		kept->next->link = &kept->next;
	w->graphs.modules = kept;
	name->kept = kept;
	return kept;
}

bool graph_modules_add(struct worker *w, struct graph_modules *set, uint64_t function)
{
	const struct name *of = handles_find(w, function, KIND_CUfunction);
	struct name *name = of ? handles_find(w, of->owner, KIND_CUmodule) : NULL;
	struct graph_module *kept;

	if (!name)
		return true; /* the call refuses it */
	kept = name->kept ? name->kept : kept_new(w, name, of->owner);
	if (!kept)
		return false;
	if (set_add(set, kept))
		return true;
	if (!kept->count) {
		name->kept = NULL;
		kept_free(kept);
	}
	return false;
}

bool graph_modules_add_all(struct graph_modules *set, const struct graph_modules *from)
{
	for (uint32_t i = 0; i < from->count; i++)
		if (!set_add(set, from->items[i]))
			return false;
	return true;
}

bool graph_modules_add_graph(struct graph_modules *set, const struct worker_graph *graph)
{
	if (!graph_modules_add_all(set, &graph->modules))
		return false;
	for (const struct worker_graph *child = graph->children; child; child = child->sibling)
		if (!graph_modules_add_graph(set, child))
			return false;
	return true;
}

void graph_modules_drop(struct worker *w, struct graph_modules *set)
{
	for (uint32_t i = 0; i < set->count; i++)
		kept_put(w, set->items[i]);
	free(set->items);
	*set = (struct graph_modules){0};
}

bool graph_modules_keep(struct name *name)
{
	if (!name->kept)
		return false;
	name->kept->unloaded = true;
	return true;
}

void graph_modules_hold(struct worker *w, uint16_t context)
{
	for (struct graph_module *kept = w->graphs.modules; kept; kept = kept->next)
		if (kept->context == context && kept->module)
			kept->count++;
}

void graph_modules_let(struct worker *w, uint16_t context)
{
	struct graph_module *kept, *next;
	struct name *name;

	for (kept = w->graphs.modules; kept; kept = next) {
		next = kept->next;
		if (kept->context != context || !kept->module)
			continue;
		name = handles_find(w, kept->handle, KIND_CUmodule);
		if (kept->unloaded) {
			worker_module_unload(w, kept->module);
			module_dismiss(w, kept->bytes);
		} else if (name) {
			name->kept = NULL; /* it goes with its name */
		}
		kept->module = NULL;
		kept->unloaded = true;
		kept_put(w, kept);
	}
}
