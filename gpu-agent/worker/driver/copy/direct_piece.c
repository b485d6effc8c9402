/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of copies between agents.  A piece goes by staging memory: as much of it as there
 * is bounds how many are on their way, and the other end's socket how fast they leave.
 */
#include <stdlib.h>

#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/copy/direct.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/limits/limits.h"
#include "gpu-agent/worker/profiler.h"

/* Bytes on their way from the device to staging memory, in the order of the streams' work. */
struct direct_piece {
	struct direct_piece *next;
	struct direct_copy *copy; /* NULL: it failed */
	uint64_t offset;
	unsigned char *bytes;
	uint32_t n;
	uint16_t context;
	CUevent event;
	struct staging_range *range;
};

/* The box of the packed bytes from OFFSET on. */
struct cut {
	uint64_t x, y, z, width, rows;
};

static struct cut cut_at(const struct direct_copy *copy, uint64_t offset)
{
	const struct direct_box *box = &copy->box;
	uint64_t slice = box->width * box->height;

	return (struct cut){.z = offset / slice,
		.y = offset % slice / box->width,
		.x = offset % box->width};
}

/* As much as a piece holds: rows, or a part of one. */
static struct cut cut_next(const struct direct_copy *copy, uint64_t offset)
{
	struct cut cut = cut_at(copy, offset);
	uint64_t left = copy->box.width - cut.x;

	cut.rows = 1;
	cut.width = left < DIRECT_PIECE ? left : DIRECT_PIECE;
	if (!cut.x && cut.width == copy->box.width) {
		cut.rows = DIRECT_PIECE / cut.width;
		if (cut.rows > copy->box.height - cut.y)
			cut.rows = copy->box.height - cut.y;
	}
	return cut;
}

/* The one that the other end has cut, N bytes of it. False: that is none. */
static bool cut_is(const struct direct_copy *copy, uint64_t offset, uint32_t n, struct cut *cut)
{
	uint64_t width = copy->box.width;

	if (offset > copy->total || n > copy->total - offset)
		return false;
	*cut = cut_at(copy, offset);
	cut->rows = n / width;
	cut->width = cut->rows ? width : n;
	return cut->rows ? !cut->x && !(n % width) && cut->rows <= copy->box.height - cut->y
			 : (cut->rows = 1, n <= width - cut->x);
}

static struct copy_side cut_side(const struct direct_copy *copy, const struct cut *cut)
{
	struct copy_side side = copy->side;

	side.at += cut->x;
	if (side.array) {
		side.pitch += cut->y;
		side.rows += cut->z;
	} else {
		side.at += (cut->z * side.rows + cut->y) * side.pitch;
	}
	return side;
}

/* What began could not be told the end of: it is waited for, since its staging memory is
 * another's next. Nothing but copies is on the stream, and these wait for nothing. */
static void copy_drain(struct worker *w, struct worker_stream *stream)
{
	if (stream && !worker_use(w, stream->context))
		worker_note(w, w->cuda.cuStreamSynchronize(stream->stream));
}

/* The loop gives it its pieces, when no frame is served: they are its frame's all the same. */
static CUresult copy_piece(struct worker *w, const struct direct_copy *copy,
	struct worker_stream *stream, const struct cut *cut, const void *from, void *to)
{
	const struct profiler *profiler = profiler_begin(w->profiler, copy->seq);
	struct copy_side side = cut_side(copy, cut);
	CUresult status = copy_host(w, stream, &side, cut->width, cut->rows, 1, from, to);

	profiler_end(profiler);
	return status;
}

/* Puts one piece on the stream. 0; -1: no room now; or the driver's status. */
static int piece_begin(struct worker *w, struct direct_copy *copy)
{
	struct direct *d = w->direct;
	struct cut cut = cut_next(copy, copy->under_way);
	struct worker_stream *stream = direct_copy_stream(w, copy->device);
	struct direct_piece *piece;
	struct staging_range *range;
	unsigned char *bytes;
	CUevent event = NULL;
	CUresult status;

	range = staging_alloc(w, &d->out, (uint32_t)(cut.width * cut.rows), &bytes);
	if (!range)
		return -1;
	piece = malloc(sizeof(*piece));
	status = piece && stream ? worker_use(w, stream->context) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!status)
		status = copy_piece(w, copy, stream, &cut, NULL, bytes);
	if (!status)
		status = fence_event_get(w, stream->context, &event);
	if (!status)
		status = w->cuda.cuEventRecord(event, stream->stream);
	if (status) {
		copy_drain(w, stream);
		if (event)
			fence_event_put(w, stream->context, event);
		free(piece);
		staging_done(range);
		return (int)status;
	}
	limits_work(w, stream);
	*piece = (struct direct_piece){.copy = copy,
		.offset = copy->under_way,
		.bytes = bytes,
		.n = (uint32_t)(cut.width * cut.rows),
		.context = stream->context,
		.event = event,
		.range = range};
	*d->pieces_tail = piece;
	d->pieces_tail = &piece->next;
	copy->under_way += piece->n;
	return 0;
}

/* It is in staging memory, or never will be. */
static void piece_end(struct worker *w, struct direct_piece *piece, CUresult status)
{
	struct direct_copy *copy = piece->copy;

	worker_note(w, status);
	if (piece->event)
		fence_event_put(w, piece->context, piece->event);
	if (copy && !status &&
		direct_say_data(w, copy->link, copy->id, piece->offset, piece->bytes, piece->n,
			piece->range)) {
		w->stats.peer_sent += piece->n;
		free(piece);
		return;
	}
	staging_done(piece->range);
	free(piece);
	if (copy)
		direct_copy_fail(w, copy, status ? status : CUDA_ERROR_OUT_OF_MEMORY, true);
}

static bool pieces_look(struct worker *w)
{
	struct direct *d = w->direct;
	struct direct_piece **at = &d->pieces, *piece;
	uint64_t busy = 0; /* a bit a context: its later pieces are not done either */
	bool progress = false;

	while ((piece = *at)) {
		uint64_t bit = 1ull << piece->context % 64;
		CUresult status = CUDA_SUCCESS;

		if (busy & bit) {
			at = &piece->next;
			continue;
		}
		if (piece->event) {
			worker_use(w, piece->context);
			status = w->cuda.cuEventQuery(piece->event);
		}
		if (status == CUDA_ERROR_NOT_READY) {
			busy |= bit;
			at = &piece->next;
			continue;
		}
		*at = piece->next;
		if (d->pieces_tail == &piece->next)
			d->pieces_tail = at;
		piece_end(w, piece, status);
		progress = true;
	}
	return progress;
}

bool direct_pump(struct worker *w)
{
	struct direct *d = w->direct;
	bool progress = pieces_look(w);

	staging_reap(w, &d->in);
	for (struct direct_copy *copy = d->copies, *next; copy; copy = next) {
		int status = 0;

		next = copy->next;
		if (!copy->sends || copy->over || !copy->turn || !copy->ready ||
			copy->link->state != DIRECT_OPEN)
			continue;
		while (!status && copy->under_way < copy->total) {
			status = piece_begin(w, copy);
			progress |= !status;
		}
		if (status < 0)
			break;
		if (status > 0) {
			worker_note(w, (CUresult)status);
			direct_copy_fail(w, copy, (CUresult)status, true);
			progress = true;
			break; /* the next one may have gone with it */
		}
	}
	if (progress)
		for (uint32_t i = 0; i < d->count; i++)
			direct_exchange(w, d->links[i]);
	return progress;
}

/* ---- the other end ---- */

int direct_place(struct worker *w, struct direct_link *l, const struct direct_message *m,
	struct direct_copy **copy)
{
	struct direct_copy *c = direct_copy_find(w, l, m->id, false);
	struct cut cut;

	*copy = c;
	if (!c)
		return 0;
	return c->turn && m->length <= c->total - c->under_way &&
			       cut_is(c, m->value, m->length, &cut)
		       ? 0
		       : -1;
}

void direct_landed(struct worker *w, struct direct_link *l, struct direct_copy *copy,
	const struct direct_message *m, const unsigned char *bytes, struct staging_range *range)
{
	struct worker_stream *stream = direct_copy_stream(w, copy->device);
	CUresult status = stream ? worker_use(w, stream->context) : CUDA_ERROR_OUT_OF_MEMORY;
	struct cut cut;

	(void)l;
	cut_is(copy, m->value, m->length, &cut);
	if (!status)
		status = copy_piece(w, copy, stream, &cut, bytes, NULL);
	if (!status)
		status = staging_busy(w, range, stream->context, stream->stream);
	if (!range->event) { /* else it is busy until that is done */
		copy_drain(w, stream);
		staging_done(range);
	}
	if (!status) {
		limits_work(w, stream);
		copy->under_way += m->length;
		w->stats.peer_received += m->length;
		if (copy->under_way == copy->total)
			status = direct_copy_fence(w, copy, stream);
	}
	if (status) {
		worker_note(w, status);
		direct_copy_fail(w, copy, status, true);
	}
}

void direct_piece_forget(struct worker *w, const struct direct_copy *copy)
{
	for (struct direct_piece *p = w->direct->pieces; p; p = p->next)
		if (p->copy == copy)
			p->copy = NULL;
}

void direct_piece_forget_context(struct worker *w, uint16_t context)
{
	for (struct direct_piece *p = w->direct->pieces; p; p = p->next) {
		if (p->context != context || !p->event)
			continue;
		fence_event_put(w, context, p->event);
		p->event = NULL; /* it was waited for */
	}
}
