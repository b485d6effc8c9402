/* SPDX-License-Identifier: Apache-2.0
 *
 * What the decoder tells the handlers of wmma: the type of a matrix's elements, and what a
 * product does beside multiplying and adding.
 */
#ifndef VCUDA_SOFTGPU_PTX_WMMA_H
#define VCUDA_SOFTGPU_PTX_WMMA_H

enum wmma_kind {
	WMMA_F16,
	WMMA_BF16,
	WMMA_TF32,
	WMMA_F32,
	WMMA_F64,
	WMMA_S8,
	WMMA_U8,
	WMMA_S32,
	WMMA_S4,
	WMMA_U4,
	WMMA_B1,
	WMMA_KINDS,
};

enum wmma_how {
	WMMA_PLAIN,  /* bits: and, then counted */
	WMMA_FINITE, /* .satfinite: clamped */
	WMMA_XOR,    /* bits: those that differ are counted */
};

#endif
