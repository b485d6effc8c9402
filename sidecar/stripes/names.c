/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/stripes/names.h"

#include <errno.h>
#include <string.h>

#include "protocol/wire/frame.h"
#include "transport/codec/name.h"

static struct names_piece *piece_at(struct names *names, uint32_t number)
{
	return &names->pieces[number % SESSION_NAMES_AHEAD];
}

void names_begin(struct names *names, const struct session_names *said)
{
	memset(names, 0, sizeof(*names));
	names->seed = said->seed;
	names->on = true;
}

bool names_may_look(const struct names *names, uint32_t head, uint32_t tail)
{
	return names->looked != tail && names->looked - head < SESSION_NAMES_AHEAD &&
	       names->count < NAMES_BATCH &&
	       atomic_load_explicit(&names->asked, memory_order_relaxed) - names->heeded <
		       NAMES_QUESTIONS;
}

void names_look(struct names *names, const void *bytes, uint32_t n, bool as_is)
{
	struct names_piece *piece = piece_at(names, names->looked++);

	piece->way = as_is || n > FRAME_CHUNK ? NAMES_AS_IT_IS : NAMES_UNKNOWN;
	if (piece->way == NAMES_AS_IT_IS)
		return;
	piece->name = name_of(names->seed, bytes, n);
	names->question[names->count++] = piece->name;
}

void names_ask(struct names *names)
{
	uint32_t asked = atomic_load_explicit(&names->asked, memory_order_relaxed);

	names->counts[asked % NAMES_QUESTIONS] = names->count;
	names->count = 0;
	atomic_store_explicit(&names->asked, asked + 1, memory_order_release);
}

int names_heed(struct names *names)
{
	uint32_t answers = atomic_load_explicit(&names->answers, memory_order_acquire);

	for (; names->heeded != answers; names->heeded++) {
		const struct names_answer *answer =
			&names->ring[names->heeded % NAMES_QUESTIONS];

		if (answer->count != names->counts[names->heeded % NAMES_QUESTIONS])
			return -EPROTO;
		for (uint32_t i = 0; i < answer->count; i++) {
			while (piece_at(names, names->known)->way != NAMES_UNKNOWN)
				names->known++;
			piece_at(names, names->known)->way =
				answer->have >> i & 1 ? NAMES_NAMED : NAMES_LACKING;
		}
	}
	return 0;
}

enum names_way names_of(
	const struct names *names, uint32_t head, const struct session_name **name)
{
	const struct names_piece *piece = &names->pieces[head % SESSION_NAMES_AHEAD];

	*name = &piece->name;
	return names->looked == head ? NAMES_UNKNOWN : piece->way;
}

bool names_await(const struct names *names)
{
	return atomic_load_explicit(&names->asked, memory_order_acquire) !=
	       atomic_load_explicit(&names->answers, memory_order_relaxed);
}

void names_hear(struct names *names, uint32_t count, uint64_t have)
{
	uint32_t answers = atomic_load_explicit(&names->answers, memory_order_relaxed);

	names->ring[answers % NAMES_QUESTIONS] = (struct names_answer){have, count};
	atomic_store_explicit(&names->answers, answers + 1, memory_order_release);
}
