/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/tensor/tensor_outbound.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tensor/tensor_socket.h"

/* A worker that reads nothing for so long is stuck; the driver may keep it for seconds. */
#define PATIENCE_NS (30000 * FRONT_MS)
/* Looked at soon at first, then rarely. */
#define SOON_NS FRONT_MS
#define RARELY_NS (50 * FRONT_MS)

struct tensor_outbound {
	struct tensor_outbound *next;
	struct tensor_message message;
	int fd; /* a copy; -1: none */
	uint64_t since;
};

struct pool_worker *tensor_outbound_worker(struct front *front, uint64_t session)
{
	for (uint32_t i = 0; i < front->pool.room; i++)
		if (front->pool.workers[i].session &&
			front->pool.workers[i].session->number == session)
			return &front->pool.workers[i];
	return NULL;
}

/* False: not now. */
static bool deliver(struct front *front, const struct tensor_message *m, int fd)
{
	int ret = tensor_socket_tell(front, m->session, m, fd);
	struct pool_worker *worker;

	if (ret != -ENOENT)
		return ret != -EAGAIN && ret != -ENOBUFS;
	worker = tensor_outbound_worker(front, m->session);
	if (!worker || worker->handoff.fd < 0)
		return true;
	ret = descriptors_send(worker->handoff.fd, m, sizeof(*m), &fd, fd >= 0, MSG_DONTWAIT);
	if (ret == -EAGAIN || ret == -ENOBUFS)
		return false;
	if (ret)
		pool_fault(front, worker, "the worker does not take a word on tensors");
	return true;
}

static bool waits(
	const struct front *front, const struct tensor_outbound *until, uint64_t session)
{
	for (const struct tensor_outbound *w = front->tensors.outbound; w && w != until;
		w = w->next)
		if (w->message.session == session)
			return true;
	return false;
}

uint32_t tensor_outbound_answers(const struct front *front, uint64_t session)
{
	uint32_t count = 0;

	for (const struct tensor_outbound *w = front->tensors.outbound; w; w = w->next)
		count += w->message.session == session && w->message.what != TENSOR_READ_ONLY;
	return count;
}

static void drop(struct tensor_outbound **at)
{
	struct tensor_outbound *w = *at;

	*at = w->next;
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

void tensor_outbound_send(struct front *front, const struct tensor_message *m, int fd)
{
	struct tensor_outbound **tail = &front->tensors.outbound, *w;
	struct pool_worker *worker;

	if (!waits(front, NULL, m->session) && deliver(front, m, fd))
		return;
	w = calloc(1, sizeof(*w));
	if (w) {
		w->message = *m;
		w->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
		w->since = wait_now();
	}
	if (!w || (fd >= 0 && w->fd < 0)) {
		free(w);
		worker = tensor_outbound_worker(front, m->session);
		if (worker)
			pool_fault(front, worker, "no room for a word on tensors");
		return;
	}
	while (*tail)
		tail = &(*tail)->next;
	*tail = w;
}

void tensor_outbound_over(struct front *front, uint64_t session)
{
	for (struct tensor_outbound **at = &front->tensors.outbound; *at;) {
		if ((*at)->message.session == session)
			drop(at);
		else
			at = &(*at)->next;
	}
}

uint64_t tensor_outbound_tick(struct front *front, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (struct tensor_outbound **at = &front->tensors.outbound; *at;) {
		struct tensor_outbound *w = *at;
		struct pool_worker *worker;
		uint64_t soon = w->since + SOON_NS >= now ? now + SOON_NS : now + RARELY_NS;

		if (!waits(front, w, w->message.session) &&
			deliver(front, &w->message, w->fd)) {
			drop(at);
			continue;
		}
		worker = now - w->since > PATIENCE_NS
				 ? tensor_outbound_worker(front, w->message.session)
				 : NULL;
		if (worker) {
			pool_fault(front, worker, "the worker takes no words on tensors");
			drop(at);
			continue;
		}
		if (soon < next)
			next = soon;
		at = &w->next;
	}
	return next;
}
