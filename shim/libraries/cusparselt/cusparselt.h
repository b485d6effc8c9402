/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors, algorithms and plans of cuSPARSELt: memory of the program's, which holds all of
 * them, so that there is nothing to free.  They travel with each call by content.
 *
 * NVIDIA's plan knows its product and its algorithm by their addresses: what a program sets in
 * them afterwards counts, and a search leaves in the algorithm what it chose. Ours has both as
 * they were besides, for a program that uses the memory for something else by then.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUSPARSELT_CUSPARSELT_H
#define VCUDA_SHIM_LIBRARIES_CUSPARSELT_CUSPARSELT_H

#include "protocol/libraries/cusparselt.h"
#include "shim/generated/cusparselt_hand.h"
#include "shim/libraries/common/items.h"

/* First in each: what it is. */
enum sparselt_mark {
	SPARSELT_MATRIX = 0x4c746d31,
	SPARSELT_PRODUCT = 0x4c747031,
	SPARSELT_ALGORITHM = 0x4c746131,
	SPARSELT_PLAN = 0x4c746c31,
};

struct sparselt_matrix {
	uint64_t mark;
	struct cusparselt_matrix content;
};

struct sparselt_product {
	uint64_t mark;
	uint64_t number; /* no other product has, nor an algorithm */
	struct cusparselt_product content;
};

struct sparselt_algorithm {
	uint64_t mark;
	uint64_t number;
	struct cusparselt_plan content; /* with the product that it was made for */
};

struct sparselt_plan {
	uint64_t mark;
	const struct sparselt_product *product; /* counts while it has that number */
	uint64_t product_number;
	struct sparselt_algorithm *algorithm;
	uint64_t algorithm_number;
	struct cusparselt_plan content;
};
_Static_assert(sizeof(struct sparselt_plan) <= sizeof(cusparseLtMatmulPlan_t), "");

/* What the program's memory is; NULL where it is not that. */
struct sparselt_matrix *sparselt_matrix_of(const cusparseLtMatDescriptor_t *descriptor);
struct sparselt_product *sparselt_product_of(const cusparseLtMatmulDescriptor_t *descriptor);
struct sparselt_algorithm *sparselt_algorithm_of(
	const cusparseLtMatmulAlgSelection_t *algorithm);
struct sparselt_plan *sparselt_plan_of(const cusparseLtMatmulPlan_t *plan);

/* One that no other has. */
uint64_t sparselt_number(void);
/* The algorithm that a plan was made with, if it is still there. */
struct sparselt_algorithm *sparselt_algorithm_in(const struct sparselt_plan *plan);
/* Of 4 or 8 bytes. */
uint64_t sparselt_read(const void *data, size_t bytes);

/* Puts one of that kind (enum cusparselt_item). */
void cusparselt_put_descriptor(
	struct library_items *items, const void *descriptor, uint32_t kind);
/* Asks the agent whether its library takes the descriptor; its status. */
cusparseStatus_t sparselt_check(
	const cusparseLtHandle_t *handle, uint16_t op, const void *descriptor, uint32_t kind);
/* The library's value of an attribute of one of that kind. */
cusparseStatus_t sparselt_ask(const cusparseLtHandle_t *handle, uint16_t op,
	const void *descriptor, uint32_t kind, int attribute, void *data, size_t bytes);

#endif
