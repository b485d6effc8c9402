/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections, and transfers over all of them at once.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "softgpu/nccl/nccl.h"

#define MS 1000000ull

uint64_t softnccl_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

uint64_t softnccl_patience(void)
{
	const char *text = getenv("VCUDA_SOFTGPU_NCCL_WAIT_MS");
	long ms = text ? strtol(text, NULL, 10) : 0;

	return (ms > 0 && ms < 86400000 ? (uint64_t)ms : 600000) * MS;
}

/* Milliseconds until then, at least one so that what is there is seen. */
static int left(uint64_t until)
{
	uint64_t now = softnccl_now();

	return until <= now ? 0 : (int)((until - now) / MS + 1);
}

/* Whether the socket is ready for that before it is too late. */
static bool ready(int fd, short events, uint64_t until)
{
	struct pollfd poller = {.fd = fd, .events = events};
	int n;

	do
		n = poll(&poller, 1, left(until));
	while (n < 0 && errno == EINTR && left(until));
	return n > 0;
}

bool softnccl_write(int fd, const void *bytes, size_t n, uint64_t until)
{
	const char *at = bytes;

	while (n) {
		ssize_t got = send(fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (got < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (got < 0 && !ready(fd, POLLOUT, until))
			return false;
		at += got > 0 ? got : 0;
		n -= got > 0 ? (size_t)got : 0;
	}
	return true;
}

bool softnccl_read(int fd, void *bytes, size_t n, uint64_t until)
{
	char *at = bytes;

	while (n) {
		ssize_t got = recv(fd, at, n, MSG_DONTWAIT);

		if (!got || (got < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		if (got < 0 && !ready(fd, POLLIN, until))
			return false;
		at += got > 0 ? got : 0;
		n -= got > 0 ? (size_t)got : 0;
	}
	return true;
}

/* --- connections -------------------------------------------------------------------------- */

/* The one that NCCL_SOCKET_IFNAME names; else the first that is not the machine's own; else
 * that one. Network order. */
static uint32_t own_address(void)
{
	const char *wanted = getenv("NCCL_SOCKET_IFNAME");
	uint32_t found = htonl(INADDR_LOOPBACK);
	struct ifaddrs *all = NULL;

	if (getifaddrs(&all))
		return found;
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET ||
			!(i->ifa_flags & IFF_UP))
			continue;
		if (wanted ? !strncmp(i->ifa_name, wanted, strlen(wanted))
			   : !(i->ifa_flags & IFF_LOOPBACK)) {
			found = ((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr.s_addr;
			break;
		}
	}
	freeifaddrs(all);
	return found;
}

static void socket_no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

int softnccl_listen(uint32_t *address, uint16_t *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t length = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	at.sin_addr.s_addr = own_address();
	if (fd < 0 || bind(fd, (void *)&at, sizeof(at)) || listen(fd, NCCL_MOST_RANKS) ||
		getsockname(fd, (void *)&at, &length)) {
		softnccl_fail(ncclSystemError, "a socket that listens: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	*address = at.sin_addr.s_addr;
	*port = at.sin_port;
	return fd;
}

int softnccl_connect(uint32_t address, uint16_t port, uint64_t until)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = port};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error = 0;
	socklen_t length = sizeof(error);

	at.sin_addr.s_addr = address;
	if (fd >= 0 && (!connect(fd, (void *)&at, sizeof(at)) ||
			       (errno == EINPROGRESS && ready(fd, POLLOUT, until) &&
				       !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) &&
				       !error))) {
		socket_no_delay(fd);
		return fd;
	}
	softnccl_fail(ncclSystemError, "a connection to another rank: %s",
		strerror(error ? error : errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

int softnccl_accept(int listener, uint64_t until)
{
	int fd = ready(listener, POLLIN, until)
			 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)
			 : -1;

	if (fd >= 0)
		socket_no_delay(fd);
	return fd;
}

/* --- transfers ---------------------------------------------------------------------------- */

enum { HEAD = sizeof(uint64_t) };

static bool finished(const struct softnccl_transfer *t)
{
	return t->done == HEAD + t->count;
}

/* The first with that peer that is not finished; NULL: all are. */
static struct softnccl_transfer *next_of(struct softnccl_transfer *all, int count, int peer)
{
	for (int i = 0; i < count; i++)
		if (all[i].peer == peer && !finished(&all[i]))
			return &all[i];
	return NULL;
}

/* Moves what can be moved now. 1: some; 0: none; -1: the peer is gone; -2: it sends something
 * of another length. */
static int move(int fd, struct softnccl_transfer *t, bool out)
{
	bool head = t->done < HEAD;
	char *at = head ? (char *)&t->length + t->done : t->bytes + (t->done - HEAD);
	size_t n = head ? HEAD - t->done : HEAD + t->count - t->done;
	ssize_t got;

	if (out && head)
		t->length = t->count;
	got = out ? send(fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT)
		  : recv(fd, at, n, MSG_DONTWAIT);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (!got && n)
		return -1;
	t->done += (uint64_t)got;
	if (!out && t->done == HEAD && t->length != t->count)
		return -2;
	return 1;
}

/* Of one peer, both ways. As move(). */
static int move_all(int fd, int peer, struct softnccl_transfer *sends, int send_count,
	struct softnccl_transfer *receives, int receive_count)
{
	struct softnccl_transfer *t;
	int moved = 0, ret = 1;

	while (ret > 0 && (t = next_of(receives, receive_count, peer))) {
		ret = move(fd, t, false);
		moved |= ret > 0;
	}
	if (ret < 0)
		return ret;
	ret = 1;
	while (ret > 0 && (t = next_of(sends, send_count, peer))) {
		ret = move(fd, t, true);
		moved |= ret > 0;
	}
	return ret < 0 ? ret : moved;
}

/* What a rank sends to itself. */
static ncclResult_t move_own(int rank, struct softnccl_transfer *sends, int send_count,
	struct softnccl_transfer *receives, int receive_count)
{
	struct softnccl_transfer *from, *to;

	while ((from = next_of(sends, send_count, rank))) {
		to = next_of(receives, receive_count, rank);
		if (!to || to->count != from->count)
			return softnccl_fail(ncclInvalidUsage,
				"rank %d sends itself what it does not receive", rank);
		memcpy(to->bytes, from->bytes, from->count);
		from->done = to->done = HEAD + from->count;
	}
	return next_of(receives, receive_count, rank)
		       ? softnccl_fail(ncclInvalidUsage,
				 "rank %d receives from itself what it does not send", rank)
		       : ncclSuccess;
}

/* Fills in whom to poll for what; how many there are. */
static int pollers(struct ncclComm *comm, const int *sockets, struct pollfd *fds,
	struct softnccl_transfer *sends, int send_count, struct softnccl_transfer *receives,
	int receive_count)
{
	int busy = 0;

	for (int peer = 0; peer < comm->ranks; peer++) {
		fds[peer] = (struct pollfd){.fd = -1};
		if (peer == comm->rank)
			continue;
		if (next_of(sends, send_count, peer))
			fds[peer].events |= POLLOUT;
		if (next_of(receives, receive_count, peer))
			fds[peer].events |= POLLIN;
		if (fds[peer].events) {
			fds[peer].fd = sockets[peer];
			busy++;
		}
	}
	fds[comm->ranks] = (struct pollfd){.fd = comm->wake, .events = POLLIN};
	return busy;
}

static ncclResult_t moved_with(struct ncclComm *comm, int peer, int ret)
{
	if (ret == -2)
		return softnccl_fail(ncclInvalidUsage,
			"rank %d sends rank %d another number of bytes than it expects", peer,
			comm->rank);
	return ret < 0 ? softnccl_fail(ncclRemoteError, "rank %d is gone", peer) : ncclSuccess;
}

ncclResult_t softnccl_exchange(struct ncclComm *comm, enum softnccl_wire wire,
	struct softnccl_transfer *sends, int send_count, struct softnccl_transfer *receives,
	int receive_count)
{
	struct pollfd *fds = calloc((size_t)comm->ranks + 1, sizeof(*fds));
	ncclResult_t status =
		fds ? move_own(comm->rank, sends, send_count, receives, receive_count)
		    : softnccl_fail(ncclSystemError, "no memory");
	uint64_t until = softnccl_now() + softnccl_patience();

	while (!status && pollers(comm, comm->sockets[wire], fds, sends, send_count, receives,
				  receive_count)) {
		int n = poll(fds, (nfds_t)comm->ranks + 1, left(until));

		if (comm->aborted)
			status =
				softnccl_fail(ncclInternalError, "the communicator is aborted");
		else if (!n)
			status = softnccl_fail(ncclTimeout, "the other ranks say nothing");
		for (int peer = 0; peer < comm->ranks && !status && n > 0; peer++) {
			int ret = fds[peer].revents
					  ? move_all(fds[peer].fd, peer, sends, send_count,
						    receives, receive_count)
					  : 0;

			if (ret > 0)
				until = softnccl_now() + softnccl_patience();
			status = moved_with(comm, peer, ret);
		}
	}
	free(fds);
	return status;
}
