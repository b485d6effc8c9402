/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/codec/guess.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#define WORTH_BITS 7.6f /* of 8: what is left is eaten by tables, and by the time it takes */

static float logs[GUESS_SAMPLE + 1]; /* i * log2(i) */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void logs_fill(void)
{
	for (uint32_t i = 1; i <= GUESS_SAMPLE; i++)
		logs[i] = (float)i * log2f((float)i);
}

float guess_bits(const unsigned char *bytes, uint32_t n)
{
	uint16_t counts[256] = {0};
	float sum = 0, bits;
	unsigned seen = 0;

	if (!n || n > GUESS_SAMPLE)
		return 8;
	pthread_once(&once, logs_fill);
	for (uint32_t i = 0; i < n; i++)
		counts[bytes[i]]++;
	for (unsigned i = 0; i < 256; i++) {
		seen += counts[i] != 0;
		sum += logs[counts[i]];
	}
	if (seen == 1)
		return 0;
	/* Miller and Madow's correction: a few bytes have not shown all that there is. */
	bits = (logs[n] - sum) / (float)n + (float)(seen - 1) / (2 * (float)n * 0.6931f);
	return bits < 8 ? bits : 8;
}

bool guess_shrinks(const unsigned char *bytes, uint32_t n)
{
	unsigned char sample[GUESS_SAMPLE / 2];
	uint32_t half = sizeof(sample) / 2;

	if (n <= sizeof(sample))
		return guess_bits(bytes, n) < WORTH_BITS;
	memcpy(sample, bytes + n / 4, half);
	memcpy(sample + half, bytes + n / 4 * 3 - half, half);
	return guess_bits(sample, sizeof(sample)) < WORTH_BITS;
}
