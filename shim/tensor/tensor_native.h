/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors with names for processes of the agent's node, which do not run under vcuda: asked
 * over the agent's Unix socket (tensor_native_socket.c), mapped by the machine's own driver
 * (tensor_native_driver.c).  tensor_native.c has the functions of include/vcuda/tensor.h, one
 * at a time.
 */
#ifndef VCUDA_SHIM_TENSOR_TENSOR_NATIVE_H
#define VCUDA_SHIM_TENSOR_TENSOR_NATIVE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/vcuda/tensor.h"
#include "protocol/wire/tensor_socket.h"

/* What is open, until it is closed: a tensor's reserved[0] is its address. */
struct native_tensor {
	struct native_tensor *next;
	uint8_t id[16];
	uint64_t connection; /* that holds it */
	CUdevice device;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr base;
	size_t room;
	bool writable;
};

/* Keeps a sentence for vcuda_tensor_error(); STATUS. */
__attribute__((format(printf, 2, 3))) int native_fail(int status, const char *format, ...);
/* The agent says that the tensor is sealed. */
void native_sealed(const uint8_t id[16]);

/* --- tensor_native_socket.c --- */
/* Asks FRAME, which becomes the answer; *FD: the descriptor that came with it, or -1. Connects
 * where that is not done. A status, with its sentence. */
int native_ask(struct tensor_socket_frame *frame, int *fd);
/* What the agent says unasked, until NEEDED is false; under the lock, as all of these. A seal
 * waits for those who wrote. */
void native_listen(bool (*needed)(void), void (*lock)(void), void (*unlock)(void));
/* The number of the connection; another one has dropped what this one held. */
uint64_t native_connection(void);

/* --- tensor_native_driver.c --- */
/* The machine's driver; *DEVICE (-1: of the current context, or 0) is one of it. */
int native_driver(int *device);
void native_gpu(CUdevice device, uint8_t gpu[16]);
/* FD's memory at T->base, T->room bytes. Takes FD. */
int native_map(struct native_tensor *t, int fd);
void native_unmap(struct native_tensor *t);
int native_read_only(struct native_tensor *t);
/* Waits for the stream, or for the current context. */
int native_wait(void *stream);

#endif
