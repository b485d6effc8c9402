/* SPDX-License-Identifier: Apache-2.0
 *
 * Algorithms, plans, products and the search for the best algorithm.
 */
#include "protocol/generated/cusparselt_ops.h"
#include "shim/libraries/cusparselt/cusparselt.h"

/* ---- algorithms ---- */

cusparseStatus_t hand_cusparseLtMatmulAlgSelectionInit(const cusparseLtHandle_t *handle,
	cusparseLtMatmulAlgSelection_t *algSelection,
	const cusparseLtMatmulDescriptor_t *matmulDescr, cusparseLtMatmulAlg_t alg)
{
	const struct sparselt_product *p = sparselt_product_of(matmulDescr);
	struct sparselt_algorithm a = {
		.mark = SPARSELT_ALGORITHM,
		.number = sparselt_number(),
		.content.algorithm.algorithm = alg,
	};

	if (!vcuda_library_find(&cusparselt_front, library_named(handle)) || !algSelection ||
		!p || alg)
		return CUSPARSE_STATUS_INVALID_VALUE;
	a.content.product = p->content;
	memcpy(algSelection, &a, sizeof(a));
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseLtMatmulAlgSelectionDestroy(
	const cusparseLtMatmulAlgSelection_t *algSelection)
{
	return sparselt_algorithm_of(algSelection) ? CUSPARSE_STATUS_SUCCESS
						   : CUSPARSE_STATUS_INVALID_VALUE;
}

static bool algorithm_has(int attribute, size_t bytes)
{
	return attribute >= 0 && attribute < CUSPARSELT_ALGORITHM_ATTRIBUTES &&
	       bytes == sizeof(int);
}

/* Which values there are depends on the library and the GPU. */
cusparseStatus_t hand_cusparseLtMatmulAlgSetAttribute(const cusparseLtHandle_t *handle,
	cusparseLtMatmulAlgSelection_t *algSelection, cusparseLtMatmulAlgAttribute_t attribute,
	const void *data, size_t dataSize)
{
	struct sparselt_algorithm *a = sparselt_algorithm_of(algSelection), next;
	cusparseStatus_t status;

	if (!a || !data || !algorithm_has(attribute, dataSize) ||
		attribute == CUSPARSELT_MATMUL_ALG_CONFIG_MAX_ID)
		return CUSPARSE_STATUS_INVALID_VALUE;
	next = *a;
	next.content.algorithm.value[attribute] = (int32_t)sparselt_read(data, dataSize);
	next.content.algorithm.set |= 1u << attribute;
	next.content.algorithm.searched &= ~(1u << attribute);
	status = sparselt_check(
		handle, OP_cusparseLtMatmulAlgSetAttribute, &next, CUSPARSELT_ITEM_ALGORITHM);
	if (!status)
		*a = next;
	return status;
}

cusparseStatus_t hand_cusparseLtMatmulAlgGetAttribute(const cusparseLtHandle_t *handle,
	const cusparseLtMatmulAlgSelection_t *algSelection,
	cusparseLtMatmulAlgAttribute_t attribute, void *data, size_t dataSize)
{
	const struct sparselt_algorithm *a = sparselt_algorithm_of(algSelection);

	if (!a || !data || !algorithm_has(attribute, dataSize))
		return CUSPARSE_STATUS_INVALID_VALUE;
	if (!(a->content.algorithm.set & 1u << attribute))
		return sparselt_ask(handle, OP_cusparseLtMatmulAlgGetAttribute, a,
			CUSPARSELT_ITEM_ALGORITHM, attribute, data, dataSize);
	memcpy(data, &a->content.algorithm.value[attribute], dataSize);
	return CUSPARSE_STATUS_SUCCESS;
}

/* ---- plans ---- */

cusparseStatus_t hand_cusparseLtMatmulPlanInit(const cusparseLtHandle_t *handle,
	cusparseLtMatmulPlan_t *plan, const cusparseLtMatmulDescriptor_t *matmulDescr,
	const cusparseLtMatmulAlgSelection_t *algSelection)
{
	struct sparselt_product *product = sparselt_product_of(matmulDescr);
	struct sparselt_algorithm *algorithm = sparselt_algorithm_of(algSelection);
	struct sparselt_plan p = {.mark = SPARSELT_PLAN};
	cusparseStatus_t status;

	if (!plan || !product || !algorithm)
		return CUSPARSE_STATUS_INVALID_VALUE;
	p.product = product;
	p.product_number = product->number;
	p.algorithm = algorithm;
	p.algorithm_number = algorithm->number;
	p.content.product = product->content;
	p.content.algorithm = algorithm->content.algorithm;
	status = sparselt_check(handle, OP_cusparseLtMatmulPlanInit, &p, CUSPARSELT_ITEM_PLAN);
	if (!status)
		memcpy(plan, &p, sizeof(p));
	return status;
}

cusparseStatus_t hand_cusparseLtMatmulPlanDestroy(const cusparseLtMatmulPlan_t *plan)
{
	return sparselt_plan_of(plan) ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_INVALID_VALUE;
}

/* ---- products ---- */

struct matrices {
	const void *a, *b, *c;
	void *d, *workspace;
};

static void put_call(struct library_items *items, const cusparseLtMatmulPlan_t *plan,
	const void *alpha, const void *beta, const struct matrices *m,
	const cudaStream_t *streams, int32_t count)
{
	cusparselt_put_descriptor(items, plan, CUSPARSELT_ITEM_PLAN);
	library_require(items, count >= 0 && (!count || streams));
	library_put_placed(items, alpha, sizeof(float), cusparselt_alpha(items->mode), false);
	library_put_device(items, m->a);
	library_put_device(items, m->b);
	library_put_placed(items, beta, sizeof(float), cusparselt_beta(items->mode), false);
	library_put_device(items, m->c);
	library_put_device(items, m->d);
	library_put_device(items, m->workspace);
	library_put_stream(items, count > 0 && streams ? streams[0] : NULL);
}

cusparseStatus_t hand_cusparseLtMatmul(const cusparseLtHandle_t *handle,
	const cusparseLtMatmulPlan_t *plan, const void *alpha, const void *d_A, const void *d_B,
	const void *beta, const void *d_C, void *d_D, void *workspace, cudaStream_t *streams,
	int32_t numStreams)
{
	struct library_items items;

	library_begin(&items, &cusparselt_front, FRONT_COUNTED, OP_cusparseLtMatmul,
		LIBRARY_LEARNED, library_named(handle));
	put_call(&items, plan, alpha, beta, &(struct matrices){d_A, d_B, d_C, d_D, workspace},
		streams, numStreams);
	return library_send(&items);
}

/* What the search chose is the algorithm's from then on, and the plan's. */
static void choose(struct cusparselt_algorithm *a, const int32_t *chosen, uint32_t set)
{
	for (int i = 0; i < CUSPARSELT_ALGORITHM_ATTRIBUTES; i++)
		if (set & 1u << i)
			a->value[i] = chosen[i];
	a->searched |= set;
	a->set |= set;
}

cusparseStatus_t hand_cusparseLtMatmulSearch(const cusparseLtHandle_t *handle,
	cusparseLtMatmulPlan_t *plan, const void *alpha, const void *d_A, const void *d_B,
	const void *beta, const void *d_C, void *d_D, void *workspace, cudaStream_t *streams,
	int32_t numStreams)
{
	int32_t chosen[CUSPARSELT_ALGORITHM_ATTRIBUTES];
	struct sparselt_plan *p = sparselt_plan_of(plan);
	struct sparselt_algorithm *a;
	struct library_items items;
	cusparseStatus_t status;
	uint32_t set = 0;

	library_begin(&items, &cusparselt_front, FRONT_COUNTED, OP_cusparseLtMatmulSearch,
		LIBRARY_CALL, library_named(handle));
	put_call(&items, plan, alpha, beta, &(struct matrices){d_A, d_B, d_C, d_D, workspace},
		streams, numStreams);
	library_out(&items, &set, sizeof(set));
	for (int i = 0; i < CUSPARSELT_ALGORITHM_ATTRIBUTES; i++)
		library_out(&items, &chosen[i], sizeof(chosen[i]));
	status = library_send(&items);
	if (status)
		return status;
	choose(&p->content.algorithm, chosen, set);
	a = sparselt_algorithm_in(p);
	if (a)
		choose(&a->content.algorithm, chosen, set);
	return CUSPARSE_STATUS_SUCCESS;
}
