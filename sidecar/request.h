/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests and answers on the Unix socket, one datagram each.
 */
#ifndef VCUDA_SIDECAR_REQUEST_H
#define VCUDA_SIDECAR_REQUEST_H

#include <stdint.h>

#include "protocol/wire/channel.h"
#include "sidecar/options.h"

/* CUresult */
enum request_status {
	STATUS_MEMORY = 2,
	STATUS_NO_DEVICE = 100,
	STATUS_NOT_PERMITTED = 800,
	STATUS_NOT_READY = 802,
	STATUS_MISMATCH = 803,
	STATUS_LOST =
		911, /* CUDA_ERROR_EXTERNAL_DEVICE: the process's CUDA ends, no bug of it */
};

/* One request. 1; 0: none there; -errno: the peer is gone or speaks something else. */
int request_receive(int socket, struct channel_request *request);

/* An answer to REQUEST with TEXT. */
struct channel_answer request_answer(
	const struct channel_request *request, uint32_t status, const char *text);
/* Sends it, with COUNT descriptors; never waits. 0 or -errno. */
int request_reply(const struct options *options, int socket, struct channel_answer *answer,
	const int *fds, unsigned count);

#endif
