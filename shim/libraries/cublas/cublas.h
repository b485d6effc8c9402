/* SPDX-License-Identifier: Apache-2.0
 *
 * The cuBLAS front, once for each ABI: a library that stands on the driver front
 * (shim/libraries/common/front.h). All of a handle's state is here and travels with every call,
 * so that setting it costs nothing; calls are learned by that state and all that they pass by
 * value, and posted from then on.
 *
 * Generated stubs (shim/generated/cublas_stubs.c) begin a call, put scalars into the body
 * and send it; the first fault is kept in the call, so a stub has no branches for errors.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUBLAS_CUBLAS_H
#define VCUDA_SHIM_LIBRARIES_CUBLAS_CUBLAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/libraries/cublas.h"
#include "shim/libraries/cublas/status.h"
#include "shim/libraries/common/front.h"

struct cublas_handle {
	uint64_t number;
	CUstream stream;
	struct cublas_state state; /* handle and stream are filled in for each call */
	int version;
	uint64_t emulation[CUBLAS_EMULATIONS];
};

struct cublas_call {
	struct cublas_handle *handle;
	unsigned call;
	cublasStatus_t status; /* the first fault */
	bool awaited;	       /* something comes back to host memory */
};

/* NULL: not a handle of this front. */
struct cublas_handle *cublas_find(cublasHandle_t handle);

void cublas_begin(struct cublas_call *call, unsigned number, cublasHandle_t handle,
	struct cublas_state *state);
/* Host pointer mode: the value; else its address. `bytes` <= 40; 0: a type that has no size. */
void cublas_scalar(
	struct cublas_call *call, uint64_t *words, const void *value, uint32_t bytes);
/* The same for what is read and written, and for what is only written. */
void cublas_inout(struct cublas_call *call, uint64_t *words, void *value, uint32_t bytes);
void cublas_result(struct cublas_call *call, uint64_t *words, void *result);
/* `reply` is zeroed, and filled in where the call was awaited. */
cublasStatus_t cublas_send(struct cublas_call *call, uint16_t op, const void *body,
	size_t body_bytes, uint32_t key_to, void *reply, size_t reply_bytes);
/* Hands a result to the host, in host pointer mode and after success. */
void cublas_give(
	const struct cublas_call *call, void *to, const uint64_t *words, uint32_t bytes);
bool cublas_on_device(cublasHandle_t handle);

cublasStatus_t cublas_refused(unsigned call, const char *name, const char *reason);
void cublas_count(unsigned call);

#endif
