/* SPDX-License-Identifier: Apache-2.0
 *
 * The cuBLASLt front, once for each ABI: a library that stands on the driver front
 * (shim/libraries/common/driver_front.h).  Descriptors live in the bytes of the app's own
 * structs, so that an app may make them where it likes, and travel by content with each call.
 * What is asked about them is cached by that content; products are learned by it and posted
 * from then on.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUBLASLT_CUBLASLT_H
#define VCUDA_SHIM_LIBRARIES_CUBLASLT_CUBLASLT_H

#include <stdbool.h>

#include "protocol/libraries/cublaslt.h"
#include "shim/libraries/common/items.h"

/* VCUDA_ABI: 12 or 13, whichever this front stands for. */

/* First in every descriptor: what it is.  An odd number, so that no zeroed memory passes. */
enum cublaslt_kind {
	CUBLASLT_LAYOUT = 0x4c744c31,
	CUBLASLT_MATMUL = 0x4c744d31,
	CUBLASLT_TRANSFORM = 0x4c745431,
	CUBLASLT_PREFERENCE = 0x4c745031,
	CUBLASLT_EMULATION = 0x4c744531,
	/* The two with what lies behind `content`: in memory that a program has for cuBLAS 13.2
	 * and up. Others may be as short as they were before. */
	CUBLASLT_GROUPED_LAYOUT = 0x4c744c33,
	CUBLASLT_GROUPED_PREFERENCE = 0x4c745033,
};

struct cublaslt_layout_desc {
	uint64_t kind;
	struct cublaslt_layout content;
	struct cublaslt_group group; /* of a CUBLASLT_GROUPED_LAYOUT */
};
_Static_assert(sizeof(struct cublaslt_layout_desc) <= sizeof(cublasLtMatrixLayoutOpaque_t), "");
#define CUBLASLT_LAYOUT_BYTES offsetof(struct cublaslt_layout_desc, group)
_Static_assert(CUBLASLT_LAYOUT_BYTES <= 64, ""); /* before 13.2 */

struct cublaslt_emulation_desc {
	uint64_t kind;
	struct cublaslt_emulation content;
};
_Static_assert(
	sizeof(struct cublaslt_emulation_desc) <= sizeof(cublasLtEmulationDescOpaque_t), "");

struct cublaslt_matmul_desc {
	uint64_t kind;
	struct cublaslt_matmul content;
	uint64_t pointers[CUBLASLT_POINTERS];
	const struct cublaslt_emulation_desc *emulation; /* the app's; read at each call */
	struct cublaslt_matmul_more more;
};
_Static_assert(sizeof(struct cublaslt_matmul_desc) <= sizeof(cublasLtMatmulDescOpaque_t), "");

struct cublaslt_transform_desc {
	uint64_t kind;
	struct cublaslt_transform content;
};
_Static_assert(
	sizeof(struct cublaslt_transform_desc) <= sizeof(cublasLtMatrixTransformDescOpaque_t),
	"");

struct cublaslt_preference_desc {
	uint64_t kind;
	struct cublaslt_preference content;
	struct cublaslt_preference_more more; /* of a CUBLASLT_GROUPED_PREFERENCE */
};
_Static_assert(
	sizeof(struct cublaslt_preference_desc) <= sizeof(cublasLtMatmulPreferenceOpaque_t),
	"");
#define CUBLASLT_PREFERENCE_BYTES offsetof(struct cublaslt_preference_desc, more)
_Static_assert(CUBLASLT_PREFERENCE_BYTES <= 64, ""); /* before 13.2 */

/* The app's pointer as what it should be; NULL where it is not that. */
const struct cublaslt_layout_desc *cublaslt_layout_of(cublasLtMatrixLayout_t layout);
const struct cublaslt_matmul_desc *cublaslt_matmul_of(cublasLtMatmulDesc_t desc);
const struct cublaslt_transform_desc *cublaslt_transform_of(cublasLtMatrixTransformDesc_t desc);
const struct cublaslt_preference_desc *cublaslt_preference_of(cublasLtMatmulPreference_t pref);

/* The product that the descriptors describe; layouts in the order of enum cublaslt_matrix, that
 * of C may be NULL.  INVALID_VALUE where one is none. */
cublasStatus_t cublaslt_problem(struct cublaslt_problem *problem, cublasLtMatmulDesc_t desc,
	const cublasLtMatrixLayout_t *layouts);

/* Whether the product says more than those of cuBLAS before 13.2 can. */
bool cublaslt_says_more(const struct cublaslt_matmul_desc *desc);
/* Whether the agent knows what those cannot say; told on stderr, once, where it does not. */
bool cublaslt_agent_knows(const char *call);

/* Puts one of that kind (enum cublaslt_item); a layout may be NULL. */
void cublaslt_put_descriptor(
	struct library_items *items, const void *descriptor, uint32_t kind);
/* Bytes of alpha and beta; 0: no such descriptor, or a type that has no size. */
uint32_t cublaslt_scale_bytes(cublasLtMatmulDesc_t desc);
uint32_t cublaslt_transform_bytes(cublasLtMatrixTransformDesc_t desc);

/* A cached question: its answer, of at least `bytes` and at most `most`; *got may be NULL. */
cublasStatus_t cublaslt_ask(uint16_t op, const void *body, size_t body_bytes, void *reply,
	size_t bytes, size_t most, uint32_t *got);

#endif
