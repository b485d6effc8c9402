/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/worker/copy.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/wire/copy.h"
#include "transport/transport.h"

#define PIECE (4u << 20)
#define BUFFERS 2 /* one is on the wire while the other is on its way to or from the GPU */
#define SILENT_NS 15000000000ull /* then the other end counts as gone */
#define TELL_NS 1000000000ull

struct copy_job {
	struct worker *w;
	struct tensor_message said; /* told at the end */
	struct link *link;
	uint32_t device;
	CUmemGenericAllocationHandle memory;
	CUdeviceptr at;
	size_t room;
	bool mapped;
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

static bool receive(struct copy_job *j, void *to, size_t n)
{
	uint64_t heard = wait_now();
	size_t got = 0;

	while (got < n) {
		ssize_t ret = link_receive(j->link, (char *)to + got, n - got);

		if (ret > 0) {
			got += (size_t)ret;
			heard = wait_now();
		} else if (ret != -EAGAIN) {
			return failed(j, CUDA_ERROR_SYSTEM_NOT_READY,
				"the other agent went away in the middle of the copy");
		}
		if ((ret < 0 || heard - j->told_at >= TELL_NS) && !awake(j, &heard, false))
			return false;
	}
	return true;
}

static bool transmit(struct copy_job *j, const void *from, size_t n)
{
	uint64_t heard = wait_now();
	size_t sent = 0;

	while (sent < n) {
		struct iovec piece = {(void *)(uintptr_t)((const char *)from + sent), n - sent};
		ssize_t ret = link_send(j->link, &piece, 1);

		if (ret > 0) {
			sent += (size_t)ret;
			heard = wait_now();
		} else if (ret != -EAGAIN) {
			return failed(j, CUDA_ERROR_SYSTEM_NOT_READY,
				"the other agent went away in the middle of the copy");
		}
		if ((ret < 0 || heard - j->told_at >= TELL_NS) && !awake(j, &heard, true))
			return false;
	}
	return true;
}

/* ---- the GPU ---- */

static bool find_device(struct copy_job *j)
{
	while (j->device < j->w->device_count &&
		memcmp(j->w->devices[j->device].open.uuid, j->said.gpu, sizeof(j->said.gpu)))
		j->device++;
	return j->device < j->w->device_count ||
	       failed(j, CUDA_ERROR_INVALID_DEVICE, "the worker has no such GPU");
}

static bool map(struct copy_job *j, int memory, bool write)
{
	struct worker *w = j->w;
	struct worker_device *d = &w->devices[j->device];
	CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d->device},
		.flags = write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			       : CU_MEM_ACCESS_FLAGS_PROT_READ,
	};

	j->room = j->said.about.room;
	if (!j->said.about.bytes || j->said.about.offset > j->room ||
		j->said.about.bytes > j->room - j->said.about.offset)
		return failed(j, CUDA_ERROR_INVALID_VALUE, "a copy of no bytes, or too many");
	if (!good(j, worker_use(w, (uint16_t)CONTEXT_PRIMARY(j->device)), "the context") ||
		!good(j,
			w->cuda.cuMemImportFromShareableHandle(&j->memory,
				(void *)(intptr_t)memory,
				CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
			"importing the memory"))
		return false;
	if (!good(j, w->cuda.cuMemAddressReserve(&j->at, j->room, d->granularity, 0, 0),
		    "an address for the memory"))
		return false;
	j->mapped = good(j, w->cuda.cuMemMap(j->at, j->room, 0, j->memory, 0), "mapping it");
	return j->mapped &&
	       good(j, w->cuda.cuMemSetAccess(j->at, j->room, &access, 1), "reaching it");
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
	if (j->mapped)
		w->cuda.cuMemUnmap(j->at, j->room);
	if (j->at)
		w->cuda.cuMemAddressFree(j->at, j->room);
	if (j->memory)
		w->cuda.cuMemRelease(j->memory);
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
	const uint8_t all = COPY_ALL;
	struct copy_head head;

	if (!receive(j, &head, sizeof(head)))
		return false;
	if (head.magic != COPY_MAGIC || head.bytes != bytes)
		return failed(
			j, CUDA_ERROR_SYSTEM_NOT_READY, "the other agent sends another tensor");
	for (int i = 0; j->moved < bytes; i = (i + 1) % BUFFERS) {
		size_t n = piece_at(j, j->moved);

		if (!good(j, j->w->cuda.cuStreamSynchronize(j->streams[i]), "a copy") ||
			!receive(j, j->bytes[i], n) ||
			!good(j,
				j->w->cuda.cuMemcpyHtoDAsync(
					j->at + j->said.about.offset + j->moved, j->bytes[i], n,
					j->streams[i]),
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
	return at >= j->said.about.bytes || good(j,
						    j->w->cuda.cuMemcpyDtoHAsync(j->bytes[i],
							    j->at + j->said.about.offset + at,
							    piece_at(j, at), j->streams[i]),
						    "a copy");
}

static bool spill(struct copy_job *j)
{
	const uint64_t bytes = j->said.about.bytes;
	const struct copy_head head = {.magic = COPY_MAGIC, .bytes = bytes};
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
	       (all == COPY_ALL || failed(j, CUDA_ERROR_SYSTEM_NOT_READY,
					   "the other agent does not say that it has all"));
}

/* The connection, which the front sends behind the first message. False: the front is gone. */
static bool connection(struct copy_job *j)
{
	static struct handoff h;
	struct error error = {0};
	int fds[TRANSPORT_FDS];
	const struct transport *transport;
	unsigned count;
	ssize_t n;

	do
		n = descriptors_receive(j->w->handoff, &h, sizeof(h), fds, TRANSPORT_FDS, 0);
	while (n == -EINTR);
	if (n != sizeof(h) || h.version != HANDOFF_VERSION || h.what != HANDOFF_PEER)
		return false;
	count = descriptors_count(fds, TRANSPORT_FDS);
	h.text[sizeof(h.text) - 1] = 0;
	transport = transport_named(h.text);
	if (!transport || !count ||
		transport->link(fds, count, TRANSPORT_AGENT, &j->link, &error)) {
		while (count)
			close(fds[--count]);
		failed(j, CUDA_ERROR_SYSTEM_NOT_READY, "the connection: %.120s",
			transport ? error.text : "no such transport");
	}
	return true;
}

bool copy_run(struct worker *w, const struct tensor_message *message, int memory)
{
	const bool in = message->what == TENSOR_FILL;
	struct copy_job j = {.w = w, .said = *message, .told_at = wait_now()};
	bool there;

	j.said.status = 0;
	j.said.text[0] = 0;
	there = connection(&j);
	if (there && j.link && find_device(&j) && map(&j, memory, in) && buffers(&j))
		(void)(in ? fill(&j) : spill(&j));
	clean(&j);
	close(memory);
	return there && tell(&j, TENSOR_MOVED_ALL);
}
