/* SPDX-License-Identifier: Apache-2.0
 *
 * Replicas at the agent that has the tensor: the ticket that another agent brings for it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/store/calls_core.h"
#include "gpu-agent/store/replicas.h"

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
			result->status == REGISTRY_AWAY ? STATUS_NOT_READY
							: STATUS_NOT_PERMITTED,
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
		calls_refuse(&told, STATUS_NOT_PERMITTED,
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
