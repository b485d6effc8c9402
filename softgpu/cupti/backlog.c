/* SPDX-License-Identifier: Apache-2.0
 *
 * Records that no buffer of the program's has yet: a list of pieces of memory, oldest first.  A
 * program that gives no buffer loses what comes when it is full.
 */
#include "softgpu/cupti/activity.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES 65536u
/* About 150000 kernels. */
#define BACKLOG_MAX 512u /* pieces */
/* So much is given out without being asked for. */
#define BACKLOG_MANY 4u /* pieces */

struct piece {
	struct piece *next;
	size_t used, taken;
	_Alignas(8) unsigned char bytes[PIECE_BYTES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t many = PTHREAD_COND_INITIALIZER;
static struct piece *first, *last;
static unsigned pieces;
static atomic_size_t dropped;

size_t record_bytes(const CUpti_Activity *record)
{
	switch (record->kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
	case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
	case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
	case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return sizeof(CUpti_ActivityGraphTrace2);
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
		return sizeof(CUpti_ActivityExternalCorrelation);
	default: return 0;
	}
}

static struct piece *piece_with_room(size_t bytes)
{
	struct piece *piece;

	if (last && PIECE_BYTES - last->used >= bytes)
		return last;
	piece = pieces < BACKLOG_MAX ? malloc(sizeof(*piece)) : NULL;
	if (!piece)
		return NULL;
	piece->next = NULL;
	piece->used = piece->taken = 0;
	if (last)
		last->next = piece;
	else
		first = piece;
	last = piece;
	if (++pieces >= BACKLOG_MANY)
		pthread_cond_signal(&many);
	return piece;
}

void backlog_add(const CUpti_Activity *record)
{
	size_t bytes = record_bytes(record);
	struct piece *piece;

	pthread_mutex_lock(&lock);
	piece = piece_with_room(bytes);
	if (piece) {
		memcpy(piece->bytes + piece->used, record, bytes);
		piece->used += bytes;
	}
	pthread_mutex_unlock(&lock);
	if (!piece)
		backlog_dropped_add(1);
}

size_t backlog_take(void *record)
{
	struct piece *piece, *empty = NULL;
	size_t bytes = 0;

	pthread_mutex_lock(&lock);
	piece = first;
	if (piece) {
		bytes = record_bytes((const CUpti_Activity *)(piece->bytes + piece->taken));
		memcpy(record, piece->bytes + piece->taken, bytes);
		piece->taken += bytes;
		if (piece->taken == piece->used) {
			empty = piece;
			first = piece->next;
			if (!first)
				last = NULL;
			pieces--;
		}
	}
	pthread_mutex_unlock(&lock);
	free(empty);
	return bytes;
}

void backlog_wait(void)
{
	pthread_mutex_lock(&lock);
	while (pieces < BACKLOG_MANY)
		pthread_cond_wait(&many, &lock);
	pthread_mutex_unlock(&lock);
}

void backlog_dropped_add(size_t count)
{
	atomic_fetch_add(&dropped, count);
}

size_t backlog_dropped_take(void)
{
	return atomic_exchange(&dropped, 0);
}
