/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's life: open the driver, make the contexts and everything that costs time
 * (worker_prepare.c), say READY, wait for the one session, serve it, exit.  It is never used
 * twice: what a tenant's kernels left in this process goes with it.
 */
#include "gpu-agent/tensor.h"
#include "gpu-agent/worker/worker.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "gpu-agent/cache/compiled.h"
#include "gpu-agent/probe/library_search.h"
#include "gpu-agent/sandbox/sandbox.h"
#include "gpu-agent/worker/direct/tensor_copy.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/limits/limits.h"
#include "gpu-agent/worker/local/local.h"
#include "gpu-agent/worker/loop/loop.h"
#include "gpu-agent/worker/reply/output.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/staging/stripe.h"
#include "gpu-agent/worker/warm.h"
#include "gpu-agent/worker/limits/quotas.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/wire/status.h"

_Static_assert((int)STATUS_INVALID_VALUE == CUDA_ERROR_INVALID_VALUE, "status.h");
_Static_assert((int)STATUS_OUT_OF_MEMORY == CUDA_ERROR_OUT_OF_MEMORY, "status.h");
_Static_assert((int)STATUS_UNAVAILABLE == CUDA_ERROR_DEVICE_UNAVAILABLE, "status.h");
_Static_assert((int)STATUS_NO_DEVICE == CUDA_ERROR_NO_DEVICE, "status.h");
_Static_assert((int)STATUS_INVALID_DEVICE == CUDA_ERROR_INVALID_DEVICE, "status.h");
_Static_assert((int)STATUS_NOT_FOUND == CUDA_ERROR_NOT_FOUND, "status.h");
_Static_assert((int)STATUS_PENDING == CUDA_ERROR_NOT_READY, "status.h");
_Static_assert((int)STATUS_ECC == CUDA_ERROR_ECC_UNCORRECTABLE, "status.h");
_Static_assert((int)STATUS_NVLINK == CUDA_ERROR_NVLINK_UNCORRECTABLE, "status.h");
_Static_assert((int)STATUS_NOT_PERMITTED == CUDA_ERROR_NOT_PERMITTED, "status.h");
_Static_assert((int)STATUS_NOT_READY == CUDA_ERROR_SYSTEM_NOT_READY, "status.h");
_Static_assert((int)STATUS_MISMATCH == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "status.h");
_Static_assert((int)STATUS_LOST == CUDA_ERROR_EXTERNAL_DEVICE, "status.h");

/* A second, as long as the session lasts: what it says is its client's doing. */
#define LOG_LINES 100

const struct cuda_driver *worker_driver(const struct worker *w)
{
	return &w->cuda;
}

CUresult worker_lacks(struct worker *w, const char *name)
{
	(void)w;
	log_info("driver.lacks", "call=%s", name);
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult worker_use(struct worker *w, uint16_t context)
{
	CUresult status;

	if (context == w->current || !context)
		return CUDA_SUCCESS;
	if (context >= CONTEXT_MAX || !w->contexts[context])
		return CUDA_ERROR_INVALID_CONTEXT;
	status = w->cuda.cuCtxSetCurrent(w->contexts[context]);
	w->current = status ? CONTEXT_NONE : context;
	return status;
}

void worker_end(struct worker *w, CUresult status, const char *format, ...)
{
	va_list args;

	if (w->end.ended)
		return;
	w->end.ended = true;
	w->end.status = status;
	va_start(args, format);
	vsnprintf(w->end.text, sizeof(w->end.text), format, args);
	va_end(args);
}

void worker_opened(struct worker *w)
{
	reply_flush(w);
	compiled_wait(w->config);
}

bool worker_is_sticky(CUresult status)
{
	switch ((int)status) {
	case CUDA_ERROR_ECC_UNCORRECTABLE:
	case CUDA_ERROR_NVLINK_UNCORRECTABLE:
	case CUDA_ERROR_CONTAINED:
	case CUDA_ERROR_ILLEGAL_ADDRESS:
	case CUDA_ERROR_LAUNCH_TIMEOUT:
	case CUDA_ERROR_CONTEXT_IS_DESTROYED:
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_ILLEGAL_INSTRUCTION:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_ADDRESS_SPACE:
	case CUDA_ERROR_INVALID_PC:
	case CUDA_ERROR_LAUNCH_FAILED:
	case CUDA_ERROR_TENSOR_MEMORY_LEAK:
	case CUDA_ERROR_EXTERNAL_DEVICE: return true;
	default: return false;
	}
}

const char *worker_error_name(struct worker *w, CUresult status)
{
	const char *name = NULL;

	if (w->cuda.cuGetErrorName)
		w->cuda.cuGetErrorName(status, &name);
	return name ? name : "unknown error";
}

void worker_last_error(struct worker *w, CUresult status, const char *call)
{
	/* An answer to a query is none. */
	if (!status || status == CUDA_ERROR_NOT_READY)
		return;
	snprintf(w->stats.last_error, sizeof(w->stats.last_error), "%s (%d)%s%s",
		worker_error_name(w, status), (int)status, call ? " in " : "",
		call ? call : "");
}

/* The GPU's own errors are not the session's alone. */
static void say_doubt(struct worker *w, CUresult status)
{
	static struct handoff doubt;

	if (!w->link || (status != CUDA_ERROR_ECC_UNCORRECTABLE &&
				status != CUDA_ERROR_NVLINK_UNCORRECTABLE))
		return;
	doubt = (struct handoff){
		.version = HANDOFF_VERSION, .what = HANDOFF_DOUBT, .status = (uint32_t)status};
	(void)!send(w->handoff, &doubt, sizeof(doubt), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void worker_note(struct worker *w, CUresult status)
{
	if (w->sticky || !worker_is_sticky(status))
		return;
	w->sticky = status;
	if (!w->deferred)
		w->deferred = status;
	w->stats.errors++;
	worker_last_error(w, status, NULL);
	log_warn("session.fault", "status=%d", (int)status);
	say_doubt(w, status);
	if (!w->link)
		return;
	output_tell(w); /* what a failed assertion says: the app may wait for nothing more */
	reply_update(w, COUNTER_ERROR, (uint64_t)status);
}

/* The session's GPUs, numbered as it does: those that the pod got, in their order. Nothing has
 * been done in their contexts yet. */
static int worker_choose(struct worker *w, const struct handoff *message)
{
	static struct worker_device all[HANDOFF_DEVICES];
	uint32_t n = message->device_count, count = w->device_count, chosen = 0;

	if (!n || n > w->device_count)
		return -1;
	for (uint32_t i = 0; i < n; i++)
		if (message->gpus[i] >= w->device_count ||
			!w->devices[message->gpus[i]].primary ||
			(i && message->gpus[i] <= message->gpus[i - 1]))
			return -1;
	memcpy(all, w->devices, sizeof(all));
	memset(w->devices, 0, sizeof(w->devices));
	memset(w->contexts, 0, sizeof(w->contexts));
	w->streams.list = NULL;
	w->device_count = n;
	w->vram_limit = message->bytes;
	for (uint32_t i = 0; i < n; i++) {
		struct worker_device *d = &w->devices[i];

		*d = all[message->gpus[i]];
		d->lease = message->devices[i].lease;
		d->others = message->devices[i].others;
		if (w->vram_limit && w->vram_limit < d->open.total_memory)
			d->open.total_memory = w->vram_limit;
		w->contexts[CONTEXT_PRIMARY(i)] = d->primary;
		context_stream_init(w, (uint16_t)CONTEXT_PRIMARY(i));
	}
	/* Where another's window was, one of these may be wanted (open.c). */
	for (uint32_t i = 0; i < count; i++) {
		if (chosen < n && message->gpus[chosen] == i) {
			chosen++;
			continue;
		}
		if (!all[i].primary)
			continue; /* it has fallen */
		w->cuda.cuMemAddressFree(all[i].window, all[i].window_bytes);
		free(all[i].mapped);
		free(all[i].mappings);
	}
	w->current = CONTEXT_NONE;
	metering_open(w, message);
	return 0;
}

/* Meanwhile its client makes its other connections. */
static void worker_expect(struct worker *w, const struct handoff *message)
{
	for (uint32_t i = 0; i < message->device_count && i < w->device_count; i++)
		if (message->gpus[i] < w->device_count && w->devices[message->gpus[i]].primary)
			memory_look(w, message->gpus[i]);
}

/* Waits for the session, however long it takes. -1: there will be none. */
static int worker_session(struct worker *w, struct handoff *message)
{
	struct error error = {0};
	int fds[TRANSPORT_FDS];
	static union {
		struct handoff handoff;
		struct tensor_message tensor;
	} said;

	for (;;) {
		ssize_t n = descriptors_receive(
			w->handoff, &said, sizeof(said), fds, TRANSPORT_FDS, 0);

		if (n == -EINTR)
			continue;
		if (n == sizeof(said.tensor) && said.tensor.version == TENSOR_VERSION &&
			(said.tensor.what == TENSOR_FILL || said.tensor.what == TENSOR_SPILL) &&
			fds[0] >= 0) {
			if (!tensor_copy_run(w, &said.tensor, fds[0]))
				return -1;
			continue;
		}
		*message = said.handoff;
		if (n != sizeof(*message) || message->version != HANDOFF_VERSION ||
			message->what == HANDOFF_STOP)
			return -1;
		if (message->what == HANDOFF_SESSION && fds[0] >= 0)
			break;
		if (message->what == HANDOFF_TALLY && fds[0] >= 0)
			quotas_tally(w, fds[0], message->device);
		if (message->what == HANDOFF_COMING)
			worker_expect(w, message);
	}
	message->pod[sizeof(message->pod) - 1] = 0;
	log_session(&w->subject, message->session);
	snprintf(w->subject.pod, sizeof(w->subject.pod), "%s", message->pod);
	log_about_all(&w->subject);
	message->text[sizeof(message->text) - 1] = 0;
	w->transport = transport_named(message->text);
	transport_congestion(w->config->congestion, &error); /* checked by the supervisor */
	if (!w->transport || w->transport->link(fds, descriptors_count(fds, TRANSPORT_FDS),
				     TRANSPORT_AGENT, &w->link, &error)) {
		log_error("session.adopt", "error=\"%s\"",
			w->transport ? error.text : "no such transport");
		return -1;
	}
	if (message->shares && local_open(w, &error)) {
		log_error("session.local", "error=\"%s\"", error.text);
		return -1;
	}
	if (worker_choose(w, message)) {
		log_error("session.gpus", "count=%u", message->device_count);
		return -1;
	}
	if (message->shares)
		local_register(w);
	if (quotas_begin(w, message)) {
		log_error("session.quotas", "text=\"there is no tally to keep them by\"");
		return -1;
	}
	memcpy(w->stats.session, message->session, sizeof(w->stats.session));
	w->stripes.coded = message->coded == 1;
	w->stripes.compress = !w->stripes.coded		   ? CONTROLLER_OFF
			      : w->config->compress_always ? CONTROLLER_ALWAYS
							   : CONTROLLER_AUTO;
	w->park.grace = message->grace_ms * 1000000ull;
	w->sender.window.keeps = w->park.grace > 0;
	return 0;
}

_Noreturn void worker_leave(struct worker *w)
{
	static struct handoff message;
	static atomic_flag leaving = ATOMIC_FLAG_INIT;

	while (atomic_flag_test_and_set(&leaving))
		pause(); /* the other thread is at it */
	log_info("session.end", "reason=\"%s\" frames=%llu launches=%llu", w->end.text,
		(unsigned long long)w->stats.frames_received,
		(unsigned long long)w->stats.launches);
	/* The client sees the end at once. The link itself stays: the watchdog looks at it
	 * beside the loop, and either may be the one that leaves. */
	link_shut(w->link);
	host_function_over(w);
	stripes_stats(w);
	message = w->stats; /* the last of them: what came since the last second counts too */
	message.what = HANDOFF_ENDED;
	message.libraries = library_used();
	message.status = w->end.status;
	memcpy(message.text, w->end.text, sizeof(message.text));
	worker_say(w, &message);
	/* Not exit(): the driver's own handlers would wait for a kernel that may never end. The
	 * kernel takes back the memory of the GPU with the process. */
	_exit(0);
}

int worker_main(const struct agent_config *config, int handoff_fd)
{
	static struct worker worker;
	static struct handoff message;
	struct worker *w = &worker;

	log_open("worker");
	output_log();
	log_limit(LOG_LINES);
	w->config = config;
	w->handoff = handoff_fd;
	w->spin_ns = wait_spin_budget();
	w->streams.depth = STREAM_DEPTH;
	w->fences.tail = &w->fences.first;
	w->kept.closings_tail = &w->kept.closings;
	for (int i = 0; i < HANDOFF_DEVICES; i++)
		w->lease.tag[i] = -1;
	w->ipc.tag = -1;

	message.what = HANDOFF_READY;
	if (worker_prepare(w, &message)) {
		message.what = HANDOFF_FAILED;
		/* The front logs it: once, however often it tries again. */
		worker_say(w, &message);
		return 1;
	}
	warm_libraries(w);
	message.sandbox = sandbox_seal();
	if (worker_say(w, &message) || worker_session(w, &message))
		return 0;

	loop_run(w);
	worker_leave(w);
}
