/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/server/pending.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "sidecar/channel/channel.h"
#include "sidecar/channel/request.h"
#include "sidecar/server/state.h"

#define PENDING_NS 5000000000ull /* for the first request */
#define PENDING_PROCESS 64	 /* channels that one process may have: it needs one */

static void pending_drop(struct pending *pending, unsigned i)
{
	memmove(&pending->at[i], &pending->at[i + 1],
		(--pending->count - i) * sizeof(pending->at[0]));
}

/* The pid is 0 where the peer is of a PID namespace that we do not see. */
static bool same_peer(const struct ucred *a, const struct ucred *b)
{
	return a->pid == b->pid && a->uid == b->uid;
}

bool pending_evict(struct pending *pending)
{
	unsigned most = 0, oldest = 0;

	if (!pending->count)
		return false;
	for (unsigned i = 0; i < pending->count; i++) {
		unsigned n = 0;

		for (unsigned j = i; j < pending->count; j++)
			n += same_peer(&pending->at[i].peer, &pending->at[j].peer);
		if (n > most) {
			most = n;
			oldest = i;
		}
	}
	close(pending->at[oldest].socket);
	pending_drop(pending, oldest);
	return true;
}

void pending_add(struct pending *pending, int socket, uint64_t now)
{
	struct pending_peer peer = {.socket = socket, .since = now};
	socklen_t size = sizeof(peer.peer);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer.peer, &size)) {
		close(socket);
		return;
	}
	if (pending->count == PENDING_MOST)
		pending_evict(pending);
	pending->at[pending->count++] = peer;
}

void pending_fds(const struct pending *pending, struct pollfd *fds)
{
	for (unsigned i = 0; i < pending->count; i++)
		fds[i] = (struct pollfd){.fd = pending->at[i].socket, .events = POLLIN};
}

uint64_t pending_deadline(const struct pending *pending)
{
	return pending->count ? pending->at[0].since + PENDING_NS : UINT64_MAX;
}

/* --- the first request --- */

/* TEXT in a memfd of *size bytes, -errno. */
static int text_fd(const char *text, uint64_t *size)
{
	cleanup_close int fd = memfd_create("status", MFD_CLOEXEC);
	size_t n = text ? strlen(text) : 0, at = 0;

	if (fd < 0 || !text)
		return -ENOMEM;
	while (at < n) {
		ssize_t wrote = write(fd, text + at, n - at);

		if (wrote < 0)
			return -errno;
		at += (size_t)wrote;
	}
	*size = n;
	return take_fd(&fd);
}

static void tell_text(struct server *server, const struct pending_peer *from,
	const struct channel_request *request)
{
	struct channel_answer answer = request_answer(request, 0, "");
	cleanup_free char *text = request->op == CHANNEL_STATUS ? sidecar_status(server)
				  : request->op == CHANNEL_METRICS
					  ? sidecar_metrics(server, request->segment)
					  : sidecar_calls(server);
	cleanup_close int fd = text_fd(text, &answer.size);

	if (fd < 0) {
		answer = request_answer(
			request, STATUS_OUT_OF_MEMORY, "no memory for the status");
		request_reply(&server->options, from->socket, &answer, NULL, 0);
		return;
	}
	request_reply(&server->options, from->socket, &answer, &fd, 1);
}

static void drain(struct server *server, const struct pending_peer *from,
	const struct channel_request *request)
{
	struct channel_answer answer = request_answer(request, 0, "");

	if (from->peer.uid && from->peer.uid != geteuid()) {
		answer = request_answer(request, STATUS_NOT_PERMITTED,
			"only root and the sidecar's own user may drain it");
	} else {
		atomic_store(&server->draining, true);
		log_info("sidecar.drain", "asked_by=%d", from->peer.pid);
	}
	request_reply(&server->options, from->socket, &answer, NULL, 0);
}

/* Whether there is room for one more channel, and for one of that process. */
static bool has_room(struct server *server, const struct ucred *peer, char text[256])
{
	unsigned count, its = 0;

	pthread_mutex_lock(&server->lock);
	count = server->channel_count;
	for (const struct channel *channel = server->channels; channel; channel = channel->next)
		its += peer->pid && same_peer(&channel->peer, peer);
	pthread_mutex_unlock(&server->lock);
	if (count >= server->options.max_processes)
		snprintf(text, 256, "the sidecar serves %u processes already (max_processes)",
			count);
	else if (its >= PENDING_PROCESS)
		snprintf(text, 256, "this process is joined %u times already", its);
	return count < server->options.max_processes && its < PENDING_PROCESS;
}

/* Takes the socket over, and *segment where the thread starts. */
static void join(struct server *server, const struct pending_peer *from,
	const struct channel_request *request, int *segment)
{
	struct channel_answer answer;
	char text[256];
	int ret;

	if (has_room(server, &from->peer, text)) {
		ret = channel_start(
			server, from->socket, &from->peer, request, take_fd(segment));
		if (ret < 0)
			log_error("sidecar.channel", "text=\"%s\"", strerror(-ret));
		return;
	}
	atomic_fetch_add(&server->refused, 1);
	log_warn("sidecar.full", "app=%d uid=%u text=\"%s\"", from->peer.pid, from->peer.uid,
		text);
	answer = request_answer(request, STATUS_NOT_READY, text);
	request_reply(&server->options, from->socket, &answer, NULL, 0);
	close(from->socket);
}

/* True: it is served, or goes. */
static bool serve(struct server *server, const struct pending_peer *from)
{
	struct channel_request request;
	cleanup_close int fd = -1;
	int ret = request_receive_fd(from->socket, &request, &fd);

	if (!ret)
		return false;
	if (ret > 0 && (request.op == CHANNEL_ATTACH || request.op == CHANNEL_ADOPT)) {
		join(server, from, &request, &fd);
		return true;
	}
	if (ret > 0 && (request.op == CHANNEL_STATUS || request.op == CHANNEL_METRICS ||
			       request.op == CHANNEL_CALLS))
		tell_text(server, from, &request);
	if (ret > 0 && request.op == CHANNEL_DRAIN)
		drain(server, from, &request);
	close(from->socket);
	return true;
}

void pending_serve(
	struct pending *pending, struct server *server, const struct pollfd *fds, uint64_t now)
{
	for (unsigned i = pending->count; i-- > 0;) {
		struct pending_peer from = pending->at[i];

		if (fds[i].revents) {
			if (serve(server, &from))
				pending_drop(pending, i);
		} else if (now - from.since >= PENDING_NS) {
			close(from.socket);
			pending_drop(pending, i);
		}
	}
}
