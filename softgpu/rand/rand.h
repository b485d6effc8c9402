/* SPDX-License-Identifier: Apache-2.0
 *
 * cuRAND on the software GPU.  A call on device memory becomes a task that runs as a host
 * function in its stream, so it is ordered with kernels and copies; a generator on the host
 * works at once.
 *
 * XORWOW, MRG32k3a, Philox and Sobol give NVIDIA's numbers: bits and uniform ones bit for bit,
 * normal ones up to rounding.  The Mersenne twisters, the scrambled vectors, the ordering
 * DYNAMIC and Poisson numbers have the right distribution, and bits of their own.
 */
#ifndef VCUDA_SOFTGPU_RAND_RAND_H
#define VCUDA_SOFTGPU_RAND_RAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* curandStatus_t */
enum {
	RAND_SUCCESS = 0,
	RAND_NOT_INITIALIZED = 101,
	RAND_ALLOCATION_FAILED = 102,
	RAND_TYPE_ERROR = 103,
	RAND_OUT_OF_RANGE = 104,
	RAND_LENGTH_NOT_MULTIPLE = 105,
	RAND_LAUNCH_FAILURE = 201,
	RAND_INITIALIZATION_FAILED = 203,
	RAND_INTERNAL_ERROR = 999,
};

/* curandRngType_t */
enum {
	RAND_DEFAULT = 100,
	RAND_XORWOW = 101,
	RAND_MRG32K3A = 121,
	RAND_MTGP32 = 141,
	RAND_MT19937 = 142,
	RAND_PHILOX = 161,
	RAND_QUASI = 200,
	RAND_SOBOL32 = 201,
	RAND_SCRAMBLED_SOBOL32 = 202,
	RAND_SOBOL64 = 203,
	RAND_SCRAMBLED_SOBOL64 = 204,
};

/* curandOrdering_t */
enum {
	RAND_BEST = 100,
	RAND_ORDER_DEFAULT = 101,
	RAND_SEEDED = 102,
	RAND_LEGACY = 103,
	RAND_DYNAMIC = 104,
	RAND_QUASI_DEFAULT = 201,
};

enum rand_what {
	RAND_BITS,
	RAND_BITS_64,
	RAND_UNIFORM,
	RAND_UNIFORM_DOUBLE,
	RAND_NORMAL,
	RAND_NORMAL_DOUBLE,
	RAND_LOG_NORMAL,
	RAND_LOG_NORMAL_DOUBLE,
	RAND_POISSON,
};

#define RAND_DIMENSIONS 20000u

/* A discrete distribution: a number is `shift` and j, or K[j], where j is u * length and V[j]
 * says up to which u (Walker's alias method). Above RAND_GAUSS_FROM it is a rounded normal one.
 */
#define RAND_GAUSS_FROM 4000.
#define RAND_LAMBDA_MAX 400000.
struct rand_discrete {
	double mean, deviation;
	uint32_t shift, length; /* length 0: normal */
	double *v;
	uint32_t *k;
};

/* What a generator is set to. */
struct rand_settings {
	int type, ordering;
	uint64_t seed, offset;
	uint32_t dimensions;
};

/* One of the sequences that the numbers come from in turn. */
union rand_sequence {
	struct {
		uint32_t d, v[5];
	} xorwow;
	struct {
		uint32_t a[3], b[3];
	} mrg;
	uint64_t step; /* Philox: how many fours it has given */
};

/* Where a generator stands. */
struct rand_engine {
	struct rand_settings set;
	union rand_sequence *sequences;
	uint32_t count;	 /* of sequences */
	uint32_t cursor; /* the one that is next */
	uint32_t within; /* Philox: how many of its four are out */
	uint64_t at;	 /* Sobol: the next index */
};

struct rand_order {
	enum rand_what what;
	size_t n;
	double mean, deviation; /* lambda is `mean` */
	const struct rand_discrete *discrete;
};

/* generate.c. False: no memory. */
bool rand_engine_begin(struct rand_engine *e, const struct rand_settings *set);
void rand_engine_end(struct rand_engine *e);
void rand_engine_fill(struct rand_engine *e, const struct rand_order *order, void *to);
bool rand_is_quasi(int type);
static inline bool rand_is_64(int type)
{
	return type >= RAND_SOBOL64;
}

/* sequence.c: a sequence's numbers, and one made to stand where it begins. */
void rand_xorwow_begin(struct rand_engine *e);
uint32_t rand_xorwow(union rand_sequence *s);
void rand_mrg_begin(struct rand_engine *e);
double rand_mrg(union rand_sequence *s);
void rand_philox(uint64_t seed, uint64_t step, uint64_t sequence, uint32_t out[4]);

/* sobol.c */
void rand_vectors(bool scrambled, uint32_t dimension, uint64_t vectors[64]); /* 64 bits each */
uint64_t rand_constant(uint32_t dimension);
/* Tables as NVIDIA's calls give them; NULL: no memory. */
const void *rand_vector_table(bool wide, bool scrambled);
const void *rand_constant_table(bool wide);
void rand_sobol_fill(struct rand_engine *e, const struct rand_order *order, void *to);

/* number.c: numbers out of bits. */
double rand_icdf(double u); /* the normal deviate under which u lies */
void rand_put(const struct rand_order *order, void *to, size_t at, double value);
uint32_t rand_pick(const struct rand_discrete *d, double u);
bool rand_discrete_make(struct rand_discrete *d, double lambda);
void rand_discrete_free(struct rand_discrete *d);

#endif
