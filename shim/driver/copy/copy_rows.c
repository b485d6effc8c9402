/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows between the app's memory and the device, cut into pieces of FRAME_CHUNK bytes, smaller
 * ones where each of several connections is to have one, or larger ones of pinned memory that
 * the worker shares. Towards the device each piece is a post: captured from pageable memory,
 * named where it lies in pinned memory.  Towards the host several pieces are asked for at once
 * and written where the app wants them as they come; the whole counts as one round trip.
 */
#include "shim/driver/copy/copy_rows.h"

#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/array/array.h"
#include "shim/driver/stream/function_order.h"
#include "shim/driver/context/context.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/stream/order.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/past_caches.h"
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"
#include "shim/engine/status.h"

/* Pieces under way towards the host: three quarters of the bounce buffer. That keeps a link
 * busy over its round trip: 6 x 512 KiB of the usual 4 MiB at 5 GB/s are 0.6 ms, and over a
 * line that is long the sidecar makes it larger (CHANNEL_FAR). */
#define COPY_DEPTH_MOST 32
/* A copy that waits, from memory that the worker shares, is worth its round trip from here on:
 * to capture the bytes costs 0.1 ms a MiB. */
#define COPY_WAIT_LEAST (1u << 20)

/* A larger copy from pageable memory waits, as natively, until its stream is done, where a host
 * function may be what the stream waits for: its bytes would take the agent's staging, through
 * which the function's end has to come. */
#define COPY_CAPTURE_MOST (64u << 10)

/* Bytes that a share of a row is a multiple of: a page. */
#define SHARE_ALIGN 4096u

struct piece {
	size_t row, column;
	size_t width, rows;
};

/* A row that several connections carry at once, so that each has a share of it: one that makes
 * fewer pieces than there are connections. */
static uint32_t rows_share(size_t n)
{
	uint32_t streams = session_here()->ring.streams;

	if (n < FRAME_CHUNK || n >= (size_t)FRAME_CHUNK * streams)
		return FRAME_CHUNK;
	return (uint32_t)((n + streams * SHARE_ALIGN - 1) / (streams * SHARE_ALIGN) *
			  SHARE_ALIGN);
}

/* Rows without gaps on both sides are one row; a piece is as large as over any wire. */
static void rows_join(struct rows *r)
{
	r->piece = FRAME_CHUNK;
	if (r->height > 1 && r->host_pitch == r->width && r->device_pitch == r->width &&
		!r->array) {
		r->width *= r->height;
		r->height = 1;
	}
	if (r->height == 1)
		r->piece = rows_share(r->width);
}

/* One row of pinned memory, which is named where it lies. */
static bool rows_pinned(struct rows *r, struct frame_bulk *pinned)
{
	if (r->height > 1 || !(shim_perf & PERF_ZEROCOPY) ||
		!shim_pinned(r->host, r->width, pinned))
		return false;
	if (session_here()->ring.lent_most > FRAME_CHUNK)
		r->piece = session_here()->ring.lent_most;
	return true;
}

/* The piece at or behind (row, column); false: none left. */
static bool piece_next(const struct rows *r, struct piece *piece, size_t row, size_t column)
{
	if (row >= r->height)
		return false;
	piece->row = row;
	piece->column = column;
	if (r->width > r->piece || r->height == 1) {
		piece->rows = 1;
		piece->width = r->width - column < r->piece ? r->width - column : r->piece;
		return true;
	}
	piece->width = r->width;
	piece->rows = r->piece / r->width;
	if (piece->rows > r->height - row)
		piece->rows = r->height - row;
	return true;
}

static void piece_behind(
	const struct rows *r, const struct piece *piece, size_t *row, size_t *column)
{
	*row = piece->row;
	*column = piece->column + piece->width;
	if (*column == r->width) {
		*row += piece->rows;
		*column = 0;
	}
}

static void in_begin(const struct rows *r, struct shim_call *call, const struct piece *piece,
	uint64_t stream)
{
	if (r->array) {
		struct wire_vcudaArrayIn *body =
			shim_begin(call, OP_vcudaArrayIn, sizeof(*body));

		body->array = r->array->handle;
		body->x = r->x + piece->column;
		body->y = r->y + piece->row;
		body->z = r->z;
		body->width = piece->width;
		body->height = piece->rows;
		body->depth = 1;
		body->stream = stream;
	} else {
		struct wire_vcudaCopyIn *body = shim_begin(call, OP_vcudaCopyIn, sizeof(*body));

		body->dst = r->device + piece->row * r->device_pitch + piece->column;
		body->pitch = piece->rows > 1 ? r->device_pitch : piece->width;
		body->width = piece->width;
		body->height = piece->rows;
		body->depth = 1;
		body->stream = stream;
	}
}

/* Before a piece, NAMED bytes of which are named where they lie: *KNOWN of the app's host
 * functions came before the stream was waited for. */
static CUresult in_after_functions(
	const struct rows *r, uint32_t named, uint64_t stream, uint64_t *known)
{
	uint64_t issued = function_issued();

	if (!function_outstanding())
		return CUDA_SUCCESS;
	if (named)
		return shim_few_named(named);
	if (r->width * r->height <= COPY_CAPTURE_MOST || issued == *known)
		return CUDA_SUCCESS;
	*known = issued;
	return sync_wait(SYNC_STREAM, stream, NULL);
}

CUresult copy_in(struct rows *r, uint64_t stream, bool later)
{
	size_t row = 0, column = 0;
	struct frame_bulk pinned;
	struct piece piece;
	uint64_t seq = 0, functions = 0;
	bool in_place, lent;

	rows_join(r);
	in_place = (later || r->width >= COPY_WAIT_LEAST) && rows_pinned(r, &pinned);
	lent = in_place && !later && r->piece > FRAME_CHUNK;
	if (host_busy(r->host, stream)) {
		CUresult status = sync_wait(SYNC_STREAM, stream, NULL);

		if (status)
			return status;
	}
	while (piece_next(r, &piece, row, column)) {
		const unsigned char *from = r->host + piece.row * r->host_pitch + piece.column;
		struct shim_call call;
		CUresult status = in_after_functions(
			r, in_place ? (uint32_t)piece.width : 0, stream, &functions);

		if (status)
			return status;
		in_begin(r, &call, &piece, stream);
		if (piece.rows > 1)
			shim_payload_rows(&call, from, r->host_pitch, piece.width, piece.rows);
		else if (later || lent)
			shim_payload(&call, from, piece.width);
		else
			shim_payload_captured(&call, from, piece.width);
		status = shim_post(&call);
		if (status)
			return status;
		seq = call.seq;
		piece_behind(r, &piece, &row, &column);
	}
	if (lent || (!later && order_shared(session_here())))
		return sync_wait(SYNC_STREAM, stream, NULL);
	return later ? CUDA_SUCCESS : order_copied(context_current(), stream, seq);
}

/* ---- towards the host ---- */

struct flight {
	struct shim_call call;
	struct piece piece;
	uint64_t bounce;
	bool direct; /* it lands in the app's own (pinned) memory */
};

static unsigned char *piece_host(const struct rows *r, const struct piece *piece)
{
	return r->host + piece->row * r->host_pitch + piece->column;
}

static void out_begin(const struct rows *r, struct shim_call *call, const struct piece *piece,
	uint32_t segment, uint64_t offset, uint64_t stream)
{
	struct wire_vcudaCopyOut *body;

	if (r->array) {
		struct wire_vcudaArrayOut *out =
			shim_begin(call, OP_vcudaArrayOut, sizeof(*out));

		out->destination.segment = segment;
		out->destination.offset = offset;
		out->array = r->array->handle;
		out->x = r->x + piece->column;
		out->y = r->y + piece->row;
		out->z = r->z;
		out->width = piece->width;
		out->height = piece->rows;
		out->depth = 1;
		out->stream = stream;
		return;
	}
	body = shim_begin(call, OP_vcudaCopyOut, sizeof(*body));
	body->destination.segment = segment;
	body->destination.offset = offset;
	body->src = r->device + piece->row * r->device_pitch + piece->column;
	body->pitch = piece->rows > 1 ? r->device_pitch : piece->width;
	body->width = piece->width;
	body->height = piece->rows;
	body->depth = 1;
	body->stream = stream;
}

/* Sends one piece. False: there is no room now, and nothing was sent (only if !FIRST). */
static bool flight_start(const struct rows *r, struct flight *f, uint64_t stream, bool first)
{
	size_t n = f->piece.width * f->piece.rows;
	struct frame_bulk pinned;
	uint32_t segment = 0;
	CUresult status = CUDA_SUCCESS;

	f->direct = f->piece.rows == 1 && shim_perf & PERF_ZEROCOPY &&
		    shim_pinned(piece_host(r, &f->piece), n, &pinned);
	if (f->direct) {
		segment = pinned.segment;
		f->bounce = pinned.offset;
	} else if (first) {
		status = shim_bounce_get(n, &f->bounce);
	} else if (!shim_bounce_try(n, &f->bounce)) {
		return false;
	}
	out_begin(r, &f->call, &f->piece, segment, f->bounce, stream);
	if (status && !f->call.status)
		f->call.status = status;
	if (first) {
		shim_send(&f->call);
	} else if (!shim_try_send(&f->call)) {
		if (!f->direct)
			shim_bounce_put(f->bounce, n);
		return false;
	}
	return true;
}

/* From the bounce buffer to where the app wants it. */
static void flight_land(const struct rows *r, const struct flight *f)
{
	const unsigned char *from = shim_segment(f->bounce);
	unsigned char *to = piece_host(r, &f->piece);
	bool large = r->width * r->height >= PAST_CACHES_LEAST;

	for (size_t i = 0; i < f->piece.rows; i++) {
		if (large)
			past_caches_copy(to, from, f->piece.width);
		else
			memcpy(to, from, f->piece.width);
		to += r->host_pitch;
		from += f->piece.width;
	}
}

static CUresult flight_end(const struct rows *r, struct flight *f, uint64_t *seq)
{
	size_t n = f->piece.width * f->piece.rows;
	bool answered;

	shim_wait_sent(&f->call, 0);
	answered = f->call.slot != NULL;
	if (!f->call.status && f->call.received != n)
		f->call.status = status_of(CAUSE_VIOLATION);
	if (!f->call.status && !f->direct)
		flight_land(r, f);
	/* Without an answer the bytes may still come: that place is never used again. */
	if (answered && !f->direct)
		shim_bounce_put(f->bounce, n);
	*seq = f->call.seq;
	return shim_end(&f->call);
}

static unsigned copy_depth(void)
{
	uint64_t fit = session_here()->ring.bounce_size / FRAME_CHUNK * 3 / 4;

	return fit < 1 ? 1 : fit > COPY_DEPTH_MOST ? COPY_DEPTH_MOST : (unsigned)fit;
}

CUresult copy_out(struct rows *r, uint64_t stream)
{
	struct flight flights[COPY_DEPTH_MOST];
	unsigned first = 0, count = 0, depth = copy_depth();
	size_t row = 0, column = 0;
	struct frame_bulk pinned;
	CUresult status = CUDA_SUCCESS;
	uint64_t seq = 0;

	rows_join(r);
	rows_pinned(r, &pinned);
	for (;;) {
		while (!status && count < depth) {
			struct flight *f = &flights[(first + count) % depth];

			if (!piece_next(r, &f->piece, row, column) ||
				!flight_start(r, f, stream, !count))
				break;
			piece_behind(r, &f->piece, &row, &column);
			count++;
		}
		if (!count)
			break;
		CUresult ended = flight_end(r, &flights[first], &seq);

		first = (first + 1) % depth;
		count--;
		if (ended && !status)
			status = ended;
	}
	statistics_event(STATISTICS_ROUND_TRIPS);
	if (!status)
		status = mirror_after();
	if (!status)
		stream_synced(stream, seq);
	output_fetch();
	return status;
}

bool copy_out_later(struct rows *r, uint64_t stream, CUresult *status)
{
	size_t row = 0, column = 0;
	struct frame_bulk pinned;
	struct piece piece;

	rows_join(r);
	if (!(shim_perf & PERF_POST) || !rows_pinned(r, &pinned))
		return false;
	while (piece_next(r, &piece, row, column)) {
		struct shim_call call;

		out_begin(
			r, &call, &piece, pinned.segment, pinned.offset + piece.column, stream);
		*status = shim_post(&call);
		if (*status)
			break;
		host_written_later(r->host, stream, call.seq);
		piece_behind(r, &piece, &row, &column);
	}
	return true;
}
