/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/channel/timing.h"

#include "common/wait.h"
#include "protocol/wire/class.h"

/* TIMING_FINE buckets to each doubling: the two bits behind the first one that is set. */
static unsigned fine_bucket(uint64_t ns)
{
	unsigned bit, bucket;

	if (ns < TIMING_FINE)
		return (unsigned)ns;
	bit = 63u - (unsigned)__builtin_clzll(ns);
	bucket = (bit - 1) * TIMING_FINE + (unsigned)(ns >> (bit - 2) & 3);
	return bucket < TIMING_BUCKETS ? bucket : TIMING_BUCKETS - 1;
}

/* The upper end of a bucket. */
static uint64_t fine_bound(unsigned bucket)
{
	unsigned bit = bucket / TIMING_FINE + 1;

	if (bucket < TIMING_FINE)
		return bucket;
	return (uint64_t)(TIMING_FINE + bucket % TIMING_FINE + 1) << (bit - 2);
}

static void count_call(struct timing *timing, uint16_t op, uint64_t ns)
{
	struct timing_call *call;
	uint32_t *counter;

	if (op > OP_LAST)
		return;
	if (!timing->kinds[op]) {
		uint32_t n = timing->call_count;

		if (n == TIMING_CALLS)
			return;
		timing->calls[n].op = op;
		timing->kinds[op] = (uint8_t)(n + 1);
		__atomic_store_n(&timing->call_count, n + 1, __ATOMIC_RELEASE);
	}
	call = &timing->calls[timing->kinds[op] - 1];
	counter = &call->counts[fine_bucket(ns)];
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

void timing_taken(struct timing *timing, const struct frame_header *header)
{
	if (header->seq <= timing->taken)
		return;
	timing->taken = header->seq;
	if (header->kind == FRAME_POST) {
		timing->gathered.counts[class_of(header)]++;
		timing->gathered.seq = header->seq;
	} else if (header->kind == FRAME_CALL && header->tag < CHANNEL_SLOTS) {
		timing->waits[header->tag] = (struct timing_wait){.since = timing->now,
			.op = header->op,
			.class = (uint8_t)class_of(header)};
	}
}

void timing_gathered(struct timing *timing)
{
	struct timing_batch *last =
		&timing->batches[(timing->first + timing->count - 1) % TIMING_BATCHES];

	if (!timing->gathered.seq)
		return;
	if (timing->count < TIMING_BATCHES) {
		timing->gathered.since = timing->now;
		timing->batches[(timing->first + timing->count++) % TIMING_BATCHES] =
			timing->gathered;
	} else { /* an agent that acknowledges late: they count as long as those before them */
		last->seq = timing->gathered.seq;
		for (int class = 0; class < LATENCY_CLASSES; class ++)
			last->counts[class] += timing->gathered.counts[class];
	}
	timing->gathered = (struct timing_batch){0};
}

void timing_answered(struct timing *timing, uint16_t tag)
{
	const struct timing_wait *wait = &timing->waits[tag];
	uint64_t ns;

	if (!wait->since) /* another sidecar took it */
		return;
	if (wait->since == timing->now) /* the turn that took it brings the answer too */
		timing->now = wait_now();
	ns = timing->now - wait->since;
	latency_observe(&timing->classes[wait->class], ns, 1);
	count_call(timing, wait->op, ns);
}

void timing_acknowledged(struct timing *timing, uint64_t seq)
{
	while (timing->count && timing->batches[timing->first].seq <= seq) {
		const struct timing_batch *batch = &timing->batches[timing->first];

		for (int class = 0; class < LATENCY_CLASSES; class ++)
			if (batch->counts[class])
				latency_observe(&timing->classes[class],
					timing->now - batch->since, batch->counts[class]);
		timing->first = (timing->first + 1) % TIMING_BATCHES;
		timing->count--;
	}
}

uint64_t timing_count(const struct timing_call *call)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < TIMING_BUCKETS; i++)
		count += __atomic_load_n(&call->counts[i], __ATOMIC_RELAXED);
	return count;
}

uint64_t timing_quantile(const struct timing_call *call, double part)
{
	uint64_t wanted = (uint64_t)((double)timing_count(call) * part), seen = 0;

	for (unsigned i = 0; i < TIMING_BUCKETS; i++) {
		seen += __atomic_load_n(&call->counts[i], __ATOMIC_RELAXED);
		if (seen > wanted)
			return fine_bound(i);
	}
	return 0;
}
