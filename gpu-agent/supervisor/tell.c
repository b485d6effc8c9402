/* SPDX-License-Identifier: Apache-2.0
 *
 * What the supervisor tells the front, for all who have something to say to it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>

#include "common/cleanup.h"
#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/control.h"
#include "gpu-agent/supervisor/settings/network_settings.h"
#include "gpu-agent/supervisor/settings/settings.h"
#include "gpu-agent/supervisor/supervisor.h"

#define MS 1000000ull
/* What the drain's end may take beyond drain_ms until everything is killed. */
#define DRAIN_SLACK_MS (CONTROL_STOP_MS + 3000u)
/* A front that does not read for so long is stuck. */
#define FRONT_READS_MS 5000

void supervisor_tell(struct supervisor *s, const struct control *c, int fd)
{
	int ret;

	if (s->control < 0)
		return;
	/* Blocking for the rare full buffer: a lost EXITED would leave a lease behind.  The
	 * next front hears of all anew. */
	ret = descriptors_send(s->control, c, sizeof(*c), &fd, fd >= 0, 0);
	if (ret == -EAGAIN) {
		struct pollfd p = {.fd = s->control, .events = POLLOUT};

		if (poll(&p, 1, FRONT_READS_MS) == 1)
			ret = descriptors_send(s->control, c, sizeof(*c), &fd, fd >= 0, 0);
	}
	if (ret && ret != -EPIPE && s->front > 0) {
		log_error("front.stuck", "front=%d text=\"%s\"", s->front, strerror(-ret));
		kill(s->front, SIGKILL);
	}
}

void supervisor_tell_config(struct supervisor *s)
{
	static struct agent_config shown;
	struct error error;

	shown = *s->config;
	network_settings_hide(&shown);
	cleanup_close int fd = settings_to_fd(&shown, &error);
	if (fd < 0)
		log_error("tokens.lost", "text=\"%s\"", error.text);
	else
		supervisor_tell(s, &(struct control){.what = CONTROL_TOKENS}, fd);
}

void supervisor_drain(struct supervisor *s)
{
	struct control c = {.what = CONTROL_DRAIN, .ms = s->config->drain_ms};

	if (s->draining) { /* asked twice: at once */
		s->status = 0;
		return;
	}
	s->draining = true;
	s->end_at = wait_now() + ((uint64_t)s->config->drain_ms + DRAIN_SLACK_MS) * MS;
	log_info("agent.drain", "seconds=%u", s->config->drain_ms / 1000);
	if (s->control < 0)
		s->status = 0;
	supervisor_tell(s, &c, -1);
}
