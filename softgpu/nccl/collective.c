/* SPDX-License-Identifier: Apache-2.0
 *
 * What a task does: its collectives, one after the other, then all its sends and receives
 * together, then what is one-sided in the program's order.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/task.h"
#include "softgpu/nccl/nccl.h"

/* An operation's bytes, out of the device's memory and back. */
struct staged {
	char *in, *out;
	size_t in_bytes, out_bytes;
};

ncclResult_t softnccl_copy(void *to, const void *from, size_t bytes, const void *device)
{
	bool reached;

	if (!bytes)
		return ncclSuccess;
	cuSoftgpuTaskBegin();
	reached = device && cuSoftgpuTaskReaches((uint64_t)(uintptr_t)device, bytes);
	if (reached)
		memcpy(to, from, bytes);
	cuSoftgpuTaskEnd();
	return reached ? ncclSuccess
		       : softnccl_fail(ncclUnhandledCudaError,
				 "a buffer at %p of %zu bytes is not the device's", device,
				 bytes);
}

/* How much of its buffers an operation uses. */
static void sizes(
	const struct ncclComm *comm, const struct softnccl_operation *o, struct staged *s)
{
	size_t one = o->count * softnccl_size(o->type), all = one * (size_t)comm->ranks;
	bool root = comm->rank == o->peer;

	s->in_bytes = s->out_bytes = one;
	switch (o->what) {
	case NCCL_ALL_GATHER: s->out_bytes = all; break;
	case NCCL_REDUCE_SCATTER: s->in_bytes = all; break;
	case NCCL_ALL_TO_ALL: s->in_bytes = s->out_bytes = all; break;
	case NCCL_REDUCE: s->out_bytes = root ? one : 0; break;
	case NCCL_BROADCAST: s->in_bytes = root ? one : 0; break;
	case NCCL_GATHER: s->out_bytes = root ? all : 0; break;
	case NCCL_SCATTER: s->in_bytes = root ? all : 0; break;
	case NCCL_SEND: s->out_bytes = 0; break;
	case NCCL_RECEIVE: s->in_bytes = 0; break;
	default: break;
	}
}

static ncclResult_t scale(const struct softnccl_operation *o, char *bytes, size_t n)
{
	uint64_t scalar = o->own.scalar;
	ncclResult_t status = ncclSuccess;

	if (!o->own.used)
		return status;
	if (o->own.on_device) {
		const void *at = (const void *)(uintptr_t)o->own.scalar;

		status = softnccl_copy(&scalar, at, softnccl_size(o->type), at);
	}
	if (!status)
		softnccl_scale(o->type, bytes, n / softnccl_size(o->type), &scalar);
	return status;
}

static ncclResult_t stage(
	const struct ncclComm *comm, const struct softnccl_operation *o, struct staged *s)
{
	ncclResult_t status;

	sizes(comm, o, s);
	s->in = malloc(s->in_bytes + 1);
	s->out = malloc(s->out_bytes + 1);
	if (!s->in || !s->out)
		return softnccl_fail(
			ncclSystemError, "no memory for %zu bytes", s->in_bytes + s->out_bytes);
	status = softnccl_copy(s->in, o->send, s->in_bytes, o->send);
	return status ? status : scale(o, s->in, s->in_bytes);
}

static ncclResult_t unstage(const struct softnccl_operation *o, const struct staged *s)
{
	return softnccl_copy(o->receive, s->out, s->out_bytes, o->receive);
}

/* --- rounds: with each rank at most one transfer each way --------------------------------- */

struct round {
	struct softnccl_transfer *sends, *receives;
	int send_count, receive_count;
};

static bool round_new(struct round *r, int ranks)
{
	*r = (struct round){0};
	r->sends = calloc(2 * (size_t)ranks, sizeof(*r->sends));
	r->receives = r->sends ? r->sends + ranks : NULL;
	return r->sends != NULL;
}

static void round_send(struct round *r, int peer, char *bytes, size_t count)
{
	r->sends[r->send_count++] =
		(struct softnccl_transfer){.peer = peer, .bytes = bytes, .count = count};
}

static void round_receive(struct round *r, int peer, char *bytes, size_t count)
{
	r->receives[r->receive_count++] =
		(struct softnccl_transfer){.peer = peer, .bytes = bytes, .count = count};
}

static ncclResult_t round_do(struct ncclComm *comm, struct round *r)
{
	return softnccl_exchange(
		comm, NCCL_STREAMS, r->sends, r->send_count, r->receives, r->receive_count);
}

/* Each rank has a share of what all have, reduces it, and where `back` all get it. */
struct shares {
	size_t from, count; /* elements of this rank's */
};

static struct shares share_of(size_t count, int ranks, int rank)
{
	size_t n = (size_t)ranks, k = (size_t)rank, each = count / n, more = count % n;

	return (struct shares){
		.from = k * each + (k < more ? k : more), .count = each + (k < more)};
}

/* Share `rank` of everybody's `in`, reduced to `out`. */
static ncclResult_t reduce_share(struct ncclComm *comm, const struct softnccl_operation *o,
	char *in, size_t count, bool whole, char *out)
{
	size_t size = softnccl_size(o->type);
	struct shares own = share_of(count, comm->ranks, comm->rank);
	char *got = malloc((size_t)comm->ranks * own.count * size + 1);
	char **from = calloc((size_t)comm->ranks, sizeof(*from));
	ncclResult_t status = softnccl_fail(ncclSystemError, "no memory");
	struct round r = {0};

	(void)whole;
	if (got && from && round_new(&r, comm->ranks)) {
		for (int i = 0; i < comm->ranks; i++) {
			struct shares theirs = share_of(count, comm->ranks, i);

			from[i] = got + (size_t)i * own.count * size;
			round_send(&r, i, in + theirs.from * size, theirs.count * size);
			round_receive(&r, i, from[i], own.count * size);
		}
		status = round_do(comm, &r);
	}
	if (!status)
		softnccl_reduce(o->type, o->own.used ? NCCL_SUM : o->op, out, from, comm->ranks,
			own.count);
	free(r.sends);
	free(from);
	free(got);
	return status;
}

static ncclResult_t all_reduce(
	struct ncclComm *comm, const struct softnccl_operation *o, const struct staged *s)
{
	size_t size = softnccl_size(o->type);
	struct shares own = share_of(o->count, comm->ranks, comm->rank);
	char *share = malloc(own.count * size + 1);
	ncclResult_t status = share ? reduce_share(comm, o, s->in, o->count, true, share)
				    : softnccl_fail(ncclSystemError, "no memory");
	struct round r = {0};

	if (!status && !round_new(&r, comm->ranks))
		status = softnccl_fail(ncclSystemError, "no memory");
	for (int i = 0; i < comm->ranks && !status; i++) {
		struct shares theirs = share_of(o->count, comm->ranks, i);

		round_send(&r, i, share, own.count * size);
		round_receive(&r, i, s->out + theirs.from * size, theirs.count * size);
	}
	if (!status)
		status = round_do(comm, &r);
	free(r.sends);
	free(share);
	return status;
}

static ncclResult_t reduce(
	struct ncclComm *comm, const struct softnccl_operation *o, const struct staged *s)
{
	bool root = comm->rank == o->peer;
	char *got = malloc((root ? (size_t)comm->ranks * s->in_bytes : 0) + 1);
	char **from = calloc((size_t)comm->ranks, sizeof(*from));
	ncclResult_t status = softnccl_fail(ncclSystemError, "no memory");
	struct round r = {0};

	if (got && from && round_new(&r, comm->ranks)) {
		round_send(&r, o->peer, s->in, s->in_bytes);
		for (int i = 0; i < comm->ranks && root; i++) {
			from[i] = got + (size_t)i * s->in_bytes;
			round_receive(&r, i, from[i], s->in_bytes);
		}
		status = round_do(comm, &r);
	}
	if (!status && root)
		softnccl_reduce(o->type, o->own.used ? NCCL_SUM : o->op, s->out, from,
			comm->ranks, o->count);
	free(r.sends);
	free(from);
	free(got);
	return status;
}

/* What is moved and not reduced. */
static ncclResult_t distribute(
	struct ncclComm *comm, const struct softnccl_operation *o, const struct staged *s)
{
	size_t one = o->count * softnccl_size(o->type);
	bool root = comm->rank == o->peer;
	bool from_root = o->what == NCCL_BROADCAST || o->what == NCCL_SCATTER;
	bool pieces = o->what == NCCL_SCATTER || o->what == NCCL_ALL_TO_ALL;
	bool to_root = o->what == NCCL_GATHER;
	ncclResult_t status;
	struct round r;

	if (!round_new(&r, comm->ranks))
		return softnccl_fail(ncclSystemError, "no memory");
	for (int i = 0; i < comm->ranks; i++) {
		if (from_root ? root : !to_root || i == o->peer)
			round_send(&r, i, s->in + (pieces ? (size_t)i * one : 0), one);
		if (from_root ? i == o->peer : !to_root || root)
			round_receive(&r, i, s->out + (from_root ? 0 : (size_t)i * one), one);
	}
	status = round_do(comm, &r);
	free(r.sends);
	return status;
}

static ncclResult_t collective(
	struct ncclComm *comm, const struct softnccl_operation *o, const struct staged *s)
{
	switch (o->what) {
	case NCCL_ALL_REDUCE: return all_reduce(comm, o, s);
	case NCCL_REDUCE: return reduce(comm, o, s);
	case NCCL_REDUCE_SCATTER:
		return reduce_share(
			comm, o, s->in, o->count * (size_t)comm->ranks, false, s->out);
	default: return distribute(comm, o, s);
	}
}

/* --- a task ------------------------------------------------------------------------------- */

static bool is_single(const struct softnccl_operation *o)
{
	return o->what == NCCL_SEND || o->what == NCCL_RECEIVE;
}

static bool is_one_sided(const struct softnccl_operation *o)
{
	return o->what >= NCCL_PUT;
}

static ncclResult_t run_collectives(
	struct ncclComm *comm, const struct softnccl_operation *o, struct staged *s, int count)
{
	ncclResult_t status = ncclSuccess;

	for (int i = 0; i < count && !status; i++) {
		if (is_single(&o[i]) || is_one_sided(&o[i]))
			continue;
		status = stage(comm, &o[i], &s[i]);
		if (!status)
			status = collective(comm, &o[i], &s[i]);
		if (!status)
			status = unstage(&o[i], &s[i]);
	}
	return status;
}

static ncclResult_t run_singles(
	struct ncclComm *comm, const struct softnccl_operation *o, struct staged *s, int count)
{
	struct softnccl_transfer *t = calloc(2 * (size_t)count, sizeof(*t));
	int sends = 0, receives = 0;
	ncclResult_t status = t ? ncclSuccess : softnccl_fail(ncclSystemError, "no memory");

	for (int i = 0; i < count && !status; i++) {
		if (!is_single(&o[i]))
			continue;
		status = stage(comm, &o[i], &s[i]);
		if (o[i].what == NCCL_SEND)
			t[sends++] = (struct softnccl_transfer){
				.peer = o[i].peer, .bytes = s[i].in, .count = s[i].in_bytes};
		else
			t[count + receives++] = (struct softnccl_transfer){
				.peer = o[i].peer, .bytes = s[i].out, .count = s[i].out_bytes};
	}
	if (!status)
		status = softnccl_exchange(comm, NCCL_STREAMS, t, sends, t + count, receives);
	for (int i = 0; i < count && !status; i++)
		if (o[i].what == NCCL_RECEIVE)
			status = unstage(&o[i], &s[i]);
	free(t);
	return status;
}

ncclResult_t softnccl_run(struct ncclComm *comm, const struct softnccl_operation *o, int count)
{
	struct staged *s = calloc((size_t)count, sizeof(*s));
	ncclResult_t status;

	if (!s)
		return softnccl_fail(ncclSystemError, "no memory");
	status = run_collectives(comm, o, s, count);
	if (!status)
		status = run_singles(comm, o, s, count);
	for (int i = 0; i < count && !status; i++)
		if (is_one_sided(&o[i]))
			status = softnccl_one_sided(comm, &o[i]);
	for (int i = 0; i < count; i++) {
		free(s[i].in);
		free(s[i].out);
	}
	free(s);
	return status;
}
