/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of cuSPARSE: the program's own, which travel with each call by content.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUSPARSE_CUSPARSE_H
#define VCUDA_SHIM_LIBRARIES_CUSPARSE_CUSPARSE_H

#include "protocol/libraries/cusparse.h"
#include "shim/libraries/common/items.h"

/* What the agent has said of the next step of a product of sparse matrices, and for which. */
struct cusparse_step {
	uint64_t bytes; /* the buffer of cusparseSpGEMM_compute; 0: not said */
	const void *a, *b, *c;
	int op_a, op_b, type, alg;
};

/* What every descriptor of the program's points to. */
struct cusparse_object {
	uint32_t magic;
	uint32_t kind; /* enum cusparse_item */
	_Atomic uint64_t
		number; /* by which the agent keeps the library's own; 0: it does not */
	union cusparse_content content;
	int64_t count; /* elements of a sparse matrix; products of a SpGEMM descriptor */
	void *place[CUSPARSE_PLACES];
	struct cusparse_step next; /* of a SpGEMM descriptor */
};

/* A new one, with all that it holds 0. INVALID_VALUE: nowhere to put it. */
cusparseStatus_t cusparse_new(void **descriptor, uint32_t kind);
/* Ends it, and the agent's. Descriptors without content may be NULL. */
cusparseStatus_t cusparse_free(const void *descriptor, uint32_t kind);
/* NULL: no descriptor of that kind. */
struct cusparse_object *cusparse_of(const void *descriptor, uint32_t kind);

/* Puts one of that kind (enum cusparse_item and what its mark says). */
void cusparse_put_descriptor(
	struct library_items *items, const void *descriptor, uint32_t kind);

/* Bytes of a factor of vectors of that type: a half's is a float. */
uint32_t cusparse_factor_bytes(cusparseConstSpVecDescr_t vector);

#endif
