/* SPDX-License-Identifier: Apache-2.0
 *
 * The agents' records join the program's calls by the number of the frame, and all become
 * CUPTI's records, in the order of the calls: ids that were pushed, then what ran on a GPU,
 * then the call.
 *
 * What a library did has no call of the program's.  Natively the library calls the runtime in
 * the program's process, and a profiler sees that: so here too, once for each of its launches.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/wire/open.h"
#include "shim/libraries/cupti/cupti.h"
#include "shim/libraries/cupti/slack.h"

#define GPU_RECORDS_MAX (1u << 20)

static struct {
	struct gpu_record *at;
	size_t count, room;
	_Atomic uint64_t dropped;	 /* here … */
	_Atomic uint64_t agents_dropped; /* … and by the agents */
} gpu;

/* A record to be handed out. */
enum rank { RANK_EXTERNAL, RANK_GPU, RANK_DERIVED, RANK_CALL };
struct item {
	uint32_t correlation;
	uint8_t rank;
	uint32_t at; /* in the list, or of the GPU's */
	uint64_t start;
};

static struct {
	struct item *at;
	size_t count, room;
} items;

/* --- names -------------------------------------------------------------------------------- */

/* Records point to kernels' names as long as the process lives. Open addressing. */
static struct {
	char **at;
	size_t count, room; /* a power of two */
} names;

static size_t name_place(char *const *at, size_t room, const char *name)
{
	size_t hash = 5381;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	for (hash &= room - 1; at[hash] && strcmp(at[hash], name);
		hash = (hash + 1) & (room - 1))
		;
	return hash;
}

static bool names_grow(void)
{
	size_t room = names.room ? 2 * names.room : 256;
	char **at = calloc(room, sizeof(*at));

	if (!at)
		return false;
	for (size_t i = 0; i < names.room; i++)
		if (names.at[i])
			at[name_place(at, room, names.at[i])] = names.at[i];
	free(names.at);
	names.at = at;
	names.room = room;
	return true;
}

static const char *name_kept(const char *name)
{
	size_t place;

	if (names.count * 2 >= names.room && !names_grow())
		return NULL;
	place = name_place(names.at, names.room, name);
	if (!names.at[place]) {
		names.at[place] = strdup(name);
		names.count += names.at[place] != NULL;
	}
	return names.at[place];
}

/* --- what the agents recorded ------------------------------------------------------------- */

static void fetched(
	void *user, unsigned agent, const struct profile_record *record, const char *name)
{
	struct gpu_record *one =
		record_room(gpu.at, gpu.count, &gpu.room, sizeof(*one), GPU_RECORDS_MAX);

	(void)user;
	if (!one) {
		gpu.dropped++;
		return;
	}
	gpu.at = one;
	one += gpu.count++;
	*one = (struct gpu_record){
		.r = *record, .agent = agent, .name = *name ? name_kept(name) : NULL};
	one->r.start = cupti_time_of(record->start);
	one->r.end = cupti_time_of(record->end);
	one->r.completed = cupti_time_of(record->completed);
}

void assemble_fetch(uint32_t flag)
{
	uint64_t dropped = 0;

	activity_told(vcuda_profile_flush(flag, fetched, NULL, &dropped));
	gpu.agents_dropped = dropped;
}

uint64_t assemble_dropped(void)
{
	return gpu.dropped + gpu.agents_dropped;
}

/* --- items -------------------------------------------------------------------------------- */

static void item_add(uint32_t correlation, enum rank rank, size_t at, uint64_t start)
{
	struct item *new =
		record_room(items.at, items.count, &items.room, sizeof(*new), SIZE_MAX);

	if (!new) {
		gpu.dropped++;
		return;
	}
	items.at = new;
	new[items.count++] = (struct item){correlation, (uint8_t)rank, (uint32_t)at, start};
}

static int item_order(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->correlation != y->correlation)
		return x->correlation < y->correlation ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static enum rank rank_of(const struct recorded *one)
{
	switch (one->kind) {
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return RANK_EXTERNAL;
	case CUPTI_ACTIVITY_KIND_DRIVER:
	case CUPTI_ACTIVITY_KIND_RUNTIME: return RANK_CALL;
	default: return RANK_DERIVED;
	}
}

/* --- what libraries did ------------------------------------------------------------------- */

static int launch_order(const void *a, const void *b)
{
	const struct gpu_record *x = *(struct gpu_record *const *)a,
				*y = *(struct gpu_record *const *)b;

	if (x->agent != y->agent)
		return x->agent < y->agent ? -1 : 1;
	if (x->r.launch != y->r.launch)
		return x->r.launch < y->r.launch ? -1 : 1;
	return x->r.start < y->r.start ? -1 : x->r.start > y->r.start;
}

static unsigned library_call(const struct profile_record *r)
{
	switch (r->kind) {
	case PROFILE_COPY:
	case PROFILE_PEER_COPY: return CALL_cudaMemcpyAsync;
	case PROFILE_FILL: return CALL_cudaMemsetAsync;
	default: return CALL_cudaLaunchKernel;
	}
}

/* The call of the runtime that natively would have been seen, just before what it launched. */
static void library_launched(const struct gpu_record *one, const struct library_call_seen *seen)
{
	if (activity_was(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION))
		record_add_externals(&seen->ids, one->correlation);
	if (activity_was(CUPTI_ACTIVITY_KIND_RUNTIME))
		record_add(&(struct recorded){
			.kind = CUPTI_ACTIVITY_KIND_RUNTIME,
			.number = callback_of(library_call(&one->r)).number,
			.correlation = one->correlation,
			.thread = seen->thread,
			.start = seen->time,
			.end = seen->time + 1,
		});
}

/* Each record's correlation: its frame's call. What no frame of the program's caused is left
 * out: 0. */
static void gpu_join(void)
{
	struct gpu_record **of_library =
		malloc((gpu.count ? gpu.count : 1) * sizeof(*of_library));
	struct library_call_seen seen;
	struct sent_frame frame;
	size_t count = 0;

	for (size_t i = 0; i < gpu.count; i++) {
		struct gpu_record *one = &gpu.at[i];

		if (!frame_find(one->agent, one->r.seq, &frame, &seen))
			continue;
		one->correlation = frame.correlation;
		one->of_library = !frame.correlation && frame.library != UINT32_MAX;
		if (one->of_library && of_library)
			of_library[count++] = one;
	}
	if (of_library)
		qsort(of_library, count, sizeof(struct gpu_record *), launch_order);
	for (size_t i = 0; i < count; i++) {
		struct gpu_record *one = of_library[i], *last = i ? of_library[i - 1] : NULL;

		if (last && last->agent == one->agent && last->r.launch == one->r.launch) {
			one->correlation = last->correlation;
			continue;
		}
		one->correlation = record_correlation();
		if (frame_find(one->agent, one->r.seq, &frame, &seen))
			library_launched(one, &seen);
	}
	free(of_library);
}

static void put_recorded(const struct recorded *one)
{
	switch (one->kind) {
	case CUPTI_ACTIVITY_KIND_DRIVER:
	case CUPTI_ACTIVITY_KIND_RUNTIME: {
		CUpti_ActivityAPI out = {
			.kind = one->kind,
			.cbid = one->number,
			.start = one->start,
			.end = one->end,
			.processId = (uint32_t)getpid(),
			.threadId = one->thread,
			.correlationId = one->correlation,
			.returnValue = one->result,
		};

		deliver_record(&out, sizeof(out));
		break;
	}
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
		CUpti_ActivityExternalCorrelation out = {
			.kind = one->kind,
			.externalKind = one->detail,
			.externalId = one->id,
			.correlationId = one->correlation,
		};

		deliver_record(&out, sizeof(out));
		break;
	}
	default: derive_put(one);
	}
}

/* --- all together ------------------------------------------------------------------------- */

/* Pieces of one copy, or of one fill: the program made one. */
static bool is_piece(const struct gpu_record *a, const struct gpu_record *b)
{
	return a->r.kind == b->r.kind && !a->of_library && !a->r.graph && !b->r.graph &&
	       a->r.stream == b->r.stream &&
	       ((a->r.kind == PROFILE_COPY && a->r.copy.kind == b->r.copy.kind) ||
		       (a->r.kind == PROFILE_FILL && a->r.fill.value == b->r.fill.value));
}

static void piece_join(struct gpu_record *to, const struct gpu_record *from)
{
	to->r.start = from->r.start < to->r.start ? from->r.start : to->r.start;
	to->r.end = from->r.end > to->r.end ? from->r.end : to->r.end;
	if (to->r.kind == PROFILE_COPY)
		to->r.copy.bytes += from->r.copy.bytes;
	else
		to->r.fill.bytes += from->r.fill.bytes;
}

/* Items from FROM on that have one correlation: behind the last of them. */
static size_t group_end(size_t from)
{
	size_t end = from + 1;

	while (end < items.count && items.at[end].correlation == items.at[from].correlation)
		end++;
	return end;
}

/* When the call of the items [from, to) was made; 0: it is not recorded. */
static uint64_t group_call(const struct recorded_list *list, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (items.at[i].rank == RANK_CALL)
			return list->at[items.at[i].at].start;
	return 0;
}

/* What a GPU did before one wait for all of it: behind that it rests, so that those of the next
 * wait may be moved by another number. */
struct span {
	uint64_t done; /* when the wait was over */
	struct slack slack;
};
static struct {
	struct span *at;
	size_t count, room;
	uint32_t last[OPEN_DEVICES_MOST]; /* of each GPU, from 1 on */
} spans;

static void span_note(struct gpu_record *one, uint64_t call)
{
	uint32_t *last;
	struct span *new;

	one->done = frame_done(one->agent, one->r.seq);
	if (one->r.device >= OPEN_DEVICES_MOST)
		return;
	last = &spans.last[one->r.device];
	if (!*last || spans.at[*last - 1].done != one->done) {
		new = record_room(
			spans.at, spans.count, &spans.room, sizeof(*new), GPU_RECORDS_MAX);
		if (!new)
			return;
		spans.at = new;
		new[spans.count++] = (struct span){one->done, SLACK_NONE};
		*last = (uint32_t)spans.count;
	}
	one->span = *last;
	slack_note(&spans.at[*last - 1].slack, one->r.start, one->r.end, call, one->done);
}

/* All records of a GPU, by what the calls tell of its clock. */
static void gpu_move(const struct recorded_list *list)
{
	spans.count = 0;
	memset(spans.last, 0, sizeof(spans.last));
	for (size_t i = 0, end; i < items.count; i = end) {
		uint64_t call = group_call(list, i, end = group_end(i));

		for (size_t at = i; at < end; at++)
			if (items.at[at].rank == RANK_GPU)
				span_note(&gpu.at[items.at[at].at], call);
	}
	for (size_t i = 0; i < gpu.count; i++) {
		struct gpu_record *one = &gpu.at[i];
		uint64_t by =
			one->span ? (uint64_t)slack_move(&spans.at[one->span - 1].slack) : 0;

		one->r.start += by;
		one->r.end += by;
		one->r.completed += one->r.completed ? by : 0;
	}
}

/* What is still wrong of one: nothing runs before it was asked for, nor after it was seen to be
 * done. */
static void bounded(struct gpu_record *one, uint64_t call)
{
	const uint64_t done = one->done;

	if (done != UINT64_MAX && one->r.end > done) {
		uint64_t late = one->r.end - done;

		one->r.start -= late < one->r.start ? late : one->r.start;
		one->r.end = done;
	}
	if (one->r.start < call) {
		uint64_t early = call - one->r.start;

		one->r.start = call;
		one->r.end = done != UINT64_MAX && one->r.end + early > done
				     ? done
				     : one->r.end + early;
	}
	if (one->r.end <= one->r.start)
		one->r.end = one->r.start + 1;
}

/* The items [from, to) have one correlation. */
static void put_group(const struct recorded_list *list, size_t from, size_t to)
{
	const uint64_t call = group_call(list, from, to);
	const struct recorded *hint = NULL;

	for (size_t i = from; i < to; i++)
		if (items.at[i].rank == RANK_DERIVED &&
			derive_is_hint(&list->at[items.at[i].at]))
			hint = &list->at[items.at[i].at];
	for (size_t i = from; i < to; i++) {
		struct gpu_record *one = &gpu.at[items.at[i].at];

		if (items.at[i].rank != RANK_GPU) {
			put_recorded(&list->at[items.at[i].at]);
			continue;
		}
		while (i + 1 < to && items.at[i + 1].rank == RANK_GPU &&
			is_piece(one, &gpu.at[items.at[i + 1].at]))
			piece_join(one, &gpu.at[items.at[++i].at]);
		bounded(one, call);
		gpu_put(one, hint);
	}
}

void assemble_records(void)
{
	struct recorded_list list;

	gpu_join();
	record_take(&list);
	items.count = 0;
	for (size_t i = 0; i < list.count; i++)
		item_add(list.at[i].correlation, rank_of(&list.at[i]), i, 0);
	for (size_t i = 0; i < gpu.count; i++)
		if (gpu.at[i].correlation)
			item_add(gpu.at[i].correlation, RANK_GPU, i, gpu.at[i].r.start);
	device_records();
	qsort(items.at, items.count, sizeof(*items.at), item_order);
	gpu_move(&list);
	for (size_t i = 0; i < items.count; i = group_end(i))
		put_group(&list, i, group_end(i));
	free(list.at);
	gpu.count = 0;
}
