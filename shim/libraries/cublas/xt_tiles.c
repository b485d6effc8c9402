/* SPDX-License-Identifier: Apache-2.0
 *
 * cublasXt's tiles on the devices: each is copied when it is first asked for and kept while
 * there is memory; results go back behind the work of the next tile.  See xt.h.
 */
#include <stdlib.h>

#include "shim/libraries/cublas/xt.h"

/* A tile that a device has. */
struct xt_kept {
	struct xt_kept *next;
	const struct xt_matrix *of;
	size_t i, j;
	struct xt_tile tile;
	uint64_t used; /* the last step that used it */
};

static unsigned number_of(const struct xt_run *run)
{
	return (unsigned)(run->on - run->xt->device);
}

static void failed(struct xt_run *run, CUresult status)
{
	if (!status || run->status)
		return;
	run->status = status == CUDA_ERROR_OUT_OF_MEMORY   ? CUBLAS_STATUS_ALLOC_FAILED
		      : status == CUDA_ERROR_INVALID_VALUE ? CUBLAS_STATUS_MAPPING_ERROR
							   : CUBLAS_STATUS_EXECUTION_FAILED;
}

bool xt_begin(struct xt_run *run, enum xt_type type, cublasXtHandle_t handle)
{
	static const size_t bytes[] = {[XT_S] = 4, [XT_D] = 8, [XT_C] = 8, [XT_Z] = 16};

	*run = (struct xt_run){.xt = handle, .type = type, .each = bytes[type]};
	if (!handle || !handle->devices)
		run->status = CUBLAS_STATUS_NOT_INITIALIZED;
	return !run->status;
}

size_t xt_tiles(const struct xt_run *run, size_t elements)
{
	size_t tile = (size_t)run->xt->tile;

	return elements / tile + (elements % tile != 0);
}

int xt_part(const struct xt_run *run, size_t elements, size_t i)
{
	size_t tile = (size_t)run->xt->tile, from = i * tile;

	return (int)(elements - from < tile ? elements - from : tile);
}

static void enter(struct xt_run *run, struct xt_device *device)
{
	CUcontext was;
	CUresult status;

	if (run->on == device)
		return;
	if (run->entered)
		cuCtxPopCurrent(&was);
	run->on = device;
	status = cuCtxPushCurrent(device->context);
	run->entered = !status;
	failed(run, status);
}

void xt_panel(struct xt_run *run, size_t panel)
{
	enter(run, &run->xt->device[panel % (size_t)run->xt->devices]);
}

void xt_step(struct xt_run *run)
{
	run->step++;
}

/* ---- copies ---- */

/* Where element (row, col) of a matrix lies. */
static const char *place_of(
	const struct xt_run *run, const struct xt_matrix *m, size_t row, size_t col)
{
	size_t at = col * m->ld + row;

	if (m->packed && m->uplo)
		at = row + col * (col + 1) / 2;
	else if (m->packed)
		at = row + (2 * m->rows - col - 1) * col / 2;
	return (const char *)m->at + at * run->each;
}

/* The half that is stored of a tile: its columns have different lengths. */
static void read_packed(struct xt_run *run, const struct xt_matrix *m, size_t row, size_t col,
	const struct xt_tile *to)
{
	for (size_t j = 0; !run->status && j < (size_t)to->cols; j++) {
		size_t from = 0, count = (size_t)to->rows;

		if (row == col && m->uplo)
			count = j + 1;
		else if (row == col)
			from = j;
		failed(run,
			cuMemcpyAsync(to->at + (j * (size_t)to->rows + from) * run->each,
				(CUdeviceptr)(uintptr_t)place_of(run, m, row + from, col + j),
				(count - (m->uplo ? 0 : from)) * run->each, run->on->work));
	}
}

/* Between the program's memory, of either kind, and a tile. */
static void copy(struct xt_run *run, const struct xt_matrix *m, size_t i, size_t j,
	const struct xt_tile *tile, bool read)
{
	size_t row = i * (size_t)run->xt->tile, col = j * (size_t)run->xt->tile;
	CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.WidthInBytes = (size_t)tile->rows * run->each,
		.Height = (size_t)tile->cols,
	};

	if (m->packed) {
		read_packed(run, m, row, col, tile);
		return;
	}
	c.srcDevice = read ? (CUdeviceptr)(uintptr_t)place_of(run, m, row, col) : tile->at;
	c.dstDevice = read ? tile->at : (CUdeviceptr)(uintptr_t)place_of(run, m, row, col);
	c.srcPitch = read ? m->ld * run->each : c.WidthInBytes;
	c.dstPitch = read ? c.WidthInBytes : m->ld * run->each;
	failed(run, cuMemcpy2DAsync(&c, read ? run->on->work : run->on->back));
}

/* The result that waits goes back now. */
static void flush(struct xt_run *run)
{
	unsigned d = number_of(run);
	struct xt_back *back = &run->back[d];

	if (!back->to)
		return;
	if (!run->status) {
		failed(run, cuStreamWaitEvent(run->on->back, run->on->done[run->turn[d]], 0));
		copy(run, back->to, back->i, back->j, &back->tile, false);
	}
	back->to = NULL;
}

void xt_result(
	struct xt_run *run, const struct xt_matrix *m, size_t i, size_t j, struct xt_tile tile)
{
	unsigned d = number_of(run);

	/* What is recorded for this one must not overtake the one that waits. */
	if (!run->status)
		failed(run, cuEventRecord(run->on->done[!run->turn[d]], run->on->work));
	flush(run);
	run->turn[d] = !run->turn[d];
	if (!run->status)
		run->back[d] = (struct xt_back){m, i, j, tile};
}

/* ---- what is kept ---- */

static void drop(struct xt_kept **at)
{
	struct xt_kept *gone = *at;

	*at = gone->next;
	cuMemFree(gone->tile.at);
	free(gone);
}

/* Frees the tile that was not used for longest; false: all are in use. */
static bool make_room(struct xt_run *run)
{
	struct xt_kept **oldest = NULL;

	flush(run);
	if (run->status)
		return false;
	for (struct xt_kept **at = &run->kept[number_of(run)]; *at; at = &(*at)->next)
		if ((*at)->used != run->step && (!oldest || (*at)->used < (*oldest)->used))
			oldest = at;
	if (!oldest)
		return false;
	failed(run, cuStreamSynchronize(run->on->work));
	failed(run, cuStreamSynchronize(run->on->back));
	drop(oldest);
	return !run->status;
}

static struct xt_kept *keep(struct xt_run *run, const struct xt_matrix *m, size_t i, size_t j)
{
	struct xt_kept *new = calloc(1, sizeof(*new));
	CUresult status;

	if (!new) {
		failed(run, CUDA_ERROR_OUT_OF_MEMORY);
		return NULL;
	}
	new->of = m;
	new->i = i;
	new->j = j;
	new->tile.rows = xt_part(run, m->rows, i);
	new->tile.cols = xt_part(run, m->cols, j);
	do
		status = cuMemAlloc(&new->tile.at,
			(size_t)new->tile.rows *(size_t)new->tile.cols * run->each);
	while (status == CUDA_ERROR_OUT_OF_MEMORY && make_room(run));
	failed(run, status);
	if (status) {
		free(new);
		return NULL;
	}
	new->next = run->kept[number_of(run)];
	run->kept[number_of(run)] = new;
	return new;
}

struct xt_tile xt_tile(
	struct xt_run *run, const struct xt_matrix *m, size_t i, size_t j, bool read)
{
	struct xt_kept *k;

	if (run->status)
		return (struct xt_tile){0};
	for (k = run->kept[number_of(run)]; k; k = k->next)
		if (k->of == m && k->i == i && k->j == j)
			break;
	if (!k) {
		k = keep(run, m, i, j);
		if (k && read)
			copy(run, m, i, j, &k->tile, true);
	}
	if (!k)
		return (struct xt_tile){0};
	k->used = run->step;
	return k->tile;
}

cublasStatus_t xt_end(struct xt_run *run)
{
	CUcontext was;

	for (int d = 0; run->xt && d < run->xt->devices; d++) {
		enter(run, &run->xt->device[d]);
		flush(run);
		/* The last result waited for all the work, unless it came to none. */
		if (run->status)
			cuStreamSynchronize(run->on->work);
		failed(run, cuStreamSynchronize(run->on->back));
		while (run->kept[d])
			drop(&run->kept[d]);
	}
	if (run->entered)
		cuCtxPopCurrent(&was);
	return run->status;
}
