/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse vectors with dense ones in each type: sums, inner products to the host and the device,
 * gathering, scattering, rotation; what their descriptors tell.
 */
#include "tests/cusparse/check.h"

struct vectors {
	cudaDataType t;
	int64_t size, nnz;
	int64_t *places;
	number *x, *y; /* as the host has them */
	void *dx, *dy, *di;
	cusparseSpVecDescr_t sparse;
	cusparseDnVecDescr_t dense;
};

static struct vectors vectors(
	cudaDataType t, int64_t size, cusparseIndexType_t index, cusparseIndexBase_t base)
{
	struct vectors v = {.t = t, .size = size};
	int64_t *given = host((size_t)size * sizeof(*given));

	v.places = host((size_t)size * sizeof(*v.places));
	for (int64_t i = 0; i < size; i++)
		if (i == 0 || chance() % 3 == 0) {
			given[v.nnz] = i + base;
			v.places[v.nnz++] = i;
		}
	v.x = some(t, v.nnz);
	v.y = some(t, size);
	v.dx = put(t, v.x, v.nnz);
	v.dy = put(t, v.y, size);
	v.di = put_indices(index, given, v.nnz);
	SPARSE(cusparseCreateSpVec(&v.sparse, size, v.nnz, v.di, v.dx, index, base, t));
	SPARSE(cusparseCreateDnVec(&v.dense, size, v.dy, t));
	free(given);
	return v;
}

static void vectors_free(struct vectors *v)
{
	SPARSE(cusparseDestroySpVec(v->sparse));
	SPARSE(cusparseDestroyDnVec(v->dense));
	release(v->dx);
	release(v->dy);
	release(v->di);
	free(v->x);
	free(v->y);
	free(v->places);
}

static void sums(struct vectors *v)
{
	number alpha = is_complex(v->t) ? CMPLX(0.5, 1) : -1.5, beta = 0.25;
	char a[16], b[16];

	number_out(v->t, a, 0, alpha);
	number_out(v->t, b, 0, beta);
	SPARSE(cusparseAxpby(handle, a, v->sparse, b, v->dense));
	for (int64_t i = 0; i < v->size; i++)
		v->y[i] *= beta;
	for (int64_t i = 0; i < v->nnz; i++)
		v->y[v->places[i]] += alpha * v->x[i];
	same(v->t, v->dy, v->y, v->size, "Axpby");
}

static void inner(struct vectors *v, bool conjugate, bool on_device)
{
	cusparseOperation_t op = conjugate ? CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE
					   : CUSPARSE_OPERATION_NON_TRANSPOSE;
	void *to = on_device ? device(16) : host(16), *work;
	number want = 0, got;
	size_t bytes = 0;

	SPARSE(cusparseSetPointerMode(
		handle, on_device ? CUSPARSE_POINTER_MODE_DEVICE : CUSPARSE_POINTER_MODE_HOST));
	SPARSE(cusparseSpVV_bufferSize(handle, op, v->sparse, v->dense, to, v->t, &bytes));
	work = device(bytes);
	SPARSE(cusparseSpVV(handle, op, v->sparse, v->dense, to, v->t, work));
	SPARSE(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST));
	for (int64_t i = 0; i < v->nnz; i++)
		want += op_number(op, v->x[i]) * v->y[v->places[i]];
	if (on_device) {
		same(v->t, to, &want, 1, "SpVV");
		release(to);
	} else {
		got = number_in(v->t, to, 0);
		near(v->t, &got, &want, 1, "SpVV");
		free(to);
	}
	release(work);
}

static void moves(struct vectors *v)
{
	number c = 0.5, s = is_complex(v->t) ? CMPLX(0.25, -0.5) : -0.75;
	char a[16], b[16];

	number_out(v->t, a, 0, c);
	number_out(v->t, b, 0, s);
	if (!is_complex(v->t)) {
		SPARSE(cusparseRot(handle, a, b, v->sparse, v->dense));
		for (int64_t i = 0; i < v->nnz; i++) {
			number *x = &v->x[i], *y = &v->y[v->places[i]], old = *x;

			*x = c * old + s * *y;
			*y = c * *y - s * old;
		}
		same(v->t, v->dx, v->x, v->nnz, "Rot, x");
		same(v->t, v->dy, v->y, v->size, "Rot, y");
	}
	for (int64_t i = 0; i < v->nnz; i++)
		v->x[i] = v->y[v->places[i]];
	SPARSE(cusparseGather(handle, v->dense, v->sparse));
	same(v->t, v->dx, v->x, v->nnz, "Gather");
	CUDA(cuMemsetD8((CUdeviceptr)(uintptr_t)v->dy, 0, (size_t)v->size * size_of(v->t)));
	memset(v->y, 0, (size_t)v->size * sizeof(*v->y));
	for (int64_t i = 0; i < v->nnz; i++)
		v->y[v->places[i]] = v->x[i];
	SPARSE(cusparseScatter(handle, v->sparse, v->dense));
	same(v->t, v->dy, v->y, v->size, "Scatter");
}

static void told(const struct vectors *v, cusparseIndexType_t index, cusparseIndexBase_t base)
{
	int64_t size, nnz;
	void *places, *values;
	cusparseIndexType_t type;
	cusparseIndexBase_t from;
	cudaDataType t;

	SPARSE(cusparseSpVecGet(v->sparse, &size, &nnz, &places, &values, &type, &from, &t));
	CHECK(size == v->size && nnz == v->nnz && places == v->di && values == v->dx &&
			type == index && from == base && t == v->t,
		"SpVecGet told something else");
	SPARSE(cusparseDnVecGet(v->dense, &size, &values, &t));
	CHECK(size == v->size && values == v->dy && t == v->t, "DnVecGet told something else");
}

int main(void)
{
	static const int sizes[] = {1, 7, 64, 131};

	begin();
	for (int t = 0; t < 4; t++)
		for (int s = 0; s < 4; s++) {
			cusparseIndexType_t index =
				s % 2 ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;
			cusparseIndexBase_t base =
				s / 2 ? CUSPARSE_INDEX_BASE_ONE : CUSPARSE_INDEX_BASE_ZERO;
			struct vectors v = vectors(letters[t], sizes[s], index, base);

			told(&v, index, base);
			sums(&v);
			inner(&v, is_complex(letters[t]) && s % 2, s / 2);
			moves(&v);
			vectors_free(&v);
		}
	SPARSE(cusparseDestroy(handle));
	return 0;
}
