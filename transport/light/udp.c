/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/light/udp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>

#define UDP_BUFFER (8 << 20) /* 1 Gb/s for 64 ms: the reader may be away for so long */
#define UDP_SEGMENTS 64	     /* that one call may have (UDP_MAX_SEGMENTS) */

static void set(int fd, int level, int option, int value)
{
	/* What is not had costs speed, not results. */
	(void)!setsockopt(fd, level, option, &value, sizeof(value));
}

void udp_tune(int fd)
{
	set(fd, SOL_SOCKET, SO_RCVBUF, UDP_BUFFER);
	set(fd, SOL_SOCKET, SO_SNDBUF, UDP_BUFFER);
	set(fd, SOL_SOCKET, SO_RCVBUFFORCE, UDP_BUFFER);
	set(fd, SOL_SOCKET, SO_SNDBUFFORCE, UDP_BUFFER);
	/* QUIC looks for the path's MTU itself. */
	set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
	set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
	set(fd, SOL_UDP, UDP_GRO, 1);
}

static ssize_t send_some(int fd, const unsigned char *bytes, size_t n, size_t size)
{
	struct iovec iov = {(void *)(uintptr_t)bytes, n};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(uint16_t))];
	} control = {0};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	uint16_t segment = (uint16_t)size;
	ssize_t ret;

	if (n > size) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control.room);
		control.head.cmsg_level = SOL_UDP;
		control.head.cmsg_type = UDP_SEGMENT;
		control.head.cmsg_len = CMSG_LEN(sizeof(segment));
		memcpy(CMSG_DATA(&control.head), &segment, sizeof(segment));
	}
	do
		ret = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : ret;
}

int udp_send(int fd, const void *bytes, size_t n, size_t size)
{
	const unsigned char *at = bytes;
	size_t most = size * UDP_SEGMENTS;
	int ret = 0;

	for (size_t piece; n; n -= piece, at += piece) {
		ssize_t sent;

		piece = n < most ? n : most;
		sent = send_some(fd, at, piece, size);
		if (sent == -EAGAIN && !ret && at == bytes)
			return -EAGAIN;
		if (sent == -EIO || sent == -EINVAL) { /* no UDP_SEGMENT there */
			piece = n < size ? n : size;
			sent = send_some(fd, at, piece, piece);
		}
		if (sent < 0)
			ret = (int)sent;
	}
	return ret == -EAGAIN ? -ENOBUFS : ret;
}

ssize_t udp_receive(int fd, void *bytes, size_t room, size_t *size)
{
	struct iovec iov = {bytes, room};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.room),
	};
	ssize_t n;

	do
		n = recvmsg(fd, &message, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*size = n ? (size_t)n : 1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		int segment;

		if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_GRO)
			continue;
		memcpy(&segment, CMSG_DATA(c), sizeof(segment));
		if (segment > 0 && (size_t)segment < *size)
			*size = (size_t)segment;
	}
	return n;
}
