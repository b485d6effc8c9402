/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests and answers on the Unix socket, one datagram each.
 */
#ifndef VCUDA_SIDECAR_CHANNEL_REQUEST_H
#define VCUDA_SIDECAR_CHANNEL_REQUEST_H

#include <stdint.h>

#include "protocol/wire/channel.h"
#include "protocol/wire/status.h"
#include "sidecar/options/options.h"

/* One request. 1; 0: none there; -errno: the peer is gone or speaks something else. */
int request_receive(int socket, struct channel_request *request);
/* The same, with the descriptor that came along: the caller's, or -1. */
int request_receive_fd(int socket, struct channel_request *request, int *fd);

/* An answer to REQUEST with TEXT. */
struct channel_answer request_answer(
	const struct channel_request *request, uint32_t status, const char *text);
/* Sends it, with COUNT descriptors; does not wait for who reads it, and for memory of the
 * kernel's 0.1 s at most. 0 or -errno. */
int request_reply(const struct options *options, int socket, struct channel_answer *answer,
	const int *fds, unsigned count);

#endif
