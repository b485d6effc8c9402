/* SPDX-License-Identifier: Apache-2.0
 *
 * The sidecar as it is, between a hostile app and a hostile agent.  An input is one app's
 * connection: requests over the Unix socket with whatever descriptors, and, once it is
 * attached, what it writes into the shared segment and what the agent sends.  It must be served
 * or turned away, and the next one must be served.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "protocol/wire/frame.h"
#include "protocol/wire/session.h"
#include "sidecar/server/server.h"
#include "tests/fuzz/alarm.h"
#include "tests/fuzz/conversation.h"

#define PATIENCE_MS 5000
#define PEER_MS 20 /* a hostile peer may not answer at all */

enum record_kind {
	RECORD_REQUEST = 0, /* `op`; the body: segment, size, features, pid … */
	RECORD_FRAME,	    /* of kind `op`, published in the ring */
	RECORD_RING,	    /* bytes at `context` in the ring */
	RECORD_PAGE,	    /* bytes at `context` of the page */
	RECORD_TAIL,	    /* moved by `context` */
	RECORD_AGENT_FRAME, /* of kind `op` */
	RECORD_AGENT_BYTES,
	RECORD_AGENT_GONE,
	RECORD_RAW, /* a request of any length */
	RECORD_KINDS
};

static struct options options;
static char folder[] = "/tmp/vcuda-fuzz-XXXXXX";
static int listeners[2]; /* commands, replies */
static uint16_t reply_port;

struct app {
	int socket, doorbell, links[2];
	struct channel_page *page;
	size_t mapped;
	uint64_t seq;
};

/* --- the sidecar ---------------------------------------------------------------------------
 */

static void *sidecar(void *nothing)
{
	struct error error = {0};

	server_run(&options, &error);
	fprintf(stderr, "socket: the sidecar ended: %s\n", error.text);
	abort();
	return nothing;
}

static int listen_at(uint16_t *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t n = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
	must(!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 16) &&
			!getsockname(fd, (struct sockaddr *)&at, &n),
		"listen");
	*port = ntohs(at.sin_port);
	return fd;
}

static void remove_folder(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s.lock", options.socket);
	unlink(path);
	unlink(options.socket);
	rmdir(folder);
}

static void setup(void)
{
	pthread_t thread;
	uint16_t port;

	signal(SIGPIPE, SIG_IGN);
	alarm_restarts();
	log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
	must(mkdtemp(folder) != NULL, "mkdtemp");
	atexit(remove_folder);
	listeners[0] = listen_at(&port);
	listeners[1] = listen_at(&reply_port);
	options_default(&options);
	snprintf(options.socket, sizeof(options.socket), "%s/s", folder);
	snprintf(options.agent, sizeof(options.agent), "127.0.0.1:%u", port);
	options.mode = CHANNEL_POD;
	options.ring = options.arena = options.bounce = 1 << 16;
	options.attach_timeout = 1;
	must(!pthread_create(&thread, NULL, sidecar, NULL), "a thread");
	for (int i = 0; i < PATIENCE_MS && access(options.socket, F_OK); i++)
		usleep(1000);
	must(!access(options.socket, F_OK), "the sidecar listens");
}

/* --- its peers -----------------------------------------------------------------------------
 */

/* False also where UNTIL (-1: nothing) is closed by the sidecar first. */
static bool readable(int fd, int until, int ms)
{
	struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = until}};
	int ready;

	do
		ready = poll(p, 2, ms);
	while (ready < 0 && errno == EINTR);
	return ready > 0 && p[0].revents;
}

static void app_open(struct app *app)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	memset(app, 0, sizeof(*app));
	app->doorbell = app->links[0] = app->links[1] = -1;
	app->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", options.socket);
	must(!connect(app->socket, (struct sockaddr *)&at, sizeof(at)), "the sidecar is there");
}

/* The agent's half of a session: both connections, and what they are told. */
static void agent_welcome(struct app *app, const struct record *r)
{
	struct session_hello hello;
	struct session_welcome welcome = {.magic = SESSION_MAGIC,
		.version = SESSION_VERSION,
		.reply_port = reply_port,
		.gpus = 1};

	if (r->stripe & 1)
		welcome.status = r->context;
	if (r->stripe & 2)
		welcome.features = ~0ull;
	if (r->stripe & 4)
		memset(welcome.text, 'x', sizeof(welcome.text));
	for (int i = 0; i < 2; i++) {
		if (app->links[i] >= 0 ||
			!readable(listeners[i], app->socket, i ? PEER_MS : PATIENCE_MS))
			return;
		app->links[i] = accept4(listeners[i], NULL, NULL, SOCK_CLOEXEC);
		if (!readable(app->links[i], app->socket, PATIENCE_MS) ||
			recv(app->links[i], &hello, sizeof(hello), MSG_WAITALL) <= 0)
			return;
		(void)!send(app->links[i], &welcome, sizeof(welcome), MSG_NOSIGNAL);
	}
}

/* An answer with a segment: it is mapped. */
static void app_hear(struct app *app, int ms)
{
	struct channel_answer answer;
	struct stat st;
	int fds[2];

	while (readable(app->socket, -1, ms)) {
		ssize_t n = descriptors_receive(
			app->socket, &answer, sizeof(answer), fds, 2, MSG_DONTWAIT);

		if (n == sizeof(answer) && answer.op == CHANNEL_ATTACH && fds[1] >= 0 &&
			!app->page && !fstat(fds[1], &st)) {
			app->mapped = (size_t)st.st_size;
			app->page = mmap(NULL, app->mapped, PROT_READ | PROT_WRITE, MAP_SHARED,
				fds[1], 0);
			must(app->page != MAP_FAILED, "mmap");
			app->doorbell = dup(fds[0]);
		}
		shut(&fds[0]);
		shut(&fds[1]);
		if (n <= 0 || answer.op != CHANNEL_HEARTBEAT)
			return;
	}
}

static void app_ask(struct app *app, const struct record *r, const uint8_t *body)
{
	static const uint32_t ops[] = {
		CHANNEL_ATTACH, CHANNEL_PIN, CHANNEL_UNPIN, CHANNEL_STATUS, 2, 0, 6, ~0u};
	struct channel_request request = {.magic = CHANNEL_MAGIC, .version = CHANNEL_VERSION};
	const size_t head = offsetof(struct channel_request, segment);
	size_t n = r->body < sizeof(request) - head ? r->body : sizeof(request) - head;
	bool raw = r->kind % RECORD_KINDS == RECORD_RAW;
	int fds[2];
	unsigned count = r->context % 3;

	descriptors_made(fds, count);
	request.op = ops[r->op % 8];
	memcpy((char *)&request + head, body, n);
	if (raw)
		(void)!descriptors_send(app->socket, body, r->body, fds, count, MSG_DONTWAIT);
	else
		(void)!descriptors_send(
			app->socket, &request, sizeof(request), fds, count, MSG_DONTWAIT);
	shut(&fds[0]);
	shut(&fds[1]);
	if (!raw && request.op == CHANNEL_ATTACH && app->links[0] < 0)
		agent_welcome(app, r);
	app_hear(app, request.op == CHANNEL_UNPIN	 ? 0
		      : app->links[1] >= 0 && !app->page ? PATIENCE_MS
							 : PEER_MS);
}

static void ring_bell(struct app *app)
{
	uint64_t one = 1;

	if (app->doorbell >= 0)
		(void)!write(app->doorbell, &one, sizeof(one));
}

/* Behind each other, as the shim would; nothing here looks whether there is room. */
static void app_frame(struct app *app, const struct record *r, const uint8_t *body)
{
	unsigned char *base = (unsigned char *)app->page;
	uint64_t ring = options.ring, tail = atomic_load(&app->page->tail);
	uint64_t need = (sizeof(struct frame_header) + r->body + 15) & ~15ull;
	struct frame_header h = {.length = r->body + r->payload,
		.op = 1,
		.kind = (uint8_t)r->op,
		.flags = r->stripe,
		.seq = ++app->seq,
		.body = r->body,
		.tag = r->context,
		.magic = FRAME_MAGIC};

	if ((tail & (ring - 1)) + need > ring)
		return;
	base += app->page->ring < app->mapped ? app->page->ring : 0;
	base += tail & (ring - 1);
	if (base + need > (unsigned char *)app->page + app->mapped)
		return;
	memcpy(base, &h, sizeof(h));
	memcpy(base + sizeof(h), body, r->body);
	atomic_store(&app->page->tail, tail + need);
	ring_bell(app);
}

static void app_write(struct app *app, size_t at, const struct record *r, const uint8_t *body)
{
	if (at < app->mapped && r->body <= app->mapped - at)
		memcpy((unsigned char *)app->page + at, body, r->body);
	ring_bell(app);
}

static void agent_frame(struct app *app, const struct record *r, const uint8_t *body)
{
	struct frame_header h = {.length = r->body + r->payload,
		.op = 1,
		.kind = (uint8_t)r->op,
		.flags = r->stripe,
		.seq = r->stripe & 64 ? app->seq + 1 : app->seq,
		.body = r->body,
		.tag = r->context,
		.magic = FRAME_MAGIC};

	if (app->links[1] < 0)
		return;
	(void)!send(app->links[1], &h, sizeof(h), MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)!send(
		app->links[1], body, (size_t)r->body + r->payload, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void obey(struct app *app, const struct record *r, const uint8_t *body)
{
	const uint8_t kind = r->kind % RECORD_KINDS;

	if (kind == RECORD_REQUEST || kind == RECORD_RAW) {
		app_ask(app, r, body);
	} else if (kind == RECORD_AGENT_FRAME) {
		agent_frame(app, r, body);
	} else if (kind == RECORD_AGENT_BYTES) {
		if (app->links[1] >= 0)
			(void)!send(app->links[1], body, r->body, MSG_NOSIGNAL | MSG_DONTWAIT);
	} else if (kind == RECORD_AGENT_GONE) {
		shut(&app->links[r->context & 1]);
	} else if (app->page) {
		if (kind == RECORD_FRAME)
			app_frame(app, r, body);
		else if (kind == RECORD_TAIL)
			atomic_fetch_add(&app->page->tail, (uint64_t)(int16_t)r->context);
		else
			app_write(app, kind == RECORD_PAGE ? r->context : 4096u + r->context, r,
				body);
		ring_bell(app);
	}
}

/* The sidecar takes what is there and says BYE; then the agent closes. */
static void app_close(struct app *app)
{
	char waste[4096];

	while (app->links[0] >= 0 && readable(app->links[0], -1, 0) &&
		recv(app->links[0], waste, sizeof(waste), 0) > 0)
		;
	shut(&app->socket);
	shut(&app->doorbell);
	if (app->links[0] >= 0)
		readable(app->links[0], -1, PEER_MS);
	shut(&app->links[0]);
	shut(&app->links[1]);
	if (app->page)
		munmap(app->page, app->mapped);
	/* Dialled, and not asked for any more. */
	for (int i = 0; i < 2; i++)
		while (readable(listeners[i], -1, 0))
			close(accept4(listeners[i], NULL, NULL, SOCK_CLOEXEC));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct record r;
	struct app app;

	if (!options.socket[0])
		setup();
	app_open(&app);
	while (record_next(&bytes, &n, &r)) {
		obey(&app, &r, bytes);
		record_skip(&bytes, &n, &r);
	}
	app_close(&app);
	return 0;
}

size_t make_record(uint8_t *out, size_t most)
{
	static const uint8_t frames[] = {FRAME_POST, FRAME_CALL, FRAME_REPLY, FRAME_DATA,
		FRAME_UPDATE, FRAME_UPCALL, FRAME_ACK, FRAME_LOST, FRAME_PAD, FRAME_PING,
		FRAME_PONG, FRAME_BYE};
	struct record r = {.kind = (uint8_t)record_random(RECORD_KINDS),
		.context = (uint16_t)record_random(128),
		.body = (uint16_t)(8 * record_random(12))};

	r.op = r.kind == RECORD_REQUEST ? (uint16_t)record_random(4)
					: frames[record_random(sizeof(frames))];
	return record_write(out, most, &r);
}
