/* SPDX-License-Identifier: Apache-2.0
 *
 * The control port: HTTP for probes, Prometheus and people.  Read-only: GET and HEAD, no
 * bodies, small requests, few connections, short deadlines.  libmicrohttpd runs inside the
 * front's loop, so a page reads the front's state without a lock.
 *
 * The front accepts: whoever comes is let in, and where all places are taken the connection
 * that is there longest goes.  (libmicrohttpd by itself stops listening at its limit, and
 * whoever holds idle connections keeps everybody else out.)
 */
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/http/http.h"
#include "gpu-agent/front/networks.h"
#include "gpu-agent/front/http/page.h"
#include "gpu-agent/front/peers.h"
#include "gpu-agent/front/http/state.h"
#include "gpu-agent/front/tensor/tensors.h"
#include "gpu-agent/front/http/viewer.h"
#include "transport/tcp.h"

#define HTTP_CONNECTIONS 64
#define HTTP_SECONDS 5
#define HTTP_REQUEST_MAX 8192 /* request line and headers, and the answer's headers */
#define HTTP_PER_ADDRESS 32
#define HTTP_LIFE_NS (30000 * FRONT_MS) /* of a connection, however busy it looks */
#define HTTP_ACCEPTS_A_TURN 64

struct http_slot {
	int fd; /* -1: free. libmicrohttpd's: it closes it */
	uint64_t since;
	struct transport_peer peer;
};

struct http {
	struct MHD_Daemon *daemon;
	struct watch watch; /* libmicrohttpd's own epoll descriptor */
	struct watch listener;
	struct http_slot slots[HTTP_CONNECTIONS];
	struct http_slot *adding; /* whose connection is just being added */
};

struct page {
	const char *path;
	const char *type;
	char *(*text)(const struct front *front, const struct viewer *viewer);
};

static const struct page pages[] = {
	{"/v1/agent", "application/json", state_agent},
	{"/v1/gpus", "application/json", state_gpus},
	{"/v1/sessions", "application/json", state_sessions},
	{"/v1/tensors", "application/json", tensors_status},
};

/* The page's script asks this agent and nobody else, whatever a client has for a name. */
static void add_headers(struct MHD_Response *response, const char *type)
{
	MHD_add_response_header(response, "Content-Type", type);
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(response, "Content-Security-Policy",
		"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
		"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
}

static enum MHD_Result answer_file(
	struct MHD_Connection *connection, const struct page_file *file)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		file->size, (void *)(uintptr_t)file->bytes, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	add_headers(response, file->type);
	result = MHD_queue_response(connection, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return result;
}

/* Answers with text, which is freed (also where it is NULL: out of memory). */
static enum MHD_Result answer(
	struct MHD_Connection *connection, unsigned status, const char *type, char *text)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	if (!text)
		return MHD_NO;
	response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(text);
		return MHD_NO;
	}
	add_headers(response, type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET, HEAD");
	if (status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result refuse(
	struct front *front, struct MHD_Connection *connection, const char *why)
{
	front->counters.http_refused++;
	return answer(
		connection, MHD_HTTP_UNAUTHORIZED, "text/plain; charset=utf-8", strdup(why));
}

/* In the format that Prometheus asks for. Who brings no token sees no tenant, unless the
 * configuration says that everybody may. */
static enum MHD_Result metrics(
	struct front *front, struct MHD_Connection *connection, const struct viewer *viewer)
{
	const struct viewer everybody = {.all = true};
	const char *accept = MHD_lookup_connection_value(
		connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	bool open = accept && strstr(accept, "application/openmetrics-text");

	return answer(connection, MHD_HTTP_OK,
		open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		     : "text/plain; version=0.0.4; charset=utf-8",
		metrics_text(
			front, open, front->config->http_tenant_metrics ? &everybody : viewer));
}

/* The pages that show tenants. */
static enum MHD_Result respond_to(
	struct front *front, struct MHD_Connection *connection, const char *url)
{
	struct viewer viewer;

	if (!viewer_of(front,
		    MHD_lookup_connection_value(
			    connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION),
		    &viewer))
		return refuse(front, connection,
			"the token is nobody's here: it must be one of the agent's "
			"http.token_file, or a tenant's\n");
	/* Sums of a few people's sessions tell each what the others do. */
	if (!strcmp(url, "/metrics") && !viewer.named && networks_count(front) &&
		!front->config->http_tenant_metrics)
		return refuse(front, connection,
			"this agent is in networks: bring a token (Authorization: Bearer "
			"TOKEN), "
			"one of the agent's http.token_file or a network's\n");
	if (!strcmp(url, "/metrics"))
		return metrics(front, connection, &viewer);
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		if (strcmp(url, pages[i].path))
			continue;
		if (!viewer.all && !viewer.named)
			return refuse(front, connection,
				"this agent has several tenants, and shows each its own: "
				"bring a token (Authorization: Bearer TOKEN), one of the "
				"agent's http.token_file or a tenant's\n");
		return answer(
			connection, MHD_HTTP_OK, pages[i].type, pages[i].text(front, &viewer));
	}
	return answer(connection, MHD_HTTP_NOT_FOUND, "text/plain; charset=utf-8",
		strdup("no such page; there are / /healthz /readyz /metrics /v1/agent /v1/gpus "
		       "/v1/sessions /v1/tensors\n"));
}

static enum MHD_Result respond(struct front *front, struct MHD_Connection *connection,
	const char *url, const char *method)
{
	static const char plain[] = "text/plain; charset=utf-8";
	struct page_file file;

	if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, plain,
			strdup("only GET and HEAD are served here\n"));
	if (!strcmp(url, "/healthz") || !strcmp(url, "/livez"))
		return answer(connection, MHD_HTTP_OK, plain, strdup("ok\n"));
	if (!strcmp(url, "/readyz")) {
		bool ready, verbose;
		char *text;

		verbose = MHD_lookup_connection_value_n(connection, MHD_GET_ARGUMENT_KIND,
				  "verbose", 7, NULL, NULL) == MHD_YES;
		text = state_ready(front, verbose, &ready);
		return answer(connection, ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
			plain, text);
	}
	if (page_find(url, &file))
		return answer_file(connection, &file);
	return respond_to(front, connection, url);
}

/* libmicrohttpd asks once for the headers, then for each piece of a body, then to answer. */
static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_size,
	void **state)
{
	static char seen;

	(void)version;
	(void)upload;
	if (*upload_size)
		return MHD_NO; /* a body: the connection is closed */
	if (!*state) {
		*state = &seen;
		return MHD_YES;
	}
	return respond(cls, connection, url, method);
}

static void http_ready(struct watch *watch, uint32_t mask)
{
	(void)mask;
	MHD_run(events_container(watch, struct http, watch)->daemon);
}

/* --- connections -------------------------------------------------------------------------- */

/* Called by libmicrohttpd when it has taken a connection, and before it closes one. */
static void connection_changed(void *cls, struct MHD_Connection *connection, void **context,
	enum MHD_ConnectionNotificationCode code)
{
	struct http *http = cls;
	struct http_slot *slot = *context;

	(void)connection;
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		*context = http->adding;
	else if (slot)
		slot->fd = -1;
}

/* libmicrohttpd sees the end of the connection and frees the slot. */
static void evict(struct http *http, struct http_slot *slot)
{
	shutdown(slot->fd, SHUT_RDWR);
	for (int i = 0; i < 2 && slot->fd >= 0; i++)
		MHD_run(http->daemon);
}

static struct http_slot *make_room(struct http *http, const struct transport_peer *peer)
{
	struct http_slot *slot;
	struct peers peers;

	peers_begin(&peers, peer);
	for (int i = 0; i < HTTP_CONNECTIONS; i++) {
		slot = &http->slots[i];
		peers_meet(&peers, i, slot->fd >= 0, &slot->peer, slot->since);
	}
	slot = &http->slots[peers_choose(&peers, HTTP_PER_ADDRESS)];
	if (slot->fd >= 0)
		evict(http, slot);
	return slot->fd < 0 ? slot : NULL;
}

static void listener_ready(struct watch *watch, uint32_t mask)
{
	struct http *http = events_container(watch, struct http, listener);

	(void)mask;
	for (int i = 0; i < HTTP_ACCEPTS_A_TURN; i++) {
		struct sockaddr_storage from = {0};
		socklen_t size = sizeof(from);
		int fd = accept4(watch->fd, (struct sockaddr *)&from, &size,
			SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct transport_peer peer;
		struct http_slot *slot;

		if (fd < 0)
			return;
		tcp_peer(&from, &peer);
		slot = make_room(http, &peer);
		if (!slot) {
			close(fd);
			continue;
		}
		*slot = (struct http_slot){.fd = fd, .since = wait_now(), .peer = peer};
		http->adding = slot;
		/* It closes what it does not take. */
		if (MHD_add_connection(http->daemon, fd, (struct sockaddr *)&from, size) !=
			MHD_YES)
			slot->fd = -1;
		http->adding = NULL;
	}
}

/* Its own messages would be a log line per bad request. */
static void silent(void *cls, const char *format, va_list args)
{
	(void)cls;
	(void)format;
	(void)args;
}

int http_open(struct front *front, int listener, struct error *error)
{
	const union MHD_DaemonInfo *info;
	struct http *http = calloc(1, sizeof(*http));

	if (!http)
		return error_set(error, ENOMEM, "HTTP");
	for (unsigned i = 0; i < HTTP_CONNECTIONS; i++)
		http->slots[i].fd = -1;
	/* Its limit is out of reach: make_room keeps ours. */
	http->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL,
		handle, front, MHD_OPTION_EXTERNAL_LOGGER, silent, NULL,
		MHD_OPTION_NOTIFY_CONNECTION, connection_changed, http,
		MHD_OPTION_CONNECTION_LIMIT, 2u * HTTP_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)HTTP_SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_REQUEST_MAX, MHD_OPTION_END);
	info = http->daemon ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)
			    : NULL;
	if (!info ||
		events_watch(
			&front->events, &http->watch, info->epoll_fd, EPOLLIN, http_ready) ||
		events_watch(
			&front->events, &http->listener, listener, EPOLLIN, listener_ready)) {
		if (http->daemon)
			MHD_stop_daemon(http->daemon);
		free(http);
		return error_set(error, 0, "the control port: libmicrohttpd does not start");
	}
	front->http = http;
	return 0;
}

/* Who says a byte now and then is never idle. */
static uint64_t end_old(struct http *http, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < HTTP_CONNECTIONS; i++) {
		struct http_slot *slot = &http->slots[i];

		if (slot->fd >= 0 && slot->since + HTTP_LIFE_NS <= now)
			evict(http, slot);
		if (slot->fd >= 0 && slot->since + HTTP_LIFE_NS < next)
			next = slot->since + HTTP_LIFE_NS;
	}
	return next;
}

uint64_t http_tick(struct front *front)
{
	struct http *http = front->http;
	MHD_UNSIGNED_LONG_LONG ms;
	uint64_t now = wait_now(), next = end_old(http, now);

	if (MHD_get_timeout(http->daemon, &ms) == MHD_YES && ms == 0)
		MHD_run(http->daemon);
	if (MHD_get_timeout(http->daemon, &ms) == MHD_YES && now + ms * FRONT_MS < next)
		next = now + ms * FRONT_MS;
	return next;
}

void http_close(struct front *front)
{
	events_forget(&front->events, &front->http->watch);
	close(events_forget(&front->events, &front->http->listener));
	MHD_stop_daemon(front->http->daemon);
	free(front->http);
	front->http = NULL;
}
