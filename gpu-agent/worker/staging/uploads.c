/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/worker/staging/uploads.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "gpu-agent/uploads.h"

/* It copies and hashes a megabyte at the most. One that takes longer is as good as dead. */
#define ANSWER_MS 2000

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void uploads_end(struct uploads_lane_end *lane)
{
	close_one(&lane->ask);
	close_one(&lane->keep);
	lane->began = false;
	lane->kept = 0;
}

static void lose(struct uploads_lane_end *lane)
{
	if (lane->ask >= 0)
		log_warn("uploads.lost",
			"text=\"agent-uploads does not answer: payloads travel again\"");
	close_one(&lane->ask);
	close_one(&lane->keep);
	lane->kept = 0;
}

int uploads_memory(void **base)
{
	int fd = memfd_create("vcuda-stripe", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	*base = MAP_FAILED;
	if (!ftruncate(fd, UPLOADS_MEMORY))
		*base = mmap(NULL, UPLOADS_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*base != MAP_FAILED)
		return fd;
	close(fd);
	return -ENOMEM;
}

/* One of WHAT. False: none comes. */
static bool hear(int fd, uint32_t what, struct uploads_answer *answer)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int none;

	return fd >= 0 && poll(&p, 1, ANSWER_MS) == 1 &&
	       descriptors_receive(fd, answer, sizeof(*answer), &none, 0, MSG_DONTWAIT) ==
		       (ssize_t)sizeof(*answer) &&
	       answer->what == what;
}

static bool request(struct uploads_lane_end *lane, const struct uploads_request *r, int memory,
	struct uploads_answer *answer)
{
	size_t n = offsetof(struct uploads_request, names) + r->count * sizeof(r->names[0]);

	if (lane->ask >= 0 &&
		!descriptors_send(lane->ask, r, n, &memory, memory >= 0, MSG_DONTWAIT) &&
		hear(lane->ask, r->what, answer))
		return true;
	lose(lane);
	return false;
}

void uploads_begin(struct uploads_lane_end *lane, int memory)
{
	const struct uploads_request r = {.what = UPLOADS_BEGIN};
	struct uploads_answer answer;

	if (lane->ask < 0 || lane->keep < 0 || memory < 0 ||
		!request(lane, &r, memory, &answer))
		return;
	lane->seed = answer.seed;
	lane->began = true;
}

uint64_t uploads_ask(
	struct uploads_lane_end *lane, const struct session_name *names, uint32_t count)
{
	struct uploads_request r = {.what = UPLOADS_ASK, .count = count};
	struct uploads_answer answer;

	memcpy(r.names, names, count * sizeof(*names));
	return request(lane, &r, -1, &answer) ? answer.have : 0;
}

bool uploads_get(struct uploads_lane_end *lane, const struct session_name *name, uint32_t slot)
{
	struct uploads_request r = {.what = UPLOADS_GET, .slot = slot, .count = 1};
	struct uploads_answer answer;

	r.names[0] = *name;
	if (lane->ask < 0)
		return false;
	if (request(lane, &r, -1, &answer))
		return !answer.status;
	lane->may_write = true;
	return false;
}

void uploads_keep(struct uploads_lane_end *lane, uint32_t slot, uint32_t n)
{
	const struct uploads_request r = {.what = UPLOADS_PUT, .slot = slot, .length = n};

	if (lane->keep < 0)
		return;
	if (send(lane->keep, &r, offsetof(struct uploads_request, names),
		    MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		lose(lane);
	else
		lane->kept |= 1u << slot;
}

void uploads_drain(struct uploads_lane_end *lane, uint32_t slot)
{
	while (lane->kept & 1u << slot) {
		struct uploads_answer answer;

		if (!hear(lane->keep, UPLOADS_PUT, &answer) || answer.slot >= UPLOADS_SLOTS)
			lose(lane);
		else
			lane->kept &= ~(1u << answer.slot);
	}
}
