/* SPDX-License-Identifier: Apache-2.0
 *
 * What of light:// is descriptors: passing a UDP socket on together with its key, and making a
 * link of what arrives.
 */
#include "transport/light/light.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "transport/light/knock.h"
#include "transport/light/pump.h"
#include "transport/socket_link.h"

static bool is_udp(int fd)
{
	int type = 0;
	socklen_t size = sizeof(type);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_DGRAM;
}

/* A memfd with the key of HELLO's session. fd, or -errno. */
static int key_to_fd(const struct session_hello *hello)
{
	struct light_key key;
	int fd = memfd_create("vcuda-light", MFD_CLOEXEC);
	bool whole;

	if (fd < 0)
		return -errno;
	knock_key(hello, &key);
	whole = pwrite(fd, &key, sizeof(key), 0) == (ssize_t)sizeof(key);
	explicit_bzero(&key, sizeof(key));
	if (whole)
		return fd;
	close(fd);
	return -EIO;
}

int light_handoff(int socket, const void *message, size_t n, const int *fds, unsigned count)
{
	struct session_hello hello;
	int all[TRANSPORT_FDS], key = -1, ret;

	if (count >= TRANSPORT_FDS)
		return -EINVAL;
	memcpy(all, fds, count * sizeof(fds[0]));
	if (count && knock_kept(fds[count - 1], &hello)) {
		key = key_to_fd(&hello);
		explicit_bzero(&hello, sizeof(hello));
		if (key < 0)
			return key;
		all[count++] = key;
	}
	ret = descriptors_send(socket, message, n, all, count, MSG_DONTWAIT);
	if (key >= 0)
		close(key);
	return ret;
}

static int link_of_agent(
	const int *fds, unsigned count, struct link **link, struct error *error)
{
	struct pump_wish wish = {
		.end = TRANSPORT_AGENT, .tcp = {fds[0], fds[1]}, .udp = fds[2]};
	int ret;

	if (count != 4 ||
		pread(fds[3], &wish.key, sizeof(wish.key), 0) != (ssize_t)sizeof(wish.key))
		return error_set(error, 0, "the key of a light link");
	ret = pump_open(&wish, link, error);
	explicit_bzero(&wish, sizeof(wish));
	if (!ret)
		close(fds[3]);
	return ret;
}

static int link_of_client(const int *fds, struct link **link, struct error *error)
{
	struct pump_wish wish = {
		.end = TRANSPORT_CLIENT, .tcp = {fds[0], fds[1]}, .udp = fds[2]};
	int ret;

	if (!knock_kept(fds[2], &wish.hello))
		return error_set(error, 0, "the key of a light link");
	knock_forget(fds[2]);
	knock_key(&wish.hello, &wish.key);
	ret = pump_open(&wish, link, error);
	explicit_bzero(&wish, sizeof(wish));
	return ret;
}

int light_link(const int *fds, unsigned count, enum transport_end end, struct link **link,
	struct error *error)
{
	int ret;

	if (count >= 3 && is_udp(fds[2]))
		return end == TRANSPORT_AGENT ? link_of_agent(fds, count, link, error)
					      : link_of_client(fds, link, error);
	/* The third one says that UDP does not get through. */
	ret = stream_link(fds, count < 2 ? count : 2, end, link, error);
	for (unsigned i = 2; !ret && i < count; i++)
		close(fds[i]);
	return ret;
}

int light_path(struct link *link, const int *fds, unsigned count)
{
	for (unsigned i = 1; i < count; i++)
		close(fds[i]);
	if (!count)
		return -EINVAL;
	if (is_udp(fds[0]))
		pump_path(link, fds[0]);
	else
		close(fds[0]);
	return 0;
}
