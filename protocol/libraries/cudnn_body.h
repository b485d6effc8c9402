/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors of cuDNN as items (protocol/libraries/items.h): the kinds, and the words that
 * each has. Of a network's data the varying part has the sequence lengths, as many as batch.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_CUDNN_BODY_H
#define VCUDA_PROTOCOL_LIBRARIES_CUDNN_BODY_H

#include <stdint.h>

#include "protocol/libraries/cudnn.h"
#include "protocol/libraries/items.h"

/* Statuses on the wire are numbered as in cuDNN 9. */

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
	CUDNN_KIND_SEQ_DATA = 15,   /* struct cudnn_seq_data_words; batch times beam ints */
	CUDNN_KIND_ATTENTION = 16,  /* struct cudnn_attention_words */
	CUDNN_KIND_FUSED = 17, /* operations; of each constant that is set: its label << 16 |
				  its words, and these */
	CUDNN_KIND_LAST
};
#define CUDNN_BY_STRIDES UINT32_MAX
#define CUDNN_DESCRIPTOR_WORDS 40u /* the longest, but a plan of fused operations */
#define CUDNN_FUSED_WORDS 1024u

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

struct cudnn_seq_data_words {
	uint32_t type;
	uint32_t dim[CUDNN_SEQDATA_DIM_COUNT];	/* by axis */
	uint32_t axes[CUDNN_SEQDATA_DIM_COUNT]; /* the outermost in memory first */
	uint32_t fills, fill[2];
};

struct cudnn_attention_words {
	uint32_t mode, heads, scaler[2], type, precision, math;
	uint32_t q_size, k_size, v_size, q_proj, k_proj, v_proj, o_proj;
	uint32_t q_longest, kv_longest, batch, beam;
	uint32_t has_dropout, has_post;
	struct cudnn_dropout_words dropout, post; /* of the scores, of the result */
};

/* Of an execution of fused operations, behind its pointers. */
struct cudnn_fused_scalars {
	uint64_t workspace;
	int64_t count;
	double factor, epsilon;
};

/* The kind of descriptor that a constant of fused operations is; 0: it is a number. */
static inline uint32_t cudnn_fused_kind(uint32_t label)
{
	switch (label) {
	case CUDNN_PARAM_XDESC:
	case CUDNN_PARAM_BN_EQSCALEBIAS_DESC:
	case CUDNN_PARAM_YDESC:
	case CUDNN_PARAM_DYDESC:
	case CUDNN_PARAM_YSTATS_DESC:
	case CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC:
	case CUDNN_PARAM_ZDESC:
	case CUDNN_PARAM_BN_Z_EQSCALEBIAS_DESC:
	case CUDNN_PARAM_ACTIVATION_BITMASK_DESC:
	case CUDNN_PARAM_DXDESC:
	case CUDNN_PARAM_DZDESC: return CUDNN_KIND_TENSOR;
	case CUDNN_PARAM_WDESC:
	case CUDNN_PARAM_DWDESC: return CUDNN_KIND_FILTER;
	case CUDNN_PARAM_ACTIVATION_DESC: return CUDNN_KIND_ACTIVATION;
	case CUDNN_PARAM_CONV_DESC: return CUDNN_KIND_CONVOLUTION;
	default: return CUDNN_KIND_NONE;
	}
}

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
