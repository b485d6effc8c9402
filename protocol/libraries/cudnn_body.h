/* SPDX-License-Identifier: Apache-2.0
 *
 * The body of a call of cudnn.api: struct cudnn_body, then a plain part and a key part, each a
 * sequence of items in the order of the call's parameters.  The key part is what a call is
 * learned or cached by: numbers, descriptors (by content) and which pointers are NULL.  The
 * plain part is what may differ from one such call to the next: device addresses, scalars,
 * sequence lengths.
 *
 * plain:  an address or a scalar: 8 bytes (a float in the first four).
 *	   ints: their count in 8 bytes, then 4 bytes each, padded to 8.
 * key:    32-bit words. The first: which pointers are there (bit i: the i-th, in order). The
 *	   second: the low four bits of all addresses, together: what succeeded with aligned
 *	   ones may not with others.
 *	   An int, an enum, a float: a word; what has 64 bits: two, the lower first.
 *	   A descriptor: kind << 16 | words, then its words (0: NULL). Its ints, where it has
 *	   some (sequence lengths, as many as batch), are the plain part's next item.
 *	   Several descriptors: how many runs of equal ones; for each run its length and the
 *	   descriptor.
 *	   ints of a cached call: their count and the ints.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_CUDNN_BODY_H
#define VCUDA_PROTOCOL_LIBRARIES_CUDNN_BODY_H

#include <stdint.h>

#include "protocol/libraries/cudnn.h"
#include "protocol/libraries/plain.h"

struct cudnn_body {
	uint64_t handle; /* KIND_cudnnHandle */
	uint64_t stream;
	uint32_t plain_bytes; /* a multiple of 8 */
	uint32_t key_words;
};
_Static_assert(sizeof(struct cudnn_body) == 24, "");

#define CUDNN_PLAIN_MAX (24u * 1024) /* bytes: some thousand sequence lengths */
#define CUDNN_KEY_WORDS 2048u	     /* a call with two dozen descriptors has some 500 */
#define CUDNN_KEY_HEAD 2u	     /* words before the first item */
#define CUDNN_POINTERS 32u	     /* pointers of one call */
#define CUDNN_OUTS 24u		     /* numbers that come back; weights bring two tensors */
#define CUDNN_PERFS 16u		     /* results of a search */
#define CUDNN_EACH_MAX 65536u	     /* descriptors in one array */

/* Statuses on the wire are numbered as in cuDNN 9. */
struct cudnn_reply {
	struct library_reply first;
	uint64_t out[CUDNN_OUTS];
};
struct cudnn_perf_reply {
	struct library_reply first;
	uint64_t out[CUDNN_OUTS];
	struct cudnn_perf perf[CUDNN_PERFS];
};

/* Kinds of descriptors, and their words. */
enum cudnn_kind {
	CUDNN_KIND_NONE = 0,
	CUDNN_KIND_TENSOR = 1,	    /* type, format or CUDNN_BY_STRIDES, n, dims, strides */
	CUDNN_KIND_FILTER = 2,	    /* type, format, n, dims */
	CUDNN_KIND_CONVOLUTION = 3, /* mode, compute type, math type, groups, reorder, n, pads,
				       strides, dilations */
	CUDNN_KIND_POOLING = 4,	    /* mode, NaN, n, windows, pads, strides */
	CUDNN_KIND_ACTIVATION = 5,  /* mode, NaN, coefficient (2), beta of swish (2) */
	CUDNN_KIND_LRN = 6,	    /* n, alpha (2), beta (2), k (2) */
	CUDNN_KIND_SPATIAL = 7,	    /* sampler, type, n, dims */
	CUDNN_KIND_OP_TENSOR = 8,   /* operation, compute type, NaN */
	CUDNN_KIND_REDUCE = 9,	    /* operation, compute type, NaN, indices, their type */
	CUDNN_KIND_CTC = 10,	    /* struct cudnn_ctc_words */
	CUDNN_KIND_TRANSFORM = 11,  /* n, format, direction, pads before, after, folds */
	CUDNN_KIND_DROPOUT = 12,    /* struct cudnn_dropout_words */
	CUDNN_KIND_RNN = 13,	    /* struct cudnn_rnn_words */
	CUDNN_KIND_RNN_DATA = 14,   /* struct cudnn_rnn_data_words; batch ints */
	CUDNN_KIND_LAST
};
#define CUDNN_BY_STRIDES UINT32_MAX
#define CUDNN_DESCRIPTOR_WORDS 40u /* the longest */

/* Which of the functions that set it did: they take ever more. */
enum cudnn_ctc_form { CUDNN_CTC_PLAIN, CUDNN_CTC_EX, CUDNN_CTC_V8, CUDNN_CTC_V9 };
struct cudnn_ctc_words {
	uint32_t form, type, normalization, gradient, longest;
};

struct cudnn_dropout_words {
	uint32_t dropout; /* a float */
	uint32_t states[2], bytes[2], seed[2];
};

enum cudnn_rnn_form { CUDNN_RNN_V6 = 6, CUDNN_RNN_V8 = 8 };
struct cudnn_rnn_words {
	uint32_t form, algo, cell, bias, direction, input, type, precision, math;
	uint32_t input_size, hidden, projection, layers, flags;
	uint32_t out_projection, padding;	    /* 6 alone */
	uint32_t clip, clip_nan, left[2], right[2]; /* clip: 0 no, else 1 + mode */
	uint32_t built;				    /* minibatch it was built for, or 0 */
	uint32_t has_dropout;
	struct cudnn_dropout_words dropout;
};

struct cudnn_rnn_data_words {
	uint32_t type, layout, longest, batch, vector, fills, fill[2];
};

/* Bytes of an element; 0: less than a byte, or unknown. */
static inline uint32_t cudnn_data_bytes(uint32_t type)
{
	switch (type) {
	case CUDNN_DATA_DOUBLE:
	case CUDNN_DATA_INT64:
	case CUDNN_DATA_COMPLEX_FP32: return 8;
	case CUDNN_DATA_FLOAT:
	case CUDNN_DATA_INT32:
	case CUDNN_DATA_UINT32:
	case CUDNN_DATA_INT8x4:
	case CUDNN_DATA_UINT8x4: return 4;
	case CUDNN_DATA_HALF:
	case CUDNN_DATA_BFLOAT16: return 2;
	case CUDNN_DATA_INT8:
	case CUDNN_DATA_UINT8:
	case CUDNN_DATA_BYTE_BOOLEAN:
	case CUDNN_DATA_BOOLEAN:
	case CUDNN_DATA_FP8_E4M3:
	case CUDNN_DATA_FP8_E5M2:
	case CUDNN_DATA_FP8_E5M3:
	case CUDNN_DATA_FP8_E8M0: return 1;
	case CUDNN_DATA_COMPLEX_FP64: return 16;
	case CUDNN_DATA_INT8x32: return 32;
	default: return 0;
	}
}

#endif
