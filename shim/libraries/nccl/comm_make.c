/* SPDX-License-Identifier: Apache-2.0
 *
 * The frames that make communicators: one for each rank of this process.
 */
#include <stdlib.h>

#include "shim/libraries/nccl/nccl.h"

void nccl_unmake(struct nccl_making *m, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		*m[i].to = NULL;
		nccl_comm_drop(m[i].comm);
		free(m[i].body);
	}
}

/* Posts one of a group, or the last where nobody waits for it. */
static ncclResult_t making_post(const struct nccl_making *m)
{
	ncclResult_t status;

	if (!nccl_enter(m->comm->context, &status))
		return status;
	status = front_status(&nccl_front, front_post(OP_ncclCommInitRank, m->body, m->bytes));
	nccl_leave();
	return status;
}

static ncclResult_t making_ask(
	const struct nccl_making *m, struct wire_ncclCommInitRank_reply *reply)
{
	ncclResult_t status;

	if (!nccl_enter(m->comm->context, &status))
		return status;
	status = vcuda_library_ask(&nccl_front, OP_ncclCommInitRank, m->body, m->bytes, reply,
		sizeof(*reply), "ncclCommInitRank");
	nccl_leave();
	return status;
}

/* What the agent says of each of them becomes the program's. */
static void making_made(struct nccl_making *m, uint32_t count, bool asked,
	const struct wire_ncclCommInitRank_reply *reply)
{
	for (uint32_t i = 0; i < count; i++) {
		struct nccl_comm *comm = m[i].comm;

		free(m[i].body);
		if (asked && reply->made[i].rank < 0) { /* no color: it has none */
			*m[i].to = NULL;
			nccl_comm_drop(comm);
			continue;
		}
		if (asked) {
			comm->nranks = reply->made[i].nranks;
			comm->rank = reply->made[i].rank;
		}
		comm->making = !asked;
		*m[i].to = (ncclComm_t)(uintptr_t)comm->handle;
	}
}

/* Those of one agent but the last, or with that: a group there. */
static ncclResult_t makings_post(struct nccl_making *m, uint32_t count, bool with_last)
{
	uint32_t number = count > 1 ? nccl_group_number() : 0;
	ncclResult_t status = ncclSuccess;

	for (uint32_t i = 0; i < count; i++) {
		m[i].body->more = i + 1 < count;
		m[i].body->group = number;
	}
	for (uint32_t i = 0; i + !with_last < count && !status; i++)
		status = making_post(&m[i]);
	return status;
}

/* All of one agent. */
static ncclResult_t make_there(struct nccl_making *m, uint32_t count)
{
	struct wire_ncclCommInitRank_reply reply = {0};
	bool asked = !m[count - 1].nonblocking;
	ncclResult_t status = makings_post(m, count, !asked);

	if (!status && asked)
		status = making_ask(&m[count - 1], &reply);
	if (status) {
		nccl_unmake(m, count);
		return nccl_answered(status);
	}
	making_made(m, count, asked, &reply);
	return asked ? ncclSuccess : ncclInProgress;
}

/* --- at several agents -------------------------------------------------------------------- */

/* What one of them makes. */
struct share {
	struct nccl_making *m;
	uint32_t count;
	struct wire_ncclCommInitRank_reply reply;
};

struct shares {
	uint32_t count;
	struct share at[NCCL_MAKINGS];
	struct nccl_ask asks[NCCL_MAKINGS];
	CUcontext contexts[NCCL_MAKINGS];
};

static unsigned home_of(const struct nccl_making *m)
{
	return vcuda_front_home(m->comm->context);
}

/* Side by side, those of an agent in the program's order. */
static void makings_sort(struct nccl_making *m, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		struct nccl_making one = m[i];
		uint32_t at = i;

		for (; at && home_of(&m[at - 1]) > home_of(&one); at--)
			m[at] = m[at - 1];
		m[at] = one;
	}
}

static void shares_cut(struct shares *s, struct nccl_making *m, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!i || home_of(&m[i]) != home_of(&m[i - 1])) {
			s->contexts[s->count] = m[i].comm->context;
			s->at[s->count++] = (struct share){.m = &m[i]};
		}
		s->at[s->count - 1].count++;
	}
}

/* The communicators that an agent made, or may still make, without those of the others. */
static void share_abort(const struct share *s, const struct nccl_ask *ask)
{
	for (uint32_t i = 0; i < s->count; i++) {
		struct wire_ncclCommDestroy body = {.comm = s->m[i].comm->handle,
			.major = VCUDA_ABI,
			.end = NCCL_END_ABORT};

		if (ask->abandoned || (!ask->status && s->reply.made[i].rank >= 0))
			front_post(OP_ncclCommDestroy, &body, sizeof(body));
	}
}

static ncclResult_t shares_ask(struct shares *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		struct share *one = &s->at[i];
		const struct nccl_making *last = &one->m[one->count - 1];

		makings_post(one->m, one->count, false); /* what fails here fails there */
		s->asks[i] = (struct nccl_ask){.context = last->comm->context,
			.frame = {
				.call = FRONT_COUNTED,
				.op = OP_ncclCommInitRank,
				.body = last->body,
				.body_bytes = (uint32_t)last->bytes,
				.stream_at = FRONT_NO_STREAM,
				.reply = &one->reply,
				.reply_bytes = sizeof(one->reply),
			}};
	}
	return nccl_ask_all(s->asks, s->count);
}

static ncclResult_t shares_make(struct shares *s, bool asked)
{
	ncclResult_t status = nccl_agree(s->contexts, s->count);

	if (!status && asked) {
		status = shares_ask(s);
		for (uint32_t i = 0; i < s->count && status; i++)
			share_abort(&s->at[i], &s->asks[i]);
	}
	for (uint32_t i = 0; i < s->count && !status && !asked; i++)
		status = makings_post(s->at[i].m, s->at[i].count, true);
	for (uint32_t i = 0; i < s->count; i++)
		if (status)
			nccl_unmake(s->at[i].m, s->at[i].count);
		else
			making_made(s->at[i].m, s->at[i].count, asked, &s->at[i].reply);
	return status || asked ? status : ncclInProgress;
}

ncclResult_t nccl_make(struct nccl_making *m, uint32_t count)
{
	bool several = false;
	ncclResult_t status;
	struct shares *s;

	for (uint32_t i = 1; i < count; i++)
		several |= home_of(&m[i]) != home_of(&m[0]);
	if (!several)
		return make_there(m, count);
	s = calloc(1, sizeof(*s));
	if (!s) {
		nccl_unmake(m, count);
		return nccl_fault(ncclSystemError, "no memory");
	}
	makings_sort(m, count);
	shares_cut(s, m, count);
	/* A post that is awaited would wait for the ranks of the next agent. */
	status = shares_make(s, !m[count - 1].nonblocking || !vcuda_front_posts());
	free(s);
	return status;
}
