/* SPDX-License-Identifier: Apache-2.0
 *
 * What fuzz targets share whose subject is a conversation: their inputs are lists of records
 * (records.h), changed as such.
 */
#ifndef VCUDA_TESTS_FUZZ_CONVERSATION_H
#define VCUDA_TESTS_FUZZ_CONVERSATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/fuzz/records.h"

/* The target's: what it does with an input, and a record that it would like to see. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);
size_t make_record(uint8_t *out, size_t most);

/* Ends the process where something does not hold, WHAT and errno on stderr. */
void must(bool truth, const char *what);
/* Closes it, if it is open; -1 from then on. */
void shut(int *fd);
/* COUNT descriptors (two at the most) to go with a message, -1 for the others. */
void descriptors_made(int fds[2], unsigned count);

#endif
