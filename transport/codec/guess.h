/* SPDX-License-Identifier: Apache-2.0
 *
 * How well bytes would be coded by the frequency of each of them alone.
 */
#ifndef VCUDA_TRANSPORT_CODEC_GUESS_H
#define VCUDA_TRANSPORT_CODEC_GUESS_H

#include <stdbool.h>
#include <stdint.h>

#define GUESS_SAMPLE 4096u

/* Bits a byte of N (at most GUESS_SAMPLE), 0 … 8, with what a sample so small hides added. */
float guess_bits(const unsigned char *bytes, uint32_t n);

/* Whether a plane is worth a try, by a sample of its N bytes. */
bool guess_shrinks(const unsigned char *bytes, uint32_t n);

#endif
