/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of a product of two sparse matrices that tell sizes. The buffer of the first step
 * is asked for once for each content, as other buffers are. That of the second depends on the
 * numbers: the agent asks its library for it behind the first step, and it comes with that
 * answer.
 */
#include "protocol/generated/cusparse_ops.h"
#include "shim/generated/cusparse_hand.h"
#include "shim/libraries/cusparse/cusparse.h"

#define STEP_PARAMS                                                                            \
	cusparseHandle_t handle, cusparseOperation_t opA, cusparseOperation_t opB,             \
		const void *alpha, cusparseConstSpMatDescr_t matA,                             \
		cusparseConstSpMatDescr_t matB, const void *beta, cusparseSpMatDescr_t matC,   \
		cudaDataType computeType, cusparseSpGEMMAlg_t alg,                             \
		cusparseSpGEMMDescr_t spgemmDescr

static bool same(const struct cusparse_step *a, const struct cusparse_step *b)
{
	return a->a == b->a && a->b == b->b && a->c == b->c && a->op_a == b->op_a &&
	       a->op_b == b->op_b && a->type == b->type && a->alg == b->alg;
}

static void put(struct library_items *items, const struct cusparse_step *step,
	const void *alpha, const void *beta, uint32_t kind_c)
{
	uint32_t bytes = cusparse_scalar_bytes((cudaDataType)step->type);

	library_put_int(items, (uint32_t)step->op_a);
	library_put_int(items, (uint32_t)step->op_b);
	library_put_placed(items, alpha, bytes, cusparse_place(items->mode), false);
	library_put_descriptor(items, step->a, CUSPARSE_ITEM_SPMAT | LIBRARY_STAYS);
	library_put_descriptor(items, step->b, CUSPARSE_ITEM_SPMAT | LIBRARY_STAYS);
	library_put_placed(items, beta, bytes, cusparse_place(items->mode), false);
	library_put_descriptor(items, step->c, kind_c);
	library_put_int(items, (uint32_t)step->type);
	library_put_int(items, (uint32_t)step->alg);
}

/* The stub has counted each call. */
cusparseStatus_t hand_cusparseSpGEMM_workEstimation(
	STEP_PARAMS, size_t *bufferSize1, void *externalBuffer1)
{
	struct cusparse_object *o = cusparse_of(spgemmDescr, CUSPARSE_ITEM_SPGEMM);
	struct cusparse_step step = {0, matA, matB, matC, opA, opB, (int)computeType, alg};
	struct library_items items;
	int status;

	library_begin(&items, &cusparse_front, FRONT_COUNTED, OP_cusparseSpGEMM_workEstimation,
		externalBuffer1 ? LIBRARY_CALL : LIBRARY_CACHED, handle);
	put(&items, &step, alpha, beta, CUSPARSE_ITEM_SPMAT | LIBRARY_STAYS);
	library_put_descriptor(&items, spgemmDescr, CUSPARSE_ITEM_SPGEMM | LIBRARY_SIZED);
	library_put_inout(&items, bufferSize1, sizeof(*bufferSize1));
	library_put_device(&items, externalBuffer1);
	library_out_extra(&items, &step.bytes, sizeof(step.bytes));
	items.left = false; /* the call with the buffer asks there, too */
	status = library_send(&items);
	if (o && status)
		step.bytes = 0;
	if (o)
		o->next = step;
	return status;
}

cusparseStatus_t hand_cusparseSpGEMM_compute(
	STEP_PARAMS, size_t *bufferSize2, void *externalBuffer2)
{
	struct cusparse_object *o = cusparse_of(spgemmDescr, CUSPARSE_ITEM_SPGEMM);
	struct cusparse_step step = {0, matA, matB, matC, opA, opB, (int)computeType, alg};
	struct library_items items;

	if (o && o->next.bytes && same(&o->next, &step) && alpha && beta && bufferSize2 &&
		!externalBuffer2 && vcuda_library_find(&cusparse_front, handle) &&
		vcuda_front_keeps()) {
		*bufferSize2 = o->next.bytes;
		return CUSPARSE_STATUS_SUCCESS;
	}
	library_begin(&items, &cusparse_front, FRONT_COUNTED, OP_cusparseSpGEMM_compute,
		LIBRARY_CALL, handle);
	put(&items, &step, alpha, beta, CUSPARSE_ITEM_SPMAT | LIBRARY_SIZED);
	library_put_descriptor(&items, spgemmDescr, CUSPARSE_ITEM_SPGEMM | LIBRARY_STAYS);
	library_put_inout(&items, bufferSize2, sizeof(*bufferSize2));
	library_put_device(&items, externalBuffer2);
	return library_send(&items);
}
