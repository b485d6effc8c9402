/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of two sparse matrices: csrgeam2, and SpGEAM of CUDA 13.
 */
#include <stdlib.h>

#include "softgpu/sparse/legacy.h"

struct geam {
	struct sparse_matrix a, b, c;
	struct sparse_scalar alpha, beta;
	struct legacy_count count; /* of C's entries */
	int ops[2];
};

/* The places of A and B, each once; *values, unless NULL, has alpha A + beta B there. */
static bool add(struct sparse_task *task, const struct geam *s, sparse_number alpha,
	sparse_number beta, struct sparse_entries *out, sparse_number **values)
{
	const struct sparse_matrix *const from[] = {&s->a, &s->b};
	const sparse_number factors[] = {alpha, beta};
	struct sparse_entries in[2] = {{0}};
	int64_t all = 0, kept = 0;
	sparse_number *v = NULL;

	*out = (struct sparse_entries){0};
	if (sparse_entries(task, from[0], 0, s->ops[0] != SPARSE_OP_N, &in[0]) &&
		sparse_entries(task, from[1], 0, s->ops[1] != SPARSE_OP_N, &in[1])) {
		all = in[0].count + in[1].count;
		out->list = sparse_scratch(task, all, sizeof(*out->list));
		v = sparse_scratch(task, 2 * all, sizeof(*v));
	}
	for (int m = 0; out->list && v && m < 2; m++)
		for (int64_t i = 0; i < in[m].count; i++) {
			struct sparse_entry *e = &out->list[out->count];

			*e = in[m].list[i];
			if (values)
				v[out->count] =
					factors[m] * sparse_entry_value(from[m], e, s->ops[m]);
			e->at = out->count++;
		}
	free(in[0].list);
	free(in[1].list);
	if (!out->list || !v) {
		free(out->list);
		free(v);
		return false;
	}
	sparse_sort(out);
	for (int64_t i = 0; i < all; i++) {
		struct sparse_entry e = out->list[i];

		if (!kept || out->list[kept - 1].row != e.row ||
			out->list[kept - 1].col != e.col) {
			out->list[kept] = e;
			out->list[kept].at = all + kept; /* the second half has the sums */
			kept++;
		}
		v[all + kept - 1] += v[e.at];
	}
	out->count = kept;
	if (values)
		*values = v;
	else
		free(v);
	return true;
}

static void count_run(struct sparse_task *task, void *arguments)
{
	struct geam *s = arguments;
	struct sparse_entries sum;

	if (!add(task, s, 0, 0, &sum, NULL))
		return;
	if (sparse_put_offsets(task, &s->c, &sum))
		legacy_count(task, &s->count, sum.count);
	free(sum.list);
}

/* Of a list, whose rows have no memory before their number is known. */
static void count_places_run(struct sparse_task *task, void *arguments)
{
	struct geam *s = arguments;
	struct sparse_entries sum;

	if (!add(task, s, 0, 0, &sum, NULL))
		return;
	legacy_count(task, &s->count, sum.count);
	free(sum.list);
}

static void sum_run(struct sparse_task *task, void *arguments)
{
	struct geam *s = arguments;
	struct sparse_entries sum;
	sparse_number alpha, beta, *values;

	if (!sparse_scalar_value(task, &s->alpha, &alpha) ||
		!sparse_scalar_value(task, &s->beta, &beta) ||
		!add(task, s, alpha, beta, &sum, &values))
		return;
	sparse_put(task, &s->c, &sum, values, 0);
	free(sum.list);
	free(values);
}

/* ---- csrgeam2 ---- */

static int check(struct sparse_handle *h, int m, int n, const struct legacy_descr *a, int nnz_a,
	const struct legacy_descr *b, int nnz_b, const struct legacy_descr *c)
{
	int status = legacy_check(h, m >= 0 && n >= 0 && nnz_a >= 0 && nnz_b >= 0 && b && c, a);

	return !status && (a->type || b->type || c->type) ? SPARSE_MATRIX_TYPE_NOT_SUPPORTED
							  : status;
}

CALL(cusparseXcsrgeam2Nnz, struct sparse_handle *h, int m, int n, const struct legacy_descr *a,
	int nnz_a, const int *offsets_a, const int *indices_a, const struct legacy_descr *b,
	int nnz_b, const int *offsets_b, const int *indices_b, const struct legacy_descr *c,
	int *offsets_c, int *nnz, void *work)
{
	int status = check(h, m, n, a, nnz_a, b, nnz_b, c);
	struct geam s;

	(void)work;
	if (status || !nnz)
		return status ? status : SPARSE_INVALID_VALUE;
	/* Values are not looked at: the places stand in for their memory, of the same size. */
	s = (struct geam){
		.a = legacy_csr(a, SPARSE_S, m, n, nnz_a, indices_a, offsets_a, indices_a),
		.b = legacy_csr(b, SPARSE_S, m, n, nnz_b, indices_b, offsets_b, indices_b),
		.c = legacy_csr(c, SPARSE_S, m, n, 0, NULL, offsets_c, NULL),
	};
	return legacy_submit_count(h, count_run, &s, sizeof(s), &s.count, nnz, NULL);
}

static int csrgeam(struct sparse_handle *h, int type, int m, int n, const void *alpha,
	const struct legacy_descr *a, int nnz_a, const void *values_a, const int *offsets_a,
	const int *indices_a, const void *beta, const struct legacy_descr *b, int nnz_b,
	const void *values_b, const int *offsets_b, const int *indices_b,
	const struct legacy_descr *c, void *values_c, int *offsets_c, int *indices_c)
{
	int status = check(h, m, n, a, nnz_a, b, nnz_b, c);

	if (status || !alpha || !beta)
		return status ? status : SPARSE_INVALID_VALUE;
	/* NVIDIA's reads them with instructions that want a double2 aligned, and dies
	 * otherwise. */
	if (type == SPARSE_Z && !h->pointer_mode && (((uintptr_t)alpha | (uintptr_t)beta) & 15))
		return SPARSE_EXECUTION_FAILED;
	return sparse_submit(h, sum_run,
		&(struct geam){
			.a = legacy_csr(a, type, m, n, nnz_a, values_a, offsets_a, indices_a),
			.b = legacy_csr(b, type, m, n, nnz_b, values_b, offsets_b, indices_b),
			.c = legacy_csr(c, type, m, n, 0, values_c, offsets_c, indices_c),
			.alpha = sparse_scalar(h, alpha, type),
			.beta = sparse_scalar(h, beta, type),
		},
		sizeof(struct geam), NULL);
}

#define GEAM(T)                                                                                \
	CALL(cusparse##T##csrgeam2_bufferSizeExt, struct sparse_handle *h, int m, int n,       \
		const void *alpha, const struct legacy_descr *a, int nnz_a,                    \
		const void *values_a, const int *offsets_a, const int *indices_a,              \
		const void *beta, const struct legacy_descr *b, int nnz_b,                     \
		const void *values_b, const int *offsets_b, const int *indices_b,              \
		const struct legacy_descr *c, const void *values_c, const int *offsets_c,      \
		const int *indices_c, size_t *size)                                            \
	{                                                                                      \
		(void)alpha, (void)beta, (void)values_a, (void)offsets_a, (void)indices_a;     \
		(void)values_b, (void)offsets_b, (void)indices_b;                              \
		(void)values_c, (void)offsets_c, (void)indices_c;                              \
		return legacy_tell_bytes(check(h, m, n, a, nnz_a, b, nnz_b, c), size);         \
	}                                                                                      \
	CALL(cusparse##T##csrgeam2, struct sparse_handle *h, int m, int n, const void *alpha,  \
		const struct legacy_descr *a, int nnz_a, const void *values_a,                 \
		const int *offsets_a, const int *indices_a, const void *beta,                  \
		const struct legacy_descr *b, int nnz_b, const void *values_b,                 \
		const int *offsets_b, const int *indices_b, const struct legacy_descr *c,      \
		void *values_c, int *offsets_c, int *indices_c, void *work)                    \
	{                                                                                      \
		(void)work;                                                                    \
		return csrgeam(h, SPARSE_##T, m, n, alpha, a, nnz_a, values_a, offsets_a,      \
			indices_a, beta, b, nnz_b, values_b, offsets_b, indices_b, c,          \
			values_c, offsets_c, indices_c);                                       \
	}
EACH_TYPE(GEAM)

/* ---- SpGEAM ---- */

/* Nothing stays between its calls: the places are found again. */
struct spgeam {
	char unused;
};

CALL(cusparseSpGEAM_createDescr, struct spgeam **descr)
{
	if (!descr)
		return SPARSE_INVALID_VALUE;
	*descr = calloc(1, sizeof(**descr));
	return *descr ? SPARSE_SUCCESS : SPARSE_ALLOC_FAILED;
}

CALL(cusparseSpGEAM_destroyDescr, struct spgeam *descr)
{
	if (!descr)
		return SPARSE_INVALID_VALUE;
	free(descr);
	return SPARSE_SUCCESS;
}

static int generic_check(struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	const struct sparse_matrix *a, const void *beta, const struct sparse_matrix *b,
	const struct sparse_matrix *c, int compute, const struct spgeam *descr)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	if (!sparse_op(op_a) || !sparse_op(op_b) || !alpha || !beta || !a || !b || !c ||
		!descr || sparse_op_rows(op_a, a->rows, a->cols) != c->rows ||
		sparse_op_rows(op_a, a->cols, a->rows) != c->cols ||
		sparse_op_rows(op_b, b->rows, b->cols) != c->rows ||
		sparse_op_rows(op_b, b->cols, b->rows) != c->cols)
		return SPARSE_INVALID_VALUE;
	if (!sparse_writable(c) || a->type != b->type || a->type != c->type ||
		!sparse_types(a->type, a->type, a->type, compute))
		return SPARSE_NOT_SUPPORTED;
	return SPARSE_SUCCESS;
}

static struct geam generic(const struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	const struct sparse_matrix *a, const void *beta, const struct sparse_matrix *b,
	const struct sparse_matrix *c, int compute)
{
	return (struct geam){
		.a = *a,
		.b = *b,
		.c = *c,
		.alpha = sparse_scalar(h, alpha, compute),
		.beta = sparse_scalar(h, beta, compute),
		.ops = {op_a, op_b},
	};
}

CALL(cusparseSpGEAM_bufferSize, struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	struct sparse_matrix *a, const void *beta, struct sparse_matrix *b,
	struct sparse_matrix *c, int compute, int alg, struct spgeam *descr, size_t *size)
{
	(void)alg;
	return legacy_tell_bytes(
		generic_check(h, op_a, op_b, alpha, a, beta, b, c, compute, descr), size);
}

CALL(cusparseSpGEAM_nnz, struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	struct sparse_matrix *a, const void *beta, struct sparse_matrix *b,
	struct sparse_matrix *c, int compute, int alg, struct spgeam *descr, void *buffer)
{
	int status = generic_check(h, op_a, op_b, alpha, a, beta, b, c, compute, descr);
	struct geam s;

	(void)alg;
	(void)buffer;
	if (status)
		return status;
	s = generic(h, op_a, op_b, alpha, a, beta, b, c, compute);
	status = sparse_finish(
		h, c->format == SPARSE_COO ? count_places_run : count_run, &s, sizeof(s), NULL);
	if (!status)
		c->nnz = s.count.value;
	return status;
}

CALL(cusparseSpGEAM, struct sparse_handle *h, int op_a, int op_b, const void *alpha,
	struct sparse_matrix *a, const void *beta, struct sparse_matrix *b,
	struct sparse_matrix *c, int compute, int alg, struct spgeam *descr, void *buffer)
{
	int status = generic_check(h, op_a, op_b, alpha, a, beta, b, c, compute, descr);
	struct geam s;

	(void)alg;
	(void)buffer;
	if (status)
		return status;
	s = generic(h, op_a, op_b, alpha, a, beta, b, c, compute);
	return sparse_submit(h, sum_run, &s, sizeof(s), NULL);
}
