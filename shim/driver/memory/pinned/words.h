/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks for addresses in data.  Each copy of pinned memory is looked through for addresses of
 * such memory (host.h), so this is most of what such a copy costs: 4 KiB take 0.03 us with
 * AVX2.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_PINNED_WORDS_H
#define VCUDA_SHIM_DRIVER_MEMORY_PINNED_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether one of the WORDS words at AT, which need not be aligned, may lie in [LOW, LOW +
 * SPAN): true where one does, and seldom where none does. */
bool words_maybe_in(const unsigned char *at, size_t words, uint64_t low, uint64_t span);

/* The ways in which it is done, for tests: the second only where words_have_avx2. */
bool words_by_halves(const unsigned char *at, size_t words, uint64_t low, uint64_t span);
bool words_by_avx2(const unsigned char *at, size_t words, uint64_t low, uint64_t span);
bool words_have_avx2(void);

#endif
