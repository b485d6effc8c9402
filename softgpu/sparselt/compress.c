/* SPDX-License-Identifier: Apache-2.0
 *
 * Two of four numbers chosen, checked and kept.
 */
#include <stdlib.h>

#include "softgpu/sparselt/sparselt.h"

struct lt_lines lt_lines(const struct lt_matrix *m, bool is_a, int op)
{
	/* Groups lie along the columns of op(A) and the rows of op(B). */
	bool by_row = is_a == (op == SPARSE_OP_N);

	return (struct lt_lines){
		.matrix = *m,
		.by_row = by_row,
		.lines = by_row ? m->rows : m->cols,
		.groups = (by_row ? m->cols : m->rows) / LT_GROUP,
	};
}

int64_t lt_line_at(const struct lt_lines *l, int64_t line, int64_t i)
{
	return l->by_row ? lt_at(&l->matrix, line, i) : lt_at(&l->matrix, i, line);
}

int64_t lt_compressed_bytes(const struct lt_lines *l)
{
	int64_t groups = l->lines * l->groups;

	return groups * LT_KEPT * (int64_t)sparse_size(l->matrix.type) + (groups + 1) / 2;
}

void *lt_values(struct sparse_task *task, const struct lt_matrix *m, const void *at, int batch)
{
	bool by_row = m->order == SPARSE_ORDER_ROW;
	int64_t elements =
		((by_row ? m->rows : m->cols) - 1) * m->ld + (by_row ? m->cols : m->rows);

	return sparse_area(task, at, m->batches > 1 ? m->stride * batch : 0, elements,
		sparse_size(m->type));
}

int lt_submit(CUstream stream, sparse_run *run, const void *arguments, size_t size)
{
	struct sparse_handle *h = calloc(1, sizeof(*h));
	int status;

	if (!h)
		return SPARSE_ALLOC_FAILED;
	h->refs = 1;
	h->stream = stream;
	status = sparse_submit(h, run, arguments, size, NULL);
	sparse_handle_drop(h);
	return status;
}

/* ---- tasks ---- */

struct choice {
	struct lt_lines lines;
	const void *in;
	void *out;
	int *valid;
	bool tiles; /* pruned in squares of 4 by 4 */
};

static double size_at(const struct choice *c, const void *in, int64_t line, int64_t i)
{
	return cabs(sparse_load(c->lines.matrix.type, in, lt_line_at(&c->lines, line, i)));
}

/* Which two of a group are largest, as bits; the first of equal ones. */
static unsigned largest(const struct choice *c, const void *in, int64_t line, int64_t from)
{
	unsigned kept = 0;

	for (int n = 0; n < LT_KEPT; n++) {
		int best = -1;

		for (int i = 0; i < LT_GROUP; i++)
			if (!(kept & 1u << i) &&
				(best < 0 || size_at(c, in, line, from + i) >
						     size_at(c, in, line, from + best)))
				best = i;
		kept |= 1u << best;
	}
	return kept;
}

/* The patterns of two in four. */
static const unsigned pairs[] = {3, 5, 9, 6, 10, 12};
#define PAIRS 6

/* Of a square with two in each row and in each column, the patterns that keep most. */
static void largest_tile(
	const struct choice *c, const void *in, int64_t line, int64_t from, unsigned kept[4])
{
	double best = -1;

	for (int n = 0; n < PAIRS * PAIRS * PAIRS * PAIRS; n++) {
		unsigned rows[4] = {pairs[n % PAIRS], pairs[n / PAIRS % PAIRS],
			pairs[n / PAIRS / PAIRS % PAIRS], pairs[n / PAIRS / PAIRS / PAIRS]};
		int columns[4] = {0};
		double sum = 0;

		for (int i = 0; i < 4; i++)
			for (int j = 0; j < 4; j++)
				if (rows[i] & 1u << j) {
					columns[j]++;
					sum += size_at(c, in, line + i, from + j);
				}
		if (columns[0] != 2 || columns[1] != 2 || columns[2] != 2 || sum <= best)
			continue;
		best = sum;
		for (int i = 0; i < 4; i++)
			kept[i] = rows[i];
	}
}

static void prune_group(const struct choice *c, const void *in, void *out, int64_t line,
	int64_t from, unsigned kept)
{
	int type = c->lines.matrix.type;

	for (int i = 0; i < LT_GROUP; i++) {
		int64_t at = lt_line_at(&c->lines, line, from + i);

		sparse_store(type, out, at, kept & 1u << i ? sparse_load(type, in, at) : 0);
	}
}

static void prune_run(struct sparse_task *task, void *arguments)
{
	struct choice *c = arguments;
	int step = c->tiles ? 4 : 1;

	for (int batch = 0; batch < c->lines.matrix.batches; batch++) {
		const void *in = lt_values(task, &c->lines.matrix, c->in, batch);
		void *out = lt_values(task, &c->lines.matrix, c->out, batch);
		unsigned kept[4];

		for (int64_t line = 0; in && out && line < c->lines.lines; line += step)
			for (int64_t g = 0; g < c->lines.groups; g++) {
				if (c->tiles)
					largest_tile(c, in, line, g * LT_GROUP, kept);
				else
					kept[0] = largest(c, in, line, g * LT_GROUP);
				for (int i = 0; i < step; i++)
					prune_group(
						c, in, out, line + i, g * LT_GROUP, kept[i]);
			}
	}
}

static void check_run(struct sparse_task *task, void *arguments)
{
	struct choice *c = arguments;
	int *valid = sparse_area(task, c->valid, 0, 1, sizeof(*valid)), wrong = 0;

	for (int batch = 0; batch < c->lines.matrix.batches; batch++) {
		const void *in = lt_values(task, &c->lines.matrix, c->in, batch);

		for (int64_t line = 0; in && line < c->lines.lines; line++)
			for (int64_t g = 0; g < c->lines.groups; g++) {
				int numbers = 0;

				for (int i = 0; i < LT_GROUP; i++)
					numbers += size_at(c, in, line, g * LT_GROUP + i) != 0;
				wrong = wrong || numbers > LT_KEPT;
			}
	}
	if (valid)
		*valid = wrong; /* 0: right */
}

/* The numbers that are not 0 and, where they are fewer, others of the group. */
static unsigned kept_of(const struct choice *c, const void *in, int64_t line, int64_t from)
{
	unsigned kept = 0;
	int count = 0;

	for (int i = 0; i < LT_GROUP && count < LT_KEPT; i++)
		if (size_at(c, in, line, from + i) != 0) {
			kept |= 1u << i;
			count++;
		}
	for (int i = LT_GROUP - 1; count < LT_KEPT; i--)
		if (!(kept & 1u << i)) {
			kept |= 1u << i;
			count++;
		}
	return kept;
}

static void compress_line(const struct choice *c, const void *in, char *out, int64_t line)
{
	int type = c->lines.matrix.type;
	unsigned char *places = (unsigned char *)out +
				c->lines.lines * c->lines.groups * LT_KEPT * sparse_size(type);

	for (int64_t g = 0; g < c->lines.groups; g++) {
		int64_t group = line * c->lines.groups + g;
		unsigned kept = kept_of(c, in, line, g * LT_GROUP), bits = 0;
		int count = 0;

		for (unsigned i = 0; i < LT_GROUP; i++) {
			if (!(kept & 1u << i))
				continue;
			sparse_store(type, out, group * LT_KEPT + count,
				sparse_load(type, in,
					lt_line_at(&c->lines, line, g * LT_GROUP + i)));
			bits |= i << 2 * count++;
		}
		if (group % 2)
			places[group / 2] = (unsigned char)(places[group / 2] | bits << 4);
		else
			places[group / 2] = (unsigned char)bits;
	}
}

static void compress_run(struct sparse_task *task, void *arguments)
{
	struct choice *c = arguments;
	int64_t bytes = lt_compressed_bytes(&c->lines);

	for (int batch = 0; batch < c->lines.matrix.batches; batch++) {
		const void *in = lt_values(task, &c->lines.matrix, c->in, batch);
		char *out = sparse_area(task, c->out, bytes * batch, bytes, 1);

		for (int64_t line = 0; in && out && line < c->lines.lines; line++)
			compress_line(c, in, out, line);
	}
}

/* ---- calls ---- */

static const struct lt_matrix *structured(const struct lt_matmul *m)
{
	return m->a.structured ? &m->a : &m->b;
}

static int op_of(const struct lt_matmul *m)
{
	return m->a.structured ? m->op_a : m->op_b;
}

static int prune(const struct lt_handle *h, const struct lt_matrix *m, bool is_a, int op,
	const void *in, void *out, int algorithm, CUstream stream)
{
	if (!lt_is_handle(h) || !lt_is_matrix(m) || !m->structured || !in || !out ||
		(op != SPARSE_OP_N && op != SPARSE_OP_T) || algorithm < 0 || algorithm > 1)
		return SPARSE_INVALID_VALUE;
	return lt_submit(stream, prune_run,
		&(struct choice){.lines = lt_lines(m, is_a, op),
			.in = in,
			.out = out,
			.tiles = !algorithm},
		sizeof(struct choice));
}

static int prune_check(const struct lt_handle *h, const struct lt_matrix *m, bool is_a, int op,
	const void *in, int *valid, CUstream stream)
{
	if (!lt_is_handle(h) || !lt_is_matrix(m) || !m->structured || !in || !valid ||
		(op != SPARSE_OP_N && op != SPARSE_OP_T))
		return SPARSE_INVALID_VALUE;
	return lt_submit(stream, check_run,
		&(struct choice){.lines = lt_lines(m, is_a, op), .in = in, .valid = valid},
		sizeof(struct choice));
}

static int compress(const struct lt_handle *h, const struct lt_matrix *m, bool is_a, int op,
	const void *in, void *out, CUstream stream)
{
	if (!lt_is_handle(h) || !lt_is_matrix(m) || !m->structured || !in || !out ||
		(op != SPARSE_OP_N && op != SPARSE_OP_T))
		return SPARSE_INVALID_VALUE;
	return lt_submit(stream, compress_run,
		&(struct choice){.lines = lt_lines(m, is_a, op), .in = in, .out = out},
		sizeof(struct choice));
}

static int compressed_size(
	const struct lt_handle *h, const struct lt_matrix *m, size_t *size, size_t *buffer)
{
	struct lt_lines lines;

	if (!lt_is_handle(h) || !lt_is_matrix(m) || !m->structured || !size || !buffer)
		return SPARSE_INVALID_VALUE;
	lines = lt_lines(m, true, SPARSE_OP_N); /* it does not depend on these */
	*size = (size_t)(lt_compressed_bytes(&lines) * m->batches);
	*buffer = SPARSE_WORKSPACE;
	return SPARSE_SUCCESS;
}

CALL(cusparseLtSpMMAPrune, const struct lt_handle *h, const struct lt_matmul *m, const void *in,
	void *out, int algorithm, CUstream stream)
{
	if (!lt_is_matmul(m))
		return SPARSE_INVALID_VALUE;
	return prune(h, structured(m), m->a.structured, op_of(m), in, out, algorithm, stream);
}

CALL(cusparseLtSpMMAPrune2, const struct lt_handle *h, const struct lt_matrix *m, int is_a,
	int op, const void *in, void *out, int algorithm, CUstream stream)
{
	return prune(h, m, is_a, op, in, out, algorithm, stream);
}

CALL(cusparseLtSpMMAPruneCheck, const struct lt_handle *h, const struct lt_matmul *m,
	const void *in, int *valid, CUstream stream)
{
	if (!lt_is_matmul(m))
		return SPARSE_INVALID_VALUE;
	return prune_check(h, structured(m), m->a.structured, op_of(m), in, valid, stream);
}

CALL(cusparseLtSpMMAPruneCheck2, const struct lt_handle *h, const struct lt_matrix *m, int is_a,
	int op, const void *in, int *valid, CUstream stream)
{
	return prune_check(h, m, is_a, op, in, valid, stream);
}

CALL(cusparseLtSpMMACompressedSize, const struct lt_handle *h, const struct lt_matmul *plan,
	size_t *size, size_t *buffer)
{
	return compressed_size(h, lt_is_plan(plan) ? structured(plan) : NULL, size, buffer);
}

CALL(cusparseLtSpMMACompressedSize2, const struct lt_handle *h, const struct lt_matrix *m,
	size_t *size, size_t *buffer)
{
	return compressed_size(h, m, size, buffer);
}

CALL(cusparseLtSpMMACompress, const struct lt_handle *h, const struct lt_matmul *plan,
	const void *in, void *out, void *buffer, CUstream stream)
{
	(void)buffer;
	if (!lt_is_plan(plan))
		return SPARSE_INVALID_VALUE;
	return compress(h, structured(plan), plan->a.structured, op_of(plan), in, out, stream);
}

CALL(cusparseLtSpMMACompress2, const struct lt_handle *h, const struct lt_matrix *m, int is_a,
	int op, const void *in, void *out, void *buffer, CUstream stream)
{
	(void)buffer;
	return compress(h, m, is_a, op, in, out, stream);
}
