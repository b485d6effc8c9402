/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors with names: what the files tensor*.c share, and what memory/sharing/ipc.c asks of
 * them.
 */
#ifndef VCUDA_SHIM_DRIVER_TENSOR_TENSOR_H
#define VCUDA_SHIM_DRIVER_TENSOR_TENSOR_H

#include <cuda.h>
#include <stdbool.h>

#include "include/vcuda/tensor.h"
#include "protocol/wire/tensor.h"
#include "shim/tensor/arguments.h"

#define EXPORT __attribute__((visibility("default")))

struct shim_call;
struct wire_run;

/* Places in vcuda_tensor.reserved. */
enum { TENSOR_HANDLE_AT, TENSOR_BASE_AT, TENSOR_ROOM_AT };

/* --- tensor.c --- */
/* The sentence of this thread's last call. */
extern _Thread_local char tensor_text[SENTENCE];
__attribute__((format(printf, 2, 3))) CUresult tensor_fail(
	CUresult status, const char *format, ...);
/* A failure of CUDA's, or of the session's, without a sentence of its own. */
CUresult tensor_plain(CUresult status, const char *what);
/* CUDA is there, and *DEVICE (-1: the current one); it knows tensors. */
CUresult tensor_begin(int *device, const char *what);
/* The sentence of an answer. */
void tensor_take_text(const struct shim_call *call, const struct wire_run *run);
/* The agent is asked one thing at a time. */
void tensor_lock(void);
void tensor_unlock(void);
/* WISH becomes TENSOR; under the lock, as the next. */
CUresult tensor_take(int device, struct tensor_wish *wish, struct vcuda_tensor *tensor);
CUresult tensor_unmap(struct vcuda_tensor *tensor);

/* --- tensor_handle.c: tensors as cudaIpcMemHandle_t --- */
/* The handle's bytes are a tensor's: tensor_handle_open knows it. */
bool tensor_handle_is(const CUipcMemHandle *handle);
CUresult tensor_handle_open(CUdeviceptr *address, const CUipcMemHandle *handle);
/* False: no tensor was opened there so. */
bool tensor_handle_close(CUdeviceptr address, CUresult *status);

#endif
