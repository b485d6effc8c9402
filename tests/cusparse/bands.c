/* SPDX-License-Identifier: Apache-2.0
 *
 * Systems with three and with five diagonals in each type: many right sides, batches one after
 * another and interleaved.
 */
#include "tests/cusparse/check.h"

/* Vectors of a batch: element i of vector b is at b * stride + i * step. */
struct layout {
	int m, batches, stride, step;
};

static int at(const struct layout *l, int batch, int i)
{
	return batch * l->stride + i * l->step;
}

static int elements(const struct layout *l)
{
	return l->step == 1 ? l->batches * l->stride : l->m * l->batches;
}

/* Diagonal d of the five has element i of row i, in column i + d - 2; 0 beyond the matrix. */
struct bands {
	number *diagonals[5], *b;
	void *on_device[5], *x;
};

static struct bands bands(cudaDataType t, const struct layout *l, int first, int last)
{
	struct bands s;

	for (int d = 0; d < 5; d++) {
		s.diagonals[d] = some(t, elements(l));
		for (int i = 0; i < elements(l); i++)
			s.diagonals[d][i] = d < first || d > last ? 0
					    : d == 2		  ? 8 + s.diagonals[d][i]
								  : s.diagonals[d][i] / 2;
		for (int n = 0; n < l->batches; n++)
			for (int i = 0; i < l->m; i++)
				if (i + d - 2 < 0 || i + d - 2 >= l->m)
					s.diagonals[d][at(l, n, i)] = 0;
		s.on_device[d] = put(t, s.diagonals[d], elements(l));
	}
	s.b = some(t, elements(l));
	s.x = put(t, s.b, elements(l));
	return s;
}

static void bands_free(struct bands *s)
{
	for (int d = 0; d < 5; d++) {
		free(s->diagonals[d]);
		release(s->on_device[d]);
	}
	free(s->b);
	release(s->x);
}

static void residual(
	cudaDataType t, const struct layout *l, const struct bands *s, const char *what)
{
	number *x = get(t, s->x, elements(l));

	for (int n = 0; n < l->batches; n++)
		for (int i = 0; i < l->m; i++) {
			number sum = 0;

			for (int d = 0; d < 5; d++) {
				int j = i + d - 2;

				if (j >= 0 && j < l->m)
					sum += s->diagonals[d][at(l, n, i)] * x[at(l, n, j)];
			}
			near(t, &sum, &s->b[at(l, n, i)], 1, what);
		}
	free(x);
}

/* One matrix, n right sides: each is a batch of its own with the same diagonals. */
static void sides(enum type type, int m, int n, bool pivots)
{
	cudaDataType t = letters[type];
	struct layout one = {m, 1, m, 1}, all = {m, n, m, 1};
	struct bands s = bands(t, &one, 1, 3);
	void *work;
	size_t bytes = 0;

	free(s.b);
	release(s.x);
	s.b = some(t, m * n);
	s.x = put(t, s.b, m * n);
	if (pivots)
		SPARSE(TYPED(type, gtsv2_bufferSizeExt, handle, m, n, s.on_device[1],
			s.on_device[2], s.on_device[3], s.x, m, &bytes));
	else
		SPARSE(TYPED(type, gtsv2_nopivot_bufferSizeExt, handle, m, n, s.on_device[1],
			s.on_device[2], s.on_device[3], s.x, m, &bytes));
	work = device(bytes);
	if (pivots)
		SPARSE(TYPED(type, gtsv2, handle, m, n, s.on_device[1], s.on_device[2],
			s.on_device[3], s.x, m, work));
	else
		SPARSE(TYPED(type, gtsv2_nopivot, handle, m, n, s.on_device[1], s.on_device[2],
			s.on_device[3], s.x, m, work));
	for (int d = 0; d < 5; d++) {
		number *repeated = host((size_t)(m * n) * sizeof(*repeated));

		for (int i = 0; i < m * n; i++)
			repeated[i] = s.diagonals[d][i % m];
		free(s.diagonals[d]);
		s.diagonals[d] = repeated;
	}
	residual(t, &all, &s, "gtsv2");
	bands_free(&s);
	release(work);
}

static void strided(enum type type, int m, int batches)
{
	struct layout l = {m, batches, m + 3, 1};
	cudaDataType t = letters[type];
	struct bands s = bands(t, &l, 1, 3);
	size_t bytes = 0;
	void *work;

	SPARSE(TYPED(type, gtsv2StridedBatch_bufferSizeExt, handle, m, s.on_device[1],
		s.on_device[2], s.on_device[3], s.x, batches, l.stride, &bytes));
	work = device(bytes);
	SPARSE(TYPED(type, gtsv2StridedBatch, handle, m, s.on_device[1], s.on_device[2],
		s.on_device[3], s.x, batches, l.stride, work));
	residual(t, &l, &s, "gtsv2StridedBatch");
	bands_free(&s);
	release(work);
}

static void interleaved(enum type type, int m, int batches, int algorithm)
{
	struct layout l = {m, batches, 1, batches};
	cudaDataType t = letters[type];
	struct bands s = bands(t, &l, 1, 3);
	size_t bytes = 0;
	void *work;

	SPARSE(TYPED(type, gtsvInterleavedBatch_bufferSizeExt, handle, algorithm, m,
		s.on_device[1], s.on_device[2], s.on_device[3], s.x, batches, &bytes));
	work = device(bytes);
	SPARSE(TYPED(type, gtsvInterleavedBatch, handle, algorithm, m, s.on_device[1],
		s.on_device[2], s.on_device[3], s.x, batches, work));
	residual(t, &l, &s, "gtsvInterleavedBatch");
	bands_free(&s);
	release(work);
}

static void five(enum type type, int m, int batches)
{
	struct layout l = {m, batches, 1, batches};
	cudaDataType t = letters[type];
	struct bands s = bands(t, &l, 0, 4);
	size_t bytes = 0;
	void *work;

	SPARSE(TYPED(type, gpsvInterleavedBatch_bufferSizeExt, handle, 0, m, s.on_device[0],
		s.on_device[1], s.on_device[2], s.on_device[3], s.on_device[4], s.x, batches,
		&bytes));
	work = device(bytes);
	SPARSE(TYPED(type, gpsvInterleavedBatch, handle, 0, m, s.on_device[0], s.on_device[1],
		s.on_device[2], s.on_device[3], s.on_device[4], s.x, batches, work));
	residual(t, &l, &s, "gpsvInterleavedBatch");
	bands_free(&s);
	release(work);
}

int main(void)
{
	static const int sizes[] = {4, 7, 32, 131};

	begin();
	for (int t = 0; t < 4; t++)
		for (int s = 0; s < 4; s++) {
			sides((enum type)t, sizes[s], 3, true);
			sides((enum type)t, sizes[s], 3, false);
			strided((enum type)t, sizes[s], 5);
			interleaved((enum type)t, sizes[s], 5, s % 3);
			five((enum type)t, sizes[s], 5);
		}
	SPARSE(cusparseDestroy(handle));
	return 0;
}
