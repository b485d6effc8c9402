/* SPDX-License-Identifier: Apache-2.0
 *
 * See lu.h. Columns are made one by one, from the left: a column of A less the products with
 * the columns of L that it needs. A heap tells which those are, in their order.
 */
#include "shim/libraries/cusolver/lu.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

bool cusolver_lu_make(struct cusolver_lu *lu, int n, bool complex)
{
	size_t ints = ((size_t)n + 1) * sizeof(int), doubles = ((size_t)n + 1) * sizeof(double);

	*lu = (struct cusolver_lu){.n = n, .complex = complex};
	lu->p = malloc(ints);
	lu->q = malloc(ints);
	lu->l.from = malloc(ints);
	lu->u.from = malloc(ints);
	lu->re = malloc(doubles);
	lu->im = complex ? malloc(doubles) : NULL;
	if (lu->p && lu->q && lu->l.from && lu->u.from && lu->re && (lu->im || !complex))
		return true;
	cusolver_lu_drop(lu);
	return false;
}

static void entries_drop(struct cusolver_entries *e)
{
	free(e->from);
	free(e->index);
	free(e->re);
	free(e->im);
}

void cusolver_lu_drop(struct cusolver_lu *lu)
{
	entries_drop(&lu->l);
	entries_drop(&lu->u);
	free(lu->p);
	free(lu->q);
	free(lu->re);
	free(lu->im);
	*lu = (struct cusolver_lu){0};
}

/* Room for MORE entries. */
static bool entries_room(struct cusolver_entries *e, int more, bool complex)
{
	int64_t room = e->room;
	void *to;

	if (e->count + (int64_t)more <= room)
		return true;
	room = 2 * room + more;
	if (room > INT_MAX)
		room = INT_MAX;
	if (e->count + (int64_t)more > room)
		return false;
	to = realloc(e->index, (size_t)room * sizeof(*e->index));
	if (!to)
		return false;
	e->index = to;
	to = realloc(e->re, (size_t)room * sizeof(*e->re));
	if (!to)
		return false;
	e->re = to;
	if (complex) {
		to = realloc(e->im, (size_t)room * sizeof(*e->im));
		if (!to)
			return false;
		e->im = to;
	}
	e->room = (int)room;
	return true;
}

static void entries_add(struct cusolver_entries *e, int index, double re, const double *im)
{
	e->index[e->count] = index;
	e->re[e->count] = re;
	if (e->im)
		e->im[e->count] = *im;
	e->count++;
}

/* What a factorization works with. */
struct factoring {
	struct cusolver_lu *lu;
	const struct cusolver_pattern *a;
	const double *re, *im;
	double threshold;
	struct cusolver_entries by_column; /* A: rows, and which entry in place of a number */
	int *which;
	int *step_of;	     /* of each row; -1: none yet */
	int *seen;	     /* the step for which a row was reached last */
	int *touched, *heap; /* rows of the column without a step, steps that it needs */
	int touches, heaped;
	double *x, *y; /* the column, by rows */
};

static void heap_put(struct factoring *f, int step)
{
	int at = f->heaped++;

	while (at && f->heap[(at - 1) / 2] > step) {
		f->heap[at] = f->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	f->heap[at] = step;
}

static int heap_get(struct factoring *f)
{
	int least = f->heap[0], last = f->heap[--f->heaped], at = 0;

	for (;;) {
		int child = 2 * at + 1;

		if (child + 1 < f->heaped && f->heap[child + 1] < f->heap[child])
			child++;
		if (child >= f->heaped || f->heap[child] >= last)
			break;
		f->heap[at] = f->heap[child];
		at = child;
	}
	f->heap[at] = last;
	return least;
}

/* A row becomes one of the column's; it is zero so far. */
static void reach(struct factoring *f, int row, int step)
{
	if (f->seen[row] == step)
		return;
	f->seen[row] = step;
	f->x[row] = f->y[row] = 0;
	if (f->step_of[row] >= 0)
		heap_put(f, f->step_of[row]);
	else
		f->touched[f->touches++] = row;
}

/* The column less its product with column J of L, which becomes an entry of U. */
static void eliminate(struct factoring *f, int j, int step)
{
	struct cusolver_lu *lu = f->lu;
	int row = lu->p[j];
	double x = f->x[row], y = f->y[row];

	entries_add(&lu->u, j, x, &y);
	for (int k = lu->l.from[j]; k < lu->l.from[j + 1]; k++) {
		int i = lu->l.index[k];
		double re = lu->l.re[k];

		reach(f, i, step);
		f->x[i] -= x * re;
		if (lu->complex) {
			double im = lu->l.im[k];

			f->x[i] += y * im;
			f->y[i] -= x * im + y * re;
		}
	}
}

/* As LAPACK measures complex numbers; nothing underflows. */
static double size_of(double x, double y)
{
	return __builtin_fabs(x) + __builtin_fabs(y);
}

static double size_at(const struct factoring *f, int row)
{
	return size_of(f->x[row], f->y[row]);
}

/* (x, y) / (a, b), which is not 0 */
static void quotient(double *x, double *y, double a, double b)
{
	double scale = size_of(a, b), re = *x, im = *y, square;

	if (b == 0 && im == 0) {
		*x /= a;
		return;
	}
	a /= scale;
	b /= scale;
	square = a * a + b * b;
	*x = (re * a + im * b) / square / scale;
	*y = (im * a - re * b) / square / scale;
}

/* The row of the column's pivot: the diagonal's if it is large enough, else the largest. */
static int pivot_of(const struct factoring *f, int step)
{
	int best = -1, diagonal = f->lu->q[step];

	for (int k = 0; k < f->touches; k++)
		if (best < 0 || size_at(f, f->touched[k]) > size_at(f, best))
			best = f->touched[k];
	if (f->step_of[diagonal] < 0 && f->seen[diagonal] == step && size_at(f, diagonal) > 0 &&
		size_at(f, diagonal) >= f->threshold * size_at(f, best))
		return diagonal;
	return best;
}

/* What is left of the column, divided by the pivot, is one of L's. */
static void divide(struct factoring *f, int step, int pivot)
{
	struct cusolver_lu *lu = f->lu;
	double a = f->x[pivot], b = f->y[pivot];

	for (int k = 0; (a != 0 || b != 0) && k < f->touches; k++) {
		int row = f->touched[k];

		if (row == pivot)
			continue;
		quotient(&f->x[row], &f->y[row], a, b);
		entries_add(&lu->l, row, f->x[row], &f->y[row]);
	}
	lu->p[step] = pivot;
	f->step_of[pivot] = step;
	lu->re[step] = a;
	if (lu->complex)
		lu->im[step] = b;
}

static bool column(struct factoring *f, int step, int *spare)
{
	struct cusolver_lu *lu = f->lu;
	int j = lu->q[step], pivot;

	f->touches = f->heaped = 0;
	for (int k = f->by_column.from[j]; k < f->by_column.from[j + 1]; k++) {
		int row = f->by_column.index[k];

		reach(f, row, step);
		f->x[row] += f->re[f->which[k]];
		f->y[row] += f->im ? f->im[f->which[k]] : 0;
	}
	if (!entries_room(&lu->u, step, lu->complex))
		return false;
	lu->u.from[step] = lu->u.count;
	while (f->heaped)
		eliminate(f, heap_get(f), step);
	if (!entries_room(&lu->l, f->touches, lu->complex))
		return false;
	lu->l.from[step] = lu->l.count;
	pivot = pivot_of(f, step);
	if (pivot < 0) { /* nothing is there: any row that has no step yet */
		while (f->step_of[*spare] >= 0)
			++*spare;
		pivot = *spare;
		f->x[pivot] = f->y[pivot] = 0;
	}
	divide(f, step, pivot);
	lu->u.from[step + 1] = lu->u.count;
	lu->l.from[step + 1] = lu->l.count;
	return true;
}

static void turn(struct factoring *f)
{
	const struct cusolver_pattern *a = f->a;
	int *from = f->by_column.from;

	memset(from, 0, ((size_t)a->n + 2) * sizeof(*from));
	for (int k = 0; k < a->entries; k++)
		from[a->columns[k] - a->base + 2]++;
	for (int j = 0; j < a->n; j++)
		from[j + 2] += from[j + 1];
	for (int i = 0; i < a->n; i++)
		for (int k = a->rows[i] - a->base; k < a->rows[i + 1] - a->base; k++) {
			int to = from[a->columns[k] - a->base + 1]++;

			f->by_column.index[to] = i;
			f->which[to] = k;
		}
}

int cusolver_lu_factor(struct cusolver_lu *lu, const struct cusolver_pattern *a,
	const double *re, const double *im, double threshold)
{
	size_t n = (size_t)a->n + 2, entries = (size_t)a->entries + 1;
	struct factoring f = {.lu = lu, .a = a, .re = re, .im = im, .threshold = threshold};
	int spare = 0, status = CUSOLVER_STATUS_SUCCESS;
	int *ints = malloc((5 * n + 2 * entries) * sizeof(*ints));
	double *doubles = malloc(2 * n * sizeof(*doubles));

	if (ints && doubles) {
		f.by_column.from = ints;
		f.step_of = ints + n;
		f.seen = ints + 2 * n;
		f.touched = ints + 3 * n;
		f.heap = ints + 4 * n;
		f.by_column.index = ints + 5 * n;
		f.which = f.by_column.index + entries;
		f.x = doubles;
		f.y = doubles + n;
		memset(f.step_of, 0xff, n * sizeof(int));
		memset(f.seen, 0xff, n * sizeof(int));
		turn(&f);
		lu->l.count = lu->u.count = lu->l.from[0] = lu->u.from[0] = 0;
		for (int k = 0; !status && k < a->n; k++)
			if (!column(&f, k, &spare))
				status = CUSOLVER_STATUS_ALLOC_FAILED;
		for (int k = 0; !status && k < lu->l.count; k++) /* rows, as they stand now */
			lu->l.index[k] = f.step_of[lu->l.index[k]];
	} else {
		status = CUSOLVER_STATUS_ALLOC_FAILED;
	}
	free(ints);
	free(doubles);
	return status;
}

int cusolver_lu_zero(const struct cusolver_lu *lu, double tol)
{
	for (int k = 0; k < lu->n; k++) {
		double x = lu->re[k], y = lu->complex ? lu->im[k] : 0;

		if (size_of(x, y) <= tol || (y != 0 && tol > 0 && x * x + y * y <= tol * tol))
			return k;
	}
	return -1;
}

/* X less the products of its k-th number with a column. */
static void subtract(const struct cusolver_entries *e, int k, double *x, double *y)
{
	for (int at = e->from[k]; at < e->from[k + 1]; at++) {
		int i = e->index[at];

		x[i] -= x[k] * e->re[at];
		if (e->im) {
			x[i] += y[k] * e->im[at];
			y[i] -= x[k] * e->im[at] + y[k] * e->re[at];
		}
	}
}

void cusolver_lu_solve(const struct cusolver_lu *lu, double *b, double *work)
{
	double *x = work, *y = work + lu->n;

	for (int k = 0; k < lu->n; k++) {
		x[k] = b[2 * lu->p[k]];
		y[k] = b[2 * lu->p[k] + 1];
	}
	for (int k = 0; k < lu->n; k++)
		subtract(&lu->l, k, x, y);
	for (int k = lu->n - 1; k >= 0; k--) {
		quotient(&x[k], &y[k], lu->re[k], lu->complex ? lu->im[k] : 0);
		subtract(&lu->u, k, x, y);
	}
	for (int k = 0; k < lu->n; k++) {
		b[2 * lu->q[k]] = x[k];
		b[2 * lu->q[k] + 1] = lu->complex ? y[k] : 0;
	}
}

int cusolver_lu_count(const struct cusolver_lu *lu, bool upper)
{
	int64_t count = upper ? lu->u.count + (int64_t)lu->n : lu->l.count;

	return count > INT_MAX ? INT_MAX : (int)count;
}

void cusolver_lu_rows(const struct cusolver_lu *lu, bool upper, struct cusolver_entries *to)
{
	const struct cusolver_entries *e = upper ? &lu->u : &lu->l;
	int n = lu->n, sum = 0;

	for (int i = 0; i <= n; i++)
		to->from[i] = i < n && upper;
	for (int k = 0; k < e->count; k++)
		to->from[e->index[k]]++;
	for (int i = 0; i <= n; i++) {
		int count = to->from[i];

		to->from[i] = sum;
		sum += count;
	}
	for (int j = 0; j < n; j++) /* each place is moved to the end of its row */
		for (int k = e->from[j]; k <= e->from[j + 1]; k++) {
			bool diagonal = k == e->from[j + 1];
			int at;

			if (diagonal && !upper)
				continue;
			at = to->from[diagonal ? j : e->index[k]]++;
			to->index[at] = j;
			to->re[at] = diagonal ? lu->re[j] : e->re[k];
			if (lu->complex)
				to->im[at] = diagonal ? lu->im[j] : e->im[k];
		}
	memmove(to->from + 1, to->from, (size_t)n * sizeof(int));
	to->from[0] = 0;
}
