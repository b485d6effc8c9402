/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors with names for processes of this node (protocol/wire/tensor_socket.h): each
 * connection is a holder like a session, with a number of the same kind.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_TENSOR_TENSOR_SOCKET_H
#define VCUDA_GPU_AGENT_FRONT_TENSOR_TENSOR_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/tensor.h"

struct front;

#define TENSOR_SOCKET_CLIENTS 256u

/* Without config->store.socket, or where it cannot be made (that is logged), there is none. */
void tensor_socket_open(struct front *front);
void tensor_socket_close(struct front *front);
/* The number of client INDEX (below TENSOR_SOCKET_CLIENTS); 0: nobody is there. */
uint64_t tensor_socket_session(const struct front *front, uint32_t index);
/* Whether that client answers READ_ONLY. */
bool tensor_socket_follows(struct front *front, uint64_t session);
/* To the client with that number: an answer, or that a tensor is sealed. FD stays the caller's,
 * or is -1. 0; -ENOENT: there is no such client; -EAGAIN: it has to read first. */
int tensor_socket_tell(
	struct front *front, uint64_t session, const struct tensor_message *message, int fd);
/* Lets go of those that say nothing; the next time to look. */
uint64_t tensor_socket_tick(struct front *front, uint64_t now);

#endif
