/* SPDX-License-Identifier: Apache-2.0
 *
 * A link over connected stream sockets: what the links and stripes of native and loop are once
 * the handshake is over.  One socket for each direction, or one for both.
 */
#ifndef VCUDA_TRANSPORT_SOCKET_LINK_H
#define VCUDA_TRANSPORT_SOCKET_LINK_H

#include "transport/transport.h"

/* The same socket twice is fine. They are the caller's until this succeeds, then the link's.
 * Tuned, see stream_tune. */
int stream_open(int receive_fd, int send_fd, struct link **link, struct error *error);

/* For transport.link: commands on the first, replies on the last of one or two. */
int stream_link(const int *fds, unsigned count, enum transport_end end, struct link **link,
	struct error *error);

/* For transport.handoff: the descriptors themselves. */
int stream_handoff(int socket, const void *message, size_t n, const int *fds, unsigned count);

/* For transport_congestion: checked. */
#define STREAM_CONGESTION 16 /* TCP_CA_NAME_MAX */
void stream_congestion(const char *name);

/* Large buffers and, where it is TCP, keepalive, no delay and congestion control. */
void stream_tune(int fd);

/* What the front does with a connection before it is handed on.  None of these wait. */
ssize_t stream_read(int fd, void *bytes, size_t n); /* 0: the end; -EAGAIN or another -errno */
int stream_write(int fd, const void *bytes, size_t n); /* 0: all of it is on its way */
void stream_finish(int fd);    /* the peer reads what was said, then the end */
void tcp_stream_reset(int fd); /* closing it will leave nothing in the kernel */

#endif
