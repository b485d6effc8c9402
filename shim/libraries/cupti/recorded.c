/* SPDX-License-Identifier: Apache-2.0
 *
 * What is recorded on this side: the program's calls, and ids that it pushed.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/engine/lock.h"
#include "shim/libraries/cupti/cupti.h"

/* So many records wait until somebody hands them out; more are dropped. */
#define RECORDS_MAX (1u << 20)
#define RECORDS_MUCH 100000u /* then the front's own thread hands them out */

static struct {
	pthread_mutex_t lock;
	struct recorded_list list;
	uint64_t dropped;
	_Atomic uint32_t correlations;
	_Atomic int thread_id_type; /* 0: of pthreads, 1: of the system */
} store = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(store, store.lock, LOCK_CUPTI_STORE);

void *record_room(void *at, size_t count, size_t *room, size_t size, size_t most)
{
	size_t next = *room ? 2 * *room : 1024;
	void *new;

	if (count < *room)
		return at;
	new = next <= most ? realloc(at, next * size) : NULL;
	if (new)
		*room = next;
	return new;
}

uint32_t record_correlation(void)
{
	return atomic_fetch_add_explicit(&store.correlations, 1, memory_order_relaxed) + 1;
}

uint64_t record_dropped(void)
{
	uint64_t dropped;

	pthread_mutex_lock(&store.lock);
	dropped = store.dropped;
	pthread_mutex_unlock(&store.lock);
	return dropped;
}

void record_add(const struct recorded *one)
{
	struct recorded *at;
	bool much = false;

	pthread_mutex_lock(&store.lock);
	at = record_room(
		store.list.at, store.list.count, &store.list.room, sizeof(*at), RECORDS_MAX);
	if (at) {
		store.list.at = at;
		at[store.list.count++] = *one;
		much = store.list.count % RECORDS_MUCH == 0;
	} else {
		store.dropped++;
	}
	pthread_mutex_unlock(&store.lock);
	if (much)
		deliver_soon();
}

void record_take(struct recorded_list *list)
{
	pthread_mutex_lock(&store.lock);
	*list = store.list;
	store.list = (struct recorded_list){0};
	pthread_mutex_unlock(&store.lock);
}

/* --- ids that the program pushes ---------------------------------------------------------- */

struct external_stacks {
	uint32_t deep[EXTERNAL_KINDS];
	uint64_t ids[EXTERNAL_KINDS][EXTERNAL_DEEP];
};

static struct {
	pthread_key_t key;
	pthread_once_t once;
	bool end; /* a thread's are freed with it */
} threads = {.once = PTHREAD_ONCE_INIT};
static __thread struct external_stacks *stacks;

/* What a later destructor of the thread's calls has no ids. */
static void stacks_close(void *of)
{
	free(of);
	stacks = NULL;
}

static void stacks_open(void)
{
	threads.end = !pthread_key_create(&threads.key, stacks_close);
}

static bool is_external(CUpti_ExternalCorrelationKind kind)
{
	return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID &&
	       kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}

EXPORT CUptiResult cuptiActivityPushExternalCorrelationId(
	CUpti_ExternalCorrelationKind kind, uint64_t id)
{
	COUNT(cuptiActivityPushExternalCorrelationId);
	if (!is_external(kind))
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	pthread_once(&threads.once, stacks_open);
	if (!stacks) {
		stacks = calloc(1, sizeof(*stacks));
		if (stacks && threads.end)
			pthread_setspecific(threads.key, stacks);
	}
	if (!stacks || stacks->deep[kind] == EXTERNAL_DEEP)
		return cupti_result(CUPTI_ERROR_OUT_OF_MEMORY);
	stacks->ids[kind][stacks->deep[kind]++] = id;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityPopExternalCorrelationId(
	CUpti_ExternalCorrelationKind kind, uint64_t *lastId)
{
	COUNT(cuptiActivityPopExternalCorrelationId);
	if (!is_external(kind))
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	if (!stacks || !stacks->deep[kind])
		return cupti_result(CUPTI_ERROR_QUEUE_EMPTY);
	stacks->deep[kind]--;
	if (lastId)
		*lastId = stacks->ids[kind][stacks->deep[kind]];
	return CUPTI_SUCCESS;
}

void record_externals(struct external_ids *ids)
{
	ids->which = 0;
	for (unsigned i = 1; stacks && i < EXTERNAL_KINDS; i++)
		if (stacks->deep[i]) {
			ids->which |= 1u << i;
			ids->id[i] = stacks->ids[i][stacks->deep[i] - 1];
		}
}

void record_add_externals(const struct external_ids *ids, uint32_t correlation)
{
	for (unsigned i = 1; i < EXTERNAL_KINDS; i++)
		if (ids->which & 1u << i)
			record_add(&(struct recorded){
				.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
				.detail = (uint8_t)i,
				.correlation = correlation,
				.id = ids->id[i],
			});
}

/* --- threads and time --------------------------------------------------------------------- */

EXPORT CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
	COUNT(cuptiSetThreadIdType);
	if (type < 0 || type > 1)
		return cupti_result(CUPTI_ERROR_NOT_SUPPORTED);
	store.thread_id_type = type;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type)
{
	COUNT(cuptiGetThreadIdType);
	if (!type)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	*type = store.thread_id_type;
	return CUPTI_SUCCESS;
}

uint32_t record_thread(void)
{
	static __thread uint32_t system;

	if (!store.thread_id_type)
		return (uint32_t)(uintptr_t)pthread_self();
	if (!system)
		system = (uint32_t)syscall(SYS_gettid);
	return system;
}

static struct {
	pthread_mutex_t lock;
	_Atomic(CUpti_TimestampCallbackFunc) function; /* NULL: CLOCK_REALTIME */
	uint64_t real[2], theirs[2];		       /* at two looks */
	unsigned looks;
} times = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(times, times.lock, LOCK_CUPTI_TIMES);

static uint64_t time_real(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t cupti_time(void)
{
	CUpti_TimestampCallbackFunc function = times.function;

	return function ? function() : time_real();
}

void cupti_time_look(void)
{
	CUpti_TimestampCallbackFunc function = times.function;
	uint64_t real, theirs, after;

	if (!function)
		return;
	pthread_mutex_lock(&times.lock);
	real = time_real();
	theirs = function();
	after = time_real();
	/* The first one stays: the longer between two, the more exact they are. */
	times.looks = times.looks ? 2 : 1;
	times.real[times.looks - 1] = real + (after - real) / 2;
	times.theirs[times.looks - 1] = theirs;
	pthread_mutex_unlock(&times.lock);
}

uint64_t cupti_time_of(uint64_t realtime)
{
	double rate;
	uint64_t at;

	if (!times.function || !realtime)
		return realtime;
	pthread_mutex_lock(&times.lock);
	rate = times.looks == 2 && times.real[1] > times.real[0]
		       ? (double)(int64_t)(times.theirs[1] - times.theirs[0]) /
				 (double)(times.real[1] - times.real[0])
		       : 1;
	at = times.theirs[0] +
	     (uint64_t)(int64_t)((double)(int64_t)(realtime - times.real[0]) * rate);
	pthread_mutex_unlock(&times.lock);
	return at;
}

EXPORT CUptiResult cuptiActivityRegisterTimestampCallback(
	CUpti_TimestampCallbackFunc funcTimestamp)
{
	COUNT(cuptiActivityRegisterTimestampCallback);
	if (!funcTimestamp)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	pthread_mutex_lock(&times.lock);
	times.looks = 0;
	times.function = funcTimestamp;
	pthread_mutex_unlock(&times.lock);
	cupti_time_look();
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
	COUNT(cuptiGetTimestamp);
	if (!timestamp)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	*timestamp = time_real();
	return CUPTI_SUCCESS;
}

/* --- calls -------------------------------------------------------------------------------- */

static void add_externals(uint32_t correlation)
{
	struct external_ids ids;

	if (!stacks || !cupti_enabled(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION))
		return;
	record_externals(&ids);
	record_add_externals(&ids, correlation);
}

static void call_enter(struct trace_call *call)
{
	struct callback place = recorded_as(call->call);

	if (!place.domain || cupti_own)
		return;
	call->number = record_correlation();
	if (callback_wanted(place.domain, place.number))
		callback_call(false, place, call);
	call->start = cupti_time();
}

static void call_leave(struct trace_call *call)
{
	struct callback place = recorded_as(call->call);
	uint64_t end;

	if (!call->number) /* it began before this did */
		return;
	end = cupti_time();
	frame_finished(call, end);
	add_externals(call->number);
	if (cupti_api_enabled(place))
		record_add(&(struct recorded){
			.kind = place.domain == CALLBACK_DRIVER ? CUPTI_ACTIVITY_KIND_DRIVER
								: CUPTI_ACTIVITY_KIND_RUNTIME,
			.number = place.number,
			.correlation = call->number,
			.thread = record_thread(),
			.result = call_result(call),
			.start = call->start,
			.end = end > call->start ? end : call->start + 1,
		});
	derive_records(call, end);
	if (activity_any())
		deliver_prepare();
	callback_resources(call);
	if (callback_wanted(place.domain, place.number))
		callback_call(true, place, call);
}

/* --- on and off --------------------------------------------------------------------------- */

static const struct trace_recorder recorder = {call_enter, call_leave, frame_sent};

void record_watch(void)
{
	vcuda_trace_set(activity_any() || callback_any() ? &recorder : NULL);
}
