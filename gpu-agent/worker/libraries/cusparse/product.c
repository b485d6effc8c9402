/* SPDX-License-Identifier: Apache-2.0
 *
 * The first step of a product of two sparse matrices. Behind it the program asks how large the
 * buffer of the second has to be, which depends on what the first found: the answer goes along.
 */
#include "gpu-agent/worker/libraries/cusparse/cusparse.h"

enum { ALG1 = 3 }; /* CUSPARSE_SPGEMM_ALG1; the default and the older ones are less */

/* Items in the order of the parameters, as hand_cusparseSpGEMM_workEstimation puts them. The
 * algorithms that estimate memory have a step of their own between the two. */
int run_cusparseSpGEMM_workEstimation(struct library_frame *f)
{
	const struct cusparse_library *l = f->library;
	GET_INT(cusparseOperation_t, op_a);
	GET_INT(cusparseOperation_t, op_b);
	GET(void *, alpha, placed, cusparse_place(f->mode), false);
	GET(cusparseConstSpMatDescr_t, a, descriptor, CUSPARSE_ITEM_SPMAT | LIBRARY_STAYS);
	GET(cusparseConstSpMatDescr_t, b, descriptor, CUSPARSE_ITEM_SPMAT | LIBRARY_STAYS);
	GET(void *, beta, placed, cusparse_place(f->mode), false);
	GET(cusparseSpMatDescr_t, c, descriptor, CUSPARSE_ITEM_SPMAT | LIBRARY_STAYS);
	GET_INT(cudaDataType, type);
	GET_INT(cusparseSpGEMMAlg_t, alg);
	GET(cusparseSpGEMMDescr_t, step, descriptor, CUSPARSE_ITEM_SPGEMM | LIBRARY_SIZED);
	GET(size_t *, bytes, inout);
	GET(void *, buffer, device);
	GET(uint64_t *, next, out);
	size_t first = 0, second = 0;
	int status;

	if (library_stop(f, !l->cusparseSpGEMM_workEstimation, f->name))
		return f->status;
	*next = 0;
	if (buffer) /* the program knew the size: the library is asked as it expects */
		l->cusparseSpGEMM_workEstimation(f->handle, op_a, op_b, alpha, a, b, beta, c,
			type, alg, step, &first, NULL);
	status = l->cusparseSpGEMM_workEstimation(
		f->handle, op_a, op_b, alpha, a, b, beta, c, type, alg, step, bytes, buffer);
	if (!status && buffer && alg <= ALG1 && l->cusparseSpGEMM_compute &&
		!l->cusparseSpGEMM_compute(f->handle, op_a, op_b, alpha, a, b, beta, c, type,
			alg, step, &second, NULL))
		*next = second;
	return status;
}
