/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages between two workers.  The other end is another machine's word: a message that does
 * not fit ends the connection, and what is said for a frame that has not come yet is kept, so
 * much of it and no more.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/direct/direct.h"
#include "gpu-agent/worker/worker_state.h"

#define MESSAGES_A_TURN 64
#define QUEUE_MOST (1u << 20)

/* ---- out ---- */

static bool queue_room(struct direct_link *l)
{
	uint32_t room = l->room ? 2 * l->room : 64;
	struct direct_out *queue;

	if (l->count < l->room)
		return true;
	if (room > QUEUE_MOST)
		return false;
	queue = calloc(room, sizeof(*queue));
	if (!queue)
		return false;
	for (uint32_t i = 0; i < l->count; i++)
		queue[i] = l->queue[(l->first + i) % l->room];
	free(l->queue);
	l->queue = queue;
	l->room = room;
	l->first = 0;
	return true;
}

static bool queue_put(struct direct_link *l, const struct direct_out *out)
{
	if (!queue_room(l))
		return false;
	l->queue[(l->first + l->count++) % l->room] = *out;
	return true;
}

void direct_say(struct worker *w, struct direct_link *l, enum direct_what what, uint64_t id,
	uint64_t value)
{
	const struct direct_out out = {.head = {.magic = DIRECT_MAGIC,
					       .what = (uint16_t)what,
					       .id = id,
					       .value = value}};

	if (l->state != DIRECT_BROKEN && !queue_put(l, &out))
		direct_break(w, l, "out of memory for messages");
}

bool direct_say_data(struct worker *w, struct direct_link *l, uint64_t id, uint64_t offset,
	const unsigned char *bytes, uint32_t n, struct staging_range *range)
{
	const struct direct_out out = {.head = {.magic = DIRECT_MAGIC,
					       .what = DIRECT_DATA,
					       .length = n,
					       .id = id,
					       .value = offset},
		.bytes = bytes,
		.range = range};

	(void)w;
	return queue_put(l, &out);
}

/* So many bytes went out. */
static void queue_sent(struct direct_link *l, size_t n)
{
	for (l->sent += n; l->count;) {
		struct direct_out *out = &l->queue[l->first];
		size_t whole = sizeof(out->head) + out->head.length;

		if (l->sent < whole)
			return;
		l->sent -= whole;
		if (out->range)
			staging_done(out->range);
		l->first = (l->first + 1) % l->room;
		l->count--;
	}
}

static bool wire_send(struct worker *w, struct direct_link *l)
{
	enum { PIECES = 64 };
	struct iovec iov[PIECES];
	bool progress = false;

	while (l->count) {
		size_t skip = l->sent;
		ssize_t sent;
		int n = 0;

		for (uint32_t i = 0; i < l->count && n + 2 <= PIECES; i++) {
			struct direct_out *out = &l->queue[(l->first + i) % l->room];

			if (skip < sizeof(out->head)) {
				iov[n++] = (struct iovec){
					(char *)&out->head + skip, sizeof(out->head) - skip};
				skip = sizeof(out->head);
			}
			if (out->head.length)
				iov[n++] =
					(struct iovec){(void *)(uintptr_t)(out->bytes + skip -
									   sizeof(out->head)),
						out->head.length - (skip - sizeof(out->head))};
			skip = 0;
		}
		sent = link_send(l->link, iov, n);
		if (sent == -EAGAIN)
			break;
		if (sent < 0) {
			direct_break(w, l, strerror((int)-sent));
			return true;
		}
		l->said_at = wait_now();
		queue_sent(l, (size_t)sent);
		progress = true;
	}
	return progress;
}

/* ---- in ---- */

void direct_newest(struct direct_link *l, uint64_t id)
{
	uint32_t kept = 0;

	if (id <= l->newest)
		return;
	l->newest = id;
	for (uint32_t i = 0; i < l->early_count; i++)
		if (l->early[i].id >= id)
			l->early[kept++] = l->early[i];
	l->early_count = kept;
}

bool direct_early(struct direct_link *l, uint64_t id, struct direct_early *early)
{
	for (uint32_t i = 0; i < l->early_count; i++) {
		if (l->early[i].id != id)
			continue;
		*early = l->early[i];
		l->early[i] = l->early[--l->early_count];
		return true;
	}
	return false;
}

static const char *early_keep(struct direct_link *l, const struct direct_message *m)
{
	uint32_t room = l->early_room ? 2 * l->early_room : 64;
	struct direct_early *early;

	if (m->id <= l->newest)
		return NULL; /* its frame was here: what it was for is over */
	if (l->early_count == l->early_room) {
		if (room > DIRECT_EARLY)
			return "it says too much for frames that have not come";
		early = realloc(l->early, room * sizeof(*early));
		if (!early)
			return "out of memory for messages";
		l->early = early;
		l->early_room = room;
	}
	l->early[l->early_count++] = (struct direct_early){m->id, m->value, m->what};
	return NULL;
}

/* A whole message that is not DATA. NULL, or what is wrong with it. */
static const char *wire_take(
	struct worker *w, struct direct_link *l, const struct direct_message *m)
{
	switch (m->what) {
	case DIRECT_HELLO:
		if (m->value != DIRECT_VERSION)
			return "it speaks another version";
		l->greeted = true;
		return NULL;
	case DIRECT_ALIVE: return NULL;
	case DIRECT_READY:
	case DIRECT_DONE:
	case DIRECT_FAILED:
	case DIRECT_SIGNAL: return direct_heard(w, l, m) ? NULL : early_keep(l, m);
	default: return "a message of no known kind";
	}
}

/* What a head must be before it is used. */
static const char *wire_check(const struct direct_link *l, const struct direct_message *m)
{
	if (m->magic != DIRECT_MAGIC)
		return "no message begins here";
	if (!l->greeted && m->what != DIRECT_HELLO)
		return "it does not begin with HELLO";
	if (m->what == DIRECT_DATA ? !m->length || m->length > DIRECT_PIECE : m->length)
		return "a length that cannot be";
	return NULL;
}

/* Where the bytes behind the head go. False: not yet. */
static bool wire_room(struct worker *w, struct direct_link *l)
{
	l->copy = NULL;
	l->body = NULL;
	l->range = NULL;
	l->room_wanted = false;
	if (direct_place(w, l, &l->head, &l->copy)) {
		direct_break(w, l, "it sends bytes that no copy has");
		return false;
	}
	if (!l->copy)
		return true; /* it failed meanwhile: they go nowhere */
	l->range = staging_alloc(w, &w->direct->in, l->head.length, &l->body);
	l->room_wanted = !l->range;
	return l->range;
}

/* Some of the bytes behind the head. 1: all are there, 0: not yet, -1: it broke. */
static int wire_body(struct worker *w, struct direct_link *l, bool *progress)
{
	static unsigned char waste[64u * 1024];

	if (!l->body_got && !l->range && !l->body && (!l->copy || l->room_wanted) &&
		!wire_room(w, l))
		return l->state == DIRECT_BROKEN ? -1 : 0;
	while (l->body_got < l->head.length) {
		uint32_t n = l->head.length - l->body_got;
		ssize_t got;

		if (!l->body && n > sizeof(waste))
			n = sizeof(waste);
		got = link_receive(l->link, l->body ? l->body + l->body_got : waste, n);
		if (got == -EAGAIN)
			return 0;
		if (got <= 0) {
			direct_break(
				w, l, got ? strerror((int)-got) : "the other end closed it");
			return -1;
		}
		l->body_got += (uint32_t)got;
		l->heard_at = wait_now();
		*progress = true;
	}
	return 1;
}

/* The whole message at hand is dealt with. */
static void wire_next(struct direct_link *l)
{
	l->head_got = l->body_got = 0;
	l->body = NULL;
	l->range = NULL;
	l->copy = NULL;
	l->room_wanted = false;
}

static bool wire_head(struct worker *w, struct direct_link *l)
{
	const char *wrong;
	ssize_t got = link_receive(
		l->link, (char *)&l->head + l->head_got, sizeof(l->head) - l->head_got);

	if (got == -EAGAIN)
		return false;
	if (got <= 0) {
		direct_break(w, l, got ? strerror((int)-got) : "the other end closed it");
		return false;
	}
	l->heard_at = wait_now();
	l->head_got += (uint32_t)got;
	if (l->head_got < sizeof(l->head))
		return true;
	wrong = wire_check(l, &l->head);
	if (!wrong && l->head.what != DIRECT_DATA) {
		wire_next(l);
		wrong = wire_take(w, l, &l->head);
	}
	if (wrong)
		direct_break(w, l, wrong);
	return !wrong;
}

static bool wire_receive(struct worker *w, struct direct_link *l)
{
	bool progress = false;

	for (int i = 0; i < MESSAGES_A_TURN && l->state == DIRECT_OPEN; i++) {
		struct direct_copy *copy;
		struct staging_range *range;
		unsigned char *bytes;

		if (l->head_got < sizeof(l->head)) {
			if (!wire_head(w, l))
				break;
			progress = true;
			continue;
		}
		if (wire_body(w, l, &progress) <= 0)
			break;
		copy = l->copy;
		range = l->range;
		bytes = l->body;
		wire_next(l);
		if (copy)
			direct_landed(w, l, copy, &l->head, bytes, range);
		else if (range)
			staging_done(range); /* the copy failed meanwhile */
		progress = true;
	}
	return progress;
}

bool direct_exchange(struct worker *w, struct direct_link *l)
{
	bool progress;

	if (l->state != DIRECT_OPEN)
		return false;
	progress = wire_receive(w, l);
	if (l->state == DIRECT_OPEN)
		progress |= wire_send(w, l);
	return progress;
}

void direct_wire_close(struct direct_link *l)
{
	for (uint32_t i = 0; i < l->count; i++) {
		struct direct_out *out = &l->queue[(l->first + i) % l->room];

		if (out->range)
			staging_done(out->range);
	}
	if (l->range)
		staging_done(l->range);
	link_close(l->link);
	free(l->queue);
	free(l->early);
	l->link = NULL;
	l->queue = NULL;
	l->early = NULL;
	l->count = l->room = l->early_count = l->early_room = 0;
	wire_next(l);
}
