/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows: memory of all ranks that one-sided operations write to, and those operations. Making
 * one is an operation of a group that is awaited; the others go as collectives do.
 */
#include <pthread.h>
#include <stdlib.h>

#include "shim/engine/lock.h"
#include "shim/libraries/nccl/nccl.h"

struct nccl_window {
	struct nccl_comm *comm;
	uint64_t handle; /* minted here; what the program has as ncclWindow_t */
	uint32_t number; /* by which the agent knows it */
	void *address;
	struct nccl_window *next; /* of the communicator */
};

static struct {
	pthread_mutex_t lock; /* of each communicator's list */
} windows = {PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(nccl_windows, windows.lock, LOCK_WINDOW);

static struct nccl_window *window_find(const struct nccl_comm *comm, ncclWindow_t win)
{
	struct nccl_window *found =
		win ? vcuda_front_object((uint64_t)(uintptr_t)win, KIND_ncclWindow) : NULL;

	if (found && found->comm == comm)
		return found;
	nccl_fault(ncclInvalidArgument, "the window is none of the communicator's");
	return NULL;
}

/* --- making ------------------------------------------------------------------------------- */

STUB_EXPORT ncclResult_t ncclCommWindowRegister(
	ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags)
{
	struct nccl_comm *found;
	struct nccl_operation o;
	struct nccl_window *one;

	COUNT(ncclCommWindowRegister);
	found = nccl_find(comm);
	if (!found)
		return nccl_group_fault(ncclInvalidArgument);
	if (win)
		*win = NULL;
	if (!win || !buff || !size || size > INT64_MAX || winFlags < 0)
		return nccl_group_fault(nccl_fault(ncclInvalidArgument,
			"no place for a window, no memory of %zu bytes, or no flags %#x", size,
			(unsigned)winFlags));
	if (found->making)
		return nccl_group_fault(
			nccl_fault(ncclInvalidUsage, "the communicator is not made yet"));
	one = calloc(1, sizeof(*one));
	if (!one)
		return nccl_group_fault(nccl_fault(ncclSystemError, "no memory"));
	*one = (struct nccl_window){.comm = found, .address = buff};
	do
		one->number = atomic_fetch_add(&found->next, 1) + 1;
	while (!one->number);
	o = (struct nccl_operation){
		.key = {.comm = found->handle,
			.function = NCCL_WINDOW,
			.op = winFlags,
			.window = one->number},
		.rest = {.send = (uint64_t)(uintptr_t)buff, .count = size},
		.context = found->context,
		.window = one,
		.to = win,
	};
	return nccl_note(&o, 1);
}

/* At the agent, where nobody waits for it. */
static void window_undo(const struct nccl_window *one)
{
	struct wire_ncclCommWindowDeregister body = {
		.comm = one->comm->handle, .major = VCUDA_ABI, .number = one->number};
	ncclResult_t gone;

	if (!nccl_enter(one->comm->context, &gone))
		return;
	front_post(OP_ncclCommWindowDeregister, &body, sizeof(body));
	nccl_leave();
}

/* It becomes the program's. */
static bool window_name(struct nccl_window *one)
{
	CUcontext popped;

	if (cuCtxPushCurrent(one->comm->context)) /* its name's agent is the communicator's */
		return false;
	one->handle = vcuda_front_mint(KIND_ncclWindow, one);
	cuCtxPopCurrent(&popped);
	if (!one->handle)
		return false;
	pthread_mutex_lock(&windows.lock);
	one->next = one->comm->windows;
	one->comm->windows = one;
	pthread_mutex_unlock(&windows.lock);
	return true;
}

void nccl_windows_made(
	const struct nccl_operation *o, uint32_t count, ncclResult_t status, uint64_t made)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct nccl_window *one = o[i].window;
		bool there;

		if (!one)
			continue;
		there = n < NCCL_WINDOWS && made >> n & 1;
		n++;
		/* Natively it is so too: memory that cannot be one, and no error. */
		if (!there && !status)
			one->comm->windowless = true;
		if (there && !status && window_name(one)) {
			*o[i].to = (ncclWindow_t)(uintptr_t)one->handle;
			continue;
		}
		if (there)
			window_undo(one);
		*o[i].to = NULL;
		free(one);
	}
}

/* --- their end ---------------------------------------------------------------------------- */

void nccl_windows_drop(struct nccl_comm *comm)
{
	struct nccl_window *one, *next;

	pthread_mutex_lock(&windows.lock);
	one = comm->windows;
	comm->windows = NULL;
	pthread_mutex_unlock(&windows.lock);
	for (; one; one = next) {
		next = one->next;
		vcuda_front_release(one->handle);
		free(one);
	}
}

static void window_unlink(struct nccl_window *one)
{
	struct nccl_window **at;

	pthread_mutex_lock(&windows.lock);
	for (at = &one->comm->windows; *at && *at != one; at = &(*at)->next)
		;
	if (*at)
		*at = one->next;
	pthread_mutex_unlock(&windows.lock);
}

STUB_EXPORT ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win)
{
	struct wire_ncclCommWindowDeregister body = {.major = VCUDA_ABI};
	struct wire_ncclCommWindowDeregister_reply reply = {0};
	const struct nccl_comm *found;
	struct nccl_window *one;

	COUNT(ncclCommWindowDeregister);
	found = nccl_find(comm);
	if (!found || !win)
		return found ? ncclSuccess : ncclInvalidArgument;
	one = window_find(found, win);
	if (!one || !vcuda_front_release(one->handle))
		return ncclInvalidArgument;
	window_unlink(one);
	body.comm = found->handle;
	body.number = one->number;
	free(one);
	return nccl_ask_at(found->context, OP_ncclCommWindowDeregister, &body, sizeof(body),
		&reply, sizeof(reply), "ncclCommWindowDeregister");
}

STUB_EXPORT ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr)
{
	const struct nccl_comm *found;
	const struct nccl_window *one;

	COUNT(ncclWinGetUserPtr);
	found = nccl_find(comm);
	if (!found)
		return ncclInvalidArgument;
	if (!outUserPtr)
		return nccl_fault(ncclInvalidArgument, "no place for an address");
	*outUserPtr = NULL;
	if (!win && found->windowless)
		return ncclSuccess;
	one = window_find(found, win);
	if (!one)
		return ncclInvalidArgument;
	*outUserPtr = one->address;
	return ncclSuccess;
}

/* --- one-sided operations ----------------------------------------------------------------- */

#define MOST_CONTEXTS 256

/* What all of them look at; no communicator is told of by nccl_find. */
static ncclResult_t signal_check(const struct nccl_comm *comm, const char *name, int peer,
	int index, int context, unsigned flags)
{
	if (!comm)
		return ncclInvalidArgument;
	if (comm->making)
		return nccl_fault(
			ncclInvalidUsage, "%s: the communicator is not made yet", name);
	if (peer < 0 || peer >= comm->nranks)
		return nccl_fault(ncclInvalidArgument, "%s: there is no rank %d of %d", name,
			peer, comm->nranks);
	if (index < 0 || context < 0 || context >= MOST_CONTEXTS || flags)
		return nccl_fault(ncclInvalidArgument,
			"%s: there is no signal %d of context %d, or are no flags %#x", name,
			index, context, flags);
	return ncclSuccess;
}

static struct nccl_operation signal_of(const struct nccl_comm *comm, unsigned function,
	int peer, int index, int context, CUstream stream)
{
	return (struct nccl_operation){
		.key = {.comm = comm->handle,
			.function = (uint8_t)function,
			.context = (uint8_t)context,
			.op = index,
			.peer = peer},
		.stream = stream,
		.context = comm->context,
	};
}

STUB_EXPORT ncclResult_t ncclPutSignal(const void *localbuff, size_t count,
	ncclDataType_t datatype, int peer, ncclWindow_t peerWin, size_t peerWinOffset,
	int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream)
{
	uint32_t each = nccl_type_bytes(datatype);
	const struct nccl_window *window;
	const struct nccl_comm *found;
	struct nccl_operation o;
	ncclResult_t status;

	COUNT(ncclPutSignal);
	found = nccl_find(comm);
	status = signal_check(found, "ncclPutSignal", peer, sigIdx, ctx, flags);
	if (!status && (!each || !localbuff || count > INT64_MAX / each))
		status = nccl_fault(ncclInvalidArgument,
			"ncclPutSignal: no memory of %zu elements of type %d", count, datatype);
	window = status ? NULL : window_find(found, peerWin);
	if (!window)
		return nccl_group_fault(status ? status : ncclInvalidArgument);
	o = signal_of(found, NCCL_PUT_SIGNAL, peer, sigIdx, ctx, stream);
	o.key.type = (uint8_t)datatype;
	o.key.magnitude = nccl_magnitude(count * each);
	o.key.window = window->number;
	o.rest.send = (uint64_t)(uintptr_t)localbuff;
	o.rest.receive = peerWinOffset;
	o.rest.count = count;
	return nccl_note(&o, 1);
}

STUB_EXPORT ncclResult_t ncclSignal(
	int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream)
{
	const struct nccl_comm *found;
	struct nccl_operation o;
	ncclResult_t status;

	COUNT(ncclSignal);
	found = nccl_find(comm);
	status = signal_check(found, "ncclSignal", peer, sigIdx, ctx, flags);
	if (status)
		return nccl_group_fault(status);
	o = signal_of(found, NCCL_ONLY_SIGNAL, peer, sigIdx, ctx, stream);
	return nccl_note(&o, 1);
}

static ncclResult_t waits_put(struct nccl_operation *o, const struct nccl_comm *comm,
	const ncclWaitSignalDesc_t *d, int count, CUstream stream)
{
	for (int i = 0; i < count; i++) {
		ncclResult_t status = signal_check(
			comm, "ncclWaitSignal", d[i].peer, d[i].sigIdx, d[i].ctx, 0);

		if (!status && d[i].opCnt <= 0)
			status = nccl_fault(ncclInvalidArgument,
				"ncclWaitSignal: it would wait for %d signals", d[i].opCnt);
		if (status)
			return status;
		o[i] = signal_of(
			comm, NCCL_WAIT_SIGNAL, d[i].peer, d[i].sigIdx, d[i].ctx, stream);
		o[i].rest.count = (uint64_t)d[i].opCnt;
		o[i].rest.receive = (uint64_t)(count - 1 - i);
	}
	return ncclSuccess;
}

STUB_EXPORT ncclResult_t ncclWaitSignal(
	int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm, cudaStream_t stream)
{
	enum { FEW = 8 };
	struct nccl_operation few[FEW], *o = few;
	const struct nccl_comm *found;
	ncclResult_t status;

	COUNT(ncclWaitSignal);
	found = nccl_find(comm);
	if (!found || nDesc < 1 || (unsigned)nDesc > NCCL_OPERATIONS || !signalDescs)
		return nccl_group_fault(found ? nccl_fault(ncclInvalidArgument,
							"ncclWaitSignal: %d descriptors", nDesc)
					      : ncclInvalidArgument);
	if (nDesc > FEW)
		o = malloc((size_t)nDesc * sizeof(*o));
	if (!o)
		return nccl_group_fault(nccl_fault(ncclSystemError, "no memory"));
	status = waits_put(o, found, signalDescs, nDesc, stream);
	status = status ? nccl_group_fault(status) : nccl_note(o, (uint32_t)nDesc);
	if (o != few)
		free(o);
	return status;
}

SECOND(ncclCommWindowRegister)
SECOND(ncclCommWindowDeregister)
SECOND(ncclWinGetUserPtr)
SECOND(ncclPutSignal)
SECOND(ncclSignal)
SECOND(ncclWaitSignal)
