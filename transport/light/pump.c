/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/light/pump_state.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"
#include "transport/light/light.h"
#include "transport/light/udp.h"
#include "transport/socket_link.h"

#define STACK (256u * 1024)
/* Nothing came for so long, and something is on its way: the client knocks, since its address
 * may have changed, … */
#define SILENT_KNOCK_NS (250 * MILLISECOND)
#define KNOCK_EVERY_NS (100 * MILLISECOND)
/* … and gives up: TCP may still get through. The agent leaves that to the client, who comes
 * back when he can. */
#define SILENT_END_NS (900 * MILLISECOND)
/* At the least, of QUIC's probes: three, after 1, 2 and 4 times its patience. */
#define SILENT_PROBES 7
#define SHUN_NS (60000 * MILLISECOND)

static struct {
	pthread_mutex_t lock;
	struct pump *first;
	uint64_t count;
	_Atomic uint64_t shunned_until;
} pumps = {.lock = PTHREAD_MUTEX_INITIALIZER};

void pump_shun_udp(void)
{
	atomic_store(&pumps.shunned_until, wait_now() + SHUN_NS);
}

bool light_shuns_udp(void)
{
	return wait_now() < atomic_load(&pumps.shunned_until);
}

/* --- who has it --------------------------------------------------------------------------- */

static void pump_free(struct pump *pump)
{
	int fd;

	quic_close(pump->quic);
	for (unsigned i = 0; i < QUIC_FLOWS; i++) {
		flow_close(&pump->flows[i]);
		fd = atomic_load(&pump->attach[i]);
		if (fd >= 0)
			close(fd);
	}
	fd = atomic_load(&pump->path);
	if (fd >= 0)
		close(fd);
	if (pump->doorbell >= 0)
		close(pump->doorbell);
	explicit_bzero(pump, sizeof(*pump));
	free(pump);
}

void pump_put(struct pump *pump)
{
	struct pump **at = &pumps.first;

	pthread_mutex_lock(&pumps.lock);
	if (atomic_fetch_sub(&pump->users, 1) > 1) {
		pthread_mutex_unlock(&pumps.lock);
		return;
	}
	while (*at != pump)
		at = &(*at)->next;
	*at = pump->next;
	pthread_mutex_unlock(&pumps.lock);
	pump_free(pump);
}

struct pump *pump_get(uint64_t number)
{
	struct pump *pump;

	pthread_mutex_lock(&pumps.lock);
	for (pump = pumps.first; pump && pump->number != number; pump = pump->next)
		;
	if (pump)
		atomic_fetch_add(&pump->users, 1);
	pthread_mutex_unlock(&pumps.lock);
	return pump;
}

void pump_ring(struct pump *pump)
{
	uint64_t one = 1;

	(void)!write(pump->doorbell, &one, sizeof(one));
}

static void set_state(struct pump *pump, enum pump_state state)
{
	atomic_store(&pump->state, state);
	wait_wake(&pump->state);
}

enum pump_state pump_await(struct pump *pump, enum pump_state state, uint64_t ns)
{
	uint64_t until = wait_now() + ns, now;

	while (atomic_load(&pump->state) == (uint32_t)state && (now = wait_now()) < until)
		wait_sleep(&pump->state, (uint32_t)state, until - now);
	return (enum pump_state)atomic_load(&pump->state);
}

/* --- the thread --------------------------------------------------------------------------- */

static void take_wishes(struct pump *pump)
{
	uint64_t rings;
	int fd;

	(void)!read(pump->doorbell, &rings, sizeof(rings));
	for (unsigned i = 0; i < QUIC_FLOWS; i++) {
		fd = atomic_exchange(&pump->attach[i], -1);
		if (fd >= 0 && pump->flows[i].fd >= 0)
			close(fd);
		else if (fd >= 0)
			pump->flows[i].fd = fd;
	}
	fd = atomic_exchange(&pump->path, -1);
	if (fd >= 0)
		quic_path_add(pump->quic, fd);
}

struct polled {
	struct pollfd fds[1 + QUIC_PATHS + PUMP_TCP + QUIC_FLOWS];
};
#define AT_PATHS 1
#define AT_TCP (AT_PATHS + QUIC_PATHS)
#define AT_FLOWS (AT_TCP + PUMP_TCP)

static short wanted_of(const struct flow *flow, bool ready)
{
	short events = 0;

	if (ready && flow_has_room(flow))
		events |= POLLIN;
	if (flow_ring_used(&flow->in))
		events |= POLLOUT;
	return events;
}

static void pump_poll(struct pump *pump, struct polled *polled, bool blocked, uint64_t until)
{
	struct pollfd *fds = polled->fds;
	uint64_t now = wait_now(), ns = until <= now ? 0 : until - now;
	struct timespec t = {
		.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

	fds[0] = (struct pollfd){.fd = pump->doorbell, .events = POLLIN};
	for (unsigned i = 0; i < QUIC_PATHS; i++)
		fds[AT_PATHS + i] = (struct pollfd){.fd = quic_path_fd(pump->quic, i),
			.events = (short)(POLLIN | (blocked ? POLLOUT : 0))};
	for (unsigned i = 0; i < PUMP_TCP; i++)
		fds[AT_TCP + i] = (struct pollfd){.fd = pump->wish.tcp[i], .events = POLLRDHUP};
	for (unsigned i = 0; i < QUIC_FLOWS; i++) {
		short events = wanted_of(&pump->flows[i], quic_is_ready(pump->quic));

		fds[AT_FLOWS + i] = (struct pollfd){
			.fd = events ? pump->flows[i].fd : -1, .events = events};
	}
	ppoll(fds, sizeof(polled->fds) / sizeof(fds[0]), &t, NULL);
}

static void drain_flows(struct pump *pump)
{
	for (unsigned i = 0; i < QUIC_FLOWS; i++)
		if (pump->flows[i].fd >= 0)
			quic_consumed(pump->quic, i, flow_drain(&pump->flows[i]));
}

/* A packet came or will be awaited: for how long none has come, while one is. */
static void note(struct pump *pump, bool heard, uint64_t now)
{
	if (heard)
		pump->heard_at = now;
	if (heard || !pump->asked_at)
		pump->asked_at = quic_awaits(pump->quic) ? now : 0;
}

/* 0; or -ETIMEDOUT: UDP does not get through any more. */
static int look_at_silence(struct pump *pump, uint64_t now)
{
	struct quic_counts counts;
	uint64_t patience;

	if (!pump->asked_at || !pump->was_open || pump->wish.end != TRANSPORT_CLIENT)
		return 0;
	quic_count(pump->quic, &counts);
	patience = SILENT_PROBES * counts.probe_ns;
	if (now - pump->asked_at >= (patience > SILENT_END_NS ? patience : SILENT_END_NS)) {
		snprintf(pump->why, sizeof(pump->why), "nothing comes by UDP any more");
		return -ETIMEDOUT;
	}
	if (now - pump->asked_at >= SILENT_KNOCK_NS &&
		now - pump->knocked_at >= KNOCK_EVERY_NS) {
		pump->knocked_at = now;
		for (unsigned i = 0; i < QUIC_PATHS; i++)
			if (quic_path_fd(pump->quic, i) >= 0)
				knock_send(quic_path_fd(pump->quic, i), &pump->wish.hello);
	}
	return 0;
}

static uint64_t next_look(const struct pump *pump, uint64_t now)
{
	uint64_t due = quic_due(pump->quic), look;

	if (!pump->asked_at || pump->wish.end != TRANSPORT_CLIENT)
		look = now + 1000 * MILLISECOND;
	else
		look = now + KNOCK_EVERY_NS;
	if (pump->parting_at && pump->parting_at < look)
		look = pump->parting_at;
	return due < look ? due : look;
}

/* The link is closed here: true once the peer has all, or there is no time left. */
static bool parted(struct pump *pump, uint64_t now)
{
	const struct flow *flow = &pump->flows[0];

	if (!flow->out_over)
		return false;
	if (!pump->parting_at)
		pump->parting_at = now + PUMP_PARTING_NS;
	return now >= pump->parting_at ||
	       (flow->fin_sent && !flow_ring_used(&flow->out) && !quic_awaits(pump->quic));
}

static bool tcp_ended(const struct pump *pump, const struct polled *polled)
{
	for (unsigned i = 0; i < PUMP_TCP; i++)
		if (pump->wish.tcp[i] >= 0 &&
			polled->fds[AT_TCP + i].revents & (POLLRDHUP | POLLHUP | POLLERR))
			return true;
	return false;
}

/* One turn. 0: another one; 1: it is over as it should be; or -errno. */
static int turn(struct pump *pump, struct polled *polled, bool *blocked)
{
	uint64_t now = wait_now();
	bool heard = false;
	int ret = 0;

	if (polled->fds[0].revents)
		take_wishes(pump);
	for (unsigned i = 0; i < QUIC_PATHS && !ret; i++) {
		if (quic_path_fd(pump->quic, i) < 0 || !polled->fds[AT_PATHS + i].revents)
			continue;
		ret = quic_receive(pump->quic, i, now);
		heard |= !ret;
		ret = ret == -EAGAIN ? 0 : ret;
	}
	if (quic_is_ready(pump->quic) && !pump->was_open) {
		pump->was_open = true;
		set_state(pump, PUMP_OPEN);
	}
	drain_flows(pump);
	for (unsigned i = 0; i < QUIC_FLOWS; i++)
		if (polled->fds[AT_FLOWS + i].fd >= 0 &&
			polled->fds[AT_FLOWS + i].revents & ~POLLOUT)
			flow_fill(&pump->flows[i]);
	if (!ret) {
		ret = quic_send(pump->quic, now);
		*blocked = ret == -EAGAIN;
		ret = *blocked ? 0 : ret;
	}
	note(pump, heard, now);
	if (!ret)
		ret = look_at_silence(pump, now);
	if (!ret && (parted(pump, now) || atomic_load(&pump->given_up)))
		return 1;
	if (!ret && tcp_ended(pump, polled)) {
		snprintf(pump->why, sizeof(pump->why), "the other end is gone");
		ret = -ECONNRESET;
	}
	return ret;
}

/* What came is still the reader's, as with TCP. */
static void give_rest(struct pump *pump)
{
	uint64_t until = wait_now() + PUMP_PARTING_NS;

	for (unsigned i = 0; i < QUIC_FLOWS; i++) {
		struct flow *flow = &pump->flows[i];

		while (flow->fd >= 0 && flow_ring_used(&flow->in) && wait_now() < until) {
			struct pollfd fd = {.fd = flow->fd, .events = POLLOUT};

			flow_drain(flow);
			if (flow_ring_used(&flow->in) && poll(&fd, 1, 100) < 0)
				break;
		}
	}
}

static void close_all(struct pump *pump)
{
	for (unsigned i = 0; i < QUIC_FLOWS; i++)
		if (pump->flows[i].fd >= 0) {
			close(pump->flows[i].fd);
			pump->flows[i].fd = -1;
		}
	if (pump->wish.end == TRANSPORT_CLIENT &&
		(!pump->was_open || atomic_load(&pump->given_up)))
		return;
	for (unsigned i = 0; i < QUIC_PATHS; i++)
		if (quic_path_fd(pump->quic, i) >= 0)
			close(quic_path_fd(pump->quic, i));
	for (unsigned i = 0; i < PUMP_TCP; i++)
		if (pump->wish.tcp[i] >= 0)
			close(pump->wish.tcp[i]);
}

static void *pump_main(void *argument)
{
	struct pump *pump = argument;
	struct polled polled = {0};
	bool blocked = false;
	int ret = 0;

	/* The client speaks first. */
	while (!(ret = turn(pump, &polled, &blocked)))
		pump_poll(pump, &polled, blocked, next_look(pump, wait_now()));
	if (ret < 0 && !pump->why[0])
		snprintf(pump->why, sizeof(pump->why), "%s", quic_why(pump->quic));
	if (ret == -ETIMEDOUT && pump->wish.end == TRANSPORT_CLIENT)
		pump_shun_udp();
	if (ret < 0)
		log_info("light.over", "text=\"%s\"", pump->why);
	quic_say_end(pump->quic, wait_now());
	give_rest(pump);
	close_all(pump);
	set_state(pump, PUMP_OVER);
	pump_put(pump);
	return NULL;
}

/* --- making it ---------------------------------------------------------------------------- */

struct pump *pump_new(const struct pump_wish *wish)
{
	struct pump *pump = calloc(1, sizeof(*pump));
	int ret = 0;

	if (!pump)
		return NULL;
	pump->wish = *wish;
	pump->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	atomic_init(&pump->users, 1);
	atomic_init(&pump->path, -1);
	for (unsigned i = 0; i < QUIC_FLOWS; i++) {
		atomic_init(&pump->attach[i], -1);
		ret |= flow_open(&pump->flows[i], -1);
	}
	if (pump->doorbell < 0 || ret) {
		pump_free(pump);
		return NULL;
	}
	pthread_mutex_lock(&pumps.lock);
	pump->number = ++pumps.count;
	pump->next = pumps.first;
	pumps.first = pump;
	pthread_mutex_unlock(&pumps.lock);
	return pump;
}

int pump_start(struct pump *pump)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int ret;

	atomic_fetch_add(&pump->users, 1);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	ret = pthread_create(&thread, &attributes, pump_main, pump);
	pthread_attr_destroy(&attributes);
	if (ret)
		atomic_fetch_sub(&pump->users, 1);
	return -ret;
}
