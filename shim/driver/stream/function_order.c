/* SPDX-License-Identifier: Apache-2.0
 *
 * See function_order.h. A number stands for all functions up to it, so that what is known of a
 * stream only ever rises.
 */
#include "shim/driver/stream/function_order.h"

#include <pthread.h>

#include "shim/driver/memory/mirror/mirror.h"
#include "shim/engine/lock.h"

static struct {
	_Atomic uint64_t issued, outstanding;
	_Atomic uint64_t all; /* every stream is behind these */
	_Atomic bool unknown;
	pthread_mutex_t lock; /* of the rest: the outstanding ones */
	struct function_issued *oldest, *newest;
	uint64_t nodes, nodes_from; /* launches of nodes, all from that number on */
} functions = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(functions, functions.lock, LOCK_FUNCTIONS);

/* ---- which are outstanding ---- */

void function_begun(struct function_issued *function)
{
	uint64_t number;

	pthread_mutex_lock(&functions.lock);
	atomic_fetch_add(&functions.outstanding, 1);
	number = atomic_fetch_add(&functions.issued, 1) + 1;
	if (function) {
		function->number = number;
		function->older = functions.newest;
		*(functions.newest ? &functions.newest->newer : &functions.oldest) = function;
		functions.newest = function;
	} else if (!functions.nodes++) {
		functions.nodes_from = number;
	}
	pthread_mutex_unlock(&functions.lock);
}

void function_ended(struct function_issued *function)
{
	pthread_mutex_lock(&functions.lock);
	atomic_fetch_sub(&functions.outstanding, 1);
	if (function) {
		*(function->older ? &function->older->newer : &functions.oldest) =
			function->newer;
		*(function->newer ? &function->newer->older : &functions.newest) =
			function->older;
	} else {
		functions.nodes--;
	}
	pthread_mutex_unlock(&functions.lock);
}

bool function_outstanding(void)
{
	return atomic_load(&functions.outstanding) != 0;
}

bool function_outstanding_to(uint64_t number)
{
	bool some;

	if (!function_outstanding())
		return false;
	pthread_mutex_lock(&functions.lock);
	some = (functions.oldest && functions.oldest->number <= number) ||
	       (functions.nodes && functions.nodes_from <= number);
	pthread_mutex_unlock(&functions.lock);
	return some;
}

uint64_t function_issued(void)
{
	return atomic_load(&functions.issued);
}

/* ---- which a stream is behind ---- */

uint64_t function_order_last(uint64_t number)
{
	const struct stream *stream;
	uint64_t own, all;

	/* As in most programs, which record events often. */
	if (!function_issued())
		return 0;
	stream = stream_find(number);
	all = atomic_load(&functions.all);
	if (!stream || atomic_load(&functions.unknown) || mirror_any())
		return UINT64_MAX;
	own = atomic_load(&stream->functions);
	return own > all ? own : all;
}

void function_order_issued(uint64_t number, uint64_t function)
{
	struct stream *stream = stream_find(number);

	stream_raise(stream ? &stream->functions : &functions.all, function);
}

void function_order_recorded(struct event *event, uint64_t stream)
{
	atomic_store(&event->functions, function_order_last(stream));
}

void function_order_recorded_context(struct event *event)
{
	atomic_store(&event->functions, function_issued());
}

/* Behind another process's work there may be any of this one's. */
static uint64_t event_last(const struct event *event)
{
	return atomic_load(&event->shared) ? function_issued() : atomic_load(&event->functions);
}

void function_order_awaited(uint64_t stream, const struct event *event)
{
	uint64_t last = event_last(event);

	if (last)
		function_order_issued(stream, last);
}

void function_order_awaited_context(const struct event *event)
{
	stream_raise(&functions.all, event_last(event));
}

void function_order_copied(uint64_t stream)
{
	if (function_outstanding())
		stream_raise(&functions.all, function_order_last(stream));
}

void function_order_unknown(void)
{
	atomic_store(&functions.unknown, true);
}
