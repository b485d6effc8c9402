/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/tensor/sealing.h"

#include <stdlib.h>
#include <string.h>

#include "gpu-agent/front/front.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tensor/tensor_outbound.h"
#include "gpu-agent/front/tensor/tensor_socket.h"
#include "gpu-agent/front/worker_pool.h"
#include "protocol/wire/status.h"

struct tensor_writer {
	struct tensor_writer *next;
	uint64_t session;
	uint8_t id[16];
};

static bool is(const struct tensor_writer *w, uint64_t session, const uint8_t id[16])
{
	return w->session == session && !memcmp(w->id, id, sizeof(w->id));
}

void sealing_told(struct front *front, const struct tensor_message *word)
{
	struct pool_worker *worker = tensor_outbound_worker(front, word->session);
	struct tensor_writer **at = &front->tensors.writers, *w;

	/* The owner hears it before the answer. */
	if (word->about.flags & TENSOR_OWNED ||
		(!worker && !tensor_socket_follows(front, word->session)))
		return;
	while (*at && !is(*at, word->session, word->id))
		at = &(*at)->next;
	if (*at)
		return; /* another store has said it again */
	w = calloc(1, sizeof(*w));
	if (!w) {
		if (worker)
			pool_fault(front, worker, "no room for a tensor that it writes");
		return;
	}
	w->session = word->session;
	memcpy(w->id, word->id, sizeof(w->id));
	*at = w;
}

/* ID: NULL: all of the session's. */
static void forget(struct front *front, uint64_t session, const uint8_t *id)
{
	for (struct tensor_writer **at = &front->tensors.writers; *at;) {
		struct tensor_writer *w = *at;

		if (w->session != session || (id && !is(w, session, id))) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		free(w);
	}
}

void sealing_followed(struct front *front, uint64_t session, const uint8_t id[16])
{
	forget(front, session, id);
}

void sealing_over(struct front *front, uint64_t session)
{
	forget(front, session, NULL);
}

bool sealing_waits(const struct front *front, const uint8_t id[16])
{
	const struct tensor_writer *w = front->tensors.writers;

	while (w && memcmp(w->id, id, sizeof(w->id)))
		w = w->next;
	return w != NULL;
}

void sealing_enforce(struct front *front, const uint8_t id[16])
{
	static const char late[] =
		"a tensor that the session could write was sealed, and its worker did not "
		"make it read-only in time";

	for (const struct tensor_writer *w = front->tensors.writers; w; w = w->next) {
		struct pool_worker *worker = tensor_outbound_worker(front, w->session);

		if (!worker || worker->state == WORKER_ENDING ||
			memcmp(w->id, id, sizeof(w->id)) != 0)
			continue;
		session_set_end(worker->session, STATUS_LOST, late);
		pool_fault(front, worker, late);
	}
}
