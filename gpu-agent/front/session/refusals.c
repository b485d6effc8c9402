/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/session/refusals.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/journal.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/sandbox/sandbox.h"

/* A later kernel's may be larger than those that this was built with. */
union notice {
	struct seccomp_notif notif;
	char room[512];
};
union answer {
	struct seccomp_notif_resp resp;
	char room[128];
};

static bool sizes_fit(void)
{
	static int fit = -1;
	struct seccomp_notif_sizes sizes;

	if (fit < 0)
		fit = !syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) &&
		      sizes.seccomp_notif <= sizeof(union notice) &&
		      sizes.seccomp_notif_resp <= sizeof(union answer);
	return fit;
}

static void note(struct front *front, struct pool_worker *worker, const struct seccomp_notif *n)
{
	unsigned call = sandbox_call(n->data.arch, n->data.nr);
	struct session *session = worker->session;

	front->counters.refused_calls[call]++;
	if (session)
		session->refused_calls++;
	if (session ? worker->refusal_logged : worker->refusal_logged_early)
		return;
	if (session)
		worker->refusal_logged = true;
	else
		worker->refusal_logged_early = true;
	log_of(session ? &session->subject : NULL, LOG_WARN, "worker.refused",
		"worker=%d call=%s number=%d text=\"the sandbox refuses it; further ones are "
		"counted\"",
		worker->pid, sandbox_call_name(call), n->data.nr);
}

/* One call, that waits: the kernel said so, and nobody else takes it. */
static void refuse(struct front *front, struct pool_worker *worker, int fd)
{
	union notice notice;
	union answer answer;

	memset(&notice, 0, sizeof(notice));
	memset(&answer, 0, sizeof(answer));
	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &notice))
		return; /* its thread was killed meanwhile */
	answer.resp.id = notice.notif.id;
	if (worker->state == WORKER_STARTING &&
		sandbox_call_warms(notice.notif.data.arch, notice.notif.data.nr)) {
		answer.resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	} else {
		answer.resp.error = -EPERM;
		note(front, worker, &notice.notif);
	}
	ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

static void refusals_ready(struct watch *watch, uint32_t mask)
{
	struct pool_worker *worker = events_container(watch, struct pool_worker, refusals);
	struct front *front = watch->owner;

	if (mask & EPOLLIN)
		refuse(front, worker, watch->fd);
	if (!(mask & EPOLLIN)) { /* the last process that it was for is gone */
		refusals_end(front, worker);
		return;
	}
	if (++worker->refusal_looks < REFUSALS_MOST)
		return;
	worker->refusals_fd = events_forget(&front->events, watch);
	worker->refusals_at = wait_now() + REFUSALS_NS;
	front->pool.refusals_held++;
}

static int watch(struct front *front, struct pool_worker *worker, int fd)
{
	worker->refusal_looks = 0;
	return events_watch(&front->events, &worker->refusals, fd, EPOLLIN, refusals_ready);
}

/* Of an id that is nobody's a listener says so; what is none has no such question. */
static bool is_listener(int fd)
{
	uint64_t id = 0;

	return sizes_fit() && ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) && errno == ENOENT;
}

void refusals_begin(struct front *front, struct pool_worker *worker, int *fd)
{
	if (*fd < 0 || worker->refusals.fd >= 0 || worker->refusals_at || !is_listener(*fd) ||
		watch(front, worker, *fd)) {
		pool_fault(front, worker, "REFUSALS without what they come by");
		return;
	}
	*fd = -1;
}

void refusals_keep(struct front *front, const struct pool_worker *worker)
{
	int fd = worker->refusals_at ? worker->refusals_fd : worker->refusals.fd;

	if (fd >= 0)
		journal_refusals(front, worker->session, fd);
}

void refusals_end(struct front *front, struct pool_worker *worker)
{
	int fd = events_forget(&front->events, &worker->refusals);

	if (worker->refusals_at) {
		fd = worker->refusals_fd;
		worker->refusals_at = 0;
		front->pool.refusals_held--;
	}
	if (fd >= 0)
		close(fd);
}

uint64_t refusals_tick(struct front *front, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; front->pool.refusals_held && i < front->pool.room; i++) {
		struct pool_worker *worker = &front->pool.workers[i];

		if (!worker->refusals_at)
			continue;
		if (worker->refusals_at > now) {
			next = worker->refusals_at < next ? worker->refusals_at : next;
			continue;
		}
		worker->refusals_at = 0;
		front->pool.refusals_held--;
		if (watch(front, worker, worker->refusals_fd)) {
			close(worker->refusals_fd); /* the kernel refuses by itself then */
			log_warn("worker.uncounted", "worker=%d", worker->pid);
		}
	}
	return next;
}
