/* SPDX-License-Identifier: Apache-2.0
 *
 * A link over two connected stream sockets, one a direction: what native, loop and every
 * adopted link are once the handshake is over.
 */
#ifndef VCUDA_TRANSPORT_STREAM_H
#define VCUDA_TRANSPORT_STREAM_H

#include "transport/transport.h"

/* fds: the caller's until this succeeds, then the link's. Made non-blocking, and, where they
 * are TCP, tuned (no delay, keepalive, 5 s user timeout, large buffers). */
int stream_open(int receive_fd, int send_fd, struct link **link, struct error *error);

/* For transport.adopt: fds[0] brings bytes, fds[1] takes them. */
int stream_adopt(const int fds[2], struct link **link, struct error *error);

/* Keepalive, user timeout, no delay, buffers; harmless on a socket that is not TCP. */
void stream_tune(int fd);

/* For a thread that does nothing but wait on it. */
void stream_block(int fd);

#endif
