/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors with names for processes of the agent's own node: what travels on the Unix socket
 * that `store.socket` names (SOCK_SEQPACKET), a struct a datagram.  The process says its HELLO,
 * then asks; each question has one answer with its tag, and that of a TAKE brings the memory's
 * descriptor.  What the process holds it holds until it closes the connection.
 */
#ifndef VCUDA_PROTOCOL_WIRE_TENSOR_SOCKET_H
#define VCUDA_PROTOCOL_WIRE_TENSOR_SOCKET_H

#include <stdint.h>

#include "protocol/wire/tensor.h"

#define TENSOR_SOCKET_VERSION 1u
#define TENSOR_SOCKET_PATH "/run/vcuda/tensors.sock"
#define TENSOR_SOCKET_MAGIC "vcudaSOC"
#define TENSOR_SOCKET_TOKEN 256

struct tensor_socket_hello {
	char magic[8];
	uint32_t version;
	uint32_t follows;		 /* 1: it answers READ_ONLY; an older library says 0 */
	char token[TENSOR_SOCKET_TOKEN]; /* whose namespace it is; "": that of everybody */
};

enum tensor_socket_what {
	TENSOR_SOCKET_TAKE = 1, /* create or get: about's flags as those of a tensor_wish */
	TENSOR_SOCKET_SEAL = 2, /* id, as the next */
	TENSOR_SOCKET_CLOSE = 3,
	TENSOR_SOCKET_DELETE = 4, /* name, as the others */
	TENSOR_SOCKET_STAT = 5,
	TENSOR_SOCKET_LIST = 6, /* the first behind `cursor` whose name begins so */
	TENSOR_SOCKET_TOUCH = 7,
	TENSOR_SOCKET_SHARE = 8, /* with the namespace `text` */
	TENSOR_SOCKET_QUESTIONS,
	/* Unasked: id is sealed, what is mapped of it is to be read only. And that it is. */
	TENSOR_SOCKET_READ_ONLY = 32,
	TENSOR_SOCKET_FOLLOWED = 33,
};

struct tensor_socket_frame {
	uint32_t version;
	uint32_t what;
	uint32_t status; /* of an answer: CUresult */
	uint32_t reserved;
	uint64_t tag;
	uint64_t cursor;
	uint8_t id[16];
	uint8_t gpu[16];	    /* UUID: where it is to be, or is */
	char name[2 * TENSOR_NAME]; /* asked: at most TENSOR_NAME; told: NAMESPACE/NAME */
	struct tensor_about about;
	char text[TENSOR_TEXT]; /* why not, a sentence */
};

#endif
