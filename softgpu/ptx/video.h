/* SPDX-License-Identifier: Apache-2.0
 *
 * What the decoder tells the handler of video instructions, in the instruction's `imm`.
 */
#ifndef VCUDA_SOFTGPU_PTX_VIDEO_H
#define VCUDA_SOFTGPU_PTX_VIDEO_H

enum video_op {
	VIDEO_ADD,
	VIDEO_SUB,
	VIDEO_ABSDIFF,
	VIDEO_MIN,
	VIDEO_MAX,
	VIDEO_SHL,
	VIDEO_SHR,
	VIDEO_SET,
	VIDEO_AVERAGE,
	VIDEO_MAD,
};

enum video_compare { VIDEO_EQ, VIDEO_NE, VIDEO_LT, VIDEO_LE, VIDEO_GT, VIDEO_GE };

/* What is done with the result and c. */
enum video_second { VIDEO_ALONE, VIDEO_PLUS, VIDEO_LEAST, VIDEO_MOST, VIDEO_MERGE };

/* The part of an operand: the whole, a byte, a half. */
enum video_part { VIDEO_ALL, VIDEO_B0, VIDEO_B1, VIDEO_B2, VIDEO_B3, VIDEO_H0, VIDEO_H1 };

struct video {
	unsigned op : 4, parts : 3, compare : 3, second : 3; /* parts: 1, 2 or 4 side by side */
	unsigned a_signed : 1, b_signed : 1, d_signed : 1, saturate : 1, wrap : 1;
	unsigned a : 3, b : 3, d : 3; /* enum video_part, where parts is 1 */
	/* Of vmad: a shift by 0, 7 or 15, one more, and what is negated. */
	unsigned scale : 4, plus_one : 1, minus_product : 1, minus_c : 1;
};

#endif
