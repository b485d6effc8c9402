/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups: what a thread calls between ncclGroupStart and the ncclGroupEnd that belongs to it is
 * noted, and goes to the agent as one frame. A call outside of any is a group of its own.
 */
#include <stdlib.h>

#include "protocol/wire/channel.h"
#include "shim/libraries/nccl/nccl.h"

static __thread struct group {
	unsigned depth;
	ncclResult_t status; /* the first fault in it: nothing of the group is done */
	struct nccl_operation *operations;
	uint32_t count, room;
	struct nccl_making *makings;
	uint32_t making_count;
	struct destroyed {
		ncclComm_t comm;
		uint32_t number;
	} *destroyed; /* operations that the program destroyed in it */
	uint32_t destroyed_count;
} group;

bool nccl_in_group(void)
{
	return group.depth > 0;
}

uint32_t nccl_group_number(void)
{
	static _Atomic uint32_t last;
	uint32_t number;

	do
		number = atomic_fetch_add(&last, 1) + 1;
	while (!number);
	return number;
}

static bool stream_put(const struct nccl_operation *o, uint64_t *number, CUresult *status)
{
	CUcontext popped;

	*status = cuCtxPushCurrent(o->context);
	if (*status)
		return false;
	*status = vcuda_front_stream(o->stream, number);
	cuCtxPopCurrent(&popped);
	return !*status;
}

/* What a frame of COUNT operations is. */
#define KEYS_BYTES(count) (sizeof(struct wire_ncclGroupEnd) + (count) * sizeof(struct nccl_key))
#define FRAME_BYTES(count) (KEYS_BYTES(count) + (count) * sizeof(struct nccl_rest))

static ncclResult_t body_put(void *body, const struct nccl_operation *o, uint32_t count)
{
	struct nccl_key *keys = (void *)((struct wire_ncclGroupEnd *)body + 1);
	struct nccl_rest *rests = (void *)(keys + count);
	CUresult status;

	for (uint32_t i = 0; i < count; i++) {
		keys[i] = o[i].key;
		rests[i] = o[i].rest;
		if (!stream_put(&o[i], &rests[i].stream, &status))
			return nccl_fault(front_status(&nccl_front, status),
				"the stream of operation %u of the group cannot be used", i);
	}
	return ncclSuccess;
}

/* What is awaited each time: some of the operations, or a group that is only foretold. */
enum asks { ASKS_NOTHING, ASKS_SOME, ASKS_ESTIMATE };

static enum asks operations_ask(const struct nccl_operation *o, uint32_t count)
{
	uint32_t i = 0;

	while (i < count && !nccl_asks(o[i].key.function))
		i++;
	return i < count ? ASKS_SOME : ASKS_NOTHING;
}

/* The frame of COUNT operations, LAST of their group, whose body is at BODY. */
static struct front_frame frame_of(
	void *body, uint32_t count, uint32_t number, bool last, enum asks asks)
{
	*(struct wire_ncclGroupEnd *)body = (struct wire_ncclGroupEnd){.major = VCUDA_ABI,
		.count = (uint16_t)count,
		.more = !last,
		.group = number,
		.simulate = asks == ASKS_ESTIMATE};
	return (struct front_frame){
		.call = FRONT_COUNTED,
		.op = OP_ncclGroupEnd,
		.post = !last,
		.learned = last && !number && !asks,
		.body = body,
		.key_to = (uint32_t)KEYS_BYTES(count),
		.body_bytes = (uint32_t)FRAME_BYTES(count),
		.stream_at = FRONT_NO_STREAM,
	};
}

static ncclResult_t body_send(CUcontext context, struct front_frame *frame)
{
	ncclResult_t status;

	if (!nccl_enter(context, &status))
		return status;
	status = vcuda_library_frame(&nccl_front, frame);
	nccl_leave();
	return nccl_answered(status);
}

/* REPLY: of the group's end, where some of it is asked. */
static ncclResult_t frame_send(const struct nccl_operation *o, uint32_t count, uint32_t number,
	bool last, enum asks asks, struct wire_ncclGroupEnd_reply *reply)
{
	enum { FEW = 8 };
	_Alignas(8) unsigned char few[FRAME_BYTES(FEW)];
	void *body = count <= FEW ? few : malloc(FRAME_BYTES(count));
	struct front_frame frame;
	ncclResult_t status;

	if (!body)
		return nccl_fault(ncclSystemError, "no memory");
	frame = frame_of(body, count, number, last, asks);
	if (last && asks) {
		frame.reply = reply;
		frame.reply_bytes = sizeof(*reply);
	}
	status = body_put(body, o, count);
	if (!status)
		status = body_send(o->context, &frame);
	if (body != few)
		free(body);
	return status;
}

/* Operations at one agent: all frames, with a REPLY to the last or NULL, or all but the last.
 * *FROM: what the last one has. */
static ncclResult_t frames_send(const struct nccl_operation *o, uint32_t count, uint32_t number,
	bool with_last, enum asks asks, struct wire_ncclGroupEnd_reply *reply, uint32_t *from)
{
	uint32_t most = (uint32_t)NCCL_FRAME_OPERATIONS, n;
	ncclResult_t status = ncclSuccess;

	for (*from = 0; *from < count && !status; *from += n) {
		n = count - *from < most ? count - *from : most;
		if (*from + n == count && !with_last)
			break;
		status = frame_send(o + *from, n, number, *from + n == count, asks, reply);
	}
	return status;
}

static uint32_t number_of(uint32_t count)
{
	return count > NCCL_FRAME_OPERATIONS ? nccl_group_number() : 0;
}

/* --- at several agents -------------------------------------------------------------------- */

/* What the agents have of a group, each its operations in the program's order. */
struct parts {
	uint32_t count;
	bool known; /* each agent has done the like before: nobody is waited for */
	bool foretold;
	struct part {
		const struct nccl_operation *operations;
		uint32_t count, number;
		enum asks asks;
		void *body;
		struct wire_ncclGroupEnd_reply reply;
	} at[CHANNEL_AGENTS];
	struct nccl_ask asks[CHANNEL_AGENTS];
};

/* All but the last frame are under way, and that is ready. */
static ncclResult_t part_begin(struct parts *p, struct part *part, struct nccl_ask *ask)
{
	const struct nccl_operation *o = part->operations;
	ncclResult_t status;
	uint32_t from, n;

	part->number = number_of(part->count);
	part->asks = p->foretold ? ASKS_ESTIMATE : operations_ask(o, part->count);
	status = frames_send(o, part->count, part->number, false, part->asks, NULL, &from);
	if (status)
		return status;
	n = part->count - from;
	part->body = malloc(FRAME_BYTES(n));
	if (!part->body)
		return nccl_fault(ncclSystemError, "no memory");
	ask->context = o->context;
	ask->frame = frame_of(part->body, n, part->number, true, part->asks);
	ask->frame.reply = &part->reply;
	ask->frame.reply_bytes = part->asks ? sizeof(part->reply) : sizeof(part->reply.plain);
	ask->frame.status_first = true;
	status = body_put(part->body, o + from, n);
	if (status || !nccl_enter(ask->context, &status))
		return status;
	p->known &= !part->number && !part->asks && vcuda_front_known(&ask->frame);
	nccl_leave();
	return ncclSuccess;
}

/* One for each agent that has some: SORTED has them side by side. */
static void parts_cut(struct parts *p, const struct nccl_operation *o, uint32_t count,
	struct nccl_operation *sorted)
{
	uint32_t n = 0;

	p->known = true;
	for (unsigned home = 0; home < vcuda_front_homes() && n < count; home++) {
		struct part *part = &p->at[p->count];

		part->operations = &sorted[n];
		for (uint32_t i = 0; i < count; i++)
			if (vcuda_front_home(o[i].context) == home) {
				sorted[n++] = o[i];
				part->count++;
			}
		p->count += part->count != 0;
	}
}

static ncclResult_t parts_send(struct parts *p)
{
	ncclResult_t status = ncclSuccess;

	for (uint32_t i = 0; i < p->count && !status; i++)
		status = part_begin(p, &p->at[i], &p->asks[i]);
	if (!status && !p->known)
		status = nccl_ask_all(p->asks, p->count);
	else
		for (uint32_t i = 0; i < p->count && !status; i++)
			status = body_send(p->asks[i].context, &p->asks[i].frame);
	for (uint32_t i = 0; i < p->count; i++) {
		bool answered = !p->asks[i].status && !p->asks[i].abandoned;

		nccl_windows_made(p->at[i].operations, p->at[i].count, status,
			answered ? p->at[i].reply.windows : 0);
		free(p->at[i].body);
	}
	return status;
}

/* ESTIMATE: NULL, or the longest of the agents'. */
static ncclResult_t operations_send_apart(
	const struct nccl_operation *o, uint32_t count, float *estimate)
{
	struct nccl_operation *sorted = malloc(count * sizeof(*sorted));
	struct parts *p = calloc(1, sizeof(*p));
	ncclResult_t status;

	if (sorted && p) {
		p->foretold = estimate != NULL;
		parts_cut(p, o, count, sorted);
		status = parts_send(p);
		for (uint32_t i = 0; i < p->count && estimate; i++)
			if (p->at[i].reply.estimate > *estimate)
				*estimate = p->at[i].reply.estimate;
	} else {
		status = nccl_fault(ncclSystemError, "no memory");
		nccl_windows_made(o, count, status, 0);
	}
	free(sorted);
	free(p);
	return status;
}

/* ESTIMATE: how long they would take, and they are not done; else NULL. */
static ncclResult_t operations_send(
	const struct nccl_operation *o, uint32_t count, float *estimate)
{
	struct wire_ncclGroupEnd_reply reply = {0};
	enum asks asks = estimate ? ASKS_ESTIMATE : operations_ask(o, count);
	ncclResult_t status;
	uint32_t from;

	for (uint32_t i = 1; i < count && vcuda_front_homes() > 1; i++)
		if (vcuda_front_home(o[i].context) != vcuda_front_home(o->context))
			return operations_send_apart(o, count, estimate);
	status = frames_send(o, count, number_of(count), true, asks, &reply, &from);
	if (estimate)
		*estimate = reply.estimate;
	else if (asks)
		nccl_windows_made(o, count, status, status ? 0 : reply.windows);
	return status;
}

/* Keeps the first fault for the group's end. */
ncclResult_t nccl_group_fault(ncclResult_t status)
{
	if (status && group.depth && !group.status)
		group.status = status;
	return status;
}

ncclResult_t nccl_note(const struct nccl_operation *o, uint32_t count)
{
	struct nccl_operation *more;
	uint32_t room;

	if (!group.depth)
		return operations_send(o, count, NULL);
	if (count > NCCL_OPERATIONS - group.count)
		return nccl_group_fault(nccl_fault(ncclInvalidUsage,
			"a group has more than %u operations", NCCL_OPERATIONS));
	if (group.count + count > group.room) {
		room = 2 * group.room > group.count + count ? 2 * group.room
							    : group.count + count + 16;
		more = realloc(group.operations, room * sizeof(*more));
		if (!more)
			return nccl_group_fault(nccl_fault(ncclSystemError, "no memory"));
		group.operations = more;
		group.room = room;
	}
	memcpy(group.operations + group.count, o, count * sizeof(*o));
	group.count += count;
	return ncclSuccess;
}

ncclResult_t nccl_note_making(const struct nccl_making *making)
{
	struct nccl_making one = *making, *more;

	if (!group.depth)
		return nccl_make(&one, 1);
	more = group.making_count < NCCL_MAKINGS
		       ? realloc(group.makings, (group.making_count + 1) * sizeof(*more))
		       : NULL;
	if (!more)
		return nccl_group_fault(nccl_fault(ncclInvalidUsage,
			"a group makes more than %u communicators", NCCL_MAKINGS));
	group.makings = more;
	more[group.making_count++] = one;
	return ncclSuccess;
}

ncclResult_t nccl_note_destroyed(ncclComm_t comm, uint32_t number)
{
	struct destroyed *more;

	if (!group.depth)
		return nccl_reduction_end(comm, number);
	more = realloc(group.destroyed, (group.destroyed_count + 1) * sizeof(*more));
	if (!more)
		return nccl_group_fault(nccl_fault(ncclSystemError, "no memory"));
	group.destroyed = more;
	more[group.destroyed_count++] = (struct destroyed){comm, number};
	return ncclSuccess;
}

/* What a group has noted, which is no more. */
static void group_free(struct group *g)
{
	for (uint32_t i = 0; i < g->destroyed_count; i++)
		nccl_reduction_end(g->destroyed[i].comm, g->destroyed[i].number);
	free(g->destroyed);
	free(g->makings);
	free(g->operations);
}

static bool windows_fit(const struct group *g)
{
	uint32_t windows = 0;

	for (uint32_t i = 0; i < g->count; i++)
		windows += g->operations[i].window != NULL;
	return windows <= NCCL_WINDOWS;
}

static ncclResult_t group_send(struct group *g)
{
	ncclResult_t status = g->status;

	if (!status && !windows_fit(g))
		status = nccl_fault(
			ncclInvalidUsage, "a group makes more than %u windows", NCCL_WINDOWS);
	if (status)
		nccl_unmake(g->makings, g->making_count);
	else if (g->making_count)
		status = nccl_make(g->makings, g->making_count);
	if (!status && g->count)
		status = operations_send(g->operations, g->count, NULL);
	else
		nccl_windows_made(g->operations, g->count, status, 0);
	group_free(g);
	return status;
}

STUB_EXPORT ncclResult_t ncclGroupStart(void)
{
	COUNT(ncclGroupStart);
	group.depth++;
	return ncclSuccess;
}

STUB_EXPORT ncclResult_t ncclGroupEnd(void)
{
	struct group whole;

	COUNT(ncclGroupEnd);
	if (!group.depth)
		return nccl_fault(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
	if (--group.depth)
		return ncclSuccess;
	whole = group;
	group = (struct group){0};
	return group_send(&whole);
}

/* Whether all of it can be foretold: what makes or changes something is not asked for that. */
static bool foretells(const struct group *g)
{
	return !g->making_count && operations_ask(g->operations, g->count) == ASKS_NOTHING;
}

/* Of a group that was noted: nothing of it is done. */
static ncclResult_t group_foretell(struct group *g, ncclSimInfo_t *info)
{
	ncclResult_t status = g->status;
	float estimate = 0;

	if (!status && (info->magic != NCCL_SIM_MAGIC || info->size < sizeof(*info)))
		status = nccl_fault(ncclInvalidArgument,
			"the information was not made by NCCL_SIM_INFO_INITIALIZER");
	if (!status && !foretells(g))
		status = nccl_fault(ncclInvalidUsage,
			"how long it takes to make something is not foretold");
	if (!status && g->count)
		status = operations_send(g->operations, g->count, &estimate);
	else
		nccl_windows_made(g->operations, g->count, status, 0);
	nccl_unmake(g->makings, g->making_count);
	if (!status && g->count)
		info->estimatedTime = estimate;
	group_free(g);
	return status;
}

STUB_EXPORT ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *simInfo)
{
	struct group whole;

	COUNT(ncclGroupSimulateEnd);
	if (!group.depth)
		return nccl_fault(
			ncclInvalidUsage, "ncclGroupSimulateEnd without ncclGroupStart");
	if (--group.depth)
		return ncclSuccess;
	whole = group;
	group = (struct group){0};
	return simInfo ? group_foretell(&whole, simInfo) : group_send(&whole);
}

SECOND(ncclGroupStart)
SECOND(ncclGroupEnd)
SECOND(ncclGroupSimulateEnd)
