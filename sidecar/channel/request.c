/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/channel/request.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "common/descriptors.h"

/* Where the kernel has no memory for an answer, which a program waits for. */
#define MEMORY_TRIES 50
#define MEMORY_PAUSE_MS 2

/* N: bytes that came, or -errno. */
static int request_check(struct channel_request *request, ssize_t n)
{
	if (n < 0)
		return n == -EAGAIN || n == -EINTR ? 0 : (int)n;
	if (!n)
		return -ECONNRESET;
	if (n != sizeof(*request) || request->magic != CHANNEL_MAGIC)
		return -EPROTO;
	request->program[sizeof(request->program) - 1] = 0;
	return 1;
}

int request_receive(int socket, struct channel_request *request)
{
	ssize_t n = recv(socket, request, sizeof(*request), MSG_DONTWAIT | MSG_TRUNC);

	return request_check(request, n < 0 ? -errno : n);
}

int request_receive_fd(int socket, struct channel_request *request, int *fd)
{
	ssize_t n = descriptors_receive(socket, request, sizeof(*request), fd, 1, MSG_DONTWAIT);

	return request_check(request, n);
}

struct channel_answer request_answer(
	const struct channel_request *request, uint32_t status, const char *text)
{
	struct channel_answer answer = {
		.magic = CHANNEL_MAGIC,
		.version = CHANNEL_VERSION,
		.op = request->op,
		.status = status,
	};

	snprintf(answer.text, sizeof(answer.text), "%s", text);
	return answer;
}

int request_reply(const struct options *options, int socket, struct channel_answer *answer,
	const int *fds, unsigned count)
{
	int ret;

	if (!answer->agent[0])
		snprintf(answer->agent, sizeof(answer->agent), "%.127s", options->agent);
	for (int i = 0;; i++) {
		ret = descriptors_send(
			socket, answer, sizeof(*answer), fds, count, MSG_DONTWAIT);
		if ((ret != -ENOBUFS && ret != -ENOMEM) || i == MEMORY_TRIES)
			return ret;
		poll(NULL, 0, MEMORY_PAUSE_MS);
	}
}
