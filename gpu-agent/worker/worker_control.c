/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker and the front say to each other once it runs.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "gpu-agent/tensor.h"
#include "gpu-agent/worker/direct/direct.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/reply/park.h"
#include "gpu-agent/worker/staging/stripe.h"
#include "gpu-agent/worker/worker_state.h"

#define CONTROL_FIGURES 64 /* of the front's, read at once */

int worker_say(struct worker *w, struct handoff *message)
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
	ask->bytes = w->lease.asked[device];
	if (!worker_say(w, ask))
		return 0;
	log_warn("worker.lease", "error=\"%s\"", strerror(errno));
	return -1;
}

int worker_ask_lease(struct worker *w, uint32_t device, uint64_t bytes, int tag)
{
	w->lease.asked[device] = bytes;
	if (say_lease(w, device))
		return -1;
	w->lease.tag[device] = tag;
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
		if (w->lease.tag[d] >= 0)
			say_lease(w, d);
	memory_ask_again(w);
	ipc_ask_again(w);
	images_ask_again(w);
	tensor_ask_again(w);
	metering_again(w);
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

static void heed_stop(struct worker *w, const struct handoff *message)
{
	worker_end(w, message->status ? (CUresult)message->status : CUDA_ERROR_EXTERNAL_DEVICE,
		"%.*s", (int)sizeof(message->text) - 1, message->text);
}

/* True: a figure, behind which there may be more. FDS: what came with it. */
static bool heed(struct worker *w, const struct handoff *message, int fds[TRANSPORT_FDS])
{
	switch (message->what) {
	case HANDOFF_GRANT:
		memory_granted(w, message->device, message->bytes, (CUresult)message->status);
		break;
	case HANDOFF_DRAINED: memory_drained(w, message->device); break;
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
	case HANDOFF_STOP: heed_stop(w, message); break;
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

bool worker_stopped(struct worker *w)
{
	static union {
		struct handoff handoff;
		struct tensor_message tensor;
	} said;
	struct pollfd last = {.fd = w->handoff, .events = POLLRDHUP};
	ssize_t n;

	if (poll(&last, 1, 0) <= 0)
		return false;
	do {
		n = recv(w->handoff, &said, sizeof(said), MSG_DONTWAIT);
		if (n == sizeof(said.handoff) && said.handoff.what == HANDOFF_STOP)
			heed_stop(w, &said.handoff);
	} while (n > 0 && !w->end.ended);
	return w->end.ended;
}

bool worker_hear(struct worker *w, uint64_t deadline)
{
	struct pollfd p = {.fd = w->handoff, .events = POLLIN};
	uint64_t now = wait_now();

	if (w->end.ended || now >= deadline)
		return false;
	if (poll(&p, 1, (int)((deadline - now) / 1000000) + 1) > 0)
		worker_control(w);
	return true;
}
