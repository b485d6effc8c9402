/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/supervisor/uploads_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/supervisor/spawn.h"

#define MS 1000000ull
/* One that dies young again and again is started again after 100, 200 … 25600 ms: nobody waits
 * for it. */
#define YOUNG_NS (5000 * MS)
#define DELAY_MIN (100 * MS)
#define DELAY_MAX (25600 * MS)

void uploads_process_init(struct supervisor *s)
{
	s->uploads.end = -1;
	s->uploads.pid = 0;
	s->uploads.delay = 0;
	s->uploads.start_at = s->config->upload_cache_bytes ? 0 : UINT64_MAX;
}

void uploads_process_join(struct supervisor *s)
{
	if (s->uploads.end >= 0)
		supervisor_tell(s, &(struct control){.what = CONTROL_UPLOADS}, s->uploads.end);
}

uint64_t uploads_process_tick(struct supervisor *s, uint64_t now)
{
	struct error error;
	pid_t pid;

	if (s->draining)
		return UINT64_MAX;
	if (s->uploads.start_at > now)
		return s->uploads.start_at;
	pid = spawn_uploads(s->config, &s->uploads.end, &error);
	if (pid < 0) {
		log_error("uploads.start", "text=\"%s\"", error.text);
		s->uploads.end = -1;
		s->uploads.start_at = now + DELAY_MAX;
		return s->uploads.start_at;
	}
	s->uploads.pid = pid;
	s->uploads.started = now;
	s->uploads.start_at = UINT64_MAX;
	uploads_process_join(s);
	return UINT64_MAX;
}

void uploads_process_ended(struct supervisor *s, int status)
{
	uint64_t now = wait_now();

	s->uploads.pid = 0;
	if (s->uploads.end >= 0)
		close(s->uploads.end);
	s->uploads.end = -1;
	if (s->draining || s->reloading)
		return;
	if (now - s->uploads.started > YOUNG_NS)
		s->uploads.delay = 0;
	s->uploads.delay = s->uploads.delay ? s->uploads.delay * 2 : DELAY_MIN;
	if (s->uploads.delay > DELAY_MAX)
		s->uploads.delay = DELAY_MAX;
	log_error("uploads.died", "status=%d signal=%d restart_ms=%lu", WEXITSTATUS(status),
		WIFSIGNALED(status) ? WTERMSIG(status) : 0,
		(unsigned long)(s->uploads.delay / MS));
	s->uploads.start_at = now + s->uploads.delay;
}

void uploads_process_stop(struct supervisor *s)
{
	if (s->uploads.pid)
		kill(s->uploads.pid, SIGKILL);
	if (s->uploads.end >= 0)
		close(s->uploads.end);
	s->uploads.end = -1;
}
