/* SPDX-License-Identifier: Apache-2.0
 *
 * Holders that commands make, see commands_holders.h.
 */
#include "gpu-agent/store/registry/commands_holders.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/wait.h"

#ifndef SYS_pidfd_open /* headers of an older kernel */
#define SYS_pidfd_open 434
#endif

/* The 22nd field of /proc/PID/stat: ticks since boot. The name before may hold anything. */
static int started(int32_t pid, uint64_t *start)
{
	char path[32], text[1024];
	cleanup_close int fd = -1;
	const char *at;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -ESRCH;
	text[n] = 0;
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, " %" SCNu64, start) != 1)
		return -ESRCH;
	return 0;
}

int holder_of_pid(char out[REGISTRY_HOLDER + 1], int32_t pid, struct error *error)
{
	uint64_t start;

	if (started(pid, &start))
		return error_set(error, 0, "there is no process %d on this node", pid);
	snprintf(out, REGISTRY_HOLDER + 1, "pid:%d:%" PRIu64, pid, start);
	return 0;
}

void holder_of_ttl(char out[REGISTRY_HOLDER + 1], uint32_t seconds)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(out, REGISTRY_HOLDER + 1, "ttl:%lld:%llu", (long long)now.tv_sec + seconds,
		(unsigned long long)wait_now() & 0xfffffff);
}

static void process_ended(struct registry_watch *watch, uint32_t mask)
{
	struct holder *holder = (struct holder *)(void *)watch;

	(void)mask;
	epoll_ctl(holder->all->epoll, EPOLL_CTL_DEL, holder->pidfd, NULL);
	close(take_fd(&holder->pidfd));
	holder->gone = true;
}

/* The process may have ended, or its number be another's by now: then it is gone at once. */
static void watch_process(struct holder *holder, int32_t pid, uint64_t start)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &holder->watch};
	uint64_t now;

	holder->watch.ready = process_ended;
	holder->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (holder->pidfd >= 0 && !started(pid, &now) && now == start &&
		!epoll_ctl(holder->all->epoll, EPOLL_CTL_ADD, holder->pidfd, &event))
		return;
	if (holder->pidfd >= 0)
		close(take_fd(&holder->pidfd));
	holder->gone = true;
}

int holders_watch(struct holders *holders, const char *name, struct error *error)
{
	struct holder *holder = holders->first;
	uint64_t start = 0;
	int64_t until = 0;
	int pid = 0;

	if (sscanf(name, "pid:%d:%" SCNu64, &pid, &start) != 2 &&
		sscanf(name, "ttl:%" SCNd64, &until) != 1)
		return 0;
	while (holder && strcmp(holder->name, name))
		holder = holder->next;
	if (holder)
		return 0;
	if (holders->count >= HOLDERS_MOST)
		return error_set(error, 0, "commands of more than %u processes hold tensors",
			HOLDERS_MOST);
	holder = calloc(1, sizeof(*holder));
	if (!holder)
		return error_set(error, ENOMEM, "a holder");
	snprintf(holder->name, sizeof(holder->name), "%s", name);
	holder->all = holders;
	holder->pidfd = -1;
	holder->until = until;
	holder->next = holders->first;
	holders->first = holder;
	holders->count++;
	if (pid)
		watch_process(holder, pid, start);
	return 0;
}

static bool over(const struct holder *holder, int64_t now)
{
	return holder->gone || (holder->until && holder->until <= now);
}

bool holders_ended(struct holders *holders, bool (*busy)(void *argument, const char *name),
	void *argument, char out[REGISTRY_HOLDER + 1])
{
	const int64_t now = time(NULL);

	for (struct holder **at = &holders->first; *at; at = &(*at)->next) {
		struct holder *holder = *at;

		if (!over(holder, now) || busy(argument, holder->name))
			continue;
		strcpy(out, holder->name);
		*at = holder->next;
		holders->count--;
		free(holder);
		return true;
	}
	return false;
}

uint64_t holders_until(const struct holders *holders)
{
	const int64_t now = time(NULL);
	uint64_t least = 0;

	for (const struct holder *holder = holders->first; holder; holder = holder->next) {
		uint64_t at = 0;

		if (over(holder, now))
			return wait_now() + 10000000; /* busy: it is asked again */
		if (holder->until)
			at = wait_now() + (uint64_t)(holder->until - now) * 1000000000ull;
		if (at && (!least || at < least))
			least = at;
	}
	return least;
}

void holders_close(struct holders *holders)
{
	while (holders->first) {
		struct holder *holder = holders->first;

		holders->first = holder->next;
		if (holder->pidfd >= 0)
			close(holder->pidfd);
		free(holder);
	}
}
