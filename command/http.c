/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP as far as an agent's pages need it: HTTP/1.0, so that the answer ends with the
 * connection and comes in one piece.
 */
#include "command/http.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/wait.h"
#include "transport/tcp.h"

#define HTTP_SECONDS 5
#define HTTP_MAX ((size_t)16 << 20) /* 4096 sessions */

int http_token(char token[HTTP_TOKEN], const char *path, struct error *error)
{
	char text[HTTP_TOKEN + 1] = "";
	size_t n;

	token[0] = 0;
	if (!path)
		path = getenv("VCUDA_TOKEN_FILE");
	if (!path || !*path)
		return 0;
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, HTTP_TOKEN) < 0)
		return error_set(error, errno, "token file %.200s", path);
	n = strcspn(text, " \t\r\n");
	if (!n || n >= HTTP_TOKEN)
		return error_set(error, EINVAL,
			"%.200s: no token of 1 to %d bytes stands first", path, HTTP_TOKEN - 1);
	memcpy(token, text, n);
	token[n] = 0;
	return 0;
}

/* What the agent says of a token, as far as it fits a line. */
static int refused(
	const char *host, uint16_t port, const char *path, char *body, struct error *error)
{
	for (char *at = body; *at; at++)
		if (*at < ' ' || *at > 126)
			*at = at[1] ? '?' : 0;
	return error_set(error, EACCES, "%s:%u%s: %.200s", host, port, path, body);
}

int http_get(const char *host, uint16_t port, const char *path, const char *token, char **text,
	struct error *error)
{
	cleanup_free char *answer = malloc(HTTP_MAX + 1);
	cleanup_close int fd = tcp_connect(host, port, HTTP_SECONDS, error);
	uint64_t deadline = wait_now() + HTTP_SECONDS * 1000000000ull;
	char request[768];
	char *body;
	size_t got = 0;
	int status, n;

	if (fd < 0)
		return error_wrap(error, fd, "the agent's control port");
	n = snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\nHost: %s\r\n%s%s%s\r\n",
		path, host, *token ? "Authorization: Bearer " : "", token,
		*token ? "\r\n" : "");
	if (!answer || n >= (int)sizeof(request))
		return error_set(error, ENOMEM, "%s", path);
	if (send(fd, request, (size_t)n, MSG_NOSIGNAL) != n)
		return error_set(error, errno, "%s:%u", host, port);
	for (;;) {
		ssize_t more = recv(fd, answer + got, HTTP_MAX - got, 0);

		if (!more)
			break;
		if (more < 0 || wait_now() > deadline)
			return error_set(error, more < 0 && errno != EAGAIN ? errno : ETIMEDOUT,
				"%s:%u%s", host, port, path);
		got += (size_t)more;
		if (got == HTTP_MAX)
			return error_set(error, EMSGSIZE, "%s:%u%s", host, port, path);
	}
	answer[got] = 0;
	body = strstr(answer, "\r\n\r\n");
	if (sscanf(answer, "HTTP/1.%*c %d", &status) == 1 && status == 401 && body)
		return refused(host, port, path, body + 4, error);
	if (sscanf(answer, "HTTP/1.%*c %d", &status) != 1 || status != 200 || !body)
		return error_set(
			error, EPROTO, "%s:%u%s is no page of an agent's", host, port, path);
	*text = strdup(body + 4);
	return *text ? 0 : error_set(error, ENOMEM, "%s", path);
}
