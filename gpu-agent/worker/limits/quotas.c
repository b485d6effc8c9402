/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/worker/limits/quotas.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/tally.h"
#include "gpu-agent/worker/worker_state.h"

/* How often it is looked again where others may have announced what they then take back. */
#define TRIES 8

_Static_assert(QUOTA_LINK_BYTES == STAGING_BYTES, "what a session receives into");
/* The largest frame has a place beside another one (loop_has_staging). */
_Static_assert(4u << 20 >= 2 * (FRAME_LENT_MAX + STAGING_ALIGN), "the least that staging has");
_Static_assert(QUOTA_STRIPE_BYTES == STRIPE_SLOTS * FRAME_PAYLOAD_MAX, "and a stripe");

void quotas_tally(struct worker *w, int fd, uint32_t slot)
{
	void *at = MAP_FAILED;
	struct stat st;

	if (slot < TALLY_SLOTS && !fstat(fd, &st) && st.st_size == sizeof(*w->quotas.tally))
		at = mmap(NULL, sizeof(*w->quotas.tally), PROT_READ | PROT_WRITE, MAP_SHARED,
			fd, 0);
	close(fd);
	if (at == MAP_FAILED) {
		log_error("session.tally", "error=\"%s\"", strerror(errno));
		return;
	}
	w->quotas.tally = at;
	w->quotas.slot = slot;
}

int quotas_begin(struct worker *w, const struct handoff *session)
{
	uint64_t inflight = session->quotas[QUOTA_INFLIGHT];

	for (int q = 0; q < QUOTAS; q++)
		if (session->quotas[q] && q != QUOTA_INFLIGHT && !w->quotas.tally)
			return -1;
	memcpy(w->quotas.most, session->quotas, sizeof(w->quotas.most));
	/* Nothing is in them yet. Who sends more waits until something of them is done. */
	if (inflight && inflight < STAGING_BYTES)
		w->in.size = w->out.size = (uint32_t)inflight & ~(STAGING_ALIGN - 1);
	if (w->quotas.most[QUOTA_LOG]) {
		log_limit((unsigned)w->quotas.most[QUOTA_LOG]);
		log_limit_together(&w->quotas.tally->log);
	}
	return 0;
}

/* On the program's own stderr: a status alone would be a GPU without memory. */
static void tell(struct worker *w, enum quota quota, uint64_t n)
{
	const struct quota_row *row = &quota_rows[quota];
	const uint64_t limit = w->quotas.most[quota], own = w->stats.quotas[quota];
	const uint64_t used = tally_sum(w->quotas.tally, quota);

	dprintf(STDERR_FILENO,
		"vcuda: the agent's quota %s of this tenant is used up: its sessions may have "
		"%" PRIu64 "%s, have %" PRIu64 ", this one %" PRIu64 ", which wants %" PRIu64
		" more\n",
		row->key, limit, row->bytes ? " bytes" : "", used, own, n);
	log_warn("session.quota",
		"quota=%s limit=%" PRIu64 " used=%" PRIu64 " own=%" PRIu64 " wanted=%" PRIu64,
		row->key, limit, used, own, n);
}

/* Announces and adds up (tally.h). */
static bool announce(struct worker *w, enum quota quota, uint64_t n)
{
	_Atomic uint64_t *slot = &w->quotas.tally->used[quota][w->quotas.slot];

	if (n > w->quotas.most[quota])
		return false;
	for (int i = 0; i < TRIES; i++) {
		atomic_fetch_add(slot, n);
		if (tally_sum(w->quotas.tally, quota) <= w->quotas.most[quota])
			return true;
		atomic_fetch_sub(slot, n);
		for (uint32_t r = 0; r < 16 * (1 + w->quotas.slot % 8); r++)
			wait_relax(); /* not all as long: one of them finds room */
		/* Who announced may have lost its processor before it took that back: with one
		 * processor it gets no further while this one only spins. */
		sched_yield();
	}
	return false;
}

bool quotas_charge(struct worker *w, enum quota quota, uint64_t n)
{
	uint64_t *used = &w->stats.quotas[quota];

	if (w->quotas.most[quota] && !announce(w, quota, n)) {
		if (!w->stats.quotas_refused[quota]++)
			tell(w, quota, n);
		return false;
	}
	*used += n;
	return true;
}

void quotas_uncharge(struct worker *w, enum quota quota, uint64_t n)
{
	w->stats.quotas[quota] -= n;
	if (w->quotas.most[quota])
		atomic_fetch_sub(&w->quotas.tally->used[quota][w->quotas.slot], n);
}

bool quotas_host_memory(struct worker *w, uint64_t bytes)
{
	w->stats.quotas[QUOTA_HOST] = bytes;
	if (!w->quotas.most[QUOTA_HOST])
		return true;
	atomic_store(&w->quotas.tally->used[QUOTA_HOST][w->quotas.slot], bytes);
	return tally_sum(w->quotas.tally, QUOTA_HOST) <= w->quotas.most[QUOTA_HOST] ||
	       !tally_is_most(w->quotas.tally, QUOTA_HOST, w->quotas.slot);
}
