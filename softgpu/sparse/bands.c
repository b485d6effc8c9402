/* SPDX-License-Identifier: Apache-2.0
 *
 * Systems with three and with five diagonals: one matrix with many right sides, and batches,
 * one after another or interleaved. All are solved by elimination with row exchanges, which is
 * right where a form without them is.
 */
#include <math.h>
#include <stdlib.h>

#include "softgpu/sparse/legacy.h"

#define ANY(POINTER) ((void *)(uintptr_t)(POINTER))

enum { DIAGONALS = 5, MIDDLE = 2 }; /* two below, the main one, two above */
enum { WIDTH = 7 };		    /* exchanges bring two more above */

struct bands {
	void *diagonals[DIAGONALS]; /* NULL: none */
	void *x;		    /* right sides, then solutions */
	int type, m, sides, ld;	    /* sides of the same matrix */
	int batches;
	int64_t step, stride; /* of elements of a vector, and of vectors of a batch */
};

/* A row of the band: column j is at row[j - i + 2]. */
static void eliminate(sparse_number (*band)[WIDTH], sparse_number *x, int64_t m, int64_t k)
{
	int64_t best = k;

	for (int64_t i = k + 1; i <= k + MIDDLE && i < m; i++)
		if (cabs(band[i][k - i + MIDDLE]) > cabs(band[best][k - best + MIDDLE]))
			best = i;
	for (int64_t j = k; best != k && j <= k + 4; j++) {
		sparse_number kept = band[k][j - k + MIDDLE];

		band[k][j - k + MIDDLE] = band[best][j - best + MIDDLE];
		band[best][j - best + MIDDLE] = kept;
	}
	if (best != k) {
		sparse_number kept = x[k];

		x[k] = x[best];
		x[best] = kept;
	}
	for (int64_t i = k + 1; i <= k + MIDDLE && i < m; i++) {
		sparse_number factor = band[i][k - i + MIDDLE] / band[k][MIDDLE];

		if (band[i][k - i + MIDDLE] == 0)
			continue;
		for (int64_t j = k; j <= k + 4; j++)
			band[i][j - i + MIDDLE] -= factor * band[k][j - k + MIDDLE];
		x[i] -= factor * x[k];
	}
}

static void solve(sparse_number (*band)[WIDTH], sparse_number *x, int64_t m)
{
	for (int64_t k = 0; k < m; k++)
		eliminate(band, x, m, k);
	for (int64_t i = m - 1; i >= 0; i--) {
		for (int64_t j = i + 1; j <= i + 4 && j < m; j++)
			x[i] -= band[i][j - i + MIDDLE] * x[j];
		x[i] /= band[i][MIDDLE];
	}
}

static bool reach(struct sparse_task *task, const struct bands *b)
{
	int64_t last = ((int64_t)b->m - 1) * b->step + ((int64_t)b->batches - 1) * b->stride;
	int64_t sides = b->sides > 1 ? ((int64_t)b->sides - 1) * b->ld : 0;
	unsigned size = sparse_size(b->type);

	for (int d = 0; d < DIAGONALS; d++)
		if (b->diagonals[d] && !sparse_area(task, b->diagonals[d], 0, last + 1, size))
			return false;
	return sparse_area(task, b->x, 0, last + 1 + sides, size);
}

static void bands_run(struct sparse_task *task, void *arguments)
{
	struct bands *b = arguments;
	sparse_number(*band)[WIDTH], *x;

	if (!b->m || !b->batches || !b->sides || !reach(task, b))
		return;
	band = sparse_scratch(task, b->m, sizeof(*band));
	x = sparse_scratch(task, b->m, sizeof(*x));
	for (int64_t n = 0; band && x && n < (int64_t)b->batches * b->sides; n++) {
		int64_t from = n / b->sides * b->stride, side = n % b->sides * b->ld;

		for (int64_t i = 0; i < b->m; i++) {
			for (int d = 0; d < WIDTH; d++)
				band[i][d] = d < DIAGONALS && b->diagonals[d] &&
							     i + d - MIDDLE >= 0 &&
							     i + d - MIDDLE < b->m
						     ? sparse_load(b->type, b->diagonals[d],
							       from + i * b->step)
						     : 0;
			x[i] = sparse_load(b->type, b->x, side + from + i * b->step);
		}
		solve(band, x, b->m);
		for (int64_t i = 0; i < b->m; i++)
			sparse_store(b->type, b->x, side + from + i * b->step, x[i]);
	}
	free(band);
	free(x);
}

static int submit(struct sparse_handle *h, struct bands b, int status)
{
	return status ? status : sparse_submit(h, bands_run, &b, sizeof(b), NULL);
}

static int check(const struct sparse_handle *h, bool sizes)
{
	if (!h)
		return SPARSE_NO_HANDLE;
	return sizes ? SPARSE_SUCCESS : SPARSE_INVALID_VALUE;
}

/* The least sizes are those of NVIDIA's documentation. */
#define SIDES_OK (m >= 3 && n >= 0 && ldb >= m)
#define STRIDED_OK (m >= 3 && batches >= 0 && stride >= m)
#define INTERLEAVED_OK(MOST, LEAST)                                                            \
	(algorithm >= 0 && algorithm <= (MOST) && m >= (LEAST) && batches >= 0)

#define THREE const void *dl, const void *d, const void *du
#define THE_THREE {NULL, ANY(dl), ANY(d), ANY(du), NULL}
#define UNUSED (void)dl, (void)d, (void)du, (void)x

#define SIDES(T, NAME)                                                                         \
	CALL(cusparse##T##NAME##_bufferSizeExt, struct sparse_handle *h, int m, int n, THREE,  \
		const void *x, int ldb, size_t *size)                                          \
	{                                                                                      \
		UNUSED;                                                                        \
		return legacy_tell_bytes(check(h, SIDES_OK), size);                            \
	}                                                                                      \
	CALL(cusparse##T##NAME, struct sparse_handle *h, int m, int n, THREE, void *x,         \
		int ldb, void *work)                                                           \
	{                                                                                      \
		(void)work;                                                                    \
		return submit(h, (struct bands){THE_THREE, x, SPARSE_##T, m, n, ldb, 1, 1, 0}, \
			check(h, SIDES_OK));                                                   \
	}

#define BANDS(T)                                                                               \
	SIDES(T, gtsv2)                                                                        \
	SIDES(T, gtsv2_nopivot)                                                                \
	CALL(cusparse##T##gtsv2StridedBatch_bufferSizeExt, struct sparse_handle *h, int m,     \
		THREE, const void *x, int batches, int stride, size_t *size)                   \
	{                                                                                      \
		UNUSED;                                                                        \
		return legacy_tell_bytes(check(h, STRIDED_OK), size);                          \
	}                                                                                      \
	CALL(cusparse##T##gtsv2StridedBatch, struct sparse_handle *h, int m, THREE, void *x,   \
		int batches, int stride, void *work)                                           \
	{                                                                                      \
		(void)work;                                                                    \
		return submit(h,                                                               \
			(struct bands){THE_THREE, x, SPARSE_##T, m, 1, 0, batches, 1, stride}, \
			check(h, STRIDED_OK));                                                 \
	}                                                                                      \
	CALL(cusparse##T##gtsvInterleavedBatch_bufferSizeExt, struct sparse_handle *h,         \
		int algorithm, int m, THREE, const void *x, int batches, size_t *size)         \
	{                                                                                      \
		UNUSED;                                                                        \
		return legacy_tell_bytes(check(h, INTERLEAVED_OK(2, 1)), size);                \
	}                                                                                      \
	CALL(cusparse##T##gtsvInterleavedBatch, struct sparse_handle *h, int algorithm, int m, \
		THREE, void *x, int batches, void *work)                                       \
	{                                                                                      \
		(void)work;                                                                    \
		return submit(h,                                                               \
			(struct bands){                                                        \
				THE_THREE, x, SPARSE_##T, m, 1, 0, batches, batches, 1},       \
			check(h, INTERLEAVED_OK(2, 1)));                                       \
	}                                                                                      \
	CALL(cusparse##T##gpsvInterleavedBatch_bufferSizeExt, struct sparse_handle *h,         \
		int algorithm, int m, const void *ds, THREE, const void *dw, const void *x,    \
		int batches, size_t *size)                                                     \
	{                                                                                      \
		UNUSED, (void)ds, (void)dw;                                                    \
		return legacy_tell_bytes(check(h, INTERLEAVED_OK(0, 1)), size);                \
	}                                                                                      \
	CALL(cusparse##T##gpsvInterleavedBatch, struct sparse_handle *h, int algorithm, int m, \
		void *ds, THREE, void *dw, void *x, int batches, void *work)                   \
	{                                                                                      \
		(void)work;                                                                    \
		return submit(h,                                                               \
			(struct bands){{ds, ANY(dl), ANY(d), ANY(du), dw}, x, SPARSE_##T, m,   \
				1, 0, batches, batches, 1},                                    \
			check(h, INTERLEAVED_OK(0, 1)));                                       \
	}
EACH_TYPE(BANDS)
