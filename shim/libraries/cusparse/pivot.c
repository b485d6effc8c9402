/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a factorization or solution met a zero on the diagonal.  ZERO_PIVOT is the answer that
 * there is one, and comes with its place.
 */
#include "protocol/generated/cusparse_ops.h"
#include "shim/generated/cusparse_hand.h"
#include "shim/libraries/cusparse/cusparse.h"

static cusparseStatus_t pivot(
	cusparseHandle_t handle, const void *info, uint32_t kind, int *position, uint16_t op)
{
	struct library_items items;
	struct library_answer answer;
	int status;

	library_begin(&items, &cusparse_front, FRONT_COUNTED, op, LIBRARY_CALL, handle);
	library_put_descriptor(&items, info, kind | LIBRARY_STAYS);
	library_put_result(&items, position, sizeof(*position));
	status = library_exchange(&items, &answer, sizeof(answer));
	if (items.outs &&
		(status == CUSPARSE_STATUS_SUCCESS || status == CUSPARSE_STATUS_ZERO_PIVOT))
		memcpy(position, &answer.out[0], sizeof(*position));
	return status;
}

cusparseStatus_t hand_cusparseXbsrsv2_zeroPivot(
	cusparseHandle_t handle, bsrsv2Info_t info, int *position)
{
	return pivot(
		handle, info, CUSPARSE_ITEM_BSRSV2, position, OP_cusparseXbsrsv2_zeroPivot);
}

cusparseStatus_t hand_cusparseXbsrsm2_zeroPivot(
	cusparseHandle_t handle, bsrsm2Info_t info, int *position)
{
	return pivot(
		handle, info, CUSPARSE_ITEM_BSRSM2, position, OP_cusparseXbsrsm2_zeroPivot);
}

cusparseStatus_t hand_cusparseXcsrilu02_zeroPivot(
	cusparseHandle_t handle, csrilu02Info_t info, int *position)
{
	return pivot(
		handle, info, CUSPARSE_ITEM_CSRILU02, position, OP_cusparseXcsrilu02_zeroPivot);
}

cusparseStatus_t hand_cusparseXbsrilu02_zeroPivot(
	cusparseHandle_t handle, bsrilu02Info_t info, int *position)
{
	return pivot(
		handle, info, CUSPARSE_ITEM_BSRILU02, position, OP_cusparseXbsrilu02_zeroPivot);
}

cusparseStatus_t hand_cusparseXcsric02_zeroPivot(
	cusparseHandle_t handle, csric02Info_t info, int *position)
{
	return pivot(
		handle, info, CUSPARSE_ITEM_CSRIC02, position, OP_cusparseXcsric02_zeroPivot);
}

cusparseStatus_t hand_cusparseXbsric02_zeroPivot(
	cusparseHandle_t handle, bsric02Info_t info, int *position)
{
	return pivot(
		handle, info, CUSPARSE_ITEM_BSRIC02, position, OP_cusparseXbsric02_zeroPivot);
}
