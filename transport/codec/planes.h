/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers to planes of their bytes, and back (codec.h).
 */
#ifndef VCUDA_TRANSPORT_CODEC_PLANES_H
#define VCUDA_TRANSPORT_CODEC_PLANES_H

#include <stdint.h>

#define PLANES_MOST 8

/* COUNT numbers of WIDTH (2, 4, 8) bytes; plane I is at planes + I * COUNT. BYTES need no
 * alignment, and each is read once. */
void planes_split(
	unsigned width, const unsigned char *bytes, uint32_t count, unsigned char *planes);
void planes_join(unsigned width, const unsigned char *const planes[PLANES_MOST], uint32_t count,
	unsigned char *to);

#endif
