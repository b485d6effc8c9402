/* SPDX-License-Identifier: Apache-2.0
 *
 * How ranks find each other: an id names a socket, behind which a thread of the process that
 * made it gathers who all the ranks are, and tells each. Then each pair connects.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "softgpu/nccl/nccl.h"

#define MARK 0x6c63636e74666f73ull /* "softnccl" */

/* What an id holds. */
struct address {
	uint64_t mark;
	uint32_t address;
	uint16_t port;
	uint16_t reserved;
	uint8_t secret[16];
};
_Static_assert(sizeof(struct address) <= sizeof(ncclUniqueId), "");

struct hello {
	uint64_t mark;
	uint8_t secret[16];
	int32_t rank, ranks;
	struct softnccl_rank who;
};

struct welcome {
	int32_t status; /* ncclResult_t; the table follows where it is 0 */
	char text[124];
};

struct root {
	int listener;
	struct address id;
	int ranks, came;
	int *sockets; /* by rank */
	struct softnccl_rank *table;
	struct welcome welcome;
};

__attribute__((format(printf, 3, 4))) static void refuse(
	struct root *r, ncclResult_t status, const char *format, ...)
{
	va_list args;

	if (r->welcome.status)
		return;
	r->welcome.status = (int32_t)status;
	va_start(args, format);
	vsnprintf(r->welcome.text, sizeof(r->welcome.text), format, args);
	va_end(args);
}

/* The first says how many there are. */
static bool root_size(struct root *r, int ranks)
{
	if (ranks < 1 || ranks > NCCL_MOST_RANKS)
		return false;
	r->sockets = malloc((size_t)ranks * sizeof(*r->sockets));
	r->table = calloc((size_t)ranks, sizeof(*r->table));
	for (int i = 0; r->sockets && i < ranks; i++)
		r->sockets[i] = -1;
	r->ranks = r->sockets && r->table ? ranks : 0;
	return r->ranks != 0;
}

/* One that came. False: it is none of ours. */
static bool root_take(struct root *r, int fd)
{
	struct hello h;

	if (!softnccl_read(fd, &h, sizeof(h), softnccl_now() + 5000000000u) || h.mark != MARK ||
		memcmp(h.secret, r->id.secret, sizeof(h.secret)) ||
		(!r->ranks && !root_size(r, h.ranks)) || h.rank < 0 || h.rank >= r->ranks)
		return false;
	if (h.ranks != r->ranks)
		refuse(r, ncclInvalidUsage, "one rank says %d ranks, another %d", h.ranks,
			r->ranks);
	if (r->sockets[h.rank] >= 0) {
		refuse(r, ncclInvalidUsage, "rank %d of %d came twice", h.rank, r->ranks);
		close(r->sockets[h.rank]);
		r->came--;
	}
	for (int i = 0; i < r->ranks; i++)
		if (i != h.rank && r->sockets[i] >= 0 &&
			!memcmp(r->table[i].host, h.who.host, sizeof(h.who.host)) &&
			!memcmp(r->table[i].device, h.who.device, sizeof(h.who.device)))
			refuse(r, ncclInvalidUsage,
				"Duplicate GPU detected: rank %d and rank %d have one device",
				i < h.rank ? i : h.rank, i < h.rank ? h.rank : i);
	r->sockets[h.rank] = fd;
	r->table[h.rank] = h.who;
	r->came++;
	return true;
}

static void *root_run(void *argument)
{
	struct root *r = argument;
	uint64_t until = softnccl_now() + softnccl_patience();
	size_t bytes;

	while (!r->ranks || r->came < r->ranks) {
		int fd = softnccl_accept(r->listener, until);

		if (fd < 0 && softnccl_now() >= until)
			break;
		if (fd >= 0 && !root_take(r, fd))
			close(fd);
	}
	close(r->listener);
	if (!r->ranks || r->came < r->ranks)
		refuse(r, ncclTimeout, "%d of %d ranks came", r->came, r->ranks);
	bytes = (size_t)r->ranks * sizeof(*r->table);
	for (int i = 0; i < r->ranks; i++) {
		if (r->sockets[i] < 0)
			continue;
		until = softnccl_now() + 5000000000u;
		if (softnccl_write(r->sockets[i], &r->welcome, sizeof(r->welcome), until) &&
			!r->welcome.status)
			softnccl_write(r->sockets[i], r->table, bytes, until);
		close(r->sockets[i]);
	}
	free(r->sockets);
	free(r->table);
	free(r);
	return NULL;
}

static bool secret_new(uint8_t secret[16])
{
	return getrandom(secret, 16, 0) == 16;
}

ncclResult_t softnccl_call(ncclUniqueId *id)
{
	struct root *r = id ? calloc(1, sizeof(*r)) : NULL;
	pthread_attr_t detached;
	pthread_t thread;
	int failed;

	if (!r)
		return softnccl_fail(id ? ncclSystemError : ncclInvalidArgument, "no id");
	r->id.mark = MARK;
	r->listener = softnccl_listen(&r->id.address, &r->id.port);
	if (r->listener < 0 || !secret_new(r->id.secret)) {
		free(r);
		return ncclSystemError;
	}
	memset(id, 0, sizeof(*id));
	memcpy(id, &r->id, sizeof(r->id));
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	failed = pthread_create(&thread, &detached, root_run, r);
	pthread_attr_destroy(&detached);
	if (!failed)
		return ncclSuccess;
	close(r->listener);
	free(r);
	return softnccl_fail(ncclSystemError, "no thread");
}

ncclResult_t softnccl_self(struct softnccl_rank *self)
{
	CUdevice device;
	CUuuid uuid;

	memset(self, 0, sizeof(*self));
	if (cuCtxGetDevice(&device) || cuDeviceGetUuid(&uuid, device) ||
		!secret_new(self->secret))
		return softnccl_fail(ncclUnhandledCudaError, "there is no current device");
	gethostname((char *)self->host, sizeof(self->host) - 1);
	memcpy(self->device, uuid.bytes, sizeof(self->device));
	self->ordinal = device;
	return ncclSuccess;
}

ncclResult_t softnccl_meet(
	const ncclUniqueId *id, int rank, int ranks, struct softnccl_rank *table)
{
	struct hello h = {.mark = MARK, .rank = rank, .ranks = ranks, .who = table[rank]};
	uint64_t until = softnccl_now() + softnccl_patience();
	struct welcome welcome;
	struct address at;
	bool told;
	int fd;

	memcpy(&at, id, sizeof(at));
	if (at.mark != MARK)
		return softnccl_fail(
			ncclInvalidArgument, "the id is none of ncclGetUniqueId's");
	memcpy(h.secret, at.secret, sizeof(h.secret));
	fd = softnccl_connect(at.address, at.port, until);
	if (fd < 0)
		return ncclSystemError;
	told = softnccl_write(fd, &h, sizeof(h), until) &&
	       softnccl_read(fd, &welcome, sizeof(welcome), until) &&
	       (welcome.status ||
		       softnccl_read(fd, table, (size_t)ranks * sizeof(*table), until));
	close(fd);
	if (!told)
		return softnccl_fail(ncclRemoteError, "whoever made the id is gone");
	welcome.text[sizeof(welcome.text) - 1] = 0;
	return welcome.status ? softnccl_fail((ncclResult_t)welcome.status, "%s", welcome.text)
			      : ncclSuccess;
}

/* --- each with each ----------------------------------------------------------------------- */

struct join {
	uint64_t mark;
	uint8_t secret[16];
	int32_t rank, wire;
};

static ncclResult_t join_others(struct ncclComm *comm, uint64_t until)
{
	for (int peer = 0; peer < comm->rank; peer++)
		for (int wire = 0; wire < NCCL_WIRES; wire++) {
			struct join j = {.mark = MARK, .rank = comm->rank, .wire = wire};
			int fd = softnccl_connect(
				comm->table[peer].address, comm->table[peer].port, until);

			memcpy(j.secret, comm->table[0].secret, sizeof(j.secret));
			if (fd < 0)
				return ncclSystemError;
			comm->sockets[wire][peer] = fd;
			if (!softnccl_write(fd, &j, sizeof(j), until))
				return softnccl_fail(ncclRemoteError, "rank %d is gone", peer);
		}
	return ncclSuccess;
}

ncclResult_t softnccl_mesh(struct ncclComm *comm, int listener)
{
	uint64_t until = softnccl_now() + softnccl_patience();
	ncclResult_t status = join_others(comm, until);
	int wanted = (comm->ranks - 1 - comm->rank) * NCCL_WIRES;

	while (wanted && !status) {
		int fd = softnccl_accept(listener, until);
		struct join j;

		if (fd < 0 && softnccl_now() >= until)
			return softnccl_fail(ncclTimeout, "not all ranks connect");
		if (fd < 0)
			continue;
		if (!softnccl_read(fd, &j, sizeof(j), softnccl_now() + 5000000000u) ||
			j.mark != MARK ||
			memcmp(j.secret, comm->table[0].secret, sizeof(j.secret)) ||
			j.rank <= comm->rank || j.rank >= comm->ranks || j.wire < 0 ||
			j.wire >= NCCL_WIRES || comm->sockets[j.wire][j.rank] >= 0) {
			close(fd);
			continue;
		}
		comm->sockets[j.wire][j.rank] = fd;
		wanted--;
	}
	return status;
}
