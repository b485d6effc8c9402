/* SPDX-License-Identifier: Apache-2.0
 *
 * Small tensors that share a piece of memory, one behind the other.  Each has a descriptor of
 * it, so that the piece goes with the last.
 *
 * Pages tell who writes by the whole piece, and who has its descriptor reads all of it.  So a
 * piece is one session's: that alone maps it to write, nobody of another namespace gets it, and
 * once one in it is sealed no other one begins there.  What is left is its owner, which can
 * write a sealed one through the address of a neighbour that it has not sealed yet.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "gpu-agent/store/store.h"

#define SMALL (1ull << 20) /* below */
#define ALIGNMENT 512u	   /* of cuMemAlloc's */

bool pieces_wanted(const struct tensor_message *m, uint64_t bytes)
{
	return m->about.flags & TENSOR_PACKED && bytes < SMALL;
}

static const struct tensor_record *at(const struct store *s, uint32_t index)
{
	return &s->table->records[index];
}

/* Where the next one would begin in that piece; its whole room: nothing more begins there. */
static uint64_t end_of(const struct store *s, const struct tensor_record *first)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < s->table->count; i++) {
		const struct tensor_record *r = at(s, i);

		if (!r->state || r->piece != first->piece)
			continue;
		if (r->state != TENSOR_CREATED)
			return first->room;
		if (r->offset + r->bytes > end)
			end = r->offset + r->bytes;
	}
	return (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* One of the session's newest piece. Only that one is filled: what did not fit there was larger
 * than what is left, so each older piece is half full at least. */
static uint32_t newest(const struct store *s, const struct tensor_message *m)
{
	uint32_t found = UINT32_MAX;

	for (uint32_t i = 0; i < s->table->count; i++) {
		const struct tensor_record *r = at(s, i);

		if (r->piece && r->state == TENSOR_CREATED && r->owner == m->session &&
			!strcmp(r->space, m->space) && !memcmp(r->gpu, m->gpu, 16) &&
			(found == UINT32_MAX || r->piece > at(s, found)->piece))
			found = i;
	}
	return found;
}

uint32_t pieces_place(struct store *s, const struct tensor_message *m, uint64_t bytes)
{
	uint32_t i = newest(s, m), made, piece;
	uint64_t end, room;
	int fd;

	if (i == UINT32_MAX)
		return i;
	room = at(s, i)->room;
	piece = at(s, i)->piece;
	end = end_of(s, at(s, i));
	if (end > room || bytes > room - end)
		return UINT32_MAX;
	fd = fcntl(s->fds[i], F_DUPFD_CLOEXEC, 0);
	made = fd < 0 ? UINT32_MAX : store_table_new(s, m->gpu, room, fd);
	if (made == UINT32_MAX) {
		if (fd >= 0)
			close(fd);
		return made;
	}
	s->table->records[made].piece = piece;
	s->table->records[made].offset = end;
	return made;
}

static bool is_used(const struct store *s, uint32_t piece)
{
	for (uint32_t i = 0; i < s->table->count; i++)
		if (at(s, i)->state && at(s, i)->piece == piece)
			return true;
	return !piece;
}

void pieces_begin(struct store *s, uint32_t index)
{
	uint32_t piece;

	do
		piece = (uint32_t)++s->table->clock;
	while (is_used(s, piece));
	s->table->records[index].piece = piece;
}
