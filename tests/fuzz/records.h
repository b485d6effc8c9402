/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs that are lists of records, for fuzz targets whose subject is a conversation: how they
 * are read, and how the fuzzer changes them so that they stay lists of records.
 */
#ifndef VCUDA_TESTS_FUZZ_RECORDS_H
#define VCUDA_TESTS_FUZZ_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record {
	uint16_t op;
	uint8_t kind;
	uint8_t stripe;
	uint16_t context;
	uint16_t body, payload; /* bytes behind this struct */
	uint16_t zero;
};

/* The next record: *bytes is at its body then. A body that is cut off is shorter. */
bool record_next(const uint8_t **bytes, size_t *n, struct record *r);
void record_skip(const uint8_t **bytes, size_t *n, const struct record *r);

/* Below `limit`; the seed is the mutator's. */
unsigned record_random(unsigned limit);
/* r and a body and payload of numbers that tend to be interesting; 0 where it does not fit. */
size_t record_write(uint8_t *out, size_t most, const struct record *r);

/* LLVMFuzzerCustomMutator and …CrossOver; `make` writes a new record. */
size_t record_mutate(uint8_t *data, size_t n, size_t most, unsigned seed,
	size_t (*make)(uint8_t *out, size_t most));
size_t record_cross(const uint8_t *a, size_t an, const uint8_t *b, size_t bn, uint8_t *out,
	size_t most, unsigned seed);

#endif
