/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects of parameters, which are the program's own and travel with each call by content.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUSOLVER_CUSOLVER_H
#define VCUDA_SHIM_LIBRARIES_CUSOLVER_CUSOLVER_H

#include "protocol/libraries/cusolver.h"
#include "shim/libraries/common/items.h"

/* A new object of that kind, with nothing set, the program's to destroy. */
cusolverStatus_t cusolver_object_create(void **to, enum cusolver_item kind);
cusolverStatus_t cusolver_object_destroy(void *object, enum cusolver_item kind);
/* Its content; NULL: it is no object of that kind. */
union cusolver_content *cusolver_object(void *object, enum cusolver_item kind);
/* What cuSPARSE's front says of its descriptor; false: it is none. */
bool cusolver_matrix_of(const void *descriptor, struct cusolver_matrix *matrix);
/* Puts the content of one of that kind (enum cusolver_item), or the handle of what the agent
 * has. */
void cusolver_put_descriptor(
	struct library_items *items, const void *descriptor, uint32_t kind);

/* Compressed rows on the host. */
struct cusolver_pattern {
	int m, n, entries, base;
	const int *rows, *columns;
};
/* A cuSOLVER status; success where the handle is one and the indices are such of a matrix. */
int cusolver_pattern(struct cusolver_pattern *p, cusolverSpHandle_t handle, int m, int n,
	int nnz, const cusparseMatDescr_t descr, const int *rows, const int *columns);
/* An order of its rows, P of n, in which factors fill in little; 0, or a cuSOLVER status. */
int cusolver_order(const struct cusolver_pattern *pattern, int *p);

/* Memory of the device for what a call takes from the host, or gives to it. The first fault is
 * kept in it. */
struct cusolver_memory {
	CUdeviceptr at[16];
	unsigned used;
	int status; /* cusolverStatus_t */
};
/* So many bytes, those of the host where FROM is not NULL; NULL after a fault. */
void *cusolver_memory_put(struct cusolver_memory *memory, const void *from, uint64_t bytes);
/* Waits until all that was put is there, whatever the stream of the call is. */
void cusolver_memory_wait(struct cusolver_memory *memory);
/* After what STREAM has to do: `bytes` go to the host. */
void cusolver_memory_get(struct cusolver_memory *memory, CUstream stream, void *to,
	const void *from, uint64_t bytes);
/* Frees it; the status: STATUS, or the first fault. */
int cusolver_memory_end(struct cusolver_memory *memory, int status);

#endif
