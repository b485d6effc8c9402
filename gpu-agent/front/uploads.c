/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/uploads.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tensor/tensors.h"

/* What a stripe's payloads must be able to do: what was told to be there may be gone, and then
 * the stripe is cut and its frames come again. */
#define NEEDED (SESSION_FEATURE_STRIPES | SESSION_FEATURE_STRIPES_BACK | SESSION_FEATURE_RESUME)

static void lose(struct front *front)
{
	int fd = events_forget(&front->events, &front->uploads.process);

	if (fd >= 0)
		close(fd);
	front->uploads.counts.lanes = 0;
	front->uploads.counts.bytes = 0;
	front->uploads.before = front->uploads.counts;
}

static void process_ready(struct watch *watch, uint32_t mask)
{
	struct front *front = watch->owner;

	(void)mask;
	for (;;) {
		struct uploads_counts counts;
		int none;
		ssize_t n = descriptors_receive(
			watch->fd, &counts, sizeof(counts), &none, 0, MSG_DONTWAIT);

		if (n == -EAGAIN)
			return;
		if (n != (ssize_t)sizeof(counts) || counts.version != UPLOADS_VERSION) {
			lose(front);
			return;
		}
		if (!counts.has_earlier)
			uploads_add(&counts, &front->uploads.before);
		front->uploads.counts = counts;
	}
}

void uploads_join(struct front *front, int fd)
{
	const struct uploads_counts *before = &front->uploads.before;

	lose(front);
	if (fd < 0)
		return;
	if (events_watch(&front->events, &front->uploads.process, fd, EPOLLIN, process_ready)) {
		close(fd);
		return;
	}
	/* Where it does not go they are added here. */
	if (before->hits || before->misses || before->evictions)
		(void)!send(fd, before, sizeof(*before), MSG_DONTWAIT | MSG_NOSIGNAL);
}

uint64_t uploads_features(const struct front *front, uint64_t features, uint64_t asked)
{
	if (!front->config->upload_cache_bytes || (features & NEEDED) != NEEDED)
		return features;
	return features | (asked & SESSION_FEATURE_NAMES);
}

/* Two pairs: [0] and [2] are the worker's. */
static int make_pairs(int ends[4])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	if (!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends + 2))
		return 0;
	close(ends[0]);
	close(ends[1]);
	return -EMFILE;
}

void uploads_lane(struct front *front, const struct session *session, uint32_t number)
{
	struct uploads_lane lane = {
		.version = UPLOADS_VERSION, .stripe = number, .session = session->number};
	const struct handoff h = {
		.version = HANDOFF_VERSION, .what = HANDOFF_UPLOADS, .device = number};
	int ends[4], ret;

	if (!(session->features & SESSION_FEATURE_NAMES) || !session->worker ||
		session->worker->handoff.fd < 0 || front->uploads.process.fd < 0 ||
		make_pairs(ends))
		return;
	tensors_space(session->tenant, lane.space);
	ret = descriptors_send(front->uploads.process.fd, &lane, sizeof(lane),
		(int[]){ends[1], ends[3]}, 2, MSG_DONTWAIT);
	if (!ret)
		ret = descriptors_send(session->worker->handoff.fd, &h, sizeof(h),
			(int[]){ends[0], ends[2]}, 2, MSG_DONTWAIT);
	if (ret)
		log_of(&session->subject, LOG_WARN, "uploads.lane", "stripe=%u error=%d",
			number, -ret);
	for (int i = 0; i < 4; i++)
		close(ends[i]);
}
