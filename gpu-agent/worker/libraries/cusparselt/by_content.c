/* SPDX-License-Identifier: Apache-2.0
 *
 * Of a content the library's descriptors, algorithm and plan are made once: planning costs more
 * than a product, and programs make a plan for each.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/libraries/cusparselt/cusparselt.h"

#define KEPT_MAX 64 /* of a handle; what was used longest ago goes first */

static int make_matrix(const struct sparselt_handle *h, const struct cusparselt_matrix *m,
	struct sparselt_object *to)
{
	const struct cusparselt_library *l = h->library;
	const cusparseLtHandle_t *own = (const void *)&h->own;
	cusparseLtMatDescriptor_t *d = (void *)to;
	int status;

	status = m->sparsity ? l->cusparseLtStructuredDescriptorInit(own, d, m->rows, m->cols,
				       m->ld, m->alignment, (cudaDataType)m->type, m->order,
				       m->sparsity - 1)
			     : l->cusparseLtDenseDescriptorInit(own, d, m->rows, m->cols, m->ld,
				       m->alignment, (cudaDataType)m->type, m->order);
	for (int i = 0; !status && i < CUSPARSELT_MATRIX_ATTRIBUTES; i++)
		if (m->set & 1u << i)
			status = l->cusparseLtMatDescSetAttribute(own, d, i, &m->value[i],
				i == CUSPARSELT_MAT_NUM_BATCHES ? sizeof(int)
								: sizeof(int64_t));
	return status;
}

static int make_product(const struct sparselt_handle *h, struct sparselt_kept *k)
{
	const struct cusparselt_library *l = h->library;
	const cusparseLtHandle_t *own = (const void *)&h->own;
	const struct cusparselt_product *p = &k->content.product;
	cusparseLtMatmulDescriptor_t *d = (void *)&k->product;
	int status = l->cusparseLtMatmulDescriptorInit(own, d, p->op_a, p->op_b,
		(void *)&k->matrix[CUSPARSELT_A], (void *)&k->matrix[CUSPARSELT_B],
		(void *)&k->matrix[CUSPARSELT_C], (void *)&k->matrix[CUSPARSELT_D], p->compute);

	for (int i = 0; !status && i < CUSPARSELT_PRODUCT_ATTRIBUTES; i++)
		if (p->set & 1u << i)
			status = l->cusparseLtMatmulDescSetAttribute(
				own, d, i, &p->value[i], cusparselt_product_bytes(i));
	return status;
}

/* What a search chose may be what there is without it, and need not be anything that a program
 * may set. */
static void set_searched(const struct sparselt_handle *h, cusparseLtMatmulAlgSelection_t *a,
	int attribute, int value)
{
	const struct cusparselt_library *l = h->library;
	const cusparseLtHandle_t *own = (const void *)&h->own;
	int now;

	if (l->cusparseLtMatmulAlgGetAttribute(own, a, attribute, &now, sizeof(now)) ||
		now != value)
		l->cusparseLtMatmulAlgSetAttribute(own, a, attribute, &value, sizeof(value));
}

static int make_algorithm(const struct sparselt_handle *h, struct sparselt_kept *k)
{
	const struct cusparselt_library *l = h->library;
	const cusparseLtHandle_t *own = (const void *)&h->own;
	const struct cusparselt_algorithm *said = &k->content.algorithm;
	cusparseLtMatmulAlgSelection_t *a = (void *)&k->algorithm;
	int status = l->cusparseLtMatmulAlgSelectionInit(
		own, a, (void *)&k->product, said->algorithm);

	k->has_algorithm = !status;
	for (int i = 0; !status && i < CUSPARSELT_ALGORITHM_ATTRIBUTES; i++) {
		if (said->searched & 1u << i)
			set_searched(h, a, i, said->value[i]);
		else if (said->set & 1u << i)
			status = l->cusparseLtMatmulAlgSetAttribute(
				own, a, i, &said->value[i], sizeof(said->value[i]));
	}
	return status;
}

static int make(const struct sparselt_handle *h, struct sparselt_kept *k)
{
	const struct cusparselt_library *l = h->library;
	uint32_t wanted = k->kind == CUSPARSELT_ITEM_MATRIX ? 1 : CUSPARSELT_MATRICES;
	int status = 0;

	while (!status && k->matrices < wanted) {
		status = make_matrix(
			h, &k->content.product.matrix[k->matrices], &k->matrix[k->matrices]);
		k->matrices += !status;
	}
	if (!status && k->kind != CUSPARSELT_ITEM_MATRIX)
		status = make_product(h, k);
	if (!status && k->kind >= CUSPARSELT_ITEM_ALGORITHM)
		status = make_algorithm(h, k);
	if (!status && k->kind == CUSPARSELT_ITEM_PLAN) {
		status = l->cusparseLtMatmulPlanInit((const void *)&h->own, (void *)&k->plan,
			(void *)&k->product, (void *)&k->algorithm);
		k->has_plan = !status;
	}
	return status;
}

static void unmake(const struct sparselt_handle *h, struct sparselt_kept *k)
{
	const struct cusparselt_library *l = h->library;

	if (k->has_plan)
		l->cusparseLtMatmulPlanDestroy((void *)&k->plan);
	if (k->has_algorithm && l->cusparseLtMatmulAlgSelectionDestroy) /* 0.7 has none */
		l->cusparseLtMatmulAlgSelectionDestroy((void *)&k->algorithm);
	while (k->matrices)
		l->cusparseLtMatDescriptorDestroy((void *)&k->matrix[--k->matrices]);
	free(k);
}

void *sparselt_object_in(struct sparselt_kept *k)
{
	switch (k->kind) {
	case CUSPARSELT_ITEM_MATRIX: return &k->matrix[0];
	case CUSPARSELT_ITEM_PRODUCT: return &k->product;
	case CUSPARSELT_ITEM_ALGORITHM: return &k->algorithm;
	default: return &k->plan;
	}
}

/* Taken out of the list; NULL: it is not there. */
static struct sparselt_kept *take(
	struct sparselt_handle *h, uint32_t kind, const struct cusparselt_plan *content)
{
	struct sparselt_kept **at = &h->kept, *k;

	for (; (k = *at); at = &k->next)
		if (k->kind == kind && !memcmp(&k->content, content, sizeof(*content))) {
			*at = k->next;
			return k;
		}
	return NULL;
}

static void put_first(struct sparselt_handle *h, struct sparselt_kept *k)
{
	struct sparselt_kept **at = &h->kept;

	k->next = h->kept;
	h->kept = k;
	for (int i = 0; *at && i < KEPT_MAX; i++)
		at = &(*at)->next;
	if (*at) {
		unmake(h, *at);
		*at = NULL;
	}
}

struct sparselt_kept *sparselt_keep(struct sparselt_handle *h, uint32_t kind,
	const struct cusparselt_plan *content, int *status)
{
	struct sparselt_kept *k = take(h, kind, content);

	*status = CUSPARSE_STATUS_SUCCESS;
	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k) {
			*status = CUSPARSE_STATUS_ALLOC_FAILED;
			return NULL;
		}
		k->kind = kind;
		k->content = *content;
		*status = make(h, k);
		if (*status) {
			unmake(h, k);
			return NULL;
		}
	}
	put_first(h, k);
	return k;
}

void sparselt_drop(struct sparselt_handle *h, const void *plan)
{
	for (struct sparselt_kept **at = &h->kept, *k; (k = *at); at = &k->next)
		if (&k->plan == plan) {
			*at = k->next;
			unmake(h, k);
			return;
		}
}

void sparselt_drop_all(struct sparselt_handle *h)
{
	while (h->kept) {
		struct sparselt_kept *k = h->kept;

		h->kept = k->next;
		unmake(h, k);
	}
}
