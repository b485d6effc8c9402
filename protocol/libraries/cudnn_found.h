/* SPDX-License-Identifier: Apache-2.0
 *
 * What heuristics found, as it travels: engine configurations one behind the other, each a
 * sequence of numbers of seven bits a byte, the lower first.
 *
 *	configuration: engine, notes of numbers, notes of behaviour, knobs, sizes
 *	notes:	       0, or 1 + how many there are, and the notes
 *	knobs:	       how many, and for each its type and its value (signed)
 *	sizes:	       0; or 1, bytes of workspace, bytes of shared memory, each 0 or 1 + so
 * many
 *
 * A list of forty, which as trees would take twenty answers, takes one.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_CUDNN_FOUND_H
#define VCUDA_PROTOCOL_LIBRARIES_CUDNN_FOUND_H

#include <stdbool.h>
#include <stdint.h>

#define CUDNN_FOUND_NOTES 64u
#define CUDNN_FOUND_KNOBS 64u

struct cudnn_found_notes {
	bool known;
	uint32_t count;
	int32_t note[CUDNN_FOUND_NOTES];
};

struct cudnn_found {
	int64_t engine;
	struct cudnn_found_notes numerical, behavior;
	uint32_t knobs;
	struct {
		int32_t type;
		int64_t value;
	} knob[CUDNN_FOUND_KNOBS];
	/* -1: not known. */
	int64_t workspace, shared;
};

struct cudnn_found_bytes {
	unsigned char *at, *end;
	bool broken; /* too short, or no number */
};

static inline void cudnn_found_put(struct cudnn_found_bytes *to, uint64_t value)
{
	do {
		if (to->at == to->end) {
			to->broken = true;
			return;
		}
		*to->at++ = (unsigned char)((value & 127) | (value > 127 ? 128 : 0));
		value >>= 7;
	} while (value);
}

static inline uint64_t cudnn_found_get(struct cudnn_found_bytes *from)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		unsigned char byte;

		if (from->at == from->end)
			break;
		byte = *from->at++;
		value |= (uint64_t)(byte & 127) << shift;
		if (!(byte & 128))
			return value;
	}
	from->broken = true;
	return 0;
}

static inline void cudnn_found_put_signed(struct cudnn_found_bytes *to, int64_t value)
{
	cudnn_found_put(to, (uint64_t)value << 1 ^ (value < 0 ? ~0ull : 0));
}

static inline int64_t cudnn_found_get_signed(struct cudnn_found_bytes *from)
{
	uint64_t value = cudnn_found_get(from);

	return (int64_t)(value >> 1 ^ (value & 1 ? ~0ull : 0));
}

/* How many there are, or, beyond `most`, none and broken. */
static inline uint32_t cudnn_found_get_count(struct cudnn_found_bytes *from, uint32_t most)
{
	uint64_t count = cudnn_found_get(from);

	if (count <= most)
		return (uint32_t)count;
	from->broken = true;
	return 0;
}

static inline void cudnn_found_put_notes(
	struct cudnn_found_bytes *to, const struct cudnn_found_notes *notes)
{
	cudnn_found_put(to, notes->known ? 1 + (uint64_t)notes->count : 0);
	for (uint32_t i = 0; notes->known && i < notes->count; i++)
		cudnn_found_put(to, (uint32_t)notes->note[i]);
}

static inline void cudnn_found_get_notes(
	struct cudnn_found_bytes *from, struct cudnn_found_notes *notes)
{
	uint32_t count = cudnn_found_get_count(from, 1 + CUDNN_FOUND_NOTES);

	notes->known = count;
	notes->count = count ? count - 1 : 0;
	for (uint32_t i = 0; i < notes->count; i++)
		notes->note[i] = (int32_t)cudnn_found_get(from);
}

static inline void cudnn_found_write(
	struct cudnn_found_bytes *to, const struct cudnn_found *found)
{
	cudnn_found_put_signed(to, found->engine);
	cudnn_found_put_notes(to, &found->numerical);
	cudnn_found_put_notes(to, &found->behavior);
	cudnn_found_put(to, found->knobs);
	for (uint32_t i = 0; i < found->knobs; i++) {
		cudnn_found_put(to, (uint32_t)found->knob[i].type);
		cudnn_found_put_signed(to, found->knob[i].value);
	}
	cudnn_found_put(to, found->workspace >= 0 || found->shared >= 0);
	if (found->workspace < 0 && found->shared < 0)
		return;
	cudnn_found_put(to, found->workspace < 0 ? 0 : 1 + (uint64_t)found->workspace);
	cudnn_found_put(to, found->shared < 0 ? 0 : 1 + (uint64_t)found->shared);
}

static inline void cudnn_found_read(struct cudnn_found_bytes *from, struct cudnn_found *found)
{
	found->engine = cudnn_found_get_signed(from);
	cudnn_found_get_notes(from, &found->numerical);
	cudnn_found_get_notes(from, &found->behavior);
	found->knobs = cudnn_found_get_count(from, CUDNN_FOUND_KNOBS);
	for (uint32_t i = 0; i < found->knobs; i++) {
		found->knob[i].type = (int32_t)cudnn_found_get(from);
		found->knob[i].value = cudnn_found_get_signed(from);
	}
	found->workspace = found->shared = -1;
	if (!cudnn_found_get_count(from, 1))
		return;
	found->workspace = (int64_t)(cudnn_found_get(from) - 1);
	found->shared = (int64_t)(cudnn_found_get(from) - 1);
}

#endif
