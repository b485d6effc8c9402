/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/worker/limits/metering.h"

#include <sys/socket.h>
#include <time.h>

#include "gpu-agent/worker/limits/extra.h"
#include "gpu-agent/worker/limits/limits.h"
#include "gpu-agent/worker/worker_state.h"

#define FIRST_DEPTH 16
/* Work between two marks of a stream lasts about so long: what is under way when the allowance
 * ends is used beyond it. */
#define MARK_MIN_NS 1000000
#define MARK_MAX_NS 4000000
#define TELL_NS 2000000 /* of use, before the front is told of it */
#define IDLE_NS 2000000 /* without work, before the front is told that there is none */
/* What is under way may wait for what is not taken (a value in memory, another process): beyond
 * this some of it is. */
#define STUCK_NS 1000000000ull

void metering_open(struct worker *w, const struct handoff *session)
{
	struct metering *m = &w->metering;

	for (uint32_t i = 0; i < w->device_count; i++) {
		m->allowed[i] = session->devices[i].gpu_ns;
		m->on |= m->allowed[i] != 0;
	}
	if (m->on)
		w->streams.depth = FIRST_DEPTH;
}

void metering_more(struct worker *w, const struct handoff *h)
{
	struct metering *m = &w->metering;

	for (uint32_t i = 0; i < w->device_count && i < h->device_count; i++)
		if (h->devices[i].gpu_ns > m->allowed[i])
			m->allowed[i] = h->devices[i].gpu_ns;
	m->reported_waits = m->asked = false;
}

void metering_again(struct worker *w)
{
	w->metering.again = w->metering.on;
}

bool metering_stops(const struct worker *w)
{
	/* A host function's end comes with a frame behind those that would be held. */
	return w->metering.stopped && !w->callbacks.outstanding;
}

bool metering_watches(const struct worker *w)
{
	const struct metering *m = &w->metering;

	if (!m->on)
		return m->busy_streams;
	return m->again || m->works || m->reported_works || (m->stopped && !m->reported_waits);
}

void metering_marked(struct worker *w)
{
	struct metering *m = &w->metering;
	uint64_t used = 0, since;

	for (uint32_t i = 0; i < w->device_count; i++)
		used += m->used[i];
	since = used - m->marked;
	m->marked = used;
	if (since > MARK_MAX_NS && w->streams.depth > 1)
		w->streams.depth /= 2;
	else if (since < MARK_MIN_NS && w->streams.depth < STREAM_DEPTH)
		w->streams.depth *= 2;
}

/* Whether it has work that is not known to be done. */
static bool stream_works(struct worker *w, struct worker_stream *stream)
{
	CUresult status = CUDA_SUCCESS;

	if (stream->metered < stream->clean)
		stream->metered = stream->clean;
	if (stream->work == stream->metered)
		return false;
	if (stream->marked > stream->metered) {
		if (stream->mark && !worker_use(w, stream->context))
			status = w->cuda.cuEventQuery(stream->mark);
		if (status == CUDA_ERROR_NOT_READY)
			return true;
		worker_note(w, status);
		stream->metered = stream->marked;
		if (stream->work == stream->metered)
			return false;
	}
	limits_mark(w, stream);
	return true;
}

static uint32_t devices_that_work(struct worker *w)
{
	uint32_t works = 0;

	for (struct worker_stream *s = w->streams.list; s; s = s->next)
		if (stream_works(w, s))
			works |= 1u << extra_device(s->context);
	return works;
}

static uint64_t clock_of(clockid_t clock)
{
	struct timespec t = {0};

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The software GPU is this process without the loop's thread. */
static uint64_t computed(void)
{
	uint64_t loop = clock_of(CLOCK_THREAD_CPUTIME_ID);
	uint64_t all = clock_of(CLOCK_PROCESS_CPUTIME_ID);

	return all > loop ? all - loop : 0;
}

static void add_up(struct worker *w, uint32_t works, uint64_t now)
{
	struct metering *m = &w->metering;
	uint64_t ns = now - m->looked_at, before = m->computed;

	if (w->config->driver == DRIVER_SOFTWARE) {
		m->computed = computed();
		ns = m->computed > before ? m->computed - before : 0;
		works |= m->works;
		if (!works)
			works = 1;
	} else {
		works = m->works;
	}
	for (uint32_t i = 0; m->looked_at && i < w->device_count; i++)
		if (works >> i & 1)
			m->used[i] += ns;
	m->looked_at = now;
}

static void tell(struct worker *w, uint64_t now)
{
	static struct handoff h = {.version = HANDOFF_VERSION, .what = HANDOFF_TIME};
	struct metering *m = &w->metering;
	bool works = m->works || (m->reported_works && now - m->worked_at < IDLE_NS);
	bool due = m->again || works != m->reported_works || (m->stopped && !m->reported_waits);

	for (uint32_t i = 0; i < w->device_count; i++) {
		due |= m->used[i] - m->told[i] >= TELL_NS;
		h.devices[i].gpu_ns = m->used[i];
	}
	h.device_count = w->device_count;
	h.status = works;
	h.bytes = m->stopped;
	/* A front that does not listen hears it with the next turn. */
	if (!due || send(w->handoff, &h, sizeof(h), MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(h))
		return;
	for (uint32_t i = 0; i < w->device_count; i++)
		m->told[i] = m->used[i];
	m->again = false;
	m->asked = true;
	m->reported_works = works;
	m->reported_waits = m->stopped;
}

bool metering_poll(struct worker *w)
{
	struct metering *m = &w->metering;
	bool was_stopped = m->stopped;
	uint32_t works = devices_that_work(w);
	uint64_t now = wait_now();
	bool stopped = false;

	add_up(w, works, now);
	m->works = works;
	if (works)
		m->worked_at = now;
	for (uint32_t i = 0; i < w->device_count; i++)
		stopped |= m->used[i] >= m->allowed[i];
	if (!stopped || !m->stopped)
		m->stopped_at = now;
	m->stopped = stopped;
	tell(w, now);
	if (stopped && works && now - m->stopped_at >= STUCK_NS)
		m->stopped = false; /* until the next look */
	return was_stopped && !m->stopped;
}

/* --- counted only ------------------------------------------------------------------------- */

static void end_busy(struct worker *w, struct worker_stream *stream, uint64_t now)
{
	uint32_t device = stream->busy - 1;
	struct metering *m = &w->metering;

	stream->busy = 0;
	m->busy_streams--;
	if (!--m->busy[device])
		m->used[device] += now - m->busy_since[device];
}

void metering_work(struct worker *w, struct worker_stream *stream)
{
	uint32_t device = extra_device(stream->context);
	struct metering *m = &w->metering;

	if (device >= w->device_count)
		return;
	stream->busy = device + 1;
	m->busy_streams++;
	if (!m->busy[device]++)
		m->busy_since[device] = wait_now();
}

void metering_clean(struct worker *w, struct worker_stream *stream)
{
	if (stream->busy && stream->clean == stream->work)
		end_busy(w, stream, wait_now());
}

void metering_gone(struct worker *w, struct worker_stream *stream)
{
	if (stream->busy)
		end_busy(w, stream, wait_now());
}

void metering_look(struct worker *w, uint64_t now)
{
	struct metering *m = &w->metering;

	if (m->on || !m->busy_streams || now - m->looked_at < METERING_LOOK_NS)
		return;
	m->looked_at = now;
	for (struct worker_stream *s = w->streams.list; s; s = s->next)
		if (s->busy && !stream_works(w, s))
			end_busy(w, s, now);
}

/* What the software GPU computed since the last time, for the devices that got work. */
static void add_computed(struct worker *w)
{
	struct metering *m = &w->metering;
	uint64_t before = m->computed;
	uint32_t works = 0;

	m->computed = computed();
	for (struct worker_stream *s = w->streams.list; s; s = s->next) {
		if (s->metered != s->work)
			works |= 1u << extra_device(s->context);
		s->metered = s->work;
	}
	if (!works)
		works = m->works ? m->works : 1;
	m->works = works; /* what is still under way is theirs */
	for (uint32_t i = 0; m->computed > before && i < w->device_count; i++)
		if (works >> i & 1)
			m->used[i] += m->computed - before;
}

void metering_stats(struct worker *w)
{
	struct metering *m = &w->metering;
	uint64_t now = wait_now();

	if (!m->on && w->config->driver == DRIVER_SOFTWARE)
		add_computed(w);
	for (uint32_t i = 0; i < w->device_count; i++) {
		if (m->busy[i]) {
			m->used[i] += now - m->busy_since[i];
			m->busy_since[i] = now;
		}
		w->stats.devices[i].gpu_ns = m->used[i];
	}
}
