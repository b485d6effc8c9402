/* SPDX-License-Identifier: Apache-2.0
 *
 * How the arguments of a library's call travel as items: struct library_body, a key part and a
 * varying part, each a sequence of items in the order of the call's parameters. The key part,
 * with what stands before it from LIBRARY_KEY_FROM on, is what the call is learned or cached
 * by: numbers, descriptors (by content), which pointers are NULL and how addresses are aligned.
 * The varying part is what may differ from one such call to the next: device addresses,
 * scalars, sequence lengths.
 *
 * key:     32-bit words, padded to a multiple of 8 bytes.
 *	    An int, an enum, a float: a word; what has 64 bits: two, the lower first.
 *	    A descriptor: kind << 16 | words, then its words (0: NULL). What may change of it
 *	    from call to call is the varying part's next item.
 *	    Several descriptors: how many runs of equal ones; for each run its length and the
 *	    descriptor.
 *	    An object of the program's memory: how many words it has (0: NULL), then it.
 *	    How one address is aligned, and whether it is another argument: bits 0 to 7
 *	    library_alignment(), bit 8.
 *	    ints of a cached call: their count and the ints.
 * varying: 8-byte words.
 *	    An address: one, 0 for NULL. A scalar: as many as it may have, the first its address
 *	    where scalars lie on the device.
 *	    ints: their count in 8 bytes, then 4 bytes each, padded to 8.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_ITEMS_H
#define VCUDA_PROTOCOL_LIBRARIES_ITEMS_H

#include <stdint.h>
#include <string.h>

#include "protocol/libraries/plain.h"

struct library_body {
	struct library_state state;
	uint16_t key_words; /* behind this */
	uint16_t alignment; /* the low four bits of all addresses, together: what succeeded with
			     * aligned ones may not with others */
	uint32_t present;   /* bit i: the i-th pointer, in order, is not NULL */
};
_Static_assert(sizeof(struct library_body) == 40, "");

#define LIBRARY_KEY_WORDS 2048u		 /* a call with two dozen descriptors has some 500 */
#define LIBRARY_VARYING_MAX (24u * 1024) /* bytes: some thousand sequence lengths */
#define LIBRARY_POINTERS 32u		 /* of one call that may be NULL */
#define LIBRARY_EACH_MAX 65536u		 /* descriptors in one array */
#define LIBRARY_OUTS 24u		 /* numbers that come back; weights bring two tensors */
#define LIBRARY_NUMBERS (LIBRARY_OUTS - 1u) /* of a run that comes back, behind their count */
#define LIBRARY_LIST 16u		    /* elements of a list that comes back */
#define LIBRARY_LIST_BYTES 64u		    /* of an element, at most */

/* Bytes from the body's begin to the varying part. */
#define LIBRARY_VARYING_FROM(words) (sizeof(struct library_body) + ((4u * (words) + 7u) & ~7u))

/* What comes back: the numbers, in order; behind them a list. Of a list the first number says
 * how many elements there are. */
struct library_answer {
	struct library_reply first;
	uint64_t out[LIBRARY_OUTS];
};
#define LIBRARY_ANSWER(outs) (sizeof(struct library_reply) + 8u * (outs))
#define LIBRARY_LIST_FROM LIBRARY_ANSWER(1) /* an answer with a list has one number */

/* With the kind of a descriptor that is put or got: what the call leaves in it stays for later
 * calls; the same, and how many elements it has then comes back. The item itself has the kind
 * alone. */
#define LIBRARY_STAYS 0x10000u
#define LIBRARY_SIZED 0x30000u
#define LIBRARY_KIND 0xffffu

/* Where a scalar lies whose descriptor has a pointer mode; its item has two words. */
enum library_place {
	LIBRARY_NOWHERE, /* it is not looked at */
	LIBRARY_HOST,
	LIBRARY_DEVICE,
};

/* How an address is aligned, as algorithms see it: 0 for none, else 1 + log2, 9 at most. */
static inline uint8_t library_alignment(uint64_t address)
{
	return !address ? 0 : (uint8_t)(1 + __builtin_ctzll(address | 256));
}

/* A body whose items all have a known size: words of the key, and of the varying part. */
#define LIBRARY_BODY(KEY_WORDS, VARYING_WORDS)                                                 \
	struct {                                                                               \
		struct library_body head;                                                      \
		uint32_t key[((KEY_WORDS) + 1) / 2 * 2];                                       \
		uint64_t varying[VARYING_WORDS];                                               \
	}
/* Words of a scalar of that type in the varying part. */
#define LIBRARY_WORDS(TYPE) ((sizeof(TYPE) + 7) / 8)
#define LIBRARY_KEY_TO(WORDS) (sizeof(struct library_body) + 4 * (WORDS))
/* An answer with so many words. */
#define LIBRARY_RESULTS(WORDS)                                                                 \
	struct {                                                                               \
		struct library_reply first;                                                    \
		uint64_t out[WORDS];                                                           \
	}

/* A number as words of the key, and back. */
#define LIBRARY_TWO(NUMBER) (uint32_t)(uint64_t)(NUMBER), (uint32_t)((uint64_t)(NUMBER) >> 32)

static inline uint32_t library_float_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline uint64_t library_double_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline uint64_t library_long(const uint32_t *key)
{
	return (uint64_t)key[1] << 32 | key[0];
}

static inline float library_float(const uint32_t *key)
{
	float value;

	memcpy(&value, key, sizeof(value));
	return value;
}

static inline double library_double(const uint32_t *key)
{
	double value;

	memcpy(&value, key, sizeof(value));
	return value;
}

#endif
