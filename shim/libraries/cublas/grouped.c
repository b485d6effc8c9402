/* SPDX-License-Identifier: Apache-2.0
 *
 * Products in groups: the lists that lie on the host become one list of shapes and one of
 * scalars; those of addresses lie on the device and cross as they are.  More groups than one
 * frame takes go in several.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/generated/cublas_hand.h"
#include "protocol/generated/cublas_ops.h"
#include "shim/libraries/common/plain.h"

/* The app's lists; numbers are int, or int64_t where `wide`. */
struct lists {
	bool wide;
	const cublasOperation_t *transa, *transb;
	const void *m, *n, *k, *lda, *ldb, *ldc, *size;
	const void *alpha, *beta;
	uint32_t each; /* bytes of a scalar */
	uint64_t a, b, c;
};

/* Number I of a list; false: there is no list, or it does not fit what the library takes. */
static bool number(const struct lists *l, const void *list, int64_t i, int32_t *to)
{
	int64_t value;

	if (!list)
		return false;
	value = l->wide ? ((const int64_t *)list)[i] : ((const int *)list)[i];
	*to = (int32_t)value;
	return *to == value;
}

static bool shape(const struct lists *l, int64_t i, struct cublas_group *g)
{
	g->transa = l->transa[i];
	g->transb = l->transb[i];
	return number(l, l->m, i, &g->m) && number(l, l->n, i, &g->n) &&
	       number(l, l->k, i, &g->k) && number(l, l->lda, i, &g->lda) &&
	       number(l, l->ldb, i, &g->ldb) && number(l, l->ldc, i, &g->ldc) &&
	       number(l, l->size, i, &g->size) && g->size >= 0;
}

/* Groups [first, first + count); `products` is how many came before. */
static cublasStatus_t send_groups(cublasHandle_t handle, const struct lists *l,
	const struct wire_cublasGemmGroupedBatchedEx *fixed, int64_t first, uint32_t count,
	uint64_t *products)
{
	uint32_t shapes = count * (uint32_t)sizeof(struct cublas_group);
	uint32_t scalars = count * (uint32_t)sizeof(struct cublas_group_scalars);
	uint32_t key_to = (uint32_t)sizeof(*fixed) + shapes;
	uint32_t bytes = key_to + scalars + 3 * (uint32_t)sizeof(uint64_t);
	struct wire_cublasGemmGroupedBatchedEx *body = calloc(1, bytes);
	struct cublas_group_scalars *values;
	struct cublas_group *groups;
	uint64_t *places, skip = *products * sizeof(void *);
	struct library_call call;
	cublasStatus_t status;

	if (!body)
		return CUBLAS_STATUS_ALLOC_FAILED;
	*body = *fixed;
	body->groups = count;
	body->shapes = (struct wire_run){(uint32_t)sizeof(*body), shapes};
	body->scalars = (struct wire_run){key_to, scalars};
	body->places = (struct wire_run){key_to + scalars, 3 * (uint32_t)sizeof(*places)};
	groups = (void *)((char *)body + body->shapes.offset);
	values = (void *)((char *)body + body->scalars.offset);
	places = (void *)((char *)body + body->places.offset);
	places[0] = l->a + skip;
	places[1] = l->b + skip;
	places[2] = l->c + skip;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t at = (uint64_t)(first + i) * l->each;

		if (!shape(l, first + i, &groups[i])) {
			free(body);
			return CUBLAS_STATUS_INVALID_VALUE;
		}
		memcpy(&values[i].alpha, (const char *)l->alpha + at, l->each);
		memcpy(&values[i].beta, (const char *)l->beta + at, l->each);
		*products += (uint64_t)groups[i].size;
	}
	vcuda_library_begin(&call, &cublas_front, FRONT_COUNTED, handle, &body->state);
	status = vcuda_library_send(
		&call, OP_cublasGemmGroupedBatchedEx, body, bytes, key_to, NULL, 0);
	free(body);
	return status;
}

static cublasStatus_t grouped(cublasHandle_t handle, const struct lists *l,
	const struct wire_cublasGemmGroupedBatchedEx *fixed, int64_t count)
{
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
	uint64_t products = 0;

	if (!vcuda_library_find(&cublas_front, handle))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (count < 0 || (count && (!l->transa || !l->transb || !l->alpha || !l->beta)))
		return CUBLAS_STATUS_INVALID_VALUE;
	/* The scalars are lists on the host, whatever the mode. */
	if (vcuda_library_on_device(&cublas_front, handle) || !l->each ||
		l->each > sizeof(uint64_t))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	for (int64_t i = 0; !status && i < count; i += CUBLAS_GROUPS_MAX) {
		int64_t n = count - i < CUBLAS_GROUPS_MAX ? count - i : CUBLAS_GROUPS_MAX;

		status = send_groups(handle, l, fixed, i, (uint32_t)n, &products);
	}
	return status;
}

#define LISTS(WIDE, EACH)                                                                      \
	&(struct lists)                                                                        \
	{                                                                                      \
		.wide = WIDE, .transa = transa_array, .transb = transb_array, .m = m_array,    \
		.n = n_array, .k = k_array, .lda = lda_array, .ldb = ldb_array,                \
		.ldc = ldc_array, .size = group_size, .alpha = alpha_array,                    \
		.beta = beta_array, .each = EACH, .a = (uint64_t)(uintptr_t)Aarray,            \
		.b = (uint64_t)(uintptr_t)Barray, .c = (uint64_t)(uintptr_t)Carray             \
	}
#define PLAIN(NAME, TYPE, NUMBER, WIDE, WHICH)                                                 \
	cublasStatus_t hand_##NAME(cublasHandle_t handle,                                      \
		const cublasOperation_t transa_array[],                                        \
		const cublasOperation_t transb_array[], const NUMBER m_array[],                \
		const NUMBER n_array[], const NUMBER k_array[], const TYPE alpha_array[],      \
		const TYPE *const Aarray[], const NUMBER lda_array[],                          \
		const TYPE *const Barray[], const NUMBER ldb_array[], const TYPE beta_array[], \
		TYPE *const Carray[], const NUMBER ldc_array[], NUMBER group_count,            \
		const NUMBER group_size[])                                                     \
	{                                                                                      \
		const struct wire_cublasGemmGroupedBatchedEx fixed = {.which = WHICH};         \
                                                                                               \
		return grouped(handle, LISTS(WIDE, sizeof(TYPE)), &fixed, group_count);        \
	}
#define EXTENDED(NAME, NUMBER, WIDE)                                                           \
	cublasStatus_t hand_##NAME(cublasHandle_t handle,                                      \
		const cublasOperation_t transa_array[],                                        \
		const cublasOperation_t transb_array[], const NUMBER m_array[],                \
		const NUMBER n_array[], const NUMBER k_array[], const void *alpha_array,       \
		const void *const Aarray[], cudaDataType_t Atype, const NUMBER lda_array[],    \
		const void *const Barray[], cudaDataType_t Btype, const NUMBER ldb_array[],    \
		const void *beta_array, void *const Carray[], cudaDataType_t Ctype,            \
		const NUMBER ldc_array[], NUMBER group_count, const NUMBER group_size[],       \
		cublasComputeType_t computeType)                                               \
	{                                                                                      \
		const struct wire_cublasGemmGroupedBatchedEx fixed = {                         \
			.which = CUBLAS_GROUPED_EX,                                            \
			.a_type = (int32_t)Atype,                                              \
			.b_type = (int32_t)Btype,                                              \
			.c_type = (int32_t)Ctype,                                              \
			.compute = computeType};                                               \
                                                                                               \
		return grouped(handle, LISTS(WIDE, cublas_compute_bytes(computeType, Ctype)),  \
			&fixed, group_count);                                                  \
	}
PLAIN(cublasSgemmGroupedBatched, float, int, false, CUBLAS_GROUPED_S)
PLAIN(cublasSgemmGroupedBatched_64, float, int64_t, true, CUBLAS_GROUPED_S)
PLAIN(cublasDgemmGroupedBatched, double, int, false, CUBLAS_GROUPED_D)
PLAIN(cublasDgemmGroupedBatched_64, double, int64_t, true, CUBLAS_GROUPED_D)
EXTENDED(cublasGemmGroupedBatchedEx, int, false)
EXTENDED(cublasGemmGroupedBatchedEx_64, int64_t, true)
