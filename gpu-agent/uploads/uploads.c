/* SPDX-License-Identifier: Apache-2.0
 *
 * agent-uploads: what workers ask of the cache.  Its main thread hears the front; some others
 * serve lanes, one request at a time.  A worker counts as taken over: its memory is read and
 * written by calls of the kernel, never mapped, so it cannot be taken away under this process;
 * what is kept was copied first and hashed then.
 */
#include "gpu-agent/uploads/lanes.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/agent.h"
#include "gpu-agent/sandbox/sandbox.h"

#define THREADS_MOST 8
#define STACK (128u * 1024)
#define COUNTS_MS 250

static void *serve_main(void *argument)
{
	for (;;)
		lanes_serve(argument);
	return NULL;
}

/* Where a processor has nothing else to do. */
static void *prepare_main(void *argument)
{
	sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
	do {
		while (payloads_prepare(argument))
			;
	} while (payloads_prepare_wait(argument));
	return NULL;
}

static int start_threads(struct lanes *lanes, struct payloads *cache)
{
	pthread_attr_t attributes;
	pthread_t thread;
	cpu_set_t set;
	int count = THREADS_MOST, started = 0;

	if (!sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) < count)
		count = CPU_COUNT(&set);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	for (int i = 0; i < count; i++)
		started += !pthread_create(&thread, &attributes, serve_main, lanes);
	/* Without it the kernel clears memory when it is wanted. */
	pthread_create(&thread, &attributes, prepare_main, cache);
	pthread_attr_destroy(&attributes);
	return started ? 0 : -EAGAIN;
}

/* False: the supervisor and every front are gone. */
static bool hear(struct lanes *lanes, struct payloads *cache)
{
	for (;;) {
		union {
			struct uploads_lane lane;
			struct uploads_counts counts;
		} said;
		struct uploads_lane *lane = &said.lane;
		int fds[2];
		ssize_t n = descriptors_receive(
			AGENT_FD_SOCKET, &said, sizeof(said), fds, 2, MSG_DONTWAIT);

		if (n == -EAGAIN)
			return true;
		if (n <= 0)
			return false;
		if (n == (ssize_t)sizeof(*lane) && lane->version == UPLOADS_VERSION &&
			fds[0] >= 0 && fds[1] >= 0) {
			lane->space[sizeof(lane->space) - 1] = 0;
			lanes_open(lanes, lane, fds);
			continue;
		}
		if (n == (ssize_t)sizeof(said.counts) && said.counts.version == UPLOADS_VERSION)
			payloads_count_earlier(cache, &said.counts);
		for (int i = 0; i < 2; i++)
			if (fds[i] >= 0)
				close(fds[i]);
	}
}

static void say_counts(struct lanes *lanes, struct payloads *cache)
{
	struct uploads_counts counts;

	payloads_counts(cache, &counts);
	counts.lanes = lanes_count(lanes);
	/* A front that does not read loses these figures, no more. */
	(void)!send(AGENT_FD_SOCKET, &counts, sizeof(counts), MSG_DONTWAIT | MSG_NOSIGNAL);
}

int uploads_main(const struct agent_config *config)
{
	struct error error = {0};
	struct payloads *cache = payloads_open(config->upload_cache_bytes, &error);
	struct lanes *lanes = cache ? lanes_new(cache, &error) : NULL;
	uint64_t said_at = 0;
	uint32_t parts = sandbox_seal();
	char text[SANDBOX_TEXT];

	sandbox_text(text, parts);
	if (config->sandbox_required && !sandbox_whole(parts)) {
		log_error("uploads.sandbox",
			"text=\"sandbox: required, and agent-uploads has only: %s\"", text);
		return 1;
	}
	if (!lanes || start_threads(lanes, cache)) {
		log_error("uploads.start", "text=\"%s\"", lanes ? "no thread" : error.text);
		return 1;
	}
	log_info("uploads.ready", "bytes=%llu sandbox=\"%s\"",
		(unsigned long long)config->upload_cache_bytes, text);
	for (;;) {
		struct pollfd p = {.fd = AGENT_FD_SOCKET, .events = POLLIN};
		uint64_t now = wait_now();

		if (now - said_at >= COUNTS_MS * 1000000ull) {
			say_counts(lanes, cache);
			said_at = now;
		}
		if (poll(&p, 1, COUNTS_MS) > 0 && !hear(lanes, cache))
			return 0;
	}
}
