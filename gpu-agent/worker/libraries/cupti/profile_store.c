/* SPDX-License-Identifier: Apache-2.0
 *
 * See profile.h.  Lists of pieces, so that nothing is copied when they grow; a record lies in
 * one piece.  The calls are a table by the low bits of their numbers, which only count up: it
 * grows until it has room for PROFILE_CALLS_MAX of them in a row, and then a new call takes an
 * old one's place.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/libraries/cupti/profile.h"

#define PIECE_BYTES (256u * 1024 - 32)
#define CALLS_MIN 4096u

struct profile_piece {
	struct profile_piece *next;
	uint32_t used;
	_Alignas(8) unsigned char bytes[PIECE_BYTES];
};

/* --- lists -------------------------------------------------------------------------------- */

/* Room for one more record behind the last; NULL: no memory, or there would be more than MOST.
 */
static void *list_add(struct profile_list *list, uint32_t bytes, uint64_t most)
{
	struct profile_piece *piece = list->last;
	void *at;

	if (list->bytes + bytes > most)
		return NULL;
	if (!piece || piece->used + bytes > PIECE_BYTES) {
		piece = malloc(sizeof(*piece));
		if (!piece)
			return NULL;
		piece->next = NULL;
		piece->used = 0;
		*(list->last ? &list->last->next : &list->first) = piece;
		list->last = piece;
	}
	at = piece->bytes + piece->used;
	piece->used += bytes;
	list->bytes += bytes;
	return at;
}

static void list_free(struct profile_list *list)
{
	struct profile_piece *next;

	for (struct profile_piece *piece = list->first; piece; piece = next) {
		next = piece->next;
		free(piece);
	}
	*list = (struct profile_list){0};
}

/* --- calls -------------------------------------------------------------------------------- */

static struct profile_call *call_at(const struct profile_store *s, uint32_t launch)
{
	return &s->calls[launch & (s->call_count - 1)];
}

static bool calls_grow(struct profile_store *s)
{
	uint32_t count = s->call_count ? 2 * s->call_count : CALLS_MIN;
	struct profile_store grown = {.call_count = count};

	if (count > PROFILE_CALLS_MAX)
		return false;
	grown.calls = calloc(count, sizeof(*grown.calls));
	if (!grown.calls)
		return false;
	for (uint32_t i = 0; i < s->call_count; i++)
		if (s->calls[i].seq)
			*call_at(&grown, s->calls[i].launch) = s->calls[i];
	free(s->calls);
	s->calls = grown.calls;
	s->call_count = count;
	return true;
}

/* The frame, or 0. */
static uint64_t call_frame(const struct profile_store *s, uint32_t launch)
{
	const struct profile_call *call = s->call_count ? call_at(s, launch) : NULL;

	return call && call->launch == launch ? call->seq : 0;
}

void profile_store_call(struct profile_store *s, uint32_t launch, uint64_t seq)
{
	if (!seq || (!s->call_count && !calls_grow(s)))
		return;
	while (call_at(s, launch)->seq && call_at(s, launch)->launch != launch)
		if (!calls_grow(s))
			break;
	*call_at(s, launch) = (struct profile_call){.seq = seq, .launch = launch};
	s->told = true;
}

/* --- records ------------------------------------------------------------------------------ */

static uint64_t store_most(const struct profile_store *s)
{
	return s->most ? s->most : PROFILE_STORE_MAX;
}

void profile_store_take(
	struct profile_store *s, const struct profile_record *record, const char *name)
{
	size_t length = name ? strnlen(name, PROFILE_NAME_MAX - 1) + 1 : 0;
	uint32_t bytes = (uint32_t)((sizeof(*record) + length + 7) / 8 * 8);
	uint64_t seq = call_frame(s, record->launch);
	struct profile_record *at = seq ? list_add(&s->complete, bytes, store_most(s))
					: list_add(&s->waiting, bytes, PROFILE_WAITING_MAX);

	if (!at) {
		s->dropped++;
		return;
	}
	memset((char *)at + bytes - 8, 0, 8); /* what is behind the name */
	*at = *record;
	at->bytes = bytes;
	at->seq = seq;
	at->name_bytes = (uint32_t)length;
	if (length) {
		memcpy(at + 1, name, length - 1);
		((char *)(at + 1))[length - 1] = 0;
	}
}

void profile_store_join(struct profile_store *s)
{
	struct profile_list waited = s->waiting;

	if (!s->told)
		return;
	s->told = false;
	s->waiting = (struct profile_list){0};
	for (struct profile_piece *piece = waited.first; piece; piece = piece->next) {
		for (uint32_t i = 0; i < piece->used;) {
			struct profile_record *record = (void *)(piece->bytes + i);
			void *at;

			record->seq = call_frame(s, record->launch);
			at = record->seq ? list_add(&s->complete, record->bytes, store_most(s))
					 : list_add(&s->waiting, record->bytes, UINT64_MAX);
			if (at)
				memcpy(at, record, record->bytes);
			else
				s->dropped++;
			i += record->bytes;
		}
	}
	list_free(&waited);
}

uint64_t profile_store_batch(struct profile_store *s, bool all)
{
	profile_store_join(s);
	if (all)
		list_free(&s->waiting);
	list_free(&s->batch);
	s->batch = s->complete;
	s->batch_read = 0;
	s->complete = (struct profile_list){0};
	return s->batch.bytes;
}

bool profile_store_read(struct profile_store *s, uint64_t offset, uint64_t bytes, void *to)
{
	const struct profile_piece *piece = s->batch.first;
	unsigned char *into = to;

	if (offset > s->batch.bytes || bytes > s->batch.bytes - offset)
		return false;
	if (offset + bytes > s->batch_read)
		s->batch_read = offset + bytes;
	for (; piece && offset >= piece->used; piece = piece->next)
		offset -= piece->used;
	for (; bytes; piece = piece->next) {
		uint64_t n = piece->used - offset < bytes ? piece->used - offset : bytes;

		memcpy(into, piece->bytes + offset, n);
		into += n;
		bytes -= n;
		offset = 0;
	}
	return true;
}

void profile_store_rest(struct profile_store *s)
{
	if (s->batch_read == s->batch.bytes)
		list_free(&s->batch);
	if (s->complete.bytes || s->waiting.bytes)
		return;
	free(s->calls);
	s->calls = NULL;
	s->call_count = 0;
}

void profile_store_clear(struct profile_store *s)
{
	list_free(&s->complete);
	list_free(&s->waiting);
	list_free(&s->batch);
	free(s->calls);
	*s = (struct profile_store){0};
}
