/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport's row: a Unix socket as unix:// has it, over which HELLO asks for
 * SESSION_FEATURE_LOCAL.  An agent that does not grant it is spoken to by frames over that
 * socket.  Then the messages of local.h.
 */
#include "transport/local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/unix_socket.h"
#include "common/wait.h"
#include "transport/dial.h"
#include "transport/socket_link.h"
#include "transport/unix.h"

#define TMPFS 0x01021994 /* f_type */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

extern const struct transport transport_local;

bool local_is_shared(const char *path)
{
	const size_t n = strlen(LOCAL_SHARED);

	return !strncmp(path, LOCAL_SHARED, n) &&
	       strspn(path + n, "0123456789abcdef") == LOCAL_SHARED_HEX &&
	       !path[n + LOCAL_SHARED_HEX];
}

unsigned local_shared(char paths[LOCAL_SHARED_MOST][LOCAL_SHARED_SIZE])
{
	DIR *folder = opendir("/dev/shm");
	const struct dirent *entry;
	struct stat file;
	unsigned n = 0;

	while (folder && n < LOCAL_SHARED_MOST && (entry = readdir(folder))) {
		char path[sizeof("/dev/shm/") + sizeof(entry->d_name)];

		snprintf(path, sizeof(path), "/dev/shm/%s", entry->d_name);
		if (!local_is_shared(path) || lstat(path, &file) || !S_ISSOCK(file.st_mode) ||
			(file.st_uid && file.st_uid != geteuid()))
			continue;
		memcpy(paths[n++], path, LOCAL_SHARED_SIZE);
	}
	if (folder)
		closedir(folder);
	return n;
}

/* What agents that were killed left there: nobody listens at it. */
static void local_sweep(void)
{
	char paths[LOCAL_SHARED_MOST][LOCAL_SHARED_SIZE], lock[LOCAL_SHARED_SIZE + 8];
	unsigned n = local_shared(paths);
	struct error error;

	for (unsigned i = 0; i < n; i++) {
		int fd = unix_connect(paths[i], SOCK_STREAM | SOCK_NONBLOCK, &error);

		if (fd >= 0)
			close(fd);
		if (fd != -ECONNREFUSED)
			continue;
		snprintf(lock, sizeof(lock), "%.*s.lock", (int)LOCAL_SHARED_SIZE - 1, paths[i]);
		unlink(paths[i]);
		unlink(lock);
	}
}

/* TEXT: what stands behind the path. */
static int local_listen_shared(
	const char *text, struct transport_listening *listening, struct error *error)
{
	char path[LOCAL_SHARED_SIZE + 32];
	uint8_t random[LOCAL_SHARED_HEX / 2];
	int n = snprintf(path, sizeof(path), "%s", LOCAL_SHARED);

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return error_set(error, errno, "listen: random numbers");
	for (size_t i = 0; i < sizeof(random); i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", random[i]);
	if (snprintf(path + n, sizeof(path) - (size_t)n, "%s", text) >= (int)sizeof(path) - n)
		return error_set(error, 0, "local://%.80s: behind ? stands mode=OCTAL", text);
	local_sweep();
	return unix_listen_as(&transport_local, path, listening, error);
}

static int local_listen(
	const char *text, struct transport_listening *listening, struct error *error)
{
	return !*text || *text == '?'
		       ? local_listen_shared(text, listening, error)
		       : unix_listen_as(&transport_local, text, listening, error);
}

/* Whoever listens there gets the program's memory, and the token first. */
static int local_connect(struct dial *dial, enum session_role role)
{
	int fd = unix_dial_connect(dial, role);
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t size = sizeof(peer);

	if (fd < 0 || (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) &&
			      (!peer.uid || peer.uid == geteuid())))
		return fd;
	close(fd);
	return error_set(dial->error, EPERM,
		"agent %s: user %d listens there, who is neither root nor this one (%u)",
		dial->where, (int)peer.uid, geteuid());
}

static int local_dial(const char *address, const struct session_hello *hello,
	struct session_welcome *welcome, uint64_t deadline, struct link **link,
	struct error *error)
{
	struct session_hello local = *hello;
	int ret;

	local.features |= SESSION_FEATURE_LOCAL;
	ret = unix_dial_as(&transport_local, local_connect, address, &local, welcome, deadline,
		link, error);
	explicit_bzero(&local, sizeof(local));
	return ret;
}

/* Of a session without SESSION_FEATURE_LOCAL; and to prove anew who the client is. */
static int local_open_stripe(const struct transport_place *place,
	const struct session_hello *hello, uint64_t deadline, unsigned *number,
	struct link **stripe, struct error *error)
{
	return unix_open_stripe_as(
		&transport_local, local_connect, place, hello, deadline, number, stripe, error);
}

const struct transport transport_local = {
	.name = "local",
	.connections = 1,
	.shares = true,
	.listen = local_listen,
	.accept = unix_transport_accept,
	.dial = local_dial,
	.link = stream_link,
	.handoff = stream_handoff,
	.open_stripe = local_open_stripe,
	.describe = unix_describe,
};

/* --- messages ------------------------------------------------------------------------------
 */

static int local_fd(struct link *link)
{
	struct pollfd fds[2];

	link_fds(link, fds, 0);
	return fds[0].fd;
}

void local_hearing_init(struct local_hearing *hearing)
{
	*hearing = (struct local_hearing){.fds = {-1, -1}};
}

void local_hearing_fini(struct local_hearing *hearing)
{
	for (int i = 0; i < LOCAL_FDS; i++)
		if (hearing->fds[i] >= 0)
			close(hearing->fds[i]);
	local_hearing_init(hearing);
}

int local_say(
	struct link *link, const struct local_message *message, const int *fds, unsigned count)
{
	struct local_message m = *message;

	m.magic = LOCAL_MAGIC;
	return descriptors_send(local_fd(link), &m, sizeof(m), fds, count, MSG_DONTWAIT);
}

int local_say_until(struct link *link, const struct local_message *message, const int *fds,
	unsigned count, uint64_t deadline)
{
	for (;;) {
		int ret = local_say(link, message, fds, count);

		if (ret != -EAGAIN)
			return ret;
		ret = dial_wait(deadline, local_fd(link), POLLOUT);
		if (ret < 0)
			return ret;
	}
}

/* More bytes of the message, and its descriptors with the first of them. */
static int local_more(int fd, struct local_hearing *hearing)
{
	unsigned char *at = (unsigned char *)&hearing->message + hearing->got;
	int came[LOCAL_FDS];
	ssize_t n = descriptors_receive(
		fd, at, sizeof(hearing->message) - hearing->got, came, LOCAL_FDS, MSG_DONTWAIT);

	if (n == -EINTR)
		return -EAGAIN;
	if (n <= 0)
		return n ? (int)n : -ECONNRESET;
	for (int i = 0; i < LOCAL_FDS; i++) {
		if (hearing->fds[i] < 0)
			hearing->fds[i] = came[i];
		else if (came[i] >= 0)
			close(came[i]);
	}
	hearing->got += (size_t)n;
	return 0;
}

int local_hear(struct link *link, struct local_hearing *hearing, struct local_message *message,
	int fds[LOCAL_FDS])
{
	int fd = local_fd(link);

	while (hearing->got < sizeof(hearing->message)) {
		int ret = local_more(fd, hearing);

		if (ret == -EAGAIN)
			return 0;
		if (ret < 0)
			return ret;
	}
	if (hearing->message.magic != LOCAL_MAGIC)
		return -EPROTO;
	*message = hearing->message;
	message->text[sizeof(message->text) - 1] = 0;
	for (char *c = message->text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	memcpy(fds, hearing->fds, sizeof(hearing->fds));
	local_hearing_init(hearing);
	return 1;
}

int local_memory(int fd, uint64_t size, bool sealed, struct error *error)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct statfs files;
	struct stat status;
	int seals;

	if (fd < 0)
		return error_set(error, EPERM, "shared memory: no descriptor came");
	if (fstat(fd, &status) || fstatfs(fd, &files))
		return error_set(error, EPERM, "shared memory: it cannot be looked at");
	if (!S_ISREG(status.st_mode) || files.f_type != TMPFS)
		return error_set(error, EPERM, "shared memory: not a file of memory");
	if (!size || size % page || size > INT64_MAX || (uint64_t)status.st_size != size)
		return error_set(error, EPERM, "shared memory: %llu bytes, said to be %llu",
			(unsigned long long)status.st_size, (unsigned long long)size);
	seals = sealed ? fcntl(fd, F_GET_SEALS) : SEALS;
	if (seals < 0 || (seals & SEALS) != SEALS)
		return error_set(error, EPERM, "shared memory: it could get shorter");
	return 0;
}
