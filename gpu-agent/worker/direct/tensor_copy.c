/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/worker/direct/tensor_copy.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/wire/tensor_copy.h"
#include "transport/transport.h"

#define PIECE (4u << 20)
#define STEP (256u << 20) /* between two words to the front */
#define BUFFERS 2 /* one is on the wire while the other is on its way to or from the GPU */
#define SILENT_NS 15000000000ull /* then the other end counts as gone */
#define TELL_NS 1000000000ull

struct copy_memory {
	uint32_t device;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	size_t room;
	bool mapped;
};

struct copy_job {
	struct worker *w;
	struct tensor_message said; /* told at the end */
	struct link *link;
	struct tensor_message source; /* of this agent's other GPU, with … */
	int source_fd;		      /* -1: it comes by the link, or goes */
	struct copy_memory memory, from;
	unsigned char *bytes[BUFFERS];
	CUstream streams[BUFFERS];
	uint64_t told_at, moved;
};

static bool failed(struct copy_job *j, CUresult status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static bool failed(struct copy_job *j, CUresult status, const char *format, ...)
{
	va_list arguments;

	if (j->said.status)
		return false;
	j->said.status = (uint32_t)status;
	va_start(arguments, format);
	vsnprintf(j->said.text, sizeof(j->said.text), format, arguments);
	va_end(arguments);
	return false;
}

/* CUDA's answer, as `failed`. */
static bool good(struct copy_job *j, CUresult status, const char *what)
{
	return !status || failed(j, status, "%s failed with error %d", what, (int)status);
}

static bool tell(struct copy_job *j, uint32_t what)
{
	j->said.version = TENSOR_VERSION;
	j->said.what = what;
	j->said.cursor = j->moved;
	j->told_at = wait_now();
	return !descriptors_send(j->w->handoff, &j->said, sizeof(j->said), NULL, 0, 0);
}

/* ---- the wire ---- */

/* Sleeps until the link may go on; false: it has been silent for too long. */
static bool awake(struct copy_job *j, uint64_t *heard, bool send)
{
	const uint64_t now = wait_now();
	struct pollfd fds[2];

	if (now - *heard >= SILENT_NS)
		return failed(j, CUDA_ERROR_SYSTEM_NOT_READY,
			"the other agent says nothing any more");
	if (now - j->told_at >= TELL_NS && !tell(j, TENSOR_MOVED))
		return failed(j, CUDA_ERROR_SYSTEM_NOT_READY, "the front is gone");
	link_fds(j->link, fds, send);
	if (send)
		fds[0].fd = -1; /* it says nothing yet */
	poll(fds, 2, link_wake_at(j->link) == UINT64_MAX ? 1000 : 1);
	return true;
}

/* What the link answered, RET, adds to DONE, or is waited for. */
static bool step(struct copy_job *j, ssize_t ret, size_t *done, uint64_t *heard, bool send)
{
	if (ret > 0) {
		*done += (size_t)ret;
		*heard = wait_now();
	} else if (ret != -EAGAIN) {
		return failed(j, CUDA_ERROR_SYSTEM_NOT_READY,
			"the other agent went away in the middle of the copy");
	}
	return (ret > 0 && *heard - j->told_at < TELL_NS) || awake(j, heard, send);
}

static bool receive(struct copy_job *j, void *to, size_t n)
{
	uint64_t heard = wait_now();
	size_t got = 0;

	while (got < n)
		if (!step(j, link_receive(j->link, (char *)to + got, n - got), &got, &heard,
			    false))
			return false;
	return true;
}

static bool transmit(struct copy_job *j, const void *from, size_t n)
{
	uint64_t heard = wait_now();
	size_t sent = 0;

	while (sent < n) {
		struct iovec piece = {(void *)(uintptr_t)((const char *)from + sent), n - sent};

		if (!step(j, link_send(j->link, &piece, 1), &sent, &heard, true))
			return false;
	}
	return true;
}

/* ---- the GPU ---- */

static bool find_device(struct copy_job *j, const uint8_t gpu[16], struct copy_memory *m)
{
	while (m->device < j->w->device_count &&
		memcmp(j->w->devices[m->device].open.uuid, gpu, 16))
		m->device++;
	return m->device < j->w->device_count ||
	       failed(j, CUDA_ERROR_INVALID_DEVICE, "the worker has no such GPU");
}

static bool map(struct copy_job *j, const struct tensor_message *said, int fd, bool write,
	struct copy_memory *m)
{
	struct worker *w = j->w;
	struct worker_device *d;
	CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
		.flags = write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			       : CU_MEM_ACCESS_FLAGS_PROT_READ,
	};

	m->room = said->about.room;
	if (!said->about.bytes || said->about.offset > m->room ||
		said->about.bytes > m->room - said->about.offset)
		return failed(j, CUDA_ERROR_INVALID_VALUE, "a copy of no bytes, or too many");
	if (!find_device(j, said->gpu, m))
		return false;
	d = &w->devices[m->device];
	access.location.id = d->device;
	if (!good(j, worker_use(w, (uint16_t)CONTEXT_PRIMARY(m->device)), "the context") ||
		!good(j,
			w->cuda.cuMemImportFromShareableHandle(&m->handle, (void *)(intptr_t)fd,
				CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
			"importing the memory"))
		return false;
	if (!good(j, w->cuda.cuMemAddressReserve(&m->at, m->room, d->granularity, 0, 0),
		    "an address for the memory"))
		return false;
	m->mapped = good(j, w->cuda.cuMemMap(m->at, m->room, 0, m->handle, 0), "mapping it");
	return m->mapped &&
	       good(j, w->cuda.cuMemSetAccess(m->at, m->room, &access, 1), "reaching it");
}

static void unmap(struct copy_job *j, struct copy_memory *m)
{
	struct worker *w = j->w;

	if (m->mapped)
		w->cuda.cuMemUnmap(m->at, m->room);
	if (m->at)
		w->cuda.cuMemAddressFree(m->at, m->room);
	if (m->handle)
		w->cuda.cuMemRelease(m->handle);
}

static bool buffers(struct copy_job *j)
{
	struct worker *w = j->w;

	for (int i = 0; i < BUFFERS; i++)
		if (!good(j,
			    w->cuda.cuMemHostAlloc(
				    (void **)&j->bytes[i], PIECE, CU_MEMHOSTALLOC_PORTABLE),
			    "pinned memory") ||
			!good(j, w->cuda.cuStreamCreate(&j->streams[i], CU_STREAM_NON_BLOCKING),
				"a stream"))
			return false;
	return true;
}

/* What a tenant's kernel could read later is wiped. */
static void clean(struct copy_job *j)
{
	struct worker *w = j->w;

	for (int i = 0; i < BUFFERS; i++) {
		if (j->streams[i]) {
			w->cuda.cuStreamSynchronize(j->streams[i]);
			w->cuda.cuStreamDestroy(j->streams[i]);
		}
		if (j->bytes[i]) {
			explicit_bzero(j->bytes[i], PIECE);
			w->cuda.cuMemFreeHost(j->bytes[i]);
		}
	}
	unmap(j, &j->memory);
	unmap(j, &j->from);
	if (j->source_fd >= 0)
		close(j->source_fd);
	link_close(j->link);
}

/* ---- both ways ---- */

static size_t piece_at(const struct copy_job *j, uint64_t at)
{
	uint64_t left = j->said.about.bytes - at;

	return left < PIECE ? (size_t)left : PIECE;
}

static bool fill(struct copy_job *j)
{
	const uint64_t bytes = j->said.about.bytes;
	const uint8_t all = TENSOR_COPY_ALL;
	struct tensor_copy_head head;

	if (!receive(j, &head, sizeof(head)))
		return false;
	if (head.magic != TENSOR_COPY_MAGIC || head.bytes != bytes)
		return failed(
			j, CUDA_ERROR_SYSTEM_NOT_READY, "the other agent sends another tensor");
	for (int i = 0; j->moved < bytes; i = (i + 1) % BUFFERS) {
		size_t n = piece_at(j, j->moved);

		if (!good(j, j->w->cuda.cuStreamSynchronize(j->streams[i]), "a copy") ||
			!receive(j, j->bytes[i], n) ||
			!good(j,
				j->w->cuda.cuMemcpyHtoDAsync(
					j->memory.at + j->said.about.offset + j->moved,
					j->bytes[i], n, j->streams[i]),
				"a copy"))
			return false;
		j->moved += n;
	}
	for (int i = 0; i < BUFFERS; i++)
		if (!good(j, j->w->cuda.cuStreamSynchronize(j->streams[i]), "a copy"))
			return false;
	return transmit(j, &all, 1);
}

static bool read_piece(struct copy_job *j, int i, uint64_t at)
{
	return at >= j->said.about.bytes ||
	       good(j,
		       j->w->cuda.cuMemcpyDtoHAsync(j->bytes[i],
			       j->memory.at + j->said.about.offset + at, piece_at(j, at),
			       j->streams[i]),
		       "a copy");
}

static bool spill(struct copy_job *j)
{
	const uint64_t bytes = j->said.about.bytes;
	const struct tensor_copy_head head = {.magic = TENSOR_COPY_MAGIC, .bytes = bytes};
	uint8_t all = 0;

	for (int i = 0; i < BUFFERS; i++)
		if (!read_piece(j, i, (uint64_t)i * PIECE))
			return false;
	if (!transmit(j, &head, sizeof(head)))
		return false;
	for (int i = 0; j->moved < bytes; i = (i + 1) % BUFFERS) {
		size_t n = piece_at(j, j->moved);

		if (!good(j, j->w->cuda.cuStreamSynchronize(j->streams[i]), "a copy") ||
			!transmit(j, j->bytes[i], n) ||
			!read_piece(j, i, j->moved + (uint64_t)BUFFERS * PIECE))
			return false;
		j->moved += n;
	}
	return receive(j, &all, 1) &&
	       (all == TENSOR_COPY_ALL ||
		       failed(j, CUDA_ERROR_SYSTEM_NOT_READY,
			       "the other agent does not say that it has all"));
}

/* From one GPU of this agent to another. */
static bool between(struct copy_job *j)
{
	const struct worker_device *to = &j->w->devices[j->memory.device];
	const struct worker_device *from = &j->w->devices[j->from.device];

	while (j->moved < j->said.about.bytes) {
		uint64_t left = j->said.about.bytes - j->moved;
		size_t n = left < STEP ? (size_t)left : STEP;

		if (!good(j,
			    j->w->cuda.cuMemcpyPeer(
				    j->memory.at + j->said.about.offset + j->moved, to->primary,
				    j->from.at + j->source.about.offset + j->moved,
				    from->primary, n),
			    "a copy"))
			return false;
		j->moved += n;
		if (wait_now() - j->told_at >= TELL_NS && !tell(j, TENSOR_MOVED))
			return failed(j, CUDA_ERROR_SYSTEM_NOT_READY, "the front is gone");
	}
	return good(j, j->w->cuda.cuCtxSynchronize(), "a copy");
}

/* The connection, or the memory of another GPU, which the front sends behind the first message.
 * False: the front is gone. */
static bool other_end(struct copy_job *j)
{
	static union {
		struct handoff h;
		struct tensor_message source;
	} said;
	struct error error = {0};
	int fds[TRANSPORT_FDS];
	const struct transport *transport;
	unsigned count;
	ssize_t n;

	do
		n = descriptors_receive(
			j->w->handoff, &said, sizeof(said), fds, TRANSPORT_FDS, 0);
	while (n == -EINTR);
	if (n == sizeof(said.source) && said.source.version == TENSOR_VERSION &&
		said.source.what == TENSOR_SOURCE && fds[0] >= 0) {
		j->source = said.source;
		j->source_fd = fds[0];
		return true;
	}
	if (n != sizeof(said.h) || said.h.version != HANDOFF_VERSION ||
		said.h.what != HANDOFF_PEER)
		return false;
	count = descriptors_count(fds, TRANSPORT_FDS);
	said.h.text[sizeof(said.h.text) - 1] = 0;
	transport = transport_named(said.h.text);
	if (!transport || !count ||
		transport->link(fds, count, TRANSPORT_AGENT, &j->link, &error)) {
		while (count)
			close(fds[--count]);
		failed(j, CUDA_ERROR_SYSTEM_NOT_READY, "the connection: %.120s",
			transport ? error.text : "no such transport");
	}
	return true;
}

bool tensor_copy_run(struct worker *w, const struct tensor_message *message, int memory)
{
	const bool in = message->what == TENSOR_FILL;
	struct copy_job j = {.w = w, .said = *message, .told_at = wait_now(), .source_fd = -1};
	bool there;

	j.said.status = 0;
	j.said.text[0] = 0;
	there = other_end(&j);
	if (there && in && j.source_fd >= 0 && j.source.about.bytes == j.said.about.bytes) {
		if (map(&j, &j.source, j.source_fd, false, &j.from) &&
			map(&j, &j.said, memory, true, &j.memory))
			between(&j);
	} else if (there && j.link && map(&j, &j.said, memory, in, &j.memory) && buffers(&j)) {
		(void)(in ? fill(&j) : spill(&j));
	} else if (there) {
		failed(&j, CUDA_ERROR_INVALID_VALUE, "a copy from nowhere");
	}
	clean(&j);
	close(memory);
	return there && tell(&j, TENSOR_MOVED_ALL);
}
