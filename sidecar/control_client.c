/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/control_client.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/descriptors.h"
#include "common/wait.h"
#include "protocol/wire/channel.h"
#include "common/unix_socket.h"

#define CONTROL_SECONDS 5
#define CONTROL_MOST (64u << 20) /* more status than 16384 processes make */

/* One request, one answer; *fd: the descriptor that came with it, or -1. */
static int control_ask(const char *path, uint32_t op, uint32_t format,
	struct channel_answer *answer, int *fd, struct error *error)
{
	cleanup_close int socket = unix_connect(path, SOCK_SEQPACKET, error);
	struct channel_request request = {.magic = CHANNEL_MAGIC,
		.version = CHANNEL_VERSION,
		.op = op,
		.segment = format,
		.pid = getpid()};
	struct timeval timeout = {.tv_sec = CONTROL_SECONDS};
	ssize_t n;

	*fd = -1;
	if (socket == -ENOENT || socket == -ECONNREFUSED)
		return error_set(error, 0,
			"socket %s: no sidecar serves there; start one with vcuda-client run "
			"--agent HOST, or name another --socket",
			path);
	if (socket < 0)
		return socket;
	setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	if (send(socket, &request, sizeof(request), MSG_NOSIGNAL) < 0)
		return error_set(error, errno, "socket %s", path);
	n = descriptors_receive(socket, answer, sizeof(*answer), fd, 1, 0);
	if (n < 0)
		return error_set(error, (int)-n, "socket %s: no answer", path);
	if (n != sizeof(*answer) || answer->magic != CHANNEL_MAGIC) {
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
		return error_set(
			error, 0, "socket %s: what answers there is not a vcuda-client", path);
	}
	answer->text[sizeof(answer->text) - 1] = 0;
	if (answer->status)
		return error_set(error, 0, "%s", answer->text);
	return 0;
}

int control_text(
	const char *path, uint32_t op, uint32_t format, char **result, struct error *error)
{
	struct channel_answer answer;
	cleanup_close int fd = -1;
	cleanup_free char *text = NULL;
	int ret = control_ask(path, op, format, &answer, &fd, error);

	if (ret < 0)
		return ret;
	if (fd < 0 || answer.size > CONTROL_MOST)
		return error_set(error, 0, "socket %s: an answer without a status", path);
	text = malloc(answer.size + 1);
	if (!text)
		return error_set(error, ENOMEM, "status");
	if (pread(fd, text, answer.size, 0) != (ssize_t)answer.size)
		return error_set(error, EIO, "status");
	text[answer.size] = 0;
	*result = text;
	text = NULL;
	return 0;
}

int control_drain(const char *path, struct error *error)
{
	struct channel_answer answer;
	cleanup_close int fd = -1;

	return control_ask(path, CHANNEL_DRAIN, 0, &answer, &fd, error);
}

static double number(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static const char *text_of(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsString(item) ? item->valuestring : "";
}

static const char *item_text(const cJSON *object, const char *name, int i)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, name);
	const cJSON *item = cJSON_GetArrayItem(list, i);

	return cJSON_IsString(item) ? item->valuestring : "";
}

static const cJSON *pieces_sent(const cJSON *channel)
{
	return cJSON_GetObjectItemCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(channel, "pieces"), "sent");
}

/* A line for each session; of several agents, with the agent. */
static void print_channels(const cJSON *channels)
{
	const cJSON *channel;
	bool several = false;

	cJSON_ArrayForEach(channel, channels) several |=
		strcmp(text_of(channel, "agent"), text_of(channels->child, "agent")) != 0;
	if (cJSON_GetArraySize(channels))
		printf("%8s  %-5s  %7s  %10s  %10s  %10s  %10s  %9s  %9s  %7s  %8s  %9s  %9s  "
		       "%s\n",
			"PID", "STATE", "SECONDS", "FRAMES OUT", "MIB OUT", "FRAMES IN",
			"MIB IN", "IN FLIGHT", "TRANSPORT", "STRIPES", "COMPRESS", "NAMED MIB",
			"WIRE MB/S", several ? "PROGRAM, AGENT" : "PROGRAM");
	cJSON_ArrayForEach(channel, channels)
	{
		double rate = number(channel, "wire_bytes_per_second");
		char measured[16] = "-", named[24] = "-";

		if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(channel, "upload_cache")))
			snprintf(named, sizeof(named), "%.1f",
				number(pieces_sent(channel), "named_bytes") / 1048576);
		if (rate > 0)
			snprintf(measured, sizeof(measured), "%.0f", rate / 1e6);
		printf("%8.0f  %-5s  %7.0f  %10.0f  %10.1f  %10.0f  %10.1f  %9.0f  %9s  %7.0f  "
		       "%8s  %9s  %9s  %s%s%s\n",
			number(channel, "pid"), text_of(channel, "state"),
			number(channel, "seconds"), number(channel, "frames_sent"),
			number(channel, "bytes_sent") / 1048576,
			number(channel, "frames_received"),
			number(channel, "bytes_received") / 1048576,
			number(channel, "in_flight"), text_of(channel, "transport"),
			number(channel, "lanes"), text_of(channel, "compress"), named, measured,
			text_of(channel, "program"), several ? ", " : "",
			several ? text_of(channel, "agent") : "");
	}
}

/* Said of agents that do not reach each other. */
static void print_relays(const cJSON *root)
{
	const cJSON *relays = cJSON_GetObjectItemCaseSensitive(root, "relays"), *relay;

	cJSON_ArrayForEach(relay, relays)
		printf("relayed by this sidecar for %.0f: %.1f MiB between %s and %s (neither "
		       "may dial the other: peers:)\n",
			number(relay, "pid"), number(relay, "bytes") / 1048576,
			item_text(relay, "agents", 0), item_text(relay, "agents", 1));
}

int control_print(const char *json)
{
	cJSON *root = cJSON_Parse(json);
	const cJSON *channels = cJSON_GetObjectItemCaseSensitive(root, "channels");
	const cJSON *totals = cJSON_GetObjectItemCaseSensitive(root, "totals");

	if (!root)
		return -EINVAL;
	printf("sidecar %s  pid %.0f  socket %s  ipc %s  agent %s  up %.0f s%s\n",
		text_of(root, "version"), number(root, "pid"), text_of(root, "socket"),
		text_of(root, "ipc"),
		text_of(root, "agent")[0] ? text_of(root, "agent") : "none",
		number(root, "seconds"),
		cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(root, "draining")) ? "  draining"
										 : "");
	printf("since start: %.0f attached, %.0f refused, %.0f lost, %.0f poisoned; "
	       "sent %.0f frames %.1f MiB, received %.0f frames %.1f MiB\n",
		number(totals, "attached"), number(totals, "refused"), number(totals, "lost"),
		number(totals, "poisoned"), number(totals, "frames_sent"),
		number(totals, "bytes_sent") / 1048576, number(totals, "frames_received"),
		number(totals, "bytes_received") / 1048576);
	print_channels(channels);
	print_relays(root);
	cJSON_Delete(root);
	return 0;
}

static struct session_hello probe_hello(const struct options *options)
{
	struct session_hello hello = {.version = SESSION_VERSION,
		.role = SESSION_PROBE,
		.pid = (uint32_t)getpid(),
		.uid = getuid(),
		.program = "probe",
		.vram_limit = options->vram_limit};

	memcpy(hello.pod, options->pod, sizeof(hello.pod));
	memcpy(hello.pod_uid, options->pod_uid, sizeof(hello.pod_uid));
	memcpy(hello.token, options->token, sizeof(hello.token));
	return hello;
}

int control_spread(const struct options *options, struct spread *spread, struct error *error)
{
	struct session_hello hello = probe_hello(options);
	struct spread_wish wish = options_spread(options);
	bool anew;
	int ret;

	spread_init(spread, &wish);
	ret = spread_choose(spread, &wish, &hello, true,
		wait_now() + CONTROL_SECONDS * 1000000000ull, &anew, error);
	explicit_bzero(&hello, sizeof(hello));
	return ret;
}

int control_probe(const struct options *options, const struct spread_part *part,
	struct agents *agents, struct session_welcome *welcome, uint64_t *took,
	struct error *error)
{
	struct session_hello hello = probe_hello(options);
	struct link *link = NULL;
	uint64_t start = wait_now();
	int ret;

	*welcome = (struct session_welcome){0};
	hello.gpu_count = part->gpus;
	ret = agents_dial(agents, part->agents, &hello, welcome,
		start + CONTROL_SECONDS * 1000000000ull, &link, error);
	explicit_bzero(&hello, sizeof(hello));
	link_close(link);
	*took = wait_now() - start;
	return ret;
}
