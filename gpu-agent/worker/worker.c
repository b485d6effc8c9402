/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker's life: open the driver, make the contexts and everything that costs time, say
 * READY, wait for the one session, serve it, exit.  It is never used twice: what a tenant's
 * kernels left in this process goes with it.
 */
#include "gpu-agent/tensor.h"
#include "gpu-agent/worker/worker.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
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
#include "gpu-agent/probe/library.h"
#include "gpu-agent/sandbox/sandbox.h"
#include "gpu-agent/worker/copy.h"
#include "gpu-agent/worker/direct.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/extra.h"
#include "gpu-agent/worker/limits.h"
#include "gpu-agent/worker/local.h"
#include "gpu-agent/worker/loop.h"
#include "gpu-agent/worker/output.h"
#include "gpu-agent/worker/park.h"
#include "gpu-agent/worker/reply.h"
#include "gpu-agent/worker/staging.h"
#include "gpu-agent/worker/stripe.h"
#include "gpu-agent/worker/warm.h"
#include "gpu-agent/worker/quotas.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/wire/status.h"

_Static_assert((int)STATUS_INVALID_VALUE == CUDA_ERROR_INVALID_VALUE, "status.h");
_Static_assert((int)STATUS_OUT_OF_MEMORY == CUDA_ERROR_OUT_OF_MEMORY, "status.h");
_Static_assert((int)STATUS_UNAVAILABLE == CUDA_ERROR_DEVICE_UNAVAILABLE, "status.h");
_Static_assert((int)STATUS_NO_DEVICE == CUDA_ERROR_NO_DEVICE, "status.h");
_Static_assert((int)STATUS_NOT_PERMITTED == CUDA_ERROR_NOT_PERMITTED, "status.h");
_Static_assert((int)STATUS_NOT_READY == CUDA_ERROR_SYSTEM_NOT_READY, "status.h");
_Static_assert((int)STATUS_MISMATCH == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "status.h");
_Static_assert((int)STATUS_LOST == CUDA_ERROR_EXTERNAL_DEVICE, "status.h");

/* A second, as long as the session lasts: what it says is its client's doing. */
#define LOG_LINES 100
#define CONTROL_FIGURES 64 /* of the front's, read at once */

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

	if (w->ended)
		return;
	w->ended = true;
	w->end_status = status;
	va_start(args, format);
	vsnprintf(w->end_text, sizeof(w->end_text), format, args);
	va_end(args);
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

static const char *worker_error_name(struct worker *w, CUresult status)
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

static int worker_say(struct worker *w, struct handoff *message)
{
	message->version = HANDOFF_VERSION;
	return send(w->handoff, message, sizeof(*message), MSG_NOSIGNAL) == sizeof(*message)
		       ? 0
		       : -1;
}

static int say_lease(struct worker *w, uint32_t device)
{
	struct handoff *ask = &w->stats;

	ask->what = HANDOFF_LEASE;
	ask->device = device;
	ask->bytes = w->lease_asked[device];
	if (!worker_say(w, ask))
		return 0;
	log_warn("worker.lease", "error=\"%s\"", strerror(errno));
	return -1;
}

int worker_ask_lease(struct worker *w, uint32_t device, uint64_t bytes, int tag)
{
	w->lease_asked[device] = bytes;
	if (say_lease(w, device))
		return -1;
	w->lease_tag[device] = tag;
	return 0;
}

/* Another front: what the one before it heard last may be answered by nobody. */
static void say_again(struct worker *w, uint64_t number)
{
	static struct handoff again;

	again.what = HANDOFF_AGAIN;
	again.bytes = number;
	if (worker_say(w, &again))
		return;
	log_info("worker.adopted", "pid=%d", getpid());
	for (uint32_t d = 0; d < w->device_count; d++)
		if (w->lease_tag[d] >= 0)
			say_lease(w, d);
	memory_ask_again(w);
	ipc_ask_again(w);
	images_ask_again(w);
	tensor_ask_again(w);
	metering_again(w);
}

/* The window: the wanted place, else any place, else half as much. */
static CUresult worker_reserve(struct worker *w, struct worker_device *d, uint32_t index)
{
	CUdeviceptr at = 0;
	CUresult status;
	uint64_t bytes;

	for (bytes = WINDOW_BYTES; bytes >= 1ull << 36; bytes /= 2) {
		status = w->cuda.cuMemAddressReserve(
			&at, bytes, d->granularity, WINDOW_BASE + index * WINDOW_BYTES, 0);
		if (!status)
			break;
	}
	if (status)
		return status;
	d->window = at;
	d->window_bytes = bytes;
	d->mapped = calloc(bytes / d->granularity / 64 + 1, sizeof(*d->mapped));
	d->mappings = calloc(bytes / d->granularity + 1, sizeof(*d->mappings));
	return d->mapped && d->mappings ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void worker_snapshot(struct worker *w, struct worker_device *d)
{
	struct open_device *o = &d->open;
	size_t value;

	w->cuda.cuDeviceGetName(o->name, sizeof(o->name), d->device);
	w->cuda.cuDeviceGetUuid((CUuuid *)o->uuid, d->device);
	w->cuda.cuDeviceTotalMem(&value, d->device);
	o->total_memory = value;
	o->window = d->window;
	o->window_bytes = d->window_bytes;
	o->granularity = d->granularity;
	if (w->config->driver == DRIVER_SOFTWARE)
		o->flags |= OPEN_PTX_ONLY;
	for (int a = 1; a < OPEN_ATTRIBUTES; a++)
		if (!w->cuda.cuDeviceGetAttribute(
			    &o->attributes[a], (CUdevice_attribute)a, d->device))
			o->attribute_known[a / 8] |= (uint8_t)(1u << a % 8);
	if (w->cuda.cuDeviceGetPCIBusId)
		w->cuda.cuDeviceGetPCIBusId(o->pci_bus_id, sizeof(o->pci_bus_id), d->device);
	w->cuda.cuCtxGetStreamPriorityRange(
		&o->stream_priority_least, &o->stream_priority_greatest);
	for (int l = 0; l < OPEN_LIMITS; l++)
		o->limits[l] = w->cuda.cuCtxGetLimit(&value, (CUlimit)l) ? ~0ull : value;
}

static CUresult worker_open_device(struct worker *w, uint32_t index, struct handoff *ready)
{
	struct worker_device *d = &w->devices[index];
	struct handoff_device *told = &ready->devices[index];
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
	};
	uint16_t context = (uint16_t)CONTEXT_PRIMARY(index);
	size_t granularity, free_memory = 0, total = 0;
	CUresult status;

	status = w->cuda.cuDeviceGet(&d->device, (int)index);
	if (!status)
		status = w->cuda.cuDevicePrimaryCtxRetain(&d->primary, d->device);
	if (status)
		return status;
	w->contexts[context] = d->primary;
	status = worker_use(w, context);
	prop.location.id = d->device;
	if (!status)
		status = w->cuda.cuMemGetAllocationGranularity(
			&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
	if (status)
		return status;
	d->granularity = granularity;
	status = worker_reserve(w, d, index);
	if (status)
		return status;
	context_stream_init(w, context);
	worker_snapshot(w, d);
	w->cuda.cuMemGetInfo(&free_memory, &total);
	memcpy(told->uuid, d->open.uuid, sizeof(told->uuid));
	snprintf(told->name, sizeof(told->name), "%.*s", (int)sizeof(told->name) - 1,
		d->open.name);
	told->total_memory = total;
	told->free_memory = free_memory;
	return CUDA_SUCCESS;
}

/* NVIDIA's driver has its version in its file's name: libcuda.so.580.95.05. */
static void driver_release(const struct worker *w, int version, char *text, size_t n)
{
	char real[PATH_MAX];
	struct link_map *map = NULL;
	const char *at;

	text[0] = 0;
	if (w->config->driver == DRIVER_SOFTWARE) {
		snprintf(text, n, "%d.%d software", version / 1000, version % 1000 / 10);
		return;
	}
	if (dlinfo(w->cuda.library, RTLD_DI_LINKMAP, &map) || !realpath(map->l_name, real))
		return;
	at = strstr(real, ".so.");
	if (at && strchr(at + 4, '.'))
		snprintf(text, n, "%.31s", at + 4);
}

/* Everything that a session would otherwise wait for. 0, or -1 with ready->text filled in. */
static int worker_prepare(struct worker *w, struct handoff *ready)
{
	struct error error = {0};
	int count = 0, version = 0;
	CUresult status;
	const char *step;

	if (w->config->launch_timeout_ms && w->config->driver != DRIVER_NVIDIA) {
		char text[16];

		snprintf(text, sizeof(text), "%u", w->config->launch_timeout_ms);
		setenv("VCUDA_SOFTGPU_TIMEOUT_MS", text, 1);
	}
	if (cuda_driver_open(&w->cuda, w->config->driver_path, &error)) {
		snprintf(ready->text, sizeof(ready->text), "%.135s%s", error.text,
			w->config->driver == DRIVER_NVIDIA
				? "; install the NVIDIA driver or set driver: software"
			: w->config->driver == DRIVER_FILE
				? "; driver: is a libcuda, nvidia or software"
				: "");
		ready->status = CUDA_ERROR_SYSTEM_NOT_READY;
		return -1;
	}
	extra_open(w);
	step = "cuInit";
	status = w->cuda.cuInit(0);
	if (!status) {
		step = "cuDeviceGetCount";
		status = w->cuda.cuDeviceGetCount(&count);
	}
	if (!status && !count)
		status = CUDA_ERROR_NO_DEVICE;
	w->device_count = count > HANDOFF_DEVICES ? HANDOFF_DEVICES : (uint32_t)count;
	for (uint32_t i = 0; !status && i < w->device_count; i++) {
		step = "opening the device";
		status = worker_open_device(w, i, ready);
		ready->device = status ? i + 1 : 0;
	}
	if (!status) {
		step = "pinned memory";
		worker_use(w, CONTEXT_PRIMARY(0));
		if (staging_open(w, &w->in) || staging_open(w, &w->out))
			status = CUDA_ERROR_OUT_OF_MEMORY;
		worker_mirror_open(w);
	}
	if (status) {
		snprintf(ready->text, sizeof(ready->text), "%.100s: %s failed: %.40s",
			w->config->driver_path, step, worker_error_name(w, status));
		ready->status = (uint32_t)status;
		return -1;
	}
	w->receiver.bytes = malloc(RECEIVE_BYTES);
	w->receiver.body = aligned_alloc(64, FRAME_BODY_MAX);
	if (!w->receiver.bytes || !w->receiver.body || window_open(&w->sender.window) ||
		callback_open(w) || output_open(w)) {
		snprintf(ready->text, sizeof(ready->text), "out of memory");
		ready->status = CUDA_ERROR_OUT_OF_MEMORY;
		return -1;
	}
	w->cuda.cuDriverGetVersion(&version);
	ready->driver_version = (uint32_t)version;
	ready->device_count = w->device_count;
	snprintf(ready->text, sizeof(ready->text), "%.190s", w->config->driver_path);
	driver_release(w, version, ready->release, sizeof(ready->release));
	return 0;
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
			(i && message->gpus[i] <= message->gpus[i - 1]))
			return -1;
	memcpy(all, w->devices, sizeof(all));
	memset(w->devices, 0, sizeof(w->devices));
	memset(w->contexts, 0, sizeof(w->contexts));
	w->streams = NULL;
	w->device_count = n;
	w->memory_limit = message->bytes;
	for (uint32_t i = 0; i < n; i++) {
		struct worker_device *d = &w->devices[i];

		*d = all[message->gpus[i]];
		d->lease = message->devices[i].lease;
		d->others = message->devices[i].others;
		if (w->memory_limit && w->memory_limit < d->open.total_memory)
			d->open.total_memory = w->memory_limit;
		w->contexts[CONTEXT_PRIMARY(i)] = d->primary;
		context_stream_init(w, (uint16_t)CONTEXT_PRIMARY(i));
	}
	/* Where another's window was, one of these may be wanted (open.c). */
	for (uint32_t i = 0; i < count; i++) {
		if (chosen < n && message->gpus[chosen] == i) {
			chosen++;
			continue;
		}
		w->cuda.cuMemAddressFree(all[i].window, all[i].window_bytes);
		free(all[i].mapped);
		free(all[i].mappings);
	}
	w->current = CONTEXT_NONE;
	metering_open(w, message);
	return 0;
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
			if (!copy_run(w, &said.tensor, fds[0]))
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
	}
	message->pod[sizeof(message->pod) - 1] = 0;
	log_session(&w->subject, message->session);
	snprintf(w->subject.pod, sizeof(w->subject.pod), "%s", message->pod);
	log_about_all(&w->subject);
	compiled_wait(w->config);
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
	w->coded = message->coded == 1;
	w->compress = !w->coded			   ? CONTROLLER_OFF
		      : w->config->compress_always ? CONTROLLER_ALWAYS
						   : CONTROLLER_AUTO;
	w->park.grace = message->grace_ms * 1000000ull;
	w->sender.window.keeps = w->park.grace > 0;
	return 0;
}

static void take_path(struct worker *w, const int fds[TRANSPORT_FDS])
{
	unsigned count = descriptors_count(fds, TRANSPORT_FDS);

	if (w->link && !park_is(w) && w->transport->path &&
		!w->transport->path(w->link, fds, count))
		return;
	while (count)
		close(fds[--count]);
}

/* True: a figure, behind which there may be more. FDS: what came with it. */
static bool heed(struct worker *w, const struct handoff *message, int fds[TRANSPORT_FDS])
{
	switch (message->what) {
	case HANDOFF_GRANT:
		memory_granted(w, message->device, message->bytes, (CUresult)message->status);
		break;
	case HANDOFF_SETTLED: memory_settled(w, message->device); break;
	case HANDOFF_OTHERS:
		for (uint32_t i = 0; i < message->device_count && i < w->device_count; i++)
			w->devices[i].others = message->devices[i].others;
		return true;
	case HANDOFF_MORE: metering_more(w, message); return true;
	case HANDOFF_STRIPE: stripe_open(w, message->device, fds); break;
	case HANDOFF_UPLOADS: stripe_uploads(w, message->device, fds); break;
	case HANDOFF_PATH: take_path(w, fds); break;
	case HANDOFF_PARK: park_asked(w, message); break;
	case HANDOFF_RESUME: park_resume(w, message, fds); break;
	case HANDOFF_SHARED:
	case HANDOFF_GIVEN: ipc_answer(w, message, fds[0]); break;
	case HANDOFF_IMAGE: images_answer(w, message, fds[0]); break;
	case HANDOFF_TICKETED:
	case HANDOFF_PEER: direct_answer(w, message, fds); break;
	case HANDOFF_ADOPTED: say_again(w, message->bytes); break;
	case HANDOFF_STOP:
		worker_end(w,
			message->status ? (CUresult)message->status
					: CUDA_ERROR_EXTERNAL_DEVICE,
			"%.*s", (int)sizeof(message->text) - 1, message->text);
		break;
	default: break;
	}
	return false;
}

/* One message of the front's, where there is one. True: there may be more. */
static bool take_control(struct worker *w)
{
	static union {
		struct handoff handoff;
		struct tensor_message tensor;
	} said;
	int fds[TRANSPORT_FDS];
	ssize_t n = descriptors_receive(
		w->handoff, &said, sizeof(said), fds, TRANSPORT_FDS, MSG_DONTWAIT);

	if (!n || (n < 0 && n != -EAGAIN && n != -EINTR)) {
		worker_end(w, CUDA_ERROR_EXTERNAL_DEVICE, "the agent is gone");
		return false;
	}
	if (n == sizeof(said.tensor) && said.tensor.version == TENSOR_VERSION) {
		tensor_answer(w, &said.tensor, fds[0]);
		return true;
	}
	return n == sizeof(said.handoff) && said.handoff.version == HANDOFF_VERSION &&
	       heed(w, &said.handoff, fds);
}

void worker_control(struct worker *w)
{
	for (int i = 0; i < CONTROL_FIGURES && take_control(w); i++)
		;
}

bool worker_hear(struct worker *w, uint64_t deadline)
{
	struct pollfd p = {.fd = w->handoff, .events = POLLIN};
	uint64_t now = wait_now();

	if (w->ended || now >= deadline)
		return false;
	if (poll(&p, 1, (int)((deadline - now) / 1000000) + 1) > 0)
		worker_control(w);
	return true;
}

_Noreturn void worker_leave(struct worker *w)
{
	static struct handoff message;
	static atomic_flag leaving = ATOMIC_FLAG_INIT;

	while (atomic_flag_test_and_set(&leaving))
		pause(); /* the other thread is at it */
	log_info("session.end", "reason=\"%s\" frames=%llu launches=%llu", w->end_text,
		(unsigned long long)w->stats.frames_received,
		(unsigned long long)w->stats.launches);
	/* The client sees the end at once. The link itself stays: the watchdog looks at it
	 * beside the loop, and either may be the one that leaves. */
	link_shut(w->link);
	callback_over(w);
	stripes_stats(w);
	message = w->stats; /* the last of them: what came since the last second counts too */
	message.what = HANDOFF_ENDED;
	message.libraries = library_used();
	message.status = w->end_status;
	memcpy(message.text, w->end_text, sizeof(message.text));
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
	w->depth = STREAM_DEPTH;
	w->fences.tail = &w->fences.first;
	w->kept.closings_tail = &w->kept.closings;
	for (int i = 0; i < HANDOFF_DEVICES; i++)
		w->lease_tag[i] = -1;
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
