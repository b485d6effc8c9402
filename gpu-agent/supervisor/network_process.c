/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that keeps a network's entry in its directory (gpu-agent/store/directory.c).
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/control.h"
#include "gpu-agent/supervisor/network_table.h"
#include "gpu-agent/supervisor/spawn.h"
#include "gpu-agent/supervisor/supervisor.h"

#define MS 1000000ull
#define YOUNG_NS (5000 * MS)
#define DELAY_MIN (50 * MS)
#define DELAY_MAX (1600 * MS)
/* It has a second for its leave (directory.c). */
#define LEAVE_NS (2000 * MS)

void network_process_tell(struct supervisor *s, uint32_t index)
{
	struct network_place *at = &s->networks.at[index];
	const struct control c = {.what = CONTROL_NETWORK};
	int fd;

	if (at->fd < 0 || !at->report.name[0])
		return;
	fd = network_report_write(&at->report);
	/* One that does not read is told the next time: the front says something each second
	 * in which something changes. */
	if (fd >= 0 && descriptors_send(at->fd, &c, sizeof(c), &fd, 1, MSG_DONTWAIT))
		log_warn("network.slow", "network=%s", at->report.name);
	if (fd >= 0)
		close(fd);
}

void network_process_start(struct supervisor *s, uint32_t index, uint64_t now)
{
	struct network_place *at = &s->networks.at[index];
	struct error error;
	pid_t pid = spawn_directory(s->config, index, &at->fd, &error);

	at->entered = false;
	at->text[0] = 0;
	if (now - at->started > YOUNG_NS)
		at->delay = 0;
	at->started = now;
	if (pid < 0) {
		log_error("network.start", "network=%s text=\"%s\"",
			s->config->networks[index].is.name, error.text);
		at->start_at = now + DELAY_MAX;
		return;
	}
	at->pid = pid;
	at->start_at = UINT64_MAX;
	network_process_tell(s, index);
}

void network_process_end(struct supervisor *s, uint32_t index)
{
	struct network_place *at = &s->networks.at[index];
	uint32_t i = 0;

	if (at->fd >= 0)
		close(at->fd);
	at->fd = -1;
	at->entered = false;
	at->start_at = UINT64_MAX;
	if (!at->pid)
		return;
	while (i < AGENT_NETWORKS && s->networks.ending[i].pid)
		i++;
	if (i == AGENT_NETWORKS)
		kill(at->pid, SIGKILL); /* the entry lapses */
	else
		s->networks.ending[i] = (struct network_ending){at->pid, wait_now() + LEAVE_NS};
	at->pid = 0;
}

void network_process_hear(struct supervisor *s, uint32_t index)
{
	struct network_place *at = &s->networks.at[index];
	struct control c;
	ssize_t n;
	int fd;

	while ((n = descriptors_receive(at->fd, &c, sizeof(c), &fd, 1, MSG_DONTWAIT)) > 0) {
		if (fd >= 0)
			close(fd);
		if (n != (ssize_t)sizeof(c) || c.what != CONTROL_DIRECTORY)
			continue;
		c.text[sizeof(c.text) - 1] = 0;
		at->entered = !c.status;
		snprintf(at->text, sizeof(at->text), "%.150s", c.text);
		s->networks.changed = true;
	}
	if (n == -EAGAIN)
		return;
	close(at->fd); /* it died: another one is started when it is reaped */
	at->fd = -1;
	at->entered = false;
}

bool network_table_reaped(struct supervisor *s, pid_t pid)
{
	uint64_t now = wait_now();

	for (uint32_t i = 0; i < AGENT_NETWORKS; i++) {
		struct network_place *at = &s->networks.at[i];

		if (s->networks.ending[i].pid == pid) {
			s->networks.ending[i].pid = 0;
			return true;
		}
		if (at->pid != pid)
			continue;
		log_warn("network.died", "network=%s restart_ms=%lu",
			s->config->networks[i].is.name, (unsigned long)(at->delay / MS));
		if (at->fd >= 0)
			close(at->fd);
		at->fd = -1;
		at->pid = 0;
		at->entered = false;
		s->networks.changed = true;
		at->start_at = now + at->delay;
		at->delay = at->delay ? at->delay * 2 : DELAY_MIN;
		if (at->delay > DELAY_MAX)
			at->delay = DELAY_MAX;
		return true;
	}
	return false;
}
