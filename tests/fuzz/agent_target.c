/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/alarm.h"
#include "tests/fuzz/agent_target.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/supervisor/settings/settings.h"
#include "gpu-agent/front/http/http.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/direct.h"
#include "gpu-agent/front/identity.h"
#include "gpu-agent/front/session/renew.h"
#include "gpu-agent/front/tensor/tensor_copy.h"
#include "gpu-agent/front/tensor/tensors.h"
#include "gpu-agent/supervisor/settings/token.h"
#include "transport/tcp.h"
#include "transport/transport.h"

#define TURNS_IDLE 4 /* without a byte: it waits for more, until its deadline */
#define TURN_NS 1000000

static uint16_t ports[AGENT_PORTS];
static int supervisor; /* the other end of the front's control socket */

static void must(int ret, const char *what)
{
	if (ret < 0) {
		perror(what);
		abort();
	}
}

static void control_ready(struct watch *watch, uint32_t mask)
{
	(void)watch;
	(void)mask;
}

struct front *target_front(void)
{
	static struct agent_config config;
	static struct front front;
	struct error error = {0};
	int pair[2], fd;

	if (front.config)
		return &front;
	log_level = LOG_ERROR;
	settings_defaults(&config);
	must(settings_complete(&config, "/bin/gpu-agent", &error), "settings");
	must(token_set(&config.tokens, "t"), "token");
	config.max_sessions = 8;
	config.start_timeout_ms = 100;
	/* So that GPU time is counted (TIME of a worker). */
	must(settings_set(&config, "tenants.*.gpu_share", "0.5", &error), "share");
	front.config = &config;
	front.tensors.store.fd = front.uploads.process.fd = -1;
	/* The descriptors that a front is started with. */
	alarm_restarts();
	must(transport_listen("127.0.0.1", &config.listening, &error), "listen");
	for (unsigned i = 0; i < config.listening.count; i++)
		must(config.listening.at[i].fd = fcntl(config.listening.at[i].fd, F_DUPFD, 64),
			"dup");
	fd = tcp_listen("127.0.0.1", 0, &config.bound[LISTEN_CONTROL], &error);
	must(fd, "listen");
	must(dup2(fd = fcntl(fd, F_DUPFD, 64), AGENT_FD_HTTP), "dup2");
	for (unsigned i = 0; i < config.listening.count; i++)
		must(dup2(config.listening.at[i].fd, AGENT_FD_LISTEN + (int)i), "dup2");
	config.bound[LISTEN_SEND] = config.listening.taken.replies;
	config.bound[LISTEN_RECV] = config.listening.taken.commands;
	memcpy(ports, config.bound, sizeof(ports));
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), "socketpair");
	supervisor = pair[1];
	must(events_open(&front.events, &front, &error), "epoll");
	must(events_watch(&front.events, &front.control, pair[0], EPOLLIN, control_ready),
		"watch");
	must(tenants_open(&front, &error), "tenants");
	must(identity_open(&front, &error), "identity");
	must(session_open_table(&front, &error), "sessions");
	must(pool_open(&front, &error), "pool");
	must(direct_open(&front, &error), "direct");
	must(tensor_copy_open(&front, &error), "copies");
	must(hello_open(&front, &error), "hello");
	must(http_open(&front, AGENT_FD_HTTP, &error), "http");
	return &front;
}

void target_turn(uint64_t ns)
{
	struct front *front = target_front();
	uint64_t now = wait_now();

	events_turn(&front->events, now + ns);
	hello_tick(front, now);
	session_tick(front, now);
	renew_tick(front, now);
	pool_tick(front, now);
	tenants_tick(front, now);
	tensors_tick(front, now);
	tensor_copy_tick(front, now);
	http_tick(front);
}

bool target_told(struct control *c)
{
	target_front();
	return recv(supervisor, c, sizeof(*c), MSG_DONTWAIT) == (ssize_t)sizeof(*c);
}

int target_connect(int listener)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	struct linger hard = {.l_onoff = 1};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	target_front();
	to.sin_port = htons(ports[listener]);
	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	/* Closed hard at the end: thousands of connections a second must not fill TIME_WAIT. */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	must(connect(fd, (struct sockaddr *)&to, sizeof(to)), "connect");
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

void target_send(int listener, const uint8_t *bytes, size_t n)
{
	struct control c;
	char waste[4096];
	ssize_t got;
	int fd = target_connect(listener);

	(void)!send(fd, bytes, n, MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	for (int idle = 0; idle < TURNS_IDLE; idle++) {
		target_turn(TURN_NS);
		got = recv(fd, waste, sizeof(waste), 0);
		if (got == 0 || (got < 0 && errno != EAGAIN))
			break;
		if (got > 0)
			idle = 0;
	}
	close(fd);
	target_turn(TURN_NS);
	while (target_told(&c))
		;
}
