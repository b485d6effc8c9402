/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening, closing, and the turns and deadlines between, see registry.h.
 */
#include "gpu-agent/store/registry/registry.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/store/registry/commands.h"
#include "gpu-agent/store/registry/registry_core.h"

#define TURNS 64 /* events in one registry_turn */
#define RETRY_MOST_MS 500u

uint64_t registry_ns(unsigned ms)
{
	return wait_now() + ms * 1000000ull;
}

bool registry_ready(const struct registry *registry)
{
	return registry->phase == PHASE_READY;
}

const char *registry_why(const struct registry *registry)
{
	return registry->phase == PHASE_READY ? ""
	       : registry->why[0]	      ? registry->why
					      : "it is being asked";
}

void registry_say_about(struct registry *registry, const struct registry_about *about)
{
	if (!memcmp(&registry->config.about, about, sizeof(*about)))
		return;
	registry->config.about = *about;
	/* Before that it is said by entering. */
	if (registry->phase >= PHASE_FILLING && !registry->leaving)
		fill_renew(registry);
	registry_arm(registry);
}

void registry_leave(struct registry *registry)
{
	if (registry->leaving)
		return;
	registry->leaving = true;
	if (registry->phase >= PHASE_ENTERING)
		fill_leave(registry);
	else
		registry->left = true; /* there is no entry, or it lapses */
}

bool registry_left(const struct registry *registry)
{
	return registry->left || registry->phase == PHASE_AWAY;
}

int registry_fd(const struct registry *registry)
{
	return registry->epoll;
}

/* Time. */

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return b && b < a ? b : a;
}

void registry_arm(struct registry *registry)
{
	uint64_t until = wait_now() + 60000000000ull;
	struct itimerspec spec = {0};

	until = sooner(until, requests_until(registry));
	if (registry->phase == PHASE_AWAY)
		until = sooner(until, registry->retry_at);
	else if (registry->phase == PHASE_CONNECTING)
		until = sooner(until, registry->link.deadline);
	else if (registry->phase < PHASE_READY)
		until = sooner(until, registry->step_until);
	if (registry->phase >= PHASE_FILLING && !registry->leaving)
		until = sooner(until, registry->renew_at);
	if (registry->commands)
		until = sooner(until, commands_until(registry->commands));
	spec.it_value.tv_sec = (time_t)(until / 1000000000);
	spec.it_value.tv_nsec = (long)(until % 1000000000);
	if (!until)
		spec.it_value.tv_nsec = 1;
	timerfd_settime(registry->timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void tick(struct registry *registry)
{
	const uint64_t now = wait_now();

	requests_tick(registry, now);
	if (registry->sent.first && registry->sent.first->deadline <= now)
		registry_link_close(&registry->link, "a request was not answered in time");
	if (registry->phase == PHASE_CONNECTING && registry->link.deadline <= now)
		registry_link_close(&registry->link, "it does not let us in in time");
	if (registry->phase > PHASE_CONNECTING && registry->phase < PHASE_READY &&
		registry->step_until <= now)
		registry_link_close(&registry->link, "filling it takes too long");
	if (registry->leaving)
		return;
	if (registry->phase == PHASE_AWAY && registry->retry_at <= now)
		fill_connect(registry);
	if (registry->phase >= PHASE_FILLING && registry->renew_at <= now)
		fill_renew(registry);
	if (registry->phase == PHASE_READY && registry->stale)
		fill_again(registry, false);
	if (registry->commands)
		commands_tick(registry->commands, now);
}

void registry_turn(struct registry *registry)
{
	struct epoll_event event;

	for (int i = 0; i < TURNS && epoll_wait(registry->epoll, &event, 1, 0) == 1; i++) {
		struct registry_watch *watch = event.data.ptr;

		watch->ready(watch, event.events);
	}
	tick(registry);
	registry_arm(registry);
}

static void timer_ready(struct registry_watch *watch, uint32_t mask)
{
	struct registry *registry =
		(struct registry *)(void *)((char *)watch -
					    offsetof(struct registry, timer_watch));
	uint64_t times;

	(void)mask;
	if (read(registry->timer, &times, sizeof(times)) < 0 && errno != EAGAIN)
		log_error("registry.timer", "errno=%d", errno);
}

static void closed(struct registry_link *link, const char *why)
{
	struct registry *registry = link->owner;

	registry->phase = PHASE_AWAY;
	registry->left |= registry->leaving;
	registry->retry_ms = registry->retry_ms ? registry->retry_ms * 2 : 20;
	if (registry->retry_ms > RETRY_MOST_MS)
		registry->retry_ms = RETRY_MOST_MS;
	registry->retry_at = registry_ns(registry->retry_ms);
	snprintf(registry->why, sizeof(registry->why), "%.200s", why);
	if (!registry->said_away && !registry->closing)
		log_warn("registry.away", "redis=%s why=\"%s\"", registry->config.address, why);
	registry->said_away = true;
	if (registry->commands && !registry->closing)
		commands_away(registry->commands);
	registry_arm(registry);
}

static int check_config(const struct registry_config *config, struct error *error)
{
	char host[256];
	int port;
	size_t n = strlen(config->node);

	if (!n || strspn(config->node, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789.-_") != n)
		return error_set(error, 0,
			"the node's ID \"%.63s\" is none: letters, digits, '.', '-', '_'",
			config->node);
	return registry_link_address(config->address, host, &port, error);
}

static int prepare(struct registry *registry, struct error *error)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &registry->timer_watch};

	registry->timer_watch.ready = timer_ready;
	registry->scripts = scripts_all();
	registry->epoll = epoll_create1(EPOLL_CLOEXEC);
	registry->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (!registry->scripts || registry->epoll < 0 || registry->timer < 0 ||
		epoll_ctl(registry->epoll, EPOLL_CTL_ADD, registry->timer, &event))
		return error_set(error, errno, "the registry");
	registry_link_init(&registry->link, registry->epoll, &registry->config, registry,
		fill_opened, closed);
	if (registry->config.commands)
		return commands_open(&registry->commands, registry, error);
	return 0;
}

int registry_open(struct registry **out, const struct registry_config *config,
	const struct registry_store *store, void *owner, struct error *error)
{
	struct registry *registry;
	int ret = check_config(config, error);

	*out = NULL;
	if (ret)
		return ret;
	registry = calloc(1, sizeof(*registry));
	if (!registry)
		return error_set(error, ENOMEM, "the registry");
	registry->config = *config;
	registry->store = store;
	registry->owner = owner;
	registry->epoll = registry->timer = -1;
	registry->retry_at = 1; /* at once */
	registry->waiting.last = &registry->waiting.first;
	registry->sent.last = &registry->sent.first;
	registry->back.last = &registry->back.first;
	ret = prepare(registry, error);
	if (ret) {
		registry_close(registry);
		return ret;
	}
	signal(SIGPIPE, SIG_IGN); /* libhiredis writes without MSG_NOSIGNAL */
	registry_arm(registry);
	*out = registry;
	return 0;
}

void registry_close(struct registry *registry)
{
	if (!registry)
		return;
	registry->closing = true;
	snprintf(registry->why, sizeof(registry->why), "the store ends");
	if (registry->link.redis)
		registry_link_close(&registry->link, "the store ends");
	requests_tick(registry, UINT64_MAX);
	commands_close(registry->commands);
	if (registry->timer >= 0)
		close(registry->timer);
	if (registry->epoll >= 0)
		close(registry->epoll);
	free(registry);
}
