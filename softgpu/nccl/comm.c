/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators, from being made to their end.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "softgpu/nccl/nccl.h"

#define COMM_MARK 0x6d6d6f63ull

bool softnccl_is_comm(const struct ncclComm *comm)
{
	return comm && comm->mark == COMM_MARK;
}

struct ncclComm *softnccl_comm_new(int rank, int ranks)
{
	struct ncclComm *c = calloc(1, sizeof(*c));
	pthread_condattr_t monotonic;
	bool full = c != NULL;

	if (!c)
		return NULL;
	c->rank = rank;
	c->ranks = ranks;
	c->refs = 1;
	c->last = &c->first;
	c->gone = true; /* it has no thread yet */
	c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->table = calloc((size_t)ranks, sizeof(*c->table));
	c->arrivals.from = calloc((size_t)ranks, sizeof(*c->arrivals.from));
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->calls, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&c->more, &monotonic);
	pthread_condattr_destroy(&monotonic);
	for (int wire = 0; wire < NCCL_WIRES; wire++) {
		c->sockets[wire] = malloc((size_t)ranks * sizeof(int));
		full = full && c->sockets[wire];
		for (int i = 0; c->sockets[wire] && i < ranks; i++)
			c->sockets[wire][i] = -1;
	}
	if (full && c->table && c->arrivals.from && c->wake >= 0 &&
		!cuCtxGetCurrent(&c->context) && c->context) {
		c->mark = COMM_MARK;
		return c;
	}
	softnccl_comm_put(c);
	return NULL;
}

void softnccl_comm_put(struct ncclComm *c)
{
	if (atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	c->mark = 0;
	for (int wire = 0; wire < NCCL_WIRES; wire++) {
		for (int i = 0; c->sockets[wire] && i < c->ranks; i++)
			if (c->sockets[wire][i] >= 0)
				close(c->sockets[wire][i]);
		free(c->sockets[wire]);
	}
	if (c->wake >= 0)
		close(c->wake);
	free(c->arrivals.from);
	pthread_mutex_destroy(&c->lock);
	pthread_mutex_destroy(&c->calls);
	pthread_cond_destroy(&c->more);
	free(c->table);
	free(c);
}

bool softnccl_comm_wait(struct ncclComm *comm, uint64_t until)
{
	struct timespec at = {
		.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};

	return pthread_cond_timedwait(&comm->more, &comm->lock, &at) != ETIMEDOUT;
}

void softnccl_comm_fail(struct ncclComm *comm, ncclResult_t status)
{
	int none = ncclSuccess;

	atomic_compare_exchange_strong(&comm->error, &none, (int)status);
}

bool softnccl_thread_begin(pthread_t *thread, void *(*run)(void *), struct ncclComm *comm)
{
	sigset_t all, old;
	int failed;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	failed = pthread_create(thread, NULL, run, comm);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return !failed;
}

static bool comm_start(struct ncclComm *comm)
{
	comm->gone = false;
	atomic_fetch_add(&comm->refs, 1);
	if (softnccl_thread_begin(&comm->thread, softnccl_thread, comm))
		return true;
	comm->gone = true;
	softnccl_comm_put(comm);
	return false;
}

/* --- making ------------------------------------------------------------------------------- */

/* Its ranks are in its table; they connect, and it begins. */
static ncclResult_t comm_begin(struct ncclComm *comm, int listener, ncclComm_t *to)
{
	ncclResult_t status = softnccl_mesh(comm, listener);

	close(listener);
	if (!status && !comm_start(comm))
		status = softnccl_fail(ncclSystemError, "no thread");
	if (status)
		softnccl_comm_put(comm);
	else
		*to = comm;
	return status;
}

static ncclResult_t make_rank(struct softnccl_making *m)
{
	struct ncclComm *comm;
	struct softnccl_rank *self;
	ncclResult_t status;
	int listener;

	if (m->ranks < 1 || m->ranks > NCCL_MOST_RANKS || m->rank < 0 || m->rank >= m->ranks)
		return softnccl_fail(
			ncclInvalidArgument, "there is no rank %d of %d", m->rank, m->ranks);
	comm = softnccl_comm_new(m->rank, m->ranks);
	if (!comm)
		return softnccl_fail(
			ncclUnhandledCudaError, "no memory, or no current context");
	self = &comm->table[m->rank];
	status = softnccl_self(self);
	listener = status ? -1 : softnccl_listen(&self->address, &self->port);
	if (listener < 0)
		status = ncclSystemError;
	if (!status)
		status = softnccl_meet(&m->id, m->rank, m->ranks, comm->table);
	if (!status)
		return comm_begin(comm, listener, m->to);
	if (listener >= 0)
		close(listener);
	softnccl_comm_put(comm);
	return status;
}

static bool leaves_out(const struct softnccl_making *m, int rank)
{
	for (int i = 0; i < m->excluded_count; i++)
		if (m->excluded[i] == rank)
			return true;
	return false;
}

/* Tells the parent's ranks what is said of this one, SIZE bytes, and hears the same of them. */
static ncclResult_t tell_all(
	const struct softnccl_making *m, const void *self, void *all, size_t size)
{
	struct ncclComm *parent = m->parent;
	size_t each = (size_t)parent->ranks;
	struct softnccl_transfer *t = calloc(2 * each, sizeof(*t));
	ncclResult_t status;
	int n = 0;

	if (!t)
		return softnccl_fail(ncclSystemError, "no memory");
	for (int i = 0; i < parent->ranks; i++) {
		if (leaves_out(m, i))
			continue;
		t[n] = (struct softnccl_transfer){
			.peer = i, .bytes = (char *)(uintptr_t)self, .count = size};
		t[each + (size_t)n++] = (struct softnccl_transfer){
			.peer = i, .bytes = (char *)all + (size_t)i * size, .count = size};
	}
	pthread_mutex_lock(&parent->calls);
	status = softnccl_exchange(parent, NCCL_CALLS, t, n, t + each, n);
	pthread_mutex_unlock(&parent->calls);
	free(t);
	return status;
}

/* Of the same color, by key and then by rank in the parent. */
static bool goes_before(const struct softnccl_rank *all, int a, int b)
{
	return all[a].key != all[b].key ? all[a].key < all[b].key : a < b;
}

static ncclResult_t make_of(
	struct softnccl_making *m, const struct softnccl_rank *all, int listener)
{
	struct ncclComm *comm;
	int own = m->parent->rank, ranks = 0, rank = 0;

	for (int i = 0; i < m->parent->ranks; i++) {
		if (leaves_out(m, i) || all[i].color != m->color)
			continue;
		ranks++;
		rank += goes_before(all, i, own);
	}
	comm = softnccl_comm_new(rank, ranks);
	if (!comm) {
		close(listener);
		return softnccl_fail(
			ncclUnhandledCudaError, "no memory, or no current context");
	}
	for (int i = 0; i < m->parent->ranks; i++) {
		int at = 0;

		if (leaves_out(m, i) || all[i].color != m->color)
			continue;
		for (int k = 0; k < m->parent->ranks; k++)
			at += !leaves_out(m, k) && all[k].color == m->color &&
			      goes_before(all, k, i);
		comm->table[at] = all[i];
	}
	return comm_begin(comm, listener, m->to);
}

static ncclResult_t make_split(struct softnccl_making *m)
{
	struct softnccl_rank self, *all = calloc((size_t)m->parent->ranks, sizeof(*all));
	ncclResult_t status =
		all ? softnccl_self(&self) : softnccl_fail(ncclSystemError, "no memory");
	int listener = status ? -1 : softnccl_listen(&self.address, &self.port);

	*m->to = NULL;
	if (listener < 0)
		status = status ? status : ncclSystemError;
	self.color = m->color;
	self.key = m->key;
	if (!status)
		status = tell_all(m, &self, all, sizeof(self));
	if (!status && m->color >= 0) {
		status = make_of(m, all, listener);
		listener = -1;
	}
	if (listener >= 0)
		close(listener);
	free(all);
	return status;
}

/* The id that one of the parent's ranks called by; all of them want as many ranks. */
struct growth {
	ncclUniqueId id;
	int32_t ranks;
	uint32_t called;
};

static ncclResult_t make_grown(struct softnccl_making *m)
{
	struct ncclComm *parent = m->parent;
	struct growth self = {.id = m->id, .ranks = m->ranks, .called = m->called};
	struct growth *all = calloc((size_t)parent->ranks, sizeof(*all));
	ncclResult_t status = all ? tell_all(m, &self, all, sizeof(self))
				  : softnccl_fail(ncclSystemError, "no memory");
	int called = 0;

	for (int i = 0; i < parent->ranks && !status; i++) {
		if (all[i].ranks != m->ranks)
			status = softnccl_fail(ncclInvalidArgument,
				"rank %d grows to %d ranks, rank %d to %d", parent->rank,
				m->ranks, i, all[i].ranks);
		if (all[i].called && !called++)
			m->id = all[i].id;
	}
	free(all);
	if (!status && called != 1)
		status = softnccl_fail(ncclInvalidArgument,
			"%d of its ranks have the id, and one is to", called);
	if (status)
		return status;
	parent->called = false;
	m->rank = parent->rank;
	return make_rank(m);
}

static ncclResult_t pause_all(const struct softnccl_making *m)
{
	ncclResult_t status =
		softnccl_agree(m->parent, m->suspended, "whether it is suspended or goes on");

	if (!status)
		m->parent->suspended = m->suspended;
	return status;
}

static ncclResult_t make_one(struct softnccl_making *m)
{
	if (m->window_to)
		return softnccl_window_make(m);
	if (m->pauses)
		return pause_all(m);
	if (!m->parent)
		return make_rank(m);
	return m->grows ? make_grown(m) : make_split(m);
}

static void *making_run(void *argument)
{
	for (struct softnccl_making *m = argument; m; m = m->next)
		m->status = cuCtxSetCurrent(m->context) ? softnccl_fail(ncclUnhandledCudaError,
								  "the context is gone")
							: make_one(m);
	return NULL;
}

/* What is made of one communicator is made in the order of the calls, as at its other ranks. */
static void makings_order(struct softnccl_making *m, int count)
{
	for (int i = 0; i < count; i++)
		for (int k = i + 1; k < count && m[i].parent; k++)
			if (m[k].parent == m[i].parent) {
				m[i].next = &m[k];
				m[k].follows = true;
				break;
			}
}

ncclResult_t softnccl_make(struct softnccl_making *m, int count)
{
	pthread_t *threads = calloc((size_t)count, sizeof(*threads));
	bool *started = calloc((size_t)count, sizeof(*started));
	ncclResult_t status = ncclSuccess;

	makings_order(m, count);
	for (int i = 0; i < count; i++)
		m[i].status = softnccl_fail(ncclSystemError, "no thread");
	for (int i = 0; i < count && threads && started; i++)
		started[i] =
			!m[i].follows && !pthread_create(&threads[i], NULL, making_run, &m[i]);
	if (!threads || !started)
		status = softnccl_fail(ncclSystemError, "no memory");
	for (int i = 0; i < count && !status; i++)
		if (started[i])
			pthread_join(threads[i], NULL);
	for (int i = 0; i < count; i++)
		if (!status)
			status = m[i].status;
	free(threads);
	free(started);
	return status;
}

/* --- their end ---------------------------------------------------------------------------- */

static ncclResult_t comm_close(struct ncclComm *comm, bool abort)
{
	uint64_t one = 1;

	if (abort) {
		softnccl_comm_fail(comm, ncclInternalError);
		comm->aborted = true;
		(void)!write(comm->wake, &one, sizeof(one));
		softnccl_arrivals_stop(comm);
	}
	pthread_mutex_lock(&comm->lock);
	comm->close_by = softnccl_now() + softnccl_patience();
	comm->closing = true;
	pthread_cond_broadcast(&comm->more);
	pthread_mutex_unlock(&comm->lock);
	pthread_join(comm->thread, NULL);
	softnccl_arrivals_end(comm);
	softnccl_comm_put(comm);
	return ncclSuccess;
}

#define COMM(comm)                                                                             \
	do {                                                                                   \
		if (!softnccl_is_comm(comm))                                                   \
			return softnccl_fail(ncclInvalidArgument, "it is no communicator");    \
	} while (0)

NCCL_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm);
NCCL_EXPORT ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	if (!comm)
		return ncclSuccess;
	COMM(comm);
	return comm_close(comm, false);
}

NCCL_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm);
NCCL_EXPORT ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	if (!comm)
		return ncclSuccess;
	COMM(comm);
	return comm_close(comm, true);
}

/* What was issued is done before. */
NCCL_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm);
NCCL_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	uint64_t until = softnccl_now() + softnccl_patience();
	bool done = true;

	COMM(comm);
	pthread_mutex_lock(&comm->lock);
	while (comm->first && !comm->gone && done)
		done = softnccl_comm_wait(comm, until);
	pthread_mutex_unlock(&comm->lock);
	if (!done)
		return softnccl_fail(ncclTimeout, "what was issued is not done");
	return (ncclResult_t)comm->error;
}

/* What runs is stopped; what may be done then is to shrink, and to end it. */
NCCL_EXPORT ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags);
NCCL_EXPORT ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags)
{
	COMM(comm);
	if (flags)
		return softnccl_fail(
			ncclInvalidArgument, "there are no flags %#x", (unsigned)flags);
	softnccl_comm_fail(comm, ncclRemoteError);
	for (int i = 0; i < comm->ranks; i++)
		if (comm->sockets[NCCL_STREAMS][i] >= 0)
			shutdown(comm->sockets[NCCL_STREAMS][i], SHUT_RDWR);
	softnccl_arrivals_stop(comm);
	pthread_mutex_lock(&comm->lock);
	pthread_cond_broadcast(&comm->more); /* a task may wait for a signal */
	pthread_mutex_unlock(&comm->lock);
	return ncclSuccess;
}
