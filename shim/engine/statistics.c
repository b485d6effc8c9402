/* SPDX-License-Identifier: Apache-2.0
 *
 * See statistics.h.
 */
#include "shim/engine/statistics.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/wait.h"
#include "shim/generated/cuda_calls.h"
#include "shim/engine/engine.h"
#include "shim/engine/session.h"

struct wire {
	uint64_t frames, sent, received;
};

static struct {
	_Atomic uint64_t calls[CALL_LAST];
	_Atomic uint64_t waits[CALL_LAST]; /* round trips that were this call's */
	_Atomic uint64_t events[STATISTICS_EVENTS];
	_Atomic uint64_t copies[STATISTICS_COPIES];
	_Atomic uint64_t copy_bytes[STATISTICS_COPIES];
	bool on;
	const char *where;  /* VCUDA_STATS */
	struct wire before; /* what the wire had carried when counting began */
} counted;

/* One more than the number of the thread's last call, which is the one that waits; 0: it is a
 * thread of the shim, which makes none. */
static _Thread_local unsigned last_call;

static const char *const copy_names[] = {
	"host_to_device", "device_to_host", "device_to_device"};
static const char *const event_names[] = {"round_trips", "local_round_trips", "stalls",
	"errors", "answer_wait_ns", "stall_ns", "mirror_bytes_sent", "mirror_bytes_received",
	"own_waits"};

static void count(bool on)
{
	counted.on = on;
	if (on)
		atomic_fetch_or(&shim_watched, (unsigned char)SHIM_COUNTING);
	else
		atomic_fetch_and(&shim_watched, (unsigned char)~SHIM_COUNTING);
}

void statistics_open(void)
{
	counted.where = secure_getenv("VCUDA_STATS");
	count(counted.where && *counted.where && strcmp(counted.where, "0"));
}

void shim_count_slow(unsigned call)
{
	if (!counted.on || call >= CALL_LAST)
		return;
	atomic_fetch_add_explicit(&counted.calls[call], 1, memory_order_relaxed);
	last_call = call + 1;
}

/* The runtime front counts its calls here too. */
__attribute__((visibility("default"))) void vcuda_count(unsigned call);
void vcuda_count(unsigned call)
{
	shim_count(call);
}

void statistics_event(enum statistics_event event)
{
	if (!counted.on)
		return;
	if (event == STATISTICS_ROUND_TRIPS && !last_call)
		event = STATISTICS_OWN_WAITS;
	else if (event == STATISTICS_ROUND_TRIPS)
		atomic_fetch_add_explicit(
			&counted.waits[last_call - 1], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&counted.events[event], 1, memory_order_relaxed);
}

void statistics_mirrored(enum statistics_event direction, uint64_t bytes)
{
	if (counted.on)
		atomic_fetch_add_explicit(
			&counted.events[direction], bytes, memory_order_relaxed);
}

uint64_t statistics_start(void)
{
	return counted.on ? wait_now() : 0;
}

void statistics_time(enum statistics_event event, uint64_t start)
{
	if (start && counted.on)
		atomic_fetch_add_explicit(
			&counted.events[event], wait_now() - start, memory_order_relaxed);
}

void statistics_copy(enum statistics_copy direction, uint64_t bytes)
{
	if (!counted.on)
		return;
	atomic_fetch_add_explicit(&counted.copies[direction], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&counted.copy_bytes[direction], bytes, memory_order_relaxed);
}

static struct wire wire_now(void)
{
	struct wire wire = {0};

	for (unsigned i = 0; i < session_count; i++) {
		struct channel_page *page = sessions[i]->page;

		if (!page)
			continue;
		wire.frames +=
			atomic_load(&page->frames_sent) + atomic_load(&page->frames_received);
		wire.sent += atomic_load(&page->bytes_sent);
		wire.received += atomic_load(&page->bytes_received);
	}
	return wire;
}

static struct wire wire_counters(void)
{
	struct wire wire = wire_now();

	wire.frames -= counted.before.frames;
	wire.sent -= counted.before.sent;
	wire.received -= counted.before.received;
	return wire;
}

static void print_json(FILE *out)
{
	struct wire wire = wire_counters();
	const char *comma = "";

	fprintf(out, "{\"calls\": {");
	for (unsigned i = 0; i < CALL_LAST; i++) {
		if (!counted.calls[i])
			continue;
		fprintf(out,
			"%s\n  \"%s\": {\"verb\": \"%s\", \"count\": %llu, "
			"\"round_trips\": %llu}",
			comma, cuda_calls[i].name, cuda_calls[i].verb,
			(unsigned long long)counted.calls[i],
			(unsigned long long)counted.waits[i]);
		comma = ",";
	}
	fprintf(out, "},\n");
	for (int i = 0; i < STATISTICS_EVENTS; i++)
		fprintf(out, " \"%s\": %llu,\n", event_names[i],
			(unsigned long long)counted.events[i]);
	fprintf(out, " \"frames\": %llu,\n \"bytes_sent\": %llu,\n \"bytes_received\": %llu,\n",
		(unsigned long long)wire.frames, (unsigned long long)wire.sent,
		(unsigned long long)wire.received);
	fprintf(out, " \"copies\": {");
	for (int i = 0; i < STATISTICS_COPIES; i++)
		fprintf(out, "%s\"%s\": {\"count\": %llu, \"bytes\": %llu}", i ? ", " : "",
			copy_names[i], (unsigned long long)counted.copies[i],
			(unsigned long long)counted.copy_bytes[i]);
	fprintf(out, "}}\n");
}

static void print_table(FILE *out)
{
	struct wire wire = wire_counters();

	fprintf(out,
		"vcuda statistics (process %d): calls, and how many answers of the agent they "
		"waited for\n",
		(int)getpid());
	for (unsigned i = 0; i < CALL_LAST; i++)
		if (counted.calls[i])
			fprintf(out, "  %-44s %-8s %10llu %10llu\n", cuda_calls[i].name,
				cuda_calls[i].verb, (unsigned long long)counted.calls[i],
				(unsigned long long)counted.waits[i]);
	for (int i = 0; i < STATISTICS_EVENTS; i++)
		fprintf(out, "  %-53s %10llu\n", event_names[i],
			(unsigned long long)counted.events[i]);
	fprintf(out, "  %-53s %10llu\n  %-53s %10llu\n  %-53s %10llu\n", "frames",
		(unsigned long long)wire.frames, "bytes_sent", (unsigned long long)wire.sent,
		"bytes_received", (unsigned long long)wire.received);
	for (int i = 0; i < STATISTICS_COPIES; i++)
		if (counted.copies[i])
			fprintf(out, "  copies %-37s %8llu %10llu bytes\n", copy_names[i],
				(unsigned long long)counted.copies[i],
				(unsigned long long)counted.copy_bytes[i]);
}

/* WHERE with %p replaced by the process's number. */
static void statistics_path(char *path, size_t n)
{
	const char *mark = strstr(counted.where, "%p");

	if (mark)
		snprintf(path, n, "%.*s%d%s", (int)(mark - counted.where), counted.where,
			(int)getpid(), mark + 2);
	else
		snprintf(path, n, "%s", counted.where);
}

static bool anything_counted(void)
{
	for (unsigned i = 0; i < CALL_LAST; i++)
		if (counted.calls[i])
			return true;
	return false;
}

void statistics_close(void)
{
	char path[1024];
	FILE *out;

	/* Preloaded into every process: those that never called CUDA stay silent. */
	if (!counted.on || !anything_counted())
		return;
	if (!strcmp(counted.where, "1")) {
		print_table(stderr);
		fflush(stderr);
		return;
	}
	statistics_path(path, sizeof(path));
	out = fopen(path, "we");
	if (!out) {
		session_debug("cannot write statistics to %s", path);
		return;
	}
	print_json(out);
	fclose(out);
}

/* A program may measure a part of itself: started with VCUDA_STATS set, it counts from
 * vcuda_stats_begin on, and vcuda_stats_end writes what was counted as JSON into FILE (NULL: it
 * only stops). 0, or -1 where nothing is counted or FILE cannot be written. One thread
 * at a time. */
__attribute__((visibility("default"))) int vcuda_stats_begin(void);
__attribute__((visibility("default"))) int vcuda_stats_end(const char *file);

int vcuda_stats_begin(void)
{
	if (!counted.where || !*counted.where || !strcmp(counted.where, "0"))
		return -1;
	count(false);
	for (unsigned i = 0; i < CALL_LAST; i++)
		counted.calls[i] = counted.waits[i] = 0;
	for (int i = 0; i < STATISTICS_EVENTS; i++)
		counted.events[i] = 0;
	for (int i = 0; i < STATISTICS_COPIES; i++)
		counted.copies[i] = counted.copy_bytes[i] = 0;
	counted.before = wire_now();
	count(true);
	return 0;
}

int vcuda_stats_end(const char *file)
{
	FILE *out;

	if (!counted.on)
		return -1;
	count(false);
	if (!file)
		return 0;
	out = fopen(file, "we");
	if (!out)
		return -1;
	print_json(out);
	return fclose(out) ? -1 : 0;
}
