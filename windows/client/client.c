/* SPDX-License-Identifier: Apache-2.0
 *
 * What server.c and main.c are to a sidecar of its own: see client.h.
 */
#include "windows/client/client.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/wait.h"
#include "protocol/wire/status.h"
#include "sidecar/channel/channel.h"
#include "sidecar/channel/request.h"
#include "sidecar/server/server.h"
#include "windows/os/os.h"

#define FIRST_NS 5000000000ull /* for the first request */
#define END_NS 2000000000ull
#define END_PAUSE_US 2000

static struct server server;
static struct {
	pthread_once_t once;
	int ret; /* of opening: 0, or -errno with error */
	struct error error;
} client = {.once = PTHREAD_ONCE_INIT};

/* ---- what channels want of a server ---- */

void server_wake(struct server *of)
{
	(void)of; /* nobody sleeps */
}

int server_segment(struct server *of, struct segment **segment, struct error *error)
{
	const struct options *options = &of->options;
	uint64_t size = 4096 + CHANNEL_SLOTS * sizeof(struct channel_slot) +
			CHANNEL_COUNTERS * sizeof(uint64_t) +
			CHANNEL_UPCALLS * sizeof(struct channel_upcall) + options->ring +
			options->arena + options->bounce;

	return segment_create(options->mode, size, segment, NULL, NULL, error);
}

/* ---- opening ---- */

/* One way leads to the agent from here. */
static int client_native(const struct options *options, struct error *error)
{
	const struct transport_tls *tls = &options->tls;

	if (options->light)
		return error_set(error, 0,
			"protocol: light is not had on Windows: native is (docs/WINDOWS.md)");
	if (options->local_only)
		return error_set(error, 0,
			"protocol: local is not had on Windows: native is (docs/WINDOWS.md)");
	if (tls->ca[0] || tls->cert[0] || tls->key[0] || tls->name[0])
		return error_set(error, 0,
			"TLS is configured, and is not had on Windows: nothing is sent in the "
			"clear in its place (docs/WINDOWS.md)");
	return 0;
}

static int client_options(struct options *options, struct error *error)
{
	const char *agent = getenv("VCUDA_AGENT"), *address = getenv("REMOTE_GPU_ADDRESS");
	char place[AGENTS_TEXT];
	bool told = (!address || !*address) && os_place(place, sizeof(place));
	char *arguments[] = {"nvcuda", "run", "--agent", told ? place : (char *)address, NULL};
	bool named = agent && *agent;
	enum command command;
	int ret;

	ret = sidecar_options_parse(!named && (told || (address && *address)) ? 4 : 2,
		arguments, options, &command, error);
	if (!ret)
		ret = options_agree(options, error);
	if (!ret)
		ret = client_native(options, error);
	if (!ret && options->credential[0])
		ret = transport_credential(options->credential, options->insecure, error);
	/* Between processes of one machine there is nothing to compress for, and no libzstd. */
	options->compress = CONTROLLER_OFF;
	return ret;
}

/* The program's stderr is the program's. */
static void client_log(void)
{
	const char *debug = getenv("VCUDA_DEBUG");

	log_open("sidecar");
	if (!debug || !*debug || !strcmp(debug, "0"))
		log_to(-1);
}

static int client_threads(struct error *error)
{
	server.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server.stop_fd < 0)
		return error_set(error, errno, "descriptors");
	server.spin =
		server.options.spin == UINT64_MAX ? wait_spin_budget() : server.options.spin;
	server.started = wait_now();
	return heartbeat_start(&server.heartbeat, error);
}

static void client_open(void)
{
	struct spread_wish wish;

	client_log();
	pthread_mutex_init(&server.lock, NULL);
	pthread_mutex_init(&server.making, NULL);
	client.ret = client_options(&server.options, &client.error);
	for (unsigned i = 0; i < CHANNEL_AGENTS; i++)
		server.agents[i] = (struct agents)AGENTS_INIT;
	if (client.ret)
		return;
	wish = options_spread(&server.options);
	spread_init(&server.spread, &wish);
	segment_configure(server.options.shm_size, server.options.label);
	client.ret = client_threads(&client.error);
}

/* ---- serving ---- */

static void refuse(int fd, const struct channel_request *request, const char *text)
{
	struct channel_answer answer = request_answer(request, STATUS_NOT_READY, text);

	request_reply(&server.options, fd, &answer, NULL, 0);
}

/* The first request starts the channel, which has a thread of its own. */
static void *accept_main(void *argument)
{
	cleanup_close int fd = (int)(intptr_t)argument;
	struct ucred peer = {.pid = getpid()};
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	struct channel_request request;

	if (poll(&readable, 1, FIRST_NS / 1000000) <= 0 || request_receive(fd, &request) <= 0)
		return NULL;
	if (client.ret) {
		refuse(fd, &request, client.error.text);
	} else {
		heartbeat_watched(&server.heartbeat, 1);
		channel_start(&server, take_fd(&fd), &peer, &request, -1);
	}
	return NULL;
}

static bool client_accept(int fd)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int ret;

	pthread_once(&client.once, client_open);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	ret = pthread_create(&thread, &attributes, accept_main, (void *)(intptr_t)fd);
	pthread_attr_destroy(&attributes);
	return !ret;
}

/* While the library is loaded: a word is set and nothing is started. */
__attribute__((constructor)) static void client_serves(void)
{
	os_serve(client_accept);
}

void client_end(void)
{
	uint64_t until = wait_now() + END_NS;
	unsigned count = server.started ? 1 : 0;

	while (count && wait_now() < until) {
		pthread_mutex_lock(&server.lock);
		count = server.channel_count;
		pthread_mutex_unlock(&server.lock);
		if (count)
			usleep(END_PAUSE_US);
	}
}
