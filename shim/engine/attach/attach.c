/* SPDX-License-Identifier: Apache-2.0
 *
 * Joining the sidecar: the Unix socket, the segment, and one's own sidecar (own_sidecar.h)
 * where REMOTE_GPU_ADDRESS names an agent and none answers.  Every step has a deadline, and the
 * text of what failed is kept in session.text.
 */
#include "shim/engine/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/wait.h"
#include "shim/engine/engine.h"
#include "shim/engine/attach/heartbeat.h"
#include "shim/engine/attach/own_sidecar.h"
#include "shim/engine/attach/rejoin.h"
#include "shim/engine/reserve.h"
#include "shim/engine/status.h"

/* The sidecar dials the agent before it answers, and an agent may have to start a worker. That
 * it runs it says at once. */
#define ATTACH_ANSWER_MS 20000
#define ATTACH_LOOK_MS 50
#define TELL_TRIES 50 /* where the kernel has no memory for a message */
#define TELL_PAUSE_MS 2
/* A sidecar that we started has this long to bind its socket. */
#define ATTACH_START_MS 10000
#define ATTACH_RETRY_NS 10000000

static CUresult attach_failed(enum status_cause cause, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static CUresult attach_failed(enum status_cause cause, const char *format, ...)
{
	struct session *here = session_here();
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(here->text, sizeof(here->text), format, arguments);
	va_end(arguments);
	if (cause == CAUSE_NOT_CONFIGURED)
		session_debug("%s", here->text);
	return status_of(cause);
}

static void fill_request(struct channel_request *request)
{
	request->magic = CHANNEL_MAGIC;
	request->version = CHANNEL_VERSION;
	request->pid = getpid();
	if (request->op != CHANNEL_RELAY && !request->program[0])
		snprintf(request->program, sizeof(request->program), "%s",
			program_invocation_short_name);
}

/* A signal came, or the kernel is short of memory. */
static bool passes(int error)
{
	return error == EINTR || error == ENOBUFS || error == ENOMEM;
}

bool attach_tell_to(int socket, struct channel_request *request, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec part = {request, sizeof(*request)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	fill_request(request);
	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	}
	for (int i = 0;; i++) {
		ssize_t n = sendmsg(socket, &message, MSG_NOSIGNAL);

		if (n == sizeof(*request))
			return true;
		if (n >= 0 || i == TELL_TRIES || !passes(errno))
			return false;
		poll(NULL, 0, TELL_PAUSE_MS);
	}
}

bool attach_tell(struct channel_request *request)
{
	struct session *here = session_here();

	return here->socket >= 0 && attach_tell_to(here->socket, request, -1);
}

/* The first descriptor goes to fds[0], the second to fds[1]; others are closed. */
static void take_descriptors(struct msghdr *message, int fds[2])
{
	int taken = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (taken < 2)
				fds[taken++] = fd;
			else
				close(fd);
		}
	}
}

/* The page says that the session is over: the sidecar may have had no memory for an answer. */
static bool told_lost(void)
{
	const struct channel_page *page = session_here()->page;

	return page && atomic_load(&page->state) == CHANNEL_LOST;
}

/* Until there is something to read, the sidecar has stopped or gives the session up (HEART), or
 * DEADLINE. False: errno. */
static bool wait_readable(int socket, uint64_t deadline, bool heart)
{
	struct pollfd readable = {.fd = socket, .events = POLLIN};

	for (;;) {
		int ret = poll(&readable, 1, ATTACH_LOOK_MS);

		if (ret > 0)
			return true;
		if (ret < 0 && errno != EINTR)
			return false;
		errno = ETIMEDOUT;
		if (wait_now() >= deadline)
			return false;
		errno = EHOSTDOWN;
		if (heart && (told_lost() || heartbeat_stopped()))
			return false;
	}
}

static void close_both(const int fds[2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

bool attach_receive(
	int socket, struct channel_answer *answer, int fds[2], uint64_t deadline, bool heart)
{
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {answer, sizeof(*answer)};
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	ssize_t n;

	fds[0] = fds[1] = -1;
	if (!wait_readable(socket, deadline, heart))
		return false;
	do
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR && wait_readable(socket, deadline, heart));
	if (n > 0)
		take_descriptors(&message, fds);
	if (n != sizeof(*answer) || answer->magic != CHANNEL_MAGIC) {
		close_both(fds);
		errno = n < 0 ? errno : n == 0 ? ECONNRESET : EPROTO;
		return false;
	}
	answer->agent[sizeof(answer->agent) - 1] = 0;
	answer->text[sizeof(answer->text) - 1] = 0;
	return true;
}

/* A sidecar that runs answers ATTACH at once with its heartbeat, and then takes its time; one
 * that does not would be waited for in vain. */
static bool ask_to_join(
	struct channel_request *request, struct channel_answer *answer, int fds[2])
{
	struct session *here = session_here();
	uint64_t now = wait_now(), seconds = heartbeat_patience();
	uint64_t deadline = now + ATTACH_ANSWER_MS * 1000000ull;

	if (!seconds || seconds * 1000 > ATTACH_ANSWER_MS)
		seconds = ATTACH_ANSWER_MS / 1000;
	if (!attach_tell(request) ||
		!attach_receive(here->socket, answer, fds, now + seconds * 1000000000ull, true))
		return false;
	if (answer->op != CHANNEL_HEARTBEAT)
		return true;
	heartbeat_open(fds[0]);
	close_both(fds);
	return attach_receive(here->socket, answer, fds, deadline, true);
}

/* An answer that comes behind its deadline is not taken for the next one. */
static bool ask(struct channel_request *request, struct channel_answer *answer, int fds[2],
	int timeout_ms)
{
	struct session *here = session_here();
	uint64_t deadline = wait_now() + (uint64_t)timeout_ms * 1000000u;

	if (!attach_tell(request))
		return false;
	while (attach_receive(here->socket, answer, fds, deadline, true)) {
		if (answer->op == request->op || !here->overdue)
			return true;
		here->overdue--;
		close_both(fds);
	}
	here->overdue += errno == ETIMEDOUT;
	return false;
}

bool attach_ask(
	struct channel_request *request, struct channel_answer *answer, int *fd, int timeout_ms)
{
	int fds[2];

	if (!ask(request, answer, fds, timeout_ms))
		return false;
	if (fds[1] >= 0)
		close(fds[1]);
	*fd = fds[0];
	return true;
}

void *attach_map(int fd, uint64_t size, void *wanted)
{
	int flags = MAP_SHARED | (wanted ? MAP_FIXED_NOREPLACE : 0);
	struct stat status;
	void *at;

	/* Behind the end of a file that is too short lies SIGBUS. */
	if (fd < 0 || fstat(fd, &status) || status.st_size < 0 ||
		(uint64_t)status.st_size < size)
		return NULL;
	at = mmap(wanted, size, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (at == MAP_FAILED && wanted)
		at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

/* ---- finding and starting a sidecar ---- */

/* The path as a name of the network namespace: where the containers of a pod share no volume
 * (pods of the legacy command line), their sidecar listens there. Anybody of the namespace can
 * take such a name, hence only root's or one's own will do. False: errno is ENOENT. */
static bool dial_announced(int fd, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t size = sizeof(peer);
	size_t n = strlen(path);

	if (n + 1 <= sizeof(address.sun_path)) {
		memcpy(address.sun_path + 1, path, n);
		if (!connect(fd, (struct sockaddr *)&address,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) &&
			!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) &&
			(!peer.uid || peer.uid == geteuid()))
			return true;
	}
	errno = ENOENT;
	return false;
}

int attach_dial(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = heartbeat_patience()};
	cleanup_close int fd = -1;

	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	/* Connecting and sending wait where a sidecar that was stopped has a full queue. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) &&
		(errno != ENOENT || !dial_announced(fd, path)))
		return -1;
	return take_fd(&fd);
}

static CUresult start_and_dial(const char *agent, const char *path)
{
	struct session *here = session_here();
	uint64_t deadline = wait_now() + ATTACH_START_MS * 1000000ull;
	char client[640];

	if (!own_sidecar_find(client, sizeof(client)) || access(client, X_OK))
		return attach_failed(CAUSE_UNREACHABLE,
			"no sidecar at %s and no vcuda-client beside the library to start "
			"one (set VCUDA_CLIENT)",
			path);
	if (!own_sidecar_start(client, agent, path))
		return attach_failed(
			CAUSE_UNREACHABLE, "cannot start %s: %s", client, strerror(errno));
	while (wait_now() < deadline) {
		here->socket = attach_dial(path);
		if (here->socket >= 0)
			return CUDA_SUCCESS;
		nanosleep(&(struct timespec){.tv_nsec = ATTACH_RETRY_NS}, NULL);
	}
	return attach_failed(CAUSE_UNREACHABLE,
		"started %s for %s but it did not open %s within %d s", client, agent, path,
		ATTACH_START_MS / 1000);
}

static CUresult reach_sidecar(void)
{
	struct session *here = session_here();
	const char *named = secure_getenv("VCUDA_SOCKET");
	const char *agent = secure_getenv("REMOTE_GPU_ADDRESS");
	const char *path = named && *named ? named : CHANNEL_SOCKET;
	char own[160];

	rejoin_at(path, agent && *agent ? agent : NULL);
	here->socket = attach_dial(path);
	if (here->socket >= 0)
		return CUDA_SUCCESS;
	if (!agent || !*agent) {
		if (errno == ENOENT)
			return attach_failed(CAUSE_NOT_CONFIGURED,
				"no GPU configured: no sidecar at %s and REMOTE_GPU_ADDRESS "
				"is not set",
				path);
		return attach_failed(CAUSE_UNREACHABLE, "sidecar at %s: %s", path,
			errno == EAGAIN ? "it does not take connections; was it stopped?"
					: strerror(errno));
	}
	if (!named || !*named) {
		own_sidecar_socket(own, sizeof(own), agent);
		if (!own[0])
			return attach_failed(CAUSE_UNREACHABLE,
				"/tmp/vcuda-%u is not a directory that only this user "
				"writes to",
				(unsigned)geteuid());
		path = own;
		rejoin_at(path, agent);
		here->socket = attach_dial(path);
		if (here->socket >= 0)
			return CUDA_SUCCESS;
	}
	return start_and_dial(agent, path);
}

static CUresult join(void)
{
	struct session *here = session_here();
	struct channel_request request = {.op = CHANNEL_ATTACH,
		.segment = session_here()->index,
		.features = CHANNEL_FEATURE_ADOPT | CHANNEL_FEATURE_AGENTS |
			    CHANNEL_FEATURE_CAPTURED | CHANNEL_FEATURE_RELAY |
			    CHANNEL_FEATURE_RESERVE |
			    (shim_perf & PERF_ZSTD ? 0 : CHANNEL_FEATURE_PLAIN) |
			    (shim_perf & PERF_UPLOAD_CACHE ? 0 : CHANNEL_FEATURE_UNNAMED)};
	struct channel_answer answer;
	cleanup_close int segment = -1;
	int fds[2];

	if (!ask_to_join(&request, &answer, fds))
		return attach_failed(CAUSE_UNREACHABLE, "the sidecar does not answer%s%s",
			errno == ETIMEDOUT || errno == EHOSTDOWN ? "; was it stopped? " : ": ",
			errno == ETIMEDOUT || errno == EHOSTDOWN ? "(VCUDA_SIDECAR_TIMEOUT)"
								 : strerror(errno));
	here->doorbell = fds[0];
	segment = fds[1];
	if (answer.version != CHANNEL_VERSION)
		return attach_failed(CAUSE_FOREIGN,
			"the sidecar speaks channel version %u, this library %u: install "
			"the same release of both",
			answer.version, CHANNEL_VERSION);
	if (answer.status) {
		attach_failed(CAUSE_LOST, "%s", answer.text);
		return status_wire(answer.status);
	}
	memcpy(here->agent, answer.agent, sizeof(here->agent));
	snprintf(here->name, sizeof(here->name), "%.*s", (int)sizeof(answer.session),
		answer.session);
	here->bytes = answer.size;
	here->agents = answer.agents ? answer.agents : 1;
	if (here->doorbell < 0 || answer.size < sizeof(struct channel_page))
		return attach_failed(CAUSE_FOREIGN, "the sidecar's answer names no segment");
	here->page = attach_map(segment, answer.size, NULL);
	if (!here->page)
		return attach_failed(CAUSE_UNREACHABLE,
			"cannot map %llu bytes that the sidecar shares: %s",
			(unsigned long long)answer.size,
			segment < 0 ? "no descriptor came" : strerror(errno));
	if (!ring_init(&here->ring, here->page, answer.size))
		return attach_failed(CAUSE_FOREIGN, "the sidecar's segment has another layout");
	here->ring.separate = answer.features & CHANNEL_FEATURE_CAPTURED;
	here->relays = answer.features & CHANNEL_FEATURE_RELAY;
	here->overdue = 0;
	reserve_begin(answer.features & CHANNEL_FEATURE_RESERVE);
	here->slots = (void *)((char *)here->page + here->ring.slots);
	here->counters = (void *)((char *)here->page + here->ring.counters);
	here->upcalls = (void *)((char *)here->page + here->ring.upcalls);
	here->spin_ns = wait_spin_budget();
	if (answer.features & CHANNEL_FEATURE_ADOPT)
		rejoin_open(take_fd(&segment));
	session_debug("joined the agent %s", here->agent);
	return CUDA_SUCCESS;
}

void attach_drop(void)
{
	struct session *here = session_here();

	rejoin_drop();
	if (here->page)
		munmap(here->page, here->bytes);
	here->page = NULL;
	here->name[0] = 0;
	heartbeat_close();
	if (here->socket >= 0)
		close(here->socket);
	if (here->doorbell >= 0)
		close(here->doorbell);
	here->socket = here->doorbell = -1;
}

CUresult attach(void)
{
	CUresult status = reach_sidecar();

	if (!status)
		status = join();
	if (status)
		attach_drop();
	return status;
}
