/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/server/server.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/wait.h"
#include "sidecar/channel/channel.h"
#include "sidecar/channel/renew.h"
#include "common/instance_lock.h"
#include "common/unix_socket.h"

#define SECOND 1000000000ull
#define STOP_NS (2 * SECOND) /* for the channels to say good-bye */
/* Nothing came for so long: the spare segment, some milliseconds of work, takes no processor
 * from a session that is being opened. */
#define SPARE_PAUSE_MS 20
/* What malloc keeps of what was freed. Each program and each cut is a new thread, and malloc
 * would have up to eight arenas for each processor, each with what its busiest time left there;
 * frames allocate nothing, so a few serve. A channel is large and freed by another thread than
 * asked for it: as a mapping of its own it leaves no hole. */
#define HEAP_ARENAS 4
#define HEAP_MAPPED (128 * 1024) /* bytes; said, it does not rise with what is freed */
/* Stacks of threads that ended are kept for the next ones up to 40 MiB in all, each with the
 * 16 KiB that it used last. A stack that is itself more than that pushes all of them out, and
 * goes with its thread; nothing of it is written but its end. */
#define STACKS_KEPT (40u << 20)

#ifdef __GLIBC__
static void heap_begin(void)
{
	mallopt(M_ARENA_MAX, HEAP_ARENAS);
	mallopt(M_MMAP_THRESHOLD, HEAP_MAPPED);
}

static void *ends_at_once(void *nothing)
{
	return nothing;
}

static void stacks_trim(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACKS_KEPT + HEAP_MAPPED);
	if (!pthread_create(&thread, &attributes, ends_at_once, NULL))
		pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}

static void heap_trim(void)
{
	stacks_trim();
	malloc_trim(0);
}
#else /* musl's has one heap, and gives back what it can */
static void heap_begin(void)
{
}
static void heap_trim(void)
{
}
#endif

/* Likewise: the next program is in no hurry yet, and nobody needs what the last one had. */
static void server_trim(struct server *server)
{
	if (atomic_exchange(&server->freed, false))
		heap_trim();
}

static void server_accept(struct server *server, int listen_fd, uint64_t now)
{
	for (int i = 0; i < 16; i++) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			pending_add(&server->pending, fd, now);
			continue;
		}
		if (errno != EMFILE && errno != ENFILE && errno != ENOMEM)
			return;
		if (pending_evict(&server->pending))
			continue;
		log_error("sidecar.accept", "text=\"%s\"", strerror(errno));
		usleep(100000);
		return;
	}
}

/* Nobody is served and nobody came for long enough, or the drain is done. */
static bool server_done(struct server *server, uint64_t now, uint64_t *at)
{
	const struct options *options = &server->options;
	unsigned count;
	uint64_t since;

	pthread_mutex_lock(&server->lock);
	count = server->channel_count;
	since = server->last_process;
	pthread_mutex_unlock(&server->lock);
	*at = now + 60 * SECOND;
	heartbeat_watched(&server->heartbeat, count + server->pending.count);
	if (server->pending.count)
		*at = pending_deadline(&server->pending);
	if (count || server->pending.count)
		return false;
	if (atomic_load(&server->draining))
		return true;
	if (!options->idle_exit)
		return false;
	*at = since + options->idle_exit * SECOND;
	return now >= *at;
}

/* SIGTERM is what comes before a restart, too: sessions that another sidecar can take over are
 * left to it. Behind a drain, and from a terminal, it is the end. */
static void server_told(struct server *server, int signal_fd)
{
	struct signalfd_siginfo got = {0};

	if (read(signal_fd, &got, sizeof(got)) == sizeof(got) && got.ssi_signo == SIGTERM)
		atomic_store(&server->leaving, !atomic_load(&server->draining));
}

static void server_loop(struct server *server, int signal_fd)
{
	struct pollfd fds[4 + PENDING_MOST] = {{.fd = server->listen_fd, .events = POLLIN},
		{.fd = server->wake_fd, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN},
		{.fd = server->announce_fd, .events = POLLIN}};
	uint64_t at, wakes;

	while (!server_done(server, wait_now(), &at)) {
		uint64_t now = wait_now();
		nfds_t count = 4 + server->pending.count;
		int n;

		pending_fds(&server->pending, fds + 4);
		n = poll(fds, count, SPARE_PAUSE_MS);
		if (!n) {
			server_prepare(server);
			server_trim(server);
			n = poll(fds, count, at > now ? (int)((at - now) / 1000000) + 1 : 0);
		}
		if (n < 0)
			continue;
		if (fds[2].revents) {
			server_told(server, signal_fd);
			return;
		}
		if (fds[1].revents && read(server->wake_fd, &wakes, sizeof(wakes)) < 0)
			continue;
		now = wait_now();
		pending_serve(&server->pending, server, fds + 4, now);
		if (fds[0].revents)
			server_accept(server, server->listen_fd, now);
		if (fds[3].revents)
			server_accept(server, server->announce_fd, now);
	}
}

/* Every channel ends; one that still dials is left to the end of the process. */
static void server_stop(struct server *server)
{
	uint64_t deadline = wait_now() + STOP_NS, one = 1;
	unsigned count = 1;

	if (write(server->stop_fd, &one, sizeof(one)) < 0)
		log_error("sidecar.stop", "text=\"%s\"", strerror(errno));
	while (count && wait_now() < deadline) {
		struct pollfd pollfd = {.fd = server->wake_fd, .events = POLLIN};
		uint64_t wakes;

		pthread_mutex_lock(&server->lock);
		count = server->channel_count;
		pthread_mutex_unlock(&server->lock);
		if (count && poll(&pollfd, 1, 50) > 0 &&
			read(server->wake_fd, &wakes, sizeof(wakes)) < 0)
			break;
	}
}

static void raise_descriptors(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		(void)!setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int server_open(struct server *server, int *signal_fd, struct error *error)
{
	sigset_t set;

	raise_descriptors();
	heap_begin();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ,
		SIG_IGN); /* a limit on files holds for shared memory: an error, no end */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	segment_guard_install();
	*signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	server->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (*signal_fd < 0 || server->stop_fd < 0 || server->wake_fd < 0)
		return error_set(error, errno, "descriptors");
	server->spin =
		server->options.spin == UINT64_MAX ? wait_spin_budget() : server->options.spin;
	server->started = server->last_process = wait_now();
	return heartbeat_start(&server->heartbeat, error);
}

static void server_agents_init(struct agents *agents, const struct options *options)
{
	*agents = (struct agents)AGENTS_INIT;
	agents->only = options->local_only;
	if (options->local_socket[0] && !options->local_never)
		snprintf(agents->local, sizeof(agents->local), "local://%s",
			options->local_socket);
	/* Then this process may have the folder of shared memory that an agent has. */
	agents->shared = options->mode == CHANNEL_HOST && !options->local_socket[0] &&
			 !options->local_never;
}

int server_run(const struct options *options, struct error *error)
{
	/* Threads may outlive this function by a moment. */
	static struct server server;
	struct instance_lock instance;
	const struct instance_kind kind = {
		.who = "sidecar",
		.setting = "--socket",
		.type = SOCK_SEQPACKET,
		.mode = (unsigned)options->socket_mode,
	};
	const struct spread_wish wish = options_spread(options);
	int signal_fd, ret;

	server.options = *options;
	spread_init(&server.spread, &wish);
	for (unsigned i = 0; i < CHANNEL_AGENTS; i++)
		server_agents_init(&server.agents[i], options);
	segment_configure(options->shm_size, options->label);
	pthread_mutex_init(&server.lock, NULL);
	pthread_mutex_init(&server.making, NULL);
	ret = instance_lock_acquire(&instance, options->socket, &kind, error);
	if (ret == -EEXIST && options->idle_exit) {
		log_info("sidecar.served", "socket=%s by=%d", options->socket, instance.holder);
		return 0;
	}
	if (ret < 0)
		return ret;
	server.listen_fd = instance.listen_fd;
	/* The containers of a pod share the network namespace even where they share no volume.
	 * With hostNetwork another pod may have the name. */
	server.announce_fd =
		options->announce ? unix_announce(options->socket, kind.type, error) : -1;
	if (options->announce && server.announce_fd < 0)
		log_warn("sidecar.announce", "text=\"%s\"", error->text);
	ret = server_open(&server, &signal_fd, error);
	if (!ret) {
		renew_start(&server);
		log_info("sidecar.ready", "socket=%s ipc=%s agent=%s", options->socket,
			options->mode == CHANNEL_HOST ? "host" : "pod",
			options->agent[0] ? options->agent : "none");
		server_loop(&server, signal_fd);
		log_info("sidecar.end", "attached=%llu lost=%llu",
			(unsigned long long)server.attached, (unsigned long long)server.lost);
	}
	instance_lock_release(&instance);
	if (server.announce_fd >= 0)
		close(server.announce_fd);
	server_stop(&server);
	segment_free(server.spare);
	return ret;
}
