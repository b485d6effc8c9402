/* SPDX-License-Identifier: Apache-2.0
 *
 * cuSPARSELt as both ends know it: the types of its ABI (no header of NVIDIA's is needed to
 * build), and what its descriptors hold, which is how they travel.
 *
 * A handle, a descriptor, an algorithm and a plan are memory of the program's.  A handle's has
 * its name; the others have their content, of which the agent makes the library's.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_CUSPARSELT_H
#define VCUDA_PROTOCOL_LIBRARIES_CUSPARSELT_H

#include <stdalign.h>

#include "protocol/libraries/cusparse.h"

/* Before version 0.8 they had 11 024 bytes. A handle begins with its name. */
typedef struct {
	alignas(16) uint8_t data[512];
} cusparseLtHandle_t;
typedef struct {
	alignas(16) uint8_t data[512];
} cusparseLtMatDescriptor_t;
typedef struct {
	alignas(16) uint8_t data[512];
} cusparseLtMatmulDescriptor_t;
typedef struct {
	alignas(16) uint8_t data[512];
} cusparseLtMatmulAlgSelection_t;
typedef struct {
	alignas(16) uint8_t data[512];
} cusparseLtMatmulPlan_t;

typedef int cusparseLtSparsity_t;
typedef int cusparseLtMatDescAttribute_t;
typedef int cusparseComputeType;
typedef int cusparseLtMatmulDescAttribute_t;
typedef int cusparseLtMatmulAlg_t;
typedef int cusparseLtMatmulAlgAttribute_t;
typedef int cusparseLtPruneAlg_t;

enum { CUSPARSELT_MAT_NUM_BATCHES = 0, CUSPARSELT_MAT_BATCH_STRIDE = 1 };
enum {
	CUSPARSELT_MATMUL_ACTIVATION_RELU_UPPERBOUND = 1,
	CUSPARSELT_MATMUL_ACTIVATION_GELU_SCALING = 4,
	CUSPARSELT_MATMUL_ALPHA_VECTOR_SCALING = 5,
	CUSPARSELT_MATMUL_BETA_VECTOR_SCALING = 6,
	CUSPARSELT_MATMUL_BIAS_STRIDE = 7,
	CUSPARSELT_MATMUL_BIAS_POINTER = 8,
	CUSPARSELT_MATMUL_SPARSE_MAT_POINTER = 9,
	CUSPARSELT_MATMUL_A_SCALE_POINTER = 15,
	CUSPARSELT_MATMUL_D_OUT_SCALE_POINTER = 19,
};
enum {
	CUSPARSELT_MATMUL_ALG_CONFIG_ID = 0,
	CUSPARSELT_MATMUL_ALG_CONFIG_MAX_ID = 1,
	CUSPARSELT_MATMUL_SPLIT_K = 3,
	CUSPARSELT_MATMUL_SPLIT_K_MODE = 4,
	CUSPARSELT_MATMUL_SPLIT_K_BUFFERS = 5,
};

#define CUSPARSELT_MATRIX_ATTRIBUTES 2
#define CUSPARSELT_PRODUCT_ATTRIBUTES 20
#define CUSPARSELT_ALGORITHM_ATTRIBUTES 6

/* Descriptors, as items. */
enum cusparselt_item {
	CUSPARSELT_ITEM_MATRIX = 1,
	CUSPARSELT_ITEM_PRODUCT,   /* cusparseLtMatmulDescriptor_t */
	CUSPARSELT_ITEM_ALGORITHM, /* cusparseLtMatmulAlgSelection_t, with its product */
	CUSPARSELT_ITEM_PLAN,	   /* the same words */
};

enum { CUSPARSELT_A, CUSPARSELT_B, CUSPARSELT_C, CUSPARSELT_D, CUSPARSELT_MATRICES };

/* Bit i of `set`: attribute i was set. */
struct cusparselt_matrix {
	int64_t rows, cols, ld;
	uint64_t value[CUSPARSELT_MATRIX_ATTRIBUTES];
	uint32_t alignment;
	int32_t type, order;
	int32_t sparsity; /* one more than NVIDIA's number; 0: a dense one */
	uint32_t set;
	uint32_t pad;
};
_Static_assert(sizeof(struct cusparselt_matrix) == 64, "");

/* In an item of the key, an attribute that is an address is how that is aligned, and what has
 * one has the address in the varying part, in the order of their numbers. */
struct cusparselt_product {
	int32_t op_a, op_b, compute;
	uint32_t set;
	struct cusparselt_matrix matrix[CUSPARSELT_MATRICES];
	uint64_t value[CUSPARSELT_PRODUCT_ATTRIBUTES];
};
_Static_assert(sizeof(struct cusparselt_product) == 432, "");

/* What a search chose is set where the library takes it. */
struct cusparselt_algorithm {
	int32_t algorithm;
	uint32_t set, searched;
	int32_t value[CUSPARSELT_ALGORITHM_ATTRIBUTES];
	uint32_t pad;
};
_Static_assert(sizeof(struct cusparselt_algorithm) == 40, "");

struct cusparselt_plan {
	struct cusparselt_product product;
	struct cusparselt_algorithm algorithm;
};
_Static_assert(sizeof(struct cusparselt_plan) == 472, "");

/* Bytes of an attribute of a product; 0: there is none of that number. */
static inline uint32_t cusparselt_product_bytes(int attribute)
{
	if (attribute < 0 || attribute >= CUSPARSELT_PRODUCT_ATTRIBUTES)
		return 0;
	if (attribute >= CUSPARSELT_MATMUL_BIAS_STRIDE &&
		attribute <= CUSPARSELT_MATMUL_SPARSE_MAT_POINTER)
		return 8;
	return attribute >= CUSPARSELT_MATMUL_A_SCALE_POINTER ? 8 : 4;
}

static inline bool cusparselt_is_address(int attribute)
{
	return attribute == CUSPARSELT_MATMUL_BIAS_POINTER ||
	       attribute == CUSPARSELT_MATMUL_SPARSE_MAT_POINTER ||
	       attribute >= CUSPARSELT_MATMUL_A_SCALE_POINTER;
}

/* The mode of a product's descriptor: where its factors lie, a bit each. */
enum { CUSPARSELT_ALPHAS = 1, CUSPARSELT_BETAS = 2 };

static inline int32_t cusparselt_mode(const struct cusparselt_product *p)
{
	return (p->value[CUSPARSELT_MATMUL_ALPHA_VECTOR_SCALING] ? CUSPARSELT_ALPHAS : 0) |
	       (p->value[CUSPARSELT_MATMUL_BETA_VECTOR_SCALING] ? CUSPARSELT_BETAS : 0);
}

static inline enum library_place cusparselt_alpha(int32_t mode)
{
	return mode & CUSPARSELT_ALPHAS ? LIBRARY_DEVICE : LIBRARY_HOST;
}

static inline enum library_place cusparselt_beta(int32_t mode)
{
	return mode & CUSPARSELT_BETAS ? LIBRARY_DEVICE : LIBRARY_HOST;
}

#endif
