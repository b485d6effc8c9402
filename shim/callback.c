/* SPDX-License-Identifier: Apache-2.0
 *
 * Host functions: the worker stops the stream and sends a ticket; a thread of ours, started
 * with the first host function, runs the function and says that it is done.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/wait.h"
#include "protocol/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/callback.h"
#include "shim/engine.h"
#include "shim/session.h"
#include "shim/thread.h"

#define CALLBACK_BUCKETS 256
#define CALLBACK_LOOK_NS 50000000u

struct callback {
	struct callback *next;
	uint64_t ticket;
	CUhostFn function; /* one of the two */
	CUstreamCallback on_stream;
	CUstream stream;
	void *argument;
};

static pthread_mutex_t callback_lock = PTHREAD_MUTEX_INITIALIZER;
static struct callback *waiting[CALLBACK_BUCKETS];
static uint64_t last_ticket;
static bool running;
static _Atomic uint64_t outstanding;

bool callback_outstanding(void)
{
	return atomic_load(&outstanding) != 0;
}

static struct callback *callback_take(uint64_t ticket)
{
	struct callback **at = &waiting[ticket % CALLBACK_BUCKETS];
	struct callback *found;

	pthread_mutex_lock(&callback_lock);
	while (*at && (*at)->ticket != ticket)
		at = &(*at)->next;
	found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&callback_lock);
	return found;
}

static void callback_run(uint64_t ticket)
{
	struct callback *callback = callback_take(ticket);
	struct shim_call call;
	struct wire_vcudaHostFuncDone *body;

	if (callback) {
		thread_self.in_callback = true;
		if (callback->on_stream)
			callback->on_stream(callback->stream, CUDA_SUCCESS, callback->argument);
		else
			callback->function(callback->argument);
		thread_self.in_callback = false;
		atomic_fetch_sub(&outstanding, 1);
		free(callback);
	}
	body = shim_begin(&call, OP_vcudaHostFuncDone, sizeof(*body));
	body->ticket = ticket;
	shim_post(&call);
}

static void *callback_thread(void *unused)
{
	struct channel_page *page = session.page;
	uint64_t head = atomic_load(&page->upcall_head);

	(void)unused;
	while (atomic_load(&session.phase) == SESSION_READY) {
		uint32_t progress = atomic_load(&page->progress);

		while (atomic_load_explicit(&page->upcall_tail, memory_order_acquire) != head) {
			struct channel_upcall upcall = session.upcalls[head % CHANNEL_UPCALLS];

			atomic_store(&page->upcall_head, ++head);
			if (upcall.what == UPCALL_HOST_FUNC)
				callback_run(upcall.value);
		}
		atomic_fetch_add(&page->want_progress, 1);
		atomic_thread_fence(memory_order_seq_cst);
		if (atomic_load(&page->upcall_tail) == head)
			wait_sleep(&page->progress, progress, CALLBACK_LOOK_NS);
		atomic_fetch_sub(&page->want_progress, 1);
		session_check();
	}
	return NULL;
}

/* With the lock held. The app's signals are not for this thread. */
static CUresult callback_start(void)
{
	sigset_t all, old;
	pthread_t thread;
	int ret;

	if (running)
		return CUDA_SUCCESS;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&thread, NULL, callback_thread, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		return CUDA_ERROR_OPERATING_SYSTEM;
	pthread_detach(thread);
	running = true;
	return CUDA_SUCCESS;
}

static CUresult callback_add(struct callback *callback, CUstream stream)
{
	struct shim_call call;
	struct wire_vcudaHostFunc *body;
	uint64_t ticket;
	CUresult status;

	pthread_mutex_lock(&callback_lock);
	status = callback_start();
	ticket = ++last_ticket;
	if (!status) {
		callback->ticket = ticket;
		callback->next = waiting[ticket % CALLBACK_BUCKETS];
		waiting[ticket % CALLBACK_BUCKETS] = callback;
		atomic_fetch_add(&outstanding, 1);
	}
	pthread_mutex_unlock(&callback_lock);
	if (status) {
		free(callback);
		return status;
	}
	body = shim_begin(&call, OP_vcudaHostFunc, sizeof(*body));
	body->stream = shim_stream(&call, stream);
	body->ticket = ticket;
	status = shim_post(&call);
	if (status) {
		atomic_fetch_sub(&outstanding, 1);
		free(callback_take(ticket));
	}
	return status;
}

CUresult hand_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	struct callback *callback;

	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	callback = calloc(1, sizeof(*callback));
	if (!callback)
		return CUDA_ERROR_OUT_OF_MEMORY;
	callback->function = fn;
	callback->argument = userData;
	return callback_add(callback, hStream);
}

CUresult hand_cuStreamAddCallback(
	CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
	struct callback *added;

	if (!callback || flags)
		return CUDA_ERROR_INVALID_VALUE;
	added = calloc(1, sizeof(*added));
	if (!added)
		return CUDA_ERROR_OUT_OF_MEMORY;
	added->on_stream = callback;
	added->stream = hStream;
	added->argument = userData;
	return callback_add(added, hStream);
}
