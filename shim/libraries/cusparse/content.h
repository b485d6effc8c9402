/* SPDX-License-Identifier: Apache-2.0
 *
 * What the functions that make descriptors check, and how they make them.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUSPARSE_CONTENT_H
#define VCUDA_SHIM_LIBRARIES_CUSPARSE_CONTENT_H

#include "shim/generated/cusparse_hand.h"
#include "shim/libraries/cusparse/cusparse.h"

static inline bool cusparse_index(cusparseIndexType_t type)
{
	return type >= CUSPARSE_INDEX_16U && type <= CUSPARSE_INDEX_64I;
}

static inline bool cusparse_base(cusparseIndexBase_t base)
{
	return base == CUSPARSE_INDEX_BASE_ZERO || base == CUSPARSE_INDEX_BASE_ONE;
}

static inline bool cusparse_order(cusparseOrder_t order)
{
	return order == CUSPARSE_ORDER_COL || order == CUSPARSE_ORDER_ROW;
}

/* The new descriptor; NULL: why, cusparse_unmade says. */
static inline struct cusparse_object *cusparse_made(void **to, uint32_t kind)
{
	return cusparse_new(to, kind) ? NULL : *to;
}

static inline cusparseStatus_t cusparse_unmade(const void *to)
{
	return to ? CUSPARSE_STATUS_ALLOC_FAILED : CUSPARSE_STATUS_INVALID_VALUE;
}

#endif
