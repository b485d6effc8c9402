/* SPDX-License-Identifier: Apache-2.0
 *
 * Connected UDP sockets that move many datagrams with one call where the kernel can
 * (UDP_SEGMENT, UDP_GRO).
 */
#ifndef VCUDA_TRANSPORT_LIGHT_UDP_H
#define VCUDA_TRANSPORT_LIGHT_UDP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define UDP_BATCH 65000u /* bytes that one call moves at most */

/* Large buffers, no fragments, and GRO where it is had. Does not block. */
void udp_tune(int fd);

/* Sends N bytes as datagrams of SIZE, the last one may be shorter. 0; -EAGAIN: nothing was
 * sent; or -errno: the datagrams are lost, as on the way. */
int udp_send(int fd, const void *bytes, size_t n, size_t size);

/* Some datagrams of *SIZE bytes each, the last one may be shorter: how many bytes, or -errno.
 */
ssize_t udp_receive(int fd, void *bytes, size_t room, size_t *size);

#endif
