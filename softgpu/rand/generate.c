/* SPDX-License-Identifier: Apache-2.0
 *
 * A generator's numbers: its sequences in turn, each giving what one number takes, or two where
 * they are normal, or four of Philox's.
 */
#include <math.h>
#include <stdlib.h>

#include "softgpu/rand/rand.h"

#define XORWOW_SEQUENCES 4096
#define MRG_SEQUENCES 81920
#define MRG_SEQUENCES_LEGACY 4096
#define PHILOX_SEQUENCES 65536
#define TWO_32 2.3283064365386963e-10	/* 2^-32 */
#define TWO_53 1.1102230246251565e-16	/* 2^-53 */
#define MRG_NORM 2.3283065498378288e-10 /* of NVIDIA's: all below 1 */
#define MRG_BITS 1.000000048662

bool rand_is_quasi(int type)
{
	return type >= RAND_QUASI;
}

static bool is_philox(int type)
{
	return type == RAND_PHILOX || type == RAND_MTGP32 || type == RAND_MT19937;
}

/* The twisters are Philox under another key. */
static uint64_t philox_key(const struct rand_settings *set)
{
	return set->type == RAND_PHILOX
		       ? set->seed
		       : (set->seed + (uint64_t)set->type) * 0x9e3779b97f4a7c15u;
}

bool rand_engine_begin(struct rand_engine *e, const struct rand_settings *set)
{
	free(e->sequences);
	*e = (struct rand_engine){.set = *set, .at = set->offset};
	if (rand_is_quasi(set->type))
		return true;
	e->count = is_philox(set->type)		  ? PHILOX_SEQUENCES
		   : set->type != RAND_MRG32K3A	  ? XORWOW_SEQUENCES
		   : set->ordering == RAND_LEGACY ? MRG_SEQUENCES_LEGACY
						  : MRG_SEQUENCES;
	e->sequences = calloc(e->count, sizeof(*e->sequences));
	if (!e->sequences)
		return false;
	if (is_philox(set->type)) {
		uint64_t fours = set->offset / 4;

		e->within = set->offset % 4;
		e->cursor = (uint32_t)(fours % e->count);
		for (uint32_t i = 0; i < e->count; i++)
			e->sequences[i].step = fours / e->count + (i < e->cursor);
		return true;
	}
	e->cursor = (uint32_t)(set->offset % e->count);
	if (set->type == RAND_MRG32K3A)
		rand_mrg_begin(e);
	else
		rand_xorwow_begin(e);
	return true;
}

void rand_engine_end(struct rand_engine *e)
{
	free(e->sequences);
	e->sequences = NULL;
}

/* 53 bits of two numbers. */
static double uniform_of_two(uint32_t x, uint32_t y)
{
	return (double)(x ^ (uint64_t)y << 21) * TWO_53 + TWO_53 / 2;
}

static float uniform_of_one(uint32_t x)
{
	return (float)x * (float)TWO_32 + (float)TWO_32 / 2;
}

/* Box and Muller's pair; `turn` in half circles. */
static void pair(double u, double turn, double out[2])
{
	double s = sqrt(-2 * log(u));

	out[0] = s * sin(turn * M_PI);
	out[1] = s * cos(turn * M_PI);
}

static bool is_normal(enum rand_what what)
{
	return what >= RAND_NORMAL && what <= RAND_LOG_NORMAL_DOUBLE;
}

static bool is_double(enum rand_what what)
{
	return what == RAND_UNIFORM_DOUBLE || what == RAND_NORMAL_DOUBLE ||
	       what == RAND_LOG_NORMAL_DOUBLE;
}

/* A uniform number of MRG32k3a or xorwow, in double precision or single. */
static double draw(const struct rand_engine *e, union rand_sequence *s, bool wide)
{
	uint32_t x;

	if (e->set.type == RAND_MRG32K3A)
		return wide ? rand_mrg(s) * MRG_NORM : (float)(rand_mrg(s) * MRG_NORM);
	x = rand_xorwow(s);
	return wide ? uniform_of_two(x, rand_xorwow(s)) : uniform_of_one(x);
}

static uint32_t draw_bits(const struct rand_engine *e, union rand_sequence *s)
{
	return e->set.type == RAND_MRG32K3A ? (uint32_t)(rand_mrg(s) * MRG_BITS)
					    : rand_xorwow(s);
}

static void fill_in_turn(struct rand_engine *e, const struct rand_order *order, void *to)
{
	bool wide = is_double(order->what);

	for (size_t i = 0; i < order->n;) {
		union rand_sequence *s = &e->sequences[e->cursor];
		double u, two[2];

		e->cursor = (e->cursor + 1) % e->count;
		if (order->what == RAND_BITS) {
			((uint32_t *)to)[i++] = draw_bits(e, s);
			continue;
		}
		u = draw(e, s, wide);
		if (is_normal(order->what)) {
			pair(u, 2 * draw(e, s, wide), two);
			rand_put(order, to, i++, two[0]);
			u = two[1];
		}
		rand_put(order, to, i++, u);
	}
}

/* Four numbers of one of Philox's sequences, of so many fours of bits. */
static unsigned philox_four(
	uint64_t key, uint64_t step, uint32_t sequence, enum rand_what what, double four[4])
{
	uint32_t x[8];
	unsigned fours = is_double(what) ? 2 : 1;

	for (unsigned i = 0; i < fours; i++)
		rand_philox(key, step + i, sequence, x + 4 * i);
	for (unsigned i = 0; i < 4; i++)
		four[i] = what == RAND_BITS ? x[i]
			  : fours == 2	    ? uniform_of_two(x[2 * i], x[2 * i + 1])
					    : uniform_of_one(x[i]);
	if (is_normal(what)) {
		pair(four[0], 2 * four[1], four);
		pair(four[2], 2 * four[3], four + 2);
	}
	return fours;
}

static void fill_by_fours(struct rand_engine *e, const struct rand_order *order, void *to)
{
	uint64_t key = philox_key(&e->set);
	double four[4];

	for (size_t i = 0; i < order->n;) {
		union rand_sequence *s = &e->sequences[e->cursor];
		unsigned fours = philox_four(key, s->step, e->cursor, order->what, four);

		for (; e->within < 4 && i < order->n; i++, e->within++) {
			if (order->what == RAND_BITS)
				((uint32_t *)to)[i] = (uint32_t)four[e->within];
			else
				rand_put(order, to, i, four[e->within]);
		}
		if (e->within < 4)
			return;
		e->within = 0;
		e->cursor = (e->cursor + 1) % e->count;
		s->step += fours;
	}
}

void rand_engine_fill(struct rand_engine *e, const struct rand_order *order, void *to)
{
	if (rand_is_quasi(e->set.type))
		rand_sobol_fill(e, order, to);
	else if (is_philox(e->set.type))
		fill_by_fours(e, order, to);
	else
		fill_in_turn(e, order, to);
}
