/* SPDX-License-Identifier: Apache-2.0
 *
 * The pseudorandom sequences: Marsaglia's xorwow, L'Ecuyer's MRG32k3a, Salmon's Philox4x32-10.
 * Those of one generator lie 2^67 and 2^76 numbers apart; matrices take a state that far.
 */
#include "softgpu/rand/rand.h"

#include <string.h>

/* ---- xorwow: a linear map of 160 bits over GF(2), and a counter ---- */

#define BITS 160
#define STEP 362437u
#define SEED_STEP 3133713ull

struct bits {
	uint32_t word[5];
};
struct bit_matrix {
	struct bits column[BITS]; /* what each bit becomes */
};

uint32_t rand_xorwow(union rand_sequence *s)
{
	uint32_t *v = s->xorwow.v;
	uint32_t t = v[0] ^ v[0] >> 2;

	memmove(v, v + 1, 4 * sizeof(*v));
	v[4] = v[4] ^ v[4] << 4 ^ t ^ t << 1;
	s->xorwow.d += STEP;
	return v[4] + s->xorwow.d;
}

static struct bits bits_times(const struct bit_matrix *m, const struct bits *x)
{
	struct bits y = {0};

	for (unsigned i = 0; i < BITS; i++) {
		if (!(x->word[i / 32] >> i % 32 & 1))
			continue;
		for (unsigned j = 0; j < 5; j++)
			y.word[j] ^= m->column[i].word[j];
	}
	return y;
}

static void matrix_square(struct bit_matrix *m)
{
	static _Thread_local struct bit_matrix old;

	old = *m;
	for (unsigned i = 0; i < BITS; i++)
		m->column[i] = bits_times(&old, &old.column[i]);
}

static void matrix_step(struct bit_matrix *m)
{
	for (unsigned i = 0; i < BITS; i++) {
		union rand_sequence s = {0};

		s.xorwow.v[i / 32] = 1u << i % 32;
		rand_xorwow(&s);
		memcpy(m->column[i].word, s.xorwow.v, sizeof(s.xorwow.v));
	}
}

static void xorwow_times(const struct bit_matrix *m, union rand_sequence *s)
{
	struct bits v;

	memcpy(v.word, s->xorwow.v, sizeof(v.word));
	v = bits_times(m, &v);
	memcpy(s->xorwow.v, v.word, sizeof(v.word));
}

static void xorwow_skip(union rand_sequence *s, uint32_t count, uint64_t steps)
{
	static _Thread_local struct bit_matrix m;

	matrix_step(&m);
	for (uint64_t left = steps; left; left >>= 1) {
		for (uint32_t i = 0; left & 1 && i < count; i++)
			xorwow_times(&m, &s[i]);
		if (left > 1)
			matrix_square(&m);
	}
	for (uint32_t i = 0; i < count; i++)
		s[i].xorwow.d += STEP * (uint32_t)steps;
}

static union rand_sequence xorwow_seed(uint64_t seed)
{
	uint32_t t0 = 1099087573u * ((uint32_t)seed ^ 0xaad26b49u);
	uint32_t t1 = 2591861531u * ((uint32_t)(seed >> 32) ^ 0xf7dcefddu);

	return (union rand_sequence){
		.xorwow = {.d = 6615241u + t1 + t0,
			.v = {123456789u + t0, 362436069u ^ t0, 521288629u + t1, 88675123u ^ t1,
				5783321u + t0}}};
}

/* Sequences that lie 2^67 numbers apart, or by the ordering SEEDED each of a seed of its own.
 */
void rand_xorwow_begin(struct rand_engine *e)
{
	static _Thread_local struct bit_matrix far;
	bool seeded = e->set.ordering == RAND_SEEDED;
	union rand_sequence s = xorwow_seed(e->set.seed);

	matrix_step(&far);
	for (int i = 0; !seeded && i < 67; i++)
		matrix_square(&far);
	if (!seeded)
		xorwow_skip(&s, 1, e->set.offset / e->count);
	for (uint32_t i = 0; i < e->count; i++) {
		e->sequences[i] = seeded ? xorwow_seed(e->set.seed + SEED_STEP * i) : s;
		if (!seeded)
			xorwow_times(&far, &s);
	}
	if (seeded)
		xorwow_skip(e->sequences, e->count, e->set.offset / e->count);
	for (uint32_t i = 0; i < e->cursor; i++)
		rand_xorwow(&e->sequences[i]);
}

/* ---- MRG32k3a: two recurrences of order 3 ---- */

#define M1 4294967087u
#define M2 4294944443u

struct mod_matrix {
	uint64_t at[3][3];
};

static uint32_t mod_sum(
	const uint64_t row[3], const uint64_t *x, unsigned stride, uint64_t modulus)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < 3; i++)
		sum = (sum + row[i] * x[i * stride] % modulus) % modulus;
	return (uint32_t)sum;
}

static void mod_square(struct mod_matrix *m, uint64_t modulus)
{
	struct mod_matrix old = *m;

	for (unsigned i = 0; i < 3; i++)
		for (unsigned j = 0; j < 3; j++)
			m->at[i][j] = mod_sum(old.at[i], &old.at[0][j], 3, modulus);
}

static void mod_times(const struct mod_matrix *m, uint32_t x[3], uint64_t modulus)
{
	uint64_t old[3] = {x[0], x[1], x[2]};

	for (unsigned i = 0; i < 3; i++)
		x[i] = mod_sum(m->at[i], old, 1, modulus);
}

static void mod_skip(struct mod_matrix m, uint32_t x[3], uint64_t steps, uint64_t modulus)
{
	for (; steps; steps >>= 1) {
		if (steps & 1)
			mod_times(&m, x, modulus);
		mod_square(&m, modulus);
	}
}

double rand_mrg(union rand_sequence *s)
{
	uint32_t *a = s->mrg.a, *b = s->mrg.b;
	uint64_t p = (1403580ull * a[1] + (uint64_t)(M1 - 810728u) * a[0] % M1) % M1;
	uint64_t q = (527612ull * b[2] + (uint64_t)(M2 - 1370589u) * b[0] % M2) % M2;

	a[0] = a[1];
	a[1] = a[2];
	a[2] = (uint32_t)p;
	b[0] = b[1];
	b[1] = b[2];
	b[2] = (uint32_t)q;
	return p > q ? (double)(p - q) : (double)p - (double)q + M1;
}

static void mrg_seed(union rand_sequence *s, uint64_t seed)
{
	uint64_t x1 = (uint32_t)seed ^ 0x55555555u;
	uint64_t x2 = (uint32_t)(seed >> 32) ^ 0xaaaaaaaau;

	for (unsigned i = 0; i < 3; i++) {
		s->mrg.a[i] = s->mrg.b[i] = 12345;
		if (!seed)
			continue;
		s->mrg.a[i] = (uint32_t)((i == 1 ? x2 : x1) * 12345 % M1);
		s->mrg.b[i] = (uint32_t)((i == 1 ? x1 : x2) * 12345 % M2);
	}
}

void rand_mrg_begin(struct rand_engine *e)
{
	const struct mod_matrix a = {{{0, 1, 0}, {0, 0, 1}, {M1 - 810728u, 1403580, 0}}};
	const struct mod_matrix b = {{{0, 1, 0}, {0, 0, 1}, {M2 - 1370589u, 0, 527612}}};
	struct mod_matrix far_a = a, far_b = b;
	union rand_sequence s;

	for (int i = 0; i < 76; i++) {
		mod_square(&far_a, M1);
		mod_square(&far_b, M2);
	}
	mrg_seed(&s, e->set.seed);
	mod_skip(a, s.mrg.a, e->set.offset / e->count, M1);
	mod_skip(b, s.mrg.b, e->set.offset / e->count, M2);
	for (uint32_t i = 0; i < e->count; i++) {
		e->sequences[i] = s;
		if (i < e->cursor)
			rand_mrg(&e->sequences[i]);
		mod_times(&far_a, s.mrg.a, M1);
		mod_times(&far_b, s.mrg.b, M2);
	}
}

/* ---- Philox: a cipher of a counter, {step, sequence}, under the seed ---- */

void rand_philox(uint64_t seed, uint64_t step, uint64_t sequence, uint32_t out[4])
{
	uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
	uint32_t c[4] = {(uint32_t)step, (uint32_t)(step >> 32), (uint32_t)sequence,
		(uint32_t)(sequence >> 32)};

	for (unsigned round = 0; round < 10; round++) {
		uint64_t p = 0xd2511f53ull * c[0], q = 0xcd9e8d57ull * c[2];
		uint32_t old1 = c[1], old3 = c[3];

		c[0] = (uint32_t)(q >> 32) ^ old1 ^ key[0];
		c[1] = (uint32_t)q;
		c[2] = (uint32_t)(p >> 32) ^ old3 ^ key[1];
		c[3] = (uint32_t)p;
		key[0] += 0x9e3779b9u;
		key[1] += 0xbb67ae85u;
	}
	memcpy(out, c, sizeof(c));
}
