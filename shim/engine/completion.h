/* SPDX-License-Identifier: Apache-2.0
 *
 * The words that the agent pushes: who owns which.
 */
#ifndef VCUDA_SHIM_WORDS_H
#define VCUDA_SHIM_WORDS_H

#include <stdint.h>

/* A word of one's own, set to 0; 0: none left. */
uint32_t words_take(void);
void words_give(uint32_t word);
uint64_t words_read(uint32_t word);

#endif
