/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/codec/planes.h"

#include <string.h>

/* A number at a time, so that each byte of BYTES is read once; the loops over bytes of one are
 * unrolled. */
#define SPLIT(width, type)                                                                     \
	static void split_##width(const unsigned char *restrict bytes, uint32_t count,         \
		unsigned char *restrict to)                                                    \
	{                                                                                      \
		for (uint32_t i = 0; i < count; i++) {                                         \
			type v;                                                                \
                                                                                               \
			memcpy(&v, bytes + (uint64_t)i * width, width);                        \
			v = (type)(v << 1 | v >> (8 * width - 1));                             \
			for (unsigned plane = 0; plane < width; plane++)                       \
				to[plane * (uint64_t)count + i] =                              \
					(unsigned char)(v >> 8 * plane);                       \
		}                                                                              \
	}

#define JOIN(width, type)                                                                      \
	static void join_##width(const unsigned char *const *planes, uint32_t count,           \
		unsigned char *restrict to)                                                    \
	{                                                                                      \
		const unsigned char *from[width];                                              \
                                                                                               \
		memcpy(from, planes, sizeof(from));                                            \
		for (uint32_t i = 0; i < count; i++) {                                         \
			type v = 0;                                                            \
                                                                                               \
			for (unsigned plane = 0; plane < width; plane++)                       \
				v = (type)(v | (type)from[plane][i] << 8 * plane);             \
			v = (type)(v >> 1 | v << (8 * width - 1));                             \
			memcpy(to + (uint64_t)i * width, &v, width);                           \
		}                                                                              \
	}

SPLIT(2, uint16_t)
SPLIT(4, uint32_t)
SPLIT(8, uint64_t)
JOIN(2, uint16_t)
JOIN(4, uint32_t)
JOIN(8, uint64_t)

void planes_split(
	unsigned width, const unsigned char *bytes, uint32_t count, unsigned char *planes)
{
	switch (width) {
	case 2: split_2(bytes, count, planes); break;
	case 4: split_4(bytes, count, planes); break;
	case 8: split_8(bytes, count, planes); break;
	default: break;
	}
}

void planes_join(unsigned width, const unsigned char *const planes[PLANES_MOST], uint32_t count,
	unsigned char *to)
{
	switch (width) {
	case 2: join_2(planes, count, to); break;
	case 4: join_4(planes, count, to); break;
	case 8: join_8(planes, count, to); break;
	default: break;
	}
}
