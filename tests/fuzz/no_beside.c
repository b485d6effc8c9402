/* SPDX-License-Identifier: Apache-2.0
 *
 * For programs that serve frames without a worker's loop: there is nothing beside it, and no
 * other process that shares an event.
 */
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/loop/beside_call.h"

bool beside_serve(struct worker *w, struct request *r, serve_function serve)
{
	(void)w, (void)r, (void)serve;
	return false;
}

void beside_leave(const struct request *r)
{
	(void)r;
}

void beside_enter(const struct request *r)
{
	(void)r;
}

/* Nobody has what it waits for. */
void beside_others(struct worker *w, const struct request *r)
{
	(void)w, (void)r;
	__builtin_trap();
}

uint64_t beside_first(const struct worker *w, const struct request *r)
{
	(void)w;
	return r->header.seq;
}

bool beside_uses(struct beside_call *call, struct worker_stream *stream)
{
	(void)call, (void)stream;
	return true;
}

void ipc_event_gone(struct ipc_event *event)
{
	(void)event;
	__builtin_trap();
}
