/* SPDX-License-Identifier: Apache-2.0
 *
 * TCP by Winsock, and messages over pairs: see os.h.  Every socket is non-blocking; where the
 * caller may wait, it waits in os_poll().
 */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "windows/os/descriptor_object.h"

#define PARTS 64 /* of a send */
#define SCM_RIGHTS_ 1
#define FOR_EVER UINT64_MAX

int os_socket_errno(void)
{
	static const struct {
		int winsock, here;
	} codes[] = {
		{WSAEWOULDBLOCK, EAGAIN},
		{WSAEINPROGRESS, EINPROGRESS},
		{WSAEALREADY, EALREADY},
		{WSAECONNREFUSED, ECONNREFUSED},
		{WSAECONNRESET, ECONNRESET},
		{WSAECONNABORTED, ECONNABORTED},
		{WSAETIMEDOUT, ETIMEDOUT},
		{WSAENETUNREACH, ENETUNREACH},
		{WSAEHOSTUNREACH, EHOSTUNREACH},
		{WSAENOTCONN, ENOTCONN},
		{WSAEISCONN, EISCONN},
		{WSAESHUTDOWN, EPIPE},
		{WSAENOBUFS, ENOBUFS},
		{WSAEMFILE, EMFILE},
		{WSAEACCES, EACCES},
		{WSAEADDRINUSE, EADDRINUSE},
		{WSAEADDRNOTAVAIL, EADDRNOTAVAIL},
		{WSAEAFNOSUPPORT, EAFNOSUPPORT},
		{WSAEINVAL, EINVAL},
		{WSAENOPROTOOPT, ENOPROTOOPT},
		{WSAENETDOWN, ENETDOWN},
		{WSANOTINITIALISED, ENETDOWN},
	};
	int code = WSAGetLastError();

	errno = EIO;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].winsock == code)
			errno = codes[i].here;
	return errno;
}

int os_socket(int family, int type, bool nonblocking)
{
	struct os_object *made;
	u_long one = 1;

	made = os_object_new(family == AF_UNIX ? OS_END : OS_SOCKET);
	if (!made)
		return -1;
	made->nonblocking = nonblocking;
	if (family == AF_UNIX)
		return os_install(made);
	made->socket = socket(family, type, 0);
	if (made->socket == INVALID_SOCKET || ioctlsocket(made->socket, FIONBIO, &one)) {
		os_socket_errno();
		os_put(made);
		return -1;
	}
	SetHandleInformation((HANDLE)made->socket, HANDLE_FLAG_INHERIT, 0);
	return os_install(made);
}

/* Winsock says that connecting is under way as it says that a send would wait. */
int os_connect(int fd, const void *address, int size)
{
	struct os_object *object = os_get(fd);
	int ret;

	if (!object)
		return -1;
	if (object->kind == OS_END) {
		ret = os_end_connect(object);
		os_put(object);
		return ret;
	}
	ret = connect(object->socket, address, size);
	if (ret && os_socket_errno() == EAGAIN)
		errno = EINPROGRESS;
	if (ret && errno == EINPROGRESS && !object->nonblocking) {
		struct os_pollfd wait = {.fd = fd, .events = OS_POLLOUT};
		uint64_t ns = object->send_ms ? object->send_ms * 1000000ull : FOR_EVER;
		int code = 0, n = sizeof(code);

		if (os_poll(&wait, 1, ns) > 0 &&
			!os_getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &n)) {
			ret = code ? -1 : 0;
			errno = code;
		}
	}
	os_put(object);
	return ret;
}

/* Whether the caller waits; the next try is worth it. False: errno is EAGAIN. */
static bool wait_again(int fd, const struct os_object *object, int flags, short events)
{
	uint32_t ms = events == OS_POLLIN ? object->receive_ms : object->send_ms;
	struct os_pollfd wait = {.fd = fd, .events = events};

	if (errno != EAGAIN || flags & OS_MSG_DONTWAIT || object->nonblocking)
		return false;
	if (os_poll(&wait, 1, ms ? ms * 1000000ull : FOR_EVER) > 0)
		return true;
	errno = EAGAIN;
	return false;
}

static long long send_parts(
	struct os_object *object, const struct os_iovec *parts, size_t count)
{
	WSABUF buffers[PARTS];
	DWORD sent = 0;
	size_t n = count < PARTS ? count : PARTS;

	for (size_t i = 0; i < n; i++) {
		buffers[i].buf = parts[i].iov_base;
		buffers[i].len = parts[i].iov_len > INT_MAX ? INT_MAX : (ULONG)parts[i].iov_len;
	}
	if (!WSASend(object->socket, buffers, (DWORD)n, &sent, 0, NULL, NULL))
		return sent;
	os_socket_errno();
	return -1;
}

long long os_sendmsg(int fd, const struct os_msghdr *message, int flags)
{
	struct os_object *object = os_get(fd);
	const struct os_cmsghdr *control = message->msg_control;
	int fds[OS_PAIR_FDS];
	unsigned n = 0;
	long long sent;

	if (!object)
		return -1;
	if (object->kind == OS_END) {
		if (message->msg_controllen >= sizeof(*control) &&
			control->cmsg_type == SCM_RIGHTS_)
			n = (unsigned)((control->cmsg_len - sizeof(*control)) / sizeof(int));
		if (n <= OS_PAIR_FDS)
			memcpy(fds, control + 1, n * sizeof(int));
		sent = os_end_send(object, message->msg_iov, message->msg_iovlen, fds, n);
	} else {
		do
			sent = send_parts(object, message->msg_iov, message->msg_iovlen);
		while (sent < 0 && wait_again(fd, object, flags, OS_POLLOUT));
	}
	os_put(object);
	return sent;
}

long long os_send(int fd, const void *bytes, size_t n, int flags)
{
	struct os_iovec part = {(void *)bytes, n};
	struct os_msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	return os_sendmsg(fd, &message, flags);
}

static long long receive_once(struct os_object *object, char *bytes, size_t n, int flags)
{
	int got = recv(object->socket, bytes, n > INT_MAX ? INT_MAX : (int)n,
		flags & OS_MSG_PEEK ? MSG_PEEK : 0);

	if (got >= 0)
		return got;
	os_socket_errno();
	return -1;
}

static long long receive_stream(
	int fd, struct os_object *object, char *bytes, size_t n, int flags)
{
	size_t have = 0;

	for (;;) {
		long long got = receive_once(object, bytes + have, n - have, flags);

		if (got < 0) {
			if (wait_again(fd, object, flags, OS_POLLIN))
				continue;
			return have ? (long long)have : -1;
		}
		have += (size_t)got;
		if (!got || have == n || !(flags & OS_MSG_WAITALL))
			return (long long)have;
	}
}

/* The descriptors that came with it go to FDS. */
static long long receive_message(int fd, struct os_object *object, void *bytes, size_t n,
	int flags, int fds[OS_PAIR_FDS], unsigned *count)
{
	long long got;

	do
		got = os_end_receive(object, bytes, n, fds, count, flags & OS_MSG_PEEK);
	while (got < 0 && wait_again(fd, object, flags, OS_POLLIN));
	if (got > (long long)n && !(flags & OS_MSG_TRUNC))
		got = (long long)n;
	return got;
}

long long os_recv(int fd, void *bytes, size_t n, int flags)
{
	struct os_object *object = os_get(fd);
	int fds[OS_PAIR_FDS];
	unsigned count = 0;
	long long got;

	if (!object)
		return -1;
	got = object->kind == OS_END ? receive_message(fd, object, bytes, n, flags, fds, &count)
				     : receive_stream(fd, object, bytes, n, flags);
	while (count)
		os_close(fds[--count]); /* nobody asked for them */
	os_put(object);
	return got;
}

long long os_recvmsg(int fd, struct os_msghdr *message, int flags)
{
	struct os_object *object = os_get(fd);
	struct os_cmsghdr *control = message->msg_control;
	int fds[OS_PAIR_FDS];
	unsigned count = 0;
	size_t room = message->msg_controllen;
	long long got;

	if (!object)
		return -1;
	if (object->kind != OS_END || message->msg_iovlen != 1) {
		os_put(object);
		errno = EOPNOTSUPP;
		return -1;
	}
	got = receive_message(fd, object, message->msg_iov->iov_base, message->msg_iov->iov_len,
		flags, fds, &count);
	message->msg_controllen = 0;
	while (count && (!control || sizeof(*control) + count * sizeof(int) > room))
		os_close(fds[--count]);
	if (count) {
		control->cmsg_len = sizeof(*control) + count * sizeof(int);
		control->cmsg_level = SOL_SOCKET;
		control->cmsg_type = SCM_RIGHTS_;
		memcpy(control + 1, fds, count * sizeof(int));
		message->msg_controllen = control->cmsg_len;
	}
	os_put(object);
	return got;
}

int os_setsockopt(int fd, int level, int name, const void *value, int size)
{
	struct os_object *object = os_get(fd);
	const struct {
		int32_t seconds, microseconds;
	} *time = value;
	int ret = 0;

	if (!object)
		return -1;
	if (level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO)) {
		uint32_t ms =
			(uint32_t)time->seconds * 1000u + (uint32_t)time->microseconds / 1000u;

		*(name == SO_RCVTIMEO ? &object->receive_ms : &object->send_ms) = ms;
	} else if (object->kind != OS_SOCKET) {
		errno = ENOPROTOOPT;
		ret = -1;
	} else if (setsockopt(object->socket, level, name, value, size)) {
		os_socket_errno();
		ret = -1;
	}
	os_put(object);
	return ret;
}

int os_getsockopt(int fd, int level, int name, void *value, int *size)
{
	struct os_object *object = os_get(fd);
	int ret;

	if (!object)
		return -1;
	ret = getsockopt(object->socket, level, name, value, size);
	if (ret)
		os_socket_errno();
	else if (level == SOL_SOCKET && name == SO_ERROR && *(int *)value) {
		int saved = errno;

		WSASetLastError(*(int *)value);
		*(int *)value = os_socket_errno();
		errno = saved;
	}
	os_put(object);
	return ret;
}

int os_getsockname(int fd, void *address, int *size)
{
	struct os_object *object = os_get(fd);
	int ret;

	if (!object)
		return -1;
	ret = getsockname(object->socket, address, size);
	if (ret)
		os_socket_errno();
	os_put(object);
	return ret;
}

int os_shutdown(int fd, int how)
{
	struct os_object *object = os_get(fd);
	int ret;

	if (!object)
		return -1;
	ret = shutdown(object->socket, how);
	if (ret)
		os_socket_errno();
	os_put(object);
	return ret;
}

int os_getaddrinfo(const char *host, const char *service, const void *hints, void **list)
{
	struct os_object *opened = os_object_new(OS_SOCKET); /* Winsock is there from now on */

	if (!opened)
		return EAI_MEMORY;
	os_put(opened);
	return getaddrinfo(host, service, hints, (struct addrinfo **)list);
}

void os_freeaddrinfo(void *list)
{
	freeaddrinfo(list);
}

const char *os_gai_strerror(int code)
{
	switch (code) {
	case EAI_AGAIN: return "Temporary failure in name resolution";
	case EAI_NONAME: return "Name or service not known";
	case EAI_MEMORY: return "Memory allocation failure";
	case EAI_FAIL: return "Non-recoverable failure in name resolution";
	default: return "Name resolution failed";
	}
}

int os_getnameinfo(const void *address, int size, char *host, unsigned host_size, char *service,
	unsigned service_size, int flags)
{
	return getnameinfo(address, size, host, host_size, service, service_size, flags);
}

int os_inet_pton(int family, const char *text, void *address)
{
	return inet_pton(family, text, address);
}

const char *os_inet_ntop(int family, const void *address, char *text, size_t size)
{
	return inet_ntop(family, (void *)address, text, size);
}
