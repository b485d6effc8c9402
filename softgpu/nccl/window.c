/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows and one-sided operations: what a rank puts goes over the pair's third connection to a
 * thread of the other rank, which copies it into the window and counts a signal.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softgpu/nccl/nccl.h"

#define COLLECTIVE_SYMMETRIC 1 /* NCCL_WIN_COLL_SYMMETRIC */
#define FLAGS 0xf

struct head {
	uint32_t window; /* 0: only a signal */
	uint32_t reserved;
	uint64_t at, bytes;
};

/* --- windows ------------------------------------------------------------------------------ */

/* A copy of it: the program may end it at any time. */
static bool window_find(struct ncclComm *comm, uint32_t number, struct ncclWindow_vidmem *to)
{
	const struct ncclWindow_vidmem *one;

	pthread_mutex_lock(&comm->lock);
	for (one = comm->windows; one && one->number != number; one = one->next)
		;
	if (one)
		*to = *one;
	pthread_mutex_unlock(&comm->lock);
	return one;
}

static bool window_is(struct ncclComm *comm, const struct ncclWindow_vidmem *window)
{
	const struct ncclWindow_vidmem *one;

	pthread_mutex_lock(&comm->lock);
	for (one = comm->windows; one && one != window; one = one->next)
		;
	pthread_mutex_unlock(&comm->lock);
	return one;
}

/* Whether the memory lies in a window that all ranks have at one place. */
static bool window_has(struct ncclComm *comm, const char *at, uint64_t bytes)
{
	const struct ncclWindow_vidmem *one;

	pthread_mutex_lock(&comm->lock);
	for (one = comm->windows; one; one = one->next)
		if (one->flags & COLLECTIVE_SYMMETRIC && at >= one->address &&
			(uint64_t)(at - one->address) <= one->bytes &&
			bytes <= one->bytes - (uint64_t)(at - one->address))
			break;
	pthread_mutex_unlock(&comm->lock);
	return one;
}

static void window_drop(ncclWindow_t window)
{
	struct ncclComm *comm = window->comm;
	ncclWindow_t *at;

	pthread_mutex_lock(&comm->lock);
	for (at = &comm->windows; *at != window; at = &(*at)->next)
		;
	*at = window->next;
	pthread_mutex_unlock(&comm->lock);
	free(window);
}

ncclResult_t softnccl_agree(struct ncclComm *comm, uint32_t number, const char *what)
{
	size_t each = (size_t)comm->ranks;
	uint32_t *all = calloc(each, sizeof(*all));
	struct softnccl_transfer *t = calloc(2 * each, sizeof(*t));
	ncclResult_t status =
		all && t ? ncclSuccess : softnccl_fail(ncclSystemError, "no memory");

	for (int i = 0; i < comm->ranks && !status; i++) {
		t[i] = (struct softnccl_transfer){
			.peer = i, .bytes = (char *)&number, .count = sizeof(*all)};
		t[each + (size_t)i] = (struct softnccl_transfer){
			.peer = i, .bytes = (char *)&all[i], .count = sizeof(*all)};
	}
	pthread_mutex_lock(&comm->calls);
	if (!status)
		status = softnccl_exchange(
			comm, NCCL_CALLS, t, comm->ranks, t + each, comm->ranks);
	pthread_mutex_unlock(&comm->calls);
	for (int i = 0; i < comm->ranks && !status; i++)
		if (all[i] != number)
			status = softnccl_fail(ncclInvalidUsage, "%s: rank %d %u, rank %d %u",
				what, comm->rank, number, i, all[i]);
	free(all);
	free(t);
	return status;
}

/* All have as many as this one. */
ncclResult_t softnccl_window_make(struct softnccl_making *m)
{
	ncclResult_t status = softnccl_arrivals_begin(m->parent);

	if (!status)
		status = softnccl_agree(m->parent, m->window->number, "a window's number");
	if (status)
		window_drop(m->window);
	else
		*m->window_to = m->window;
	return status;
}

NCCL_EXPORT ncclResult_t ncclCommWindowRegister(
	ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *to, int flags);
NCCL_EXPORT ncclResult_t ncclCommWindowRegister(
	ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *to, int flags)
{
	struct softnccl_making m = {.parent = comm, .window_to = to};

	if (!softnccl_is_comm(comm) || !to || !memory || !bytes || flags & ~FLAGS)
		return softnccl_keep(softnccl_fail(ncclInvalidArgument,
			"no communicator, no memory, or no flags %#x", (unsigned)flags));
	*to = NULL;
	m.window = calloc(1, sizeof(*m.window));
	if (!m.window)
		return softnccl_keep(softnccl_fail(ncclSystemError, "no memory"));
	pthread_mutex_lock(&comm->lock);
	*m.window = (struct ncclWindow_vidmem){.comm = comm,
		.number = ++comm->last_window,
		.flags = flags,
		.address = memory,
		.bytes = bytes,
		.next = comm->windows};
	comm->windows = m.window;
	pthread_mutex_unlock(&comm->lock);
	return softnccl_make_later(&m);
}

NCCL_EXPORT ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window);
NCCL_EXPORT ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
	if (!softnccl_is_comm(comm))
		return softnccl_fail(ncclInvalidArgument, "no communicator");
	if (!window)
		return ncclSuccess;
	if (!window_is(comm, window))
		return softnccl_fail(
			ncclInvalidArgument, "the window is none of the communicator's");
	window_drop(window);
	return ncclSuccess;
}

NCCL_EXPORT ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **to);
NCCL_EXPORT ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **to)
{
	if (!softnccl_is_comm(comm) || !to || !window_is(comm, window))
		return softnccl_fail(
			ncclInvalidArgument, "no communicator, or no window of it");
	*to = window->address;
	return ncclSuccess;
}

/* --- what arrives ------------------------------------------------------------------------- */

/* Into this rank's memory; then its signal counts. */
static ncclResult_t arrive(
	struct ncclComm *comm, int peer, const struct head *h, const char *bytes)
{
	ncclResult_t status = ncclSuccess;
	struct ncclWindow_vidmem w;

	if (h->window && (!window_find(comm, h->window, &w) || h->at > w.bytes ||
				 h->bytes > w.bytes - h->at))
		status = softnccl_fail(ncclInvalidUsage,
			"rank %d puts %llu bytes at %llu, beyond window %u of rank %d", peer,
			(unsigned long long)h->bytes, (unsigned long long)h->at, h->window,
			comm->rank);
	else if (h->window)
		status = softnccl_copy(w.address + h->at, bytes, h->bytes, w.address + h->at);
	pthread_mutex_lock(&comm->lock);
	if (status)
		softnccl_comm_fail(comm, status);
	else
		comm->arrivals.from[peer].signals++;
	pthread_cond_broadcast(&comm->more);
	pthread_mutex_unlock(&comm->lock);
	return status;
}

/* One that a peer put. False: the peer is gone, or what it says cannot be. */
static bool take(struct ncclComm *comm, int peer)
{
	int fd = comm->sockets[NCCL_PUTS][peer];
	uint64_t until = softnccl_now() + softnccl_patience();
	struct head h;
	char *bytes;
	bool right;

	if (!softnccl_read(fd, &h, sizeof(h), until) || h.bytes > INT64_MAX - 1)
		return false;
	bytes = malloc(h.bytes + 1);
	right = bytes && softnccl_read(fd, bytes, h.bytes, until) &&
		!arrive(comm, peer, &h, bytes);
	free(bytes);
	return right;
}

static void peer_gone(struct ncclComm *comm, int peer)
{
	pthread_mutex_lock(&comm->lock);
	comm->arrivals.from[peer].gone = true;
	pthread_cond_broadcast(&comm->more);
	pthread_mutex_unlock(&comm->lock);
}

static void *arrivals_run(void *argument)
{
	enum { LOOK_MS = 1000 };
	struct ncclComm *comm = argument;
	struct pollfd *fds = calloc((size_t)comm->ranks + 1, sizeof(*fds));

	for (int i = 0; i < comm->ranks && fds; i++)
		fds[i] = (struct pollfd){comm->sockets[NCCL_PUTS][i], POLLIN, 0};
	if (fds)
		fds[comm->ranks] = (struct pollfd){comm->wake, POLLIN, 0};
	cuCtxSetCurrent(comm->context);
	while (fds && !fds[comm->ranks].revents) {
		int n = poll(fds, (nfds_t)comm->ranks + 1, LOOK_MS);

		for (int i = 0; i < comm->ranks && n > 0; i++)
			if (fds[i].revents && !take(comm, i)) {
				peer_gone(comm, i);
				fds[i].fd = -1;
			}
	}
	free(fds);
	return NULL;
}

ncclResult_t softnccl_arrivals_begin(struct ncclComm *comm)
{
	struct softnccl_arrivals *a = &comm->arrivals;
	bool begun;

	pthread_mutex_lock(&comm->lock);
	if (!a->begun)
		a->begun = softnccl_thread_begin(&a->thread, arrivals_run, comm);
	begun = a->begun;
	pthread_mutex_unlock(&comm->lock);
	return begun ? ncclSuccess : softnccl_fail(ncclSystemError, "no thread");
}

void softnccl_arrivals_stop(const struct ncclComm *comm)
{
	for (int i = 0; i < comm->ranks; i++)
		if (comm->sockets[NCCL_PUTS][i] >= 0)
			shutdown(comm->sockets[NCCL_PUTS][i], SHUT_RDWR);
}

void softnccl_arrivals_end(struct ncclComm *comm)
{
	uint64_t one = 1;

	if (comm->arrivals.begun) {
		(void)!write(comm->wake, &one, sizeof(one));
		softnccl_arrivals_stop(comm);
		pthread_join(comm->arrivals.thread, NULL);
	}
	while (comm->windows)
		window_drop(comm->windows);
}

/* --- one-sided operations ----------------------------------------------------------------- */

static ncclResult_t put(struct ncclComm *comm, const struct softnccl_operation *o)
{
	struct head h = {.window = o->window,
		.at = o->at,
		.bytes = o->window ? o->count * softnccl_size(o->type) : 0};
	uint64_t until = softnccl_now() + softnccl_patience();
	char *bytes = malloc(h.bytes + 1);
	ncclResult_t status = bytes ? softnccl_copy(bytes, o->send, h.bytes, o->send)
				    : softnccl_fail(ncclSystemError, "no memory");
	int fd = comm->sockets[NCCL_PUTS][o->peer];

	if (!status && o->peer == comm->rank)
		status = arrive(comm, o->peer, &h, bytes);
	else if (!status && (!softnccl_write(fd, &h, sizeof(h), until) ||
				    !softnccl_write(fd, bytes, h.bytes, until)))
		status = softnccl_fail(ncclRemoteError, "rank %d is gone", o->peer);
	free(bytes);
	return status;
}

static ncclResult_t wait_for(struct ncclComm *comm, int peer, uint64_t count)
{
	uint64_t until = softnccl_now() + softnccl_patience();
	ncclResult_t status = ncclSuccess;
	bool late = false;

	pthread_mutex_lock(&comm->lock);
	while (comm->arrivals.from[peer].signals < count && !comm->error && !late &&
		!comm->arrivals.from[peer].gone)
		late = !softnccl_comm_wait(comm, until);
	if (comm->arrivals.from[peer].signals >= count)
		comm->arrivals.from[peer].signals -= count;
	else if (comm->error)
		status = (ncclResult_t)comm->error;
	else
		status = softnccl_fail(late ? ncclTimeout : ncclRemoteError, "rank %d %s", peer,
			late ? "signals nothing" : "is gone");
	pthread_mutex_unlock(&comm->lock);
	return status;
}

ncclResult_t softnccl_one_sided(struct ncclComm *comm, const struct softnccl_operation *o)
{
	return o->what == NCCL_WAIT ? wait_for(comm, o->peer, o->count) : put(comm, o);
}

/* As NVIDIA's: there is one signal, of one context. */
static ncclResult_t signal_do(struct ncclComm *comm, struct softnccl_operation o, int index,
	int context, unsigned flags)
{
	ncclResult_t status;

	if (!softnccl_is_comm(comm) || index || context || flags)
		return softnccl_keep(softnccl_fail(ncclInvalidArgument,
			"no communicator, or no signal %d of context %d, or no flags %#x",
			index, context, flags));
	status = softnccl_arrivals_begin(comm);
	return status ? softnccl_keep(status) : softnccl_operate(comm, o);
}

NCCL_EXPORT ncclResult_t ncclPutSignal(const void *send, size_t count, int type, int peer,
	ncclWindow_t window, size_t at, int index, int context, unsigned flags, ncclComm_t comm,
	CUstream stream);
NCCL_EXPORT ncclResult_t ncclPutSignal(const void *send, size_t count, int type, int peer,
	ncclWindow_t window, size_t at, int index, int context, unsigned flags, ncclComm_t comm,
	CUstream stream)
{
	if (!softnccl_is_comm(comm) || !window_is(comm, window) ||
		!window_has(comm, send, count * softnccl_size(type)))
		return softnccl_keep(softnccl_fail(ncclInvalidArgument,
			"no window, or what is put lies in none that is symmetric"));
	return signal_do(comm,
		(struct softnccl_operation){.what = NCCL_PUT,
			.send = send,
			.count = count,
			.type = type,
			.peer = peer,
			.window = window->number,
			.at = at,
			.stream = stream},
		index, context, flags);
}

NCCL_EXPORT ncclResult_t ncclSignal(
	int peer, int index, int context, unsigned flags, ncclComm_t comm, CUstream stream);
NCCL_EXPORT ncclResult_t ncclSignal(
	int peer, int index, int context, unsigned flags, ncclComm_t comm, CUstream stream)
{
	return signal_do(comm,
		(struct softnccl_operation){
			.what = NCCL_SIGNAL, .peer = peer, .stream = stream},
		index, context, flags);
}

NCCL_EXPORT ncclResult_t ncclWaitSignal(
	int count, ncclWaitSignalDesc_t *waits, ncclComm_t comm, CUstream stream);
NCCL_EXPORT ncclResult_t ncclWaitSignal(
	int count, ncclWaitSignalDesc_t *waits, ncclComm_t comm, CUstream stream)
{
	ncclResult_t status = ncclSuccess;

	if (count < 1 || !waits)
		return softnccl_keep(softnccl_fail(ncclInvalidArgument, "nothing to wait for"));
	for (int i = 0; i < count && !status; i++)
		status = waits[i].opCnt < 1
				 ? softnccl_keep(softnccl_fail(ncclInvalidArgument,
					   "a wait for %d signals", waits[i].opCnt))
				 : signal_do(comm,
					   (struct softnccl_operation){.what = NCCL_WAIT,
						   .count = (size_t)waits[i].opCnt,
						   .peer = waits[i].peer,
						   .stream = stream},
					   waits[i].sigIdx, waits[i].ctx, 0);
	return status;
}
