/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors, algorithms and plans as they travel.
 */
#include "shim/libraries/cusparselt/cusparselt.h"

/* The program's memory, if its first word is that. */
static void *marked(const void *at, uint64_t mark)
{
	uint64_t first = 0;

	if (at)
		memcpy(&first, at, sizeof(first));
	return first == mark ? (void *)(uintptr_t)at : NULL;
}

struct sparselt_matrix *sparselt_matrix_of(const cusparseLtMatDescriptor_t *descriptor)
{
	return marked(descriptor, SPARSELT_MATRIX);
}

struct sparselt_product *sparselt_product_of(const cusparseLtMatmulDescriptor_t *descriptor)
{
	return marked(descriptor, SPARSELT_PRODUCT);
}

struct sparselt_algorithm *sparselt_algorithm_of(
	const cusparseLtMatmulAlgSelection_t *algorithm)
{
	return marked(algorithm, SPARSELT_ALGORITHM);
}

struct sparselt_plan *sparselt_plan_of(const cusparseLtMatmulPlan_t *plan)
{
	return marked(plan, SPARSELT_PLAN);
}

static const struct sparselt_product *product_in(const struct sparselt_plan *plan)
{
	const struct sparselt_product *p = plan->product;

	return p->mark == SPARSELT_PRODUCT && p->number == plan->product_number ? p : NULL;
}

struct sparselt_algorithm *sparselt_algorithm_in(const struct sparselt_plan *plan)
{
	struct sparselt_algorithm *a = plan->algorithm;

	return a->mark == SPARSELT_ALGORITHM && a->number == plan->algorithm_number ? a : NULL;
}

static void put_matrix(struct library_items *items, const struct cusparselt_matrix *content)
{
	void *to = library_put_content(items, CUSPARSELT_ITEM_MATRIX, sizeof(*content) / 4);

	if (to)
		memcpy(to, content, sizeof(*content));
}

/* With an algorithm or, NULL, without. */
static void put_product(struct library_items *items, uint32_t kind,
	const struct cusparselt_product *product, const struct cusparselt_algorithm *algorithm)
{
	struct cusparselt_plan content = {.product = *product};
	size_t bytes = algorithm ? sizeof(content) : sizeof(content.product);
	uint64_t *value = content.product.value;
	void *to;

	items->mode = cusparselt_mode(product);
	for (int i = 0; i < CUSPARSELT_PRODUCT_ATTRIBUTES; i++) {
		if (!cusparselt_is_address(i) || !value[i])
			continue;
		library_put_address(items, value[i]);
		value[i] = library_alignment(value[i]);
	}
	if (algorithm)
		content.algorithm = *algorithm;
	to = library_put_content(items, kind, (uint32_t)bytes / 4);
	if (to)
		memcpy(to, &content, bytes);
}

static void put_plan(struct library_items *items, const struct sparselt_plan *plan)
{
	const struct sparselt_product *product = product_in(plan);
	const struct sparselt_algorithm *algorithm = sparselt_algorithm_in(plan);

	put_product(items, CUSPARSELT_ITEM_PLAN,
		product ? &product->content : &plan->content.product,
		algorithm ? &algorithm->content.algorithm : &plan->content.algorithm);
}

void cusparselt_put_descriptor(
	struct library_items *items, const void *descriptor, uint32_t kind)
{
	const struct sparselt_matrix *matrix = NULL;
	const struct sparselt_product *product = NULL;
	const struct sparselt_algorithm *algorithm = NULL;
	const struct sparselt_plan *plan = NULL;

	switch (kind) {
	case CUSPARSELT_ITEM_MATRIX: matrix = sparselt_matrix_of(descriptor); break;
	case CUSPARSELT_ITEM_PRODUCT: product = sparselt_product_of(descriptor); break;
	case CUSPARSELT_ITEM_ALGORITHM: algorithm = sparselt_algorithm_of(descriptor); break;
	default: plan = sparselt_plan_of(descriptor);
	}
	if (matrix)
		put_matrix(items, &matrix->content);
	else if (product)
		put_product(items, kind, &product->content, NULL);
	else if (algorithm)
		put_product(items, kind, &algorithm->content.product,
			&algorithm->content.algorithm);
	else if (plan)
		put_plan(items, plan);
	else
		library_fault(items, CUSPARSE_STATUS_INVALID_VALUE, NULL);
}

cusparseStatus_t sparselt_check(
	const cusparseLtHandle_t *handle, uint16_t op, const void *descriptor, uint32_t kind)
{
	struct library_items items;

	library_begin(&items, &cusparselt_front, FRONT_COUNTED, op, LIBRARY_CACHED,
		library_named(handle));
	cusparselt_put_descriptor(&items, descriptor, kind);
	return library_send(&items);
}

cusparseStatus_t sparselt_ask(const cusparseLtHandle_t *handle, uint16_t op,
	const void *descriptor, uint32_t kind, int attribute, void *data, size_t bytes)
{
	struct library_items items;

	library_begin(&items, &cusparselt_front, FRONT_COUNTED, op, LIBRARY_CACHED,
		library_named(handle));
	cusparselt_put_descriptor(&items, descriptor, kind);
	library_put_int(&items, (uint32_t)attribute);
	library_require(&items, data && (bytes == 4 || bytes == 8));
	library_put_int(&items, (uint32_t)bytes);
	library_out(&items, data, bytes);
	return library_send(&items);
}
