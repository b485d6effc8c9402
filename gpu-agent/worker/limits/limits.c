/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session may take of the agent's machine, its GPU aside.  Work in a stream and waits
 * for the GPU have a depth beyond which no frame is taken until the GPU is behind by less: the
 * client's sends stop, nothing is lost.  Everything else together (names, graphs, modules, what
 * driver and libraries keep) is the memory of this process, looked at once a second: a session
 * that has more than `host_memory` is over, and that of a tenant's which has most, where they
 * have too much together.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "gpu-agent/worker/direct/direct.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/loop/issued.h"
#include "gpu-agent/worker/limits/limits.h"
#include "gpu-agent/worker/limits/metering.h"
#include "gpu-agent/worker/limits/quotas.h"
#include "gpu-agent/worker/worker_state.h"

#define PENDING_MAX 32768
/* A stream's depth while one waits for another process: what may be behind that, by events too,
 * is to fit into the driver's queue (1024 launches), twice, and the work of one frame may be
 * several. Else the loop, which looks whether the other one lives, would block there. */
#define HELD_DEPTH 128u

bool limits_mark(struct worker *w, struct worker_stream *stream)
{
	if (capture_of(w, stream)) {
		stream->marked = stream->work;
		return true;
	}
	if (worker_use(w, stream->context))
		return true;
	if (stream->mark && w->cuda.cuEventQuery(stream->mark) == CUDA_ERROR_NOT_READY)
		return false;
	if (!stream->mark && fence_event_get(w, stream->context, &stream->mark))
		stream->mark = NULL;
	else
		w->cuda.cuEventRecord(stream->mark, stream->stream);
	stream->marked = stream->work;
	return true;
}

bool limits_full(struct worker *w)
{
	if (w->streams.deep && limits_mark(w, w->streams.deep)) {
		w->streams.deep = NULL;
		if (w->metering.on)
			metering_marked(w);
	}
	return w->streams.deep || w->fences.count >= PENDING_MAX || metering_stops(w);
}

void limits_work(struct worker *w, struct worker_stream *stream)
{
	uint32_t depth = w->streams.depth;

	if (depth > HELD_DEPTH && w->events && ipc_event_busy(w))
		depth = HELD_DEPTH;
	if (++stream->work - stream->marked >= depth)
		w->streams.deep = stream;
	if (w->callbacks.outstanding)
		issued_work(w, stream);
	if (!stream->busy && !w->metering.on && w->config->driver != DRIVER_SOFTWARE)
		metering_work(w, stream);
}

void limits_stream_gone(struct worker *w, struct worker_stream *stream)
{
	if (stream->mark)
		fence_event_put(w, stream->context, stream->mark);
	stream->mark = NULL;
	metering_gone(w, stream);
	direct_stream_gone(w, stream);
	ipc_event_stream_gone(w, stream);
	issued_stream_gone(w, stream);
	if (w->streams.deep == stream)
		w->streams.deep = NULL;
}

/* Memory of this process that is no file's and not shared, as the staging and the software
 * GPU's is. 0: not known. */
static uint64_t limits_memory(void)
{
	static int fd = -1;
	unsigned long long all, resident, shared;
	char text[128];
	ssize_t n;

	if (fd < 0)
		fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return 0;
	text[n] = 0;
	if (sscanf(text, "%llu %llu %llu", &all, &resident, &shared) != 3 || resident < shared)
		return 0;
	return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

void limits_look(struct worker *w)
{
	const uint64_t limit = w->config->host_memory, quota = w->quotas.most[QUOTA_HOST];
	uint64_t bytes = limit || quota ? limits_memory() : 0;

	if (!quotas_host_memory(w, bytes))
		worker_end(w, CUDA_ERROR_OUT_OF_MEMORY,
			"the tenant's sessions hold more of the agent's own memory than its "
			"quota host_memory (%llu MiB), and this one holds most: %llu MiB",
			(unsigned long long)(quota >> 20), (unsigned long long)(bytes >> 20));
	if (limit && bytes > limit)
		worker_end(w, CUDA_ERROR_OUT_OF_MEMORY,
			"the session holds %llu MiB of the agent's own memory, more than "
			"host_memory (%llu MiB)",
			(unsigned long long)(bytes >> 20), (unsigned long long)(limit >> 20));
}
