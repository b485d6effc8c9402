/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that sessions share: the front keeps a descriptor under a random name, and hands it to
 * a worker whose session is of the same pod and user and has the same GPU. It never looks into
 * it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/log.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/journal.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/ledger/quota.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/sharing.h"
#include "protocol/wire/status.h"

#define SHARES_PER_SESSION 256

struct share {
	const struct session *session; /* NULL: free */
	int fd;
	uint32_t gpu; /* as the front numbers them */
	uint64_t bytes;
	uint8_t name[16];
};

static struct share *share_find(const struct front *front, const uint8_t name[16])
{
	for (uint32_t i = 0; front->shares && i < JOURNAL_SHARES; i++)
		if (front->shares[i].session && !memcmp(front->shares[i].name, name, 16))
			return &front->shares[i];
	return NULL;
}

static bool same_peer(const struct session *a, const struct session *b)
{
	return a->tenant == b->tenant && transport_same(&a->peer, &b->peer);
}

/* A free place for one more of that session's; NULL: there is none. The sessions of a tenant at
 * one address have no more than are free beside them: whoever comes next finds some. */
static struct share *share_new(struct front *front, const struct session *session)
{
	struct share *found = NULL;
	uint32_t has = 0, together = 0, unused = 0;

	if (!front->shares)
		front->shares = calloc(JOURNAL_SHARES, sizeof(*front->shares));
	for (uint32_t i = 0; front->shares && i < JOURNAL_SHARES; i++) {
		const struct session *holder = front->shares[i].session;

		if (!holder) {
			found = &front->shares[i];
			unused++;
			continue;
		}
		has += holder == session;
		together += same_peer(holder, session);
	}
	return has < SHARES_PER_SESSION && together < unused ? found : NULL;
}

static void share_drop(struct front *front, struct share *share)
{
	journal_unshare(front, (uint32_t)(share - front->shares), share->session);
	close(share->fd);
	*share = (struct share){.fd = -1};
}

/* Before the worker hears its name. */
static void note(struct front *front, const struct share *share)
{
	struct journal_share entry = {.gpu = share->gpu, .bytes = share->bytes};

	memcpy(entry.name, share->name, sizeof(entry.name));
	journal_share(
		front, (uint32_t)(share - front->shares), share->session, &entry, share->fd);
}

static void share(
	struct front *front, struct pool_worker *worker, const struct handoff *h, int *fd)
{
	struct handoff answer = {.version = HANDOFF_VERSION, .what = HANDOFF_SHARED};
	uint32_t gpu = quota_gpu(front, worker->session, h->device);
	struct share *share;

	if (*fd < 0 || gpu == UINT32_MAX) {
		pool_fault(front, worker, "a SHARE without memory, or of no GPU of its own");
		return;
	}
	share = share_new(front, worker->session);
	if (!share || getrandom(share->name, sizeof(share->name), 0) != sizeof(share->name)) {
		answer.status = STATUS_OUT_OF_MEMORY;
	} else {
		share->session = worker->session;
		share->gpu = gpu;
		share->bytes = h->bytes;
		share->fd = *fd;
		*fd = -1;
		memcpy(answer.session, share->name, sizeof(share->name));
		note(front, share);
	}
	if (pool_say(worker, &answer))
		pool_fault(front, worker, "the worker does not take its SHARED");
}

static bool same_tenant(const struct session *a, const struct session *b)
{
	return a->tenant == b->tenant && a->uid == b->uid &&
	       !strncmp(a->pod, b->pod, sizeof(a->pod));
}

static void want(struct front *front, struct pool_worker *worker, const struct handoff *h)
{
	struct handoff answer = {.version = HANDOFF_VERSION,
		.what = HANDOFF_GIVEN,
		.status = STATUS_INVALID_VALUE};
	struct share *share = share_find(front, h->session);
	int ret;

	/* Who may not have it is told what is told of a name that nobody has. */
	if (share && same_tenant(share->session, worker->session) &&
		share->gpu == quota_gpu(front, worker->session, h->device)) {
		answer.status = STATUS_OK;
		answer.bytes = share->bytes;
		ret = pool_say_with(worker, &answer, share->fd);
	} else {
		log_of(&worker->session->subject, LOG_INFO, "share.refused", "gpu=%u",
			h->device);
		ret = pool_say(worker, &answer);
	}
	if (ret)
		pool_fault(front, worker, "the worker does not take its GIVEN");
}

void sharing_request(
	struct front *front, struct pool_worker *worker, const struct handoff *h, int *fd)
{
	struct share *found;

	switch (h->what) {
	case HANDOFF_SHARE: share(front, worker, h, fd); break;
	case HANDOFF_WANT: want(front, worker, h); break;
	default:
		found = share_find(front, h->session);
		if (found && found->session == worker->session)
			share_drop(front, found);
	}
}

void sharing_adopt(struct front *front, uint32_t index, const struct session *session,
	const struct journal_share *share, int fd)
{
	if (!front->shares)
		front->shares = calloc(JOURNAL_SHARES, sizeof(*front->shares));
	if (!front->shares || front->shares[index].session) {
		close(fd);
		return;
	}
	front->shares[index] = (struct share){
		.session = session, .fd = fd, .gpu = share->gpu, .bytes = share->bytes};
	memcpy(front->shares[index].name, share->name, sizeof(share->name));
}

bool sharing_has(const struct front *front, uint32_t index)
{
	return front->shares && front->shares[index].session;
}

void sharing_forget(struct front *front, const struct session *session)
{
	for (uint32_t i = 0; front->shares && i < JOURNAL_SHARES; i++)
		if (front->shares[i].session == session)
			share_drop(front, &front->shares[i]);
}
