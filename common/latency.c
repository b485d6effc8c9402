/* SPDX-License-Identifier: Apache-2.0 */
#include "common/latency.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void latency_merge(struct latency *to, const struct latency *from)
{
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		latency_add(
			&to->counts[i], __atomic_load_n(&from->counts[i], __ATOMIC_RELAXED));
		__atomic_store_n(&to->last[i],
			__atomic_load_n(&from->last[i], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	}
	latency_add(&to->sum_ns, __atomic_load_n(&from->sum_ns, __ATOMIC_RELAXED));
}

const char *latency_name(enum latency_class class)
{
	static const char *const names[LATENCY_CLASSES] = {
		"post", "call", "copy_in", "copy_out", "library", "module", "attach"};

	return names[class];
}

static void print_exemplar(FILE *out, const struct latency_exemplar *exemplar)
{
	if (!exemplar->session[0])
		return;
	fprintf(out, " # {session=\"%s\"} %.9f", exemplar->session, (double)exemplar->ns / 1e9);
	if (exemplar->at_ms)
		fprintf(out, " %.3f", (double)exemplar->at_ms / 1e3);
}

static void print_class(FILE *out, const char *name, enum latency_class class,
	const struct latency *latency, const struct latency_exemplar *exemplars)
{
	const char *label = latency_name(class);
	uint64_t count = 0;

	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		char bound[32] = "+Inf";

		if (i < LATENCY_BUCKETS - 1)
			snprintf(bound, sizeof(bound), "%.10g",
				(double)(1ull << (10 + 2 * i)) / 1e9);
		count += latency->counts[i];
		fprintf(out, "%s_bucket{class=\"%s\",le=\"%s\"} %" PRIu64, name, label, bound,
			count);
		if (exemplars)
			print_exemplar(out, &exemplars[i]);
		fputc('\n', out);
	}
	fprintf(out, "%s_sum{class=\"%s\"} %.9f\n%s_count{class=\"%s\"} %" PRIu64 "\n", name,
		label, (double)latency->sum_ns / 1e9, name, label, count);
}

void latency_print(FILE *out, const char *name, const char *help,
	const struct latency latency[LATENCY_CLASSES],
	struct latency_exemplar (*exemplars)[LATENCY_BUCKETS])
{
	fprintf(out, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name);
	for (int class = 0; class < LATENCY_CLASSES; class ++)
		print_class(out, name, (enum latency_class) class, &latency[class],
			exemplars ? exemplars[class] : NULL);
}
