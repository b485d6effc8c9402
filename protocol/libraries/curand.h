/* SPDX-License-Identifier: Apache-2.0
 *
 * cuRAND's host API as both ends know it: the types of its ABI (no header of NVIDIA's is needed
 * to build), and the frames that are written by hand.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_CURAND_H
#define VCUDA_PROTOCOL_LIBRARIES_CURAND_H

#include <driver_types.h>
#include <library_types.h>

#include "protocol/libraries/plain.h"

typedef struct curandGenerator_st *curandGenerator_t;
typedef struct curandDiscreteDistribution_st *curandDiscreteDistribution_t;
typedef int curandStatus_t;
typedef int curandRngType_t;
typedef int curandOrdering_t;
typedef int curandMethod_t;
typedef int curandDirectionVectorSet_t;
typedef unsigned int curandDirectionVectors32_t[32];
typedef unsigned long long curandDirectionVectors64_t[64];

enum {
	CURAND_STATUS_SUCCESS = 0,
	CURAND_STATUS_NOT_INITIALIZED = 101,
	CURAND_STATUS_ALLOCATION_FAILED = 102,
	CURAND_STATUS_OUT_OF_RANGE = 104,
	CURAND_STATUS_PREEXISTING_FAILURE = 202,
	CURAND_STATUS_INITIALIZATION_FAILED = 203,
	CURAND_STATUS_INTERNAL_ERROR = 999,
};

/* The library's tables, of so many dimensions. */
#define CURAND_DIMENSIONS 20000u
enum curand_table {
	CURAND_VECTORS_32 = 101, /* curandDirectionVectorSet_t */
	CURAND_SCRAMBLED_VECTORS_32,
	CURAND_VECTORS_64,
	CURAND_SCRAMBLED_VECTORS_64,
	CURAND_CONSTANTS_32,
	CURAND_CONSTANTS_64,
	CURAND_TABLES_END
};
#define CURAND_TABLES (CURAND_TABLES_END - CURAND_VECTORS_32)

static inline uint64_t curand_table_bytes(uint32_t table)
{
	switch (table) {
	case CURAND_VECTORS_32:
	case CURAND_SCRAMBLED_VECTORS_32:
		return CURAND_DIMENSIONS * sizeof(curandDirectionVectors32_t);
	case CURAND_VECTORS_64:
	case CURAND_SCRAMBLED_VECTORS_64:
		return CURAND_DIMENSIONS * sizeof(curandDirectionVectors64_t);
	case CURAND_CONSTANTS_32: return CURAND_DIMENSIONS * sizeof(unsigned int);
	case CURAND_CONSTANTS_64: return CURAND_DIMENSIONS * sizeof(unsigned long long);
	default: return 0;
	}
}

/* A table, copied to device memory of the program's, from where it comes as any bytes do. */
struct wire_curandGetDirectionVectors32 {
	uint32_t major;
	uint32_t table; /* enum curand_table */
	uint64_t address;
};
struct wire_curandGetDirectionVectors32_reply {
	struct library_reply plain;
};

/* A distribution is device memory of the library's: kernels get its address. */
struct wire_curandCreatePoissonDistribution {
	uint32_t major;
	uint32_t reserved;
	double lambda;
};
struct wire_curandCreatePoissonDistribution_reply {
	struct library_reply plain;
	uint64_t distribution;
};
struct wire_curandDestroyDistribution {
	uint32_t major;
	uint32_t reserved;
	uint64_t distribution;
};
struct wire_curandDestroyDistribution_reply {
	struct library_reply plain;
};

/* What curandGetVersion and curandGetProperty tell. */
struct wire_curandGetVersion {
	uint32_t major;
	uint32_t reserved;
};
struct wire_curandGetVersion_reply {
	struct library_reply plain;
	int32_t version;
	uint32_t reserved;
};

#endif
