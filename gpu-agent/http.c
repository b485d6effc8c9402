/* SPDX-License-Identifier: Apache-2.0
 *
 * The control port: HTTP for probes, Prometheus and people.  Read-only: GET and HEAD, no
 * bodies, small requests, few connections, short deadlines.  libmicrohttpd runs inside the
 * front's loop, so a page reads the front's state without a lock.
 */
#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/wait.h"
#include "gpu-agent/front.h"

#define HTTP_CONNECTIONS 64
#define HTTP_SECONDS 5
#define HTTP_REQUEST_MAX 8192 /* request line and headers, and the answer's headers */
#define HTTP_PER_ADDRESS 32

struct http {
	struct MHD_Daemon *daemon;
	struct watch watch; /* libmicrohttpd's own epoll descriptor */
};

struct page {
	const char *path;
	const char *type;
	char *(*text)(const struct front *front);
};

static const struct page pages[] = {
	{"/", "text/html; charset=utf-8", status_page},
	{"/metrics", "text/plain; version=0.0.4; charset=utf-8", metrics_text},
	{"/v1/gpus", "application/json", status_gpus},
	{"/v1/sessions", "application/json", status_sessions},
};

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
	MHD_add_response_header(response, "Content-Type", type);
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result respond(struct front *front, struct MHD_Connection *connection,
	const char *url, const char *method)
{
	static const char plain[] = "text/plain; charset=utf-8";

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
		text = status_ready(front, verbose, &ready);
		return answer(connection, ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
			plain, text);
	}
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		if (!strcmp(url, pages[i].path))
			return answer(
				connection, MHD_HTTP_OK, pages[i].type, pages[i].text(front));
	return answer(connection, MHD_HTTP_NOT_FOUND, plain,
		strdup("no such page; there are / /healthz /readyz /metrics /v1/gpus "
		       "/v1/sessions\n"));
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
	MHD_run(events_owner(watch, struct http, watch)->daemon);
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
	http->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL,
		handle, front, MHD_OPTION_EXTERNAL_LOGGER, silent, NULL,
		MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)HTTP_CONNECTIONS, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		(unsigned)HTTP_PER_ADDRESS, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)HTTP_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)HTTP_REQUEST_MAX, MHD_OPTION_END);
	info = http->daemon ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)
			    : NULL;
	if (!info || events_watch(&front->events, &http->watch, info->epoll_fd, EPOLLIN,
			     http_ready)) {
		if (http->daemon)
			MHD_stop_daemon(http->daemon);
		free(http);
		return error_set(error, 0, "the control port: libmicrohttpd does not start");
	}
	front->http = http;
	return 0;
}

uint64_t http_tick(struct front *front)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(front->http->daemon, &ms) != MHD_YES)
		return UINT64_MAX;
	if (ms == 0) {
		MHD_run(front->http->daemon);
		if (MHD_get_timeout(front->http->daemon, &ms) != MHD_YES)
			return UINT64_MAX;
	}
	return wait_now() + ms * FRONT_MS;
}

void http_close(struct front *front)
{
	events_forget(&front->events, &front->http->watch);
	MHD_stop_daemon(front->http->daemon);
	free(front->http);
	front->http = NULL;
}
