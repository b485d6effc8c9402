/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/worker/reply/park.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "gpu-agent/worker/loop/loop.h"
#include "gpu-agent/worker/reply/reply.h"

/* The client's own patience ends first, so that it never comes back to what is over. */
#define PARK_BEYOND_NS 5000000000ull

uint64_t park_most(const struct worker *w)
{
	return w->park.grace + PARK_BEYOND_NS;
}

void park_or_end(struct worker *w, CUresult status, const char *format, ...)
{
	char text[sizeof(w->park.text)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!w->park.grace) {
		worker_end(w, status, "%s", text);
	} else if (!w->park.wanted && !park_is(w)) {
		w->park.wanted = true;
		memcpy(w->park.text, text, sizeof(text));
	}
}

static void park_tell(struct worker *w)
{
	static struct handoff parked = {.version = HANDOFF_VERSION, .what = HANDOFF_PARKED};

	parked.bytes = w->receiver.taken;
	parked.device = w->park.asked;
	w->park.asked = 0;
	if (send(w->handoff, &parked, sizeof(parked), MSG_NOSIGNAL) != sizeof(parked))
		log_warn("session.parked", "error=\"%s\"", strerror(errno));
}

void park_turn(struct worker *w, uint64_t now)
{
	if (w->park.wanted) {
		if (w->local.is)
			local_control(w); /* what the sidecar said before it went */
		w->park.wanted = false;
		w->park.since = now;
		reply_cut(w);
		loop_drop_input(w);
		stripes_cut(w);
		log_info("session.parked", "taken=%llu text=\"%s\"",
			(unsigned long long)w->receiver.taken, w->park.text);
		park_tell(w);
	} else if (park_is(w) && now - w->park.since >= park_most(w)) {
		worker_end(w, CUDA_SUCCESS, "the client did not come back: %s", w->park.text);
	}
}

void park_asked(struct worker *w, const struct handoff *message)
{
	w->park.asked = message->device;
	if (park_is(w))
		park_tell(w);
	else
		park_or_end(w, CUDA_ERROR_EXTERNAL_DEVICE, "the client has other connections");
}

void park_resume(struct worker *w, const struct handoff *message, const int fds[TRANSPORT_FDS])
{
	unsigned count = descriptors_count(fds, TRANSPORT_FDS);
	struct error error = {0};
	struct link *link = NULL;
	int ret;

	if (!park_is(w) || w->transport->link(fds, count, TRANSPORT_AGENT, &link, &error)) {
		log_error("session.resume", "error=\"%s\"", error.text);
		while (count)
			close(fds[--count]);
		return;
	}
	/* One that was on its way when the session was cut is of before, and so are its bytes.
	 */
	stripes_cut(w);
	ret = reply_resume(w, link, (uint32_t)message->bytes);
	if (ret) {
		link_close(link);
		worker_end(w, CUDA_ERROR_EXTERNAL_DEVICE,
			ret == -ENODATA ? "the client needs answers that are not kept any more"
					: "the client has counted what was never sent");
		return;
	}
	if (w->local.is)
		local_resumed(w);
	w->park.times++;
	w->liveness.heard_at = 0;
	log_info("session.resumed", "times=%u after_ms=%llu counted=%llu", w->park.times,
		(unsigned long long)((wait_now() - w->park.since) / 1000000),
		(unsigned long long)message->bytes);
}
