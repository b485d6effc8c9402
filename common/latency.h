/* SPDX-License-Identifier: Apache-2.0
 *
 * How long things took, by class: histograms that sidecar, worker and front fill in and print
 * as Prometheus has them.  One thread counts; any other may read meanwhile, and sees each
 * number whole.
 */
#ifndef VCUDA_COMMON_LATENCY_H
#define VCUDA_COMMON_LATENCY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum latency_class {
	LATENCY_POST,	  /* launches, and all else that is not awaited */
	LATENCY_CALL,	  /* awaited */
	LATENCY_COPY_IN,  /* a piece of a copy to the device */
	LATENCY_COPY_OUT, /* a piece of a copy from it */
	LATENCY_LIBRARY,  /* of cuBLAS, cuDNN … */
	LATENCY_MODULE,	  /* the loading of one */
	LATENCY_ATTACH,	  /* of a program: until it has a session */
	LATENCY_CLASSES
};

/* Upper bounds 2^10 ns, 2^12 ns … 2^32 ns (1 us to 4.3 s), and one bucket beyond. */
#define LATENCY_BUCKETS 13

struct latency {
	uint64_t counts[LATENCY_BUCKETS]; /* each by itself */
	uint64_t last[LATENCY_BUCKETS];	  /* ns: what was counted last in it */
	uint64_t sum_ns;
};

/* What a bucket points to: one session that was counted there. */
struct latency_exemplar {
	char session[33]; /* "": none */
	uint64_t ns;
	uint64_t at_ms; /* Unix time; 0: not known */
};

static inline unsigned latency_bucket(uint64_t ns)
{
	uint64_t beyond = ns ? (ns - 1) >> 10 : 0;
	unsigned bits = beyond ? 64u - (unsigned)__builtin_clzll(beyond) : 0;
	unsigned bucket = (bits + 1) / 2;

	return bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1;
}

/* One of a number that another thread may read. */
static inline void latency_add(uint64_t *number, uint64_t more)
{
	__atomic_store_n(number, *number + more, __ATOMIC_RELAXED);
}

/* COUNT things took NS each. */
static inline void latency_observe(struct latency *latency, uint64_t ns, uint64_t count)
{
	unsigned bucket = latency_bucket(ns);

	latency_add(&latency->counts[bucket], count);
	latency_add(&latency->sum_ns, ns * count);
	__atomic_store_n(&latency->last[bucket], ns, __ATOMIC_RELAXED);
}

/* FROM's numbers more, which another thread may be counting. */
void latency_merge(struct latency *to, const struct latency *from);

const char *latency_name(enum latency_class class);

/* A histogram NAME{class="…"} of each class.  EXEMPLARS, where not NULL, stand behind the
 * buckets, which only OpenMetrics has. */
void latency_print(FILE *out, const char *name, const char *help,
	const struct latency latency[LATENCY_CLASSES],
	struct latency_exemplar (*exemplars)[LATENCY_BUCKETS]);

/* TEXT in Prometheus' format as OpenMetrics has it: families of counters lose their _total, and
 * there is an end. To be freed; NULL without memory. TEXT is freed. */
char *latency_openmetrics(char *text);

#endif
