/* SPDX-License-Identifier: Apache-2.0
 *
 * References to textures and surfaces (reference.c), and what they are set to
 * (reference_set.c).
 */
#ifndef VCUDA_SOFTGPU_DRIVER_REFERENCE_H
#define VCUDA_SOFTGPU_DRIVER_REFERENCE_H

#include "softgpu/driver/array.h"

struct reference {
	struct reference *next;
	struct CUctx_st *context;
	const struct CUmod_st *module; /* NULL: made by cuTexRefCreate */
	uint64_t variable;	       /* its address; 0 without a module */
	bool surface, bound;
	uint64_t number; /* of what it is bound to; 0: none */
	CUarray_format format;
	int channels;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
};

/* The reference, ready to be set: nothing that was launched before sees the change. */
CUresult reference_begin(const void *handle, bool surface, struct reference **r);
/* It is set: launches from now on see that. */
CUresult reference_end(struct reference *r);
/* The reference, for who fills *OUT with what it is set to. */
CUresult reference_ask(
	const void *handle, bool surface, const void *out, const struct reference **r);

#endif
