/* SPDX-License-Identifier: Apache-2.0
 *
 * How a texture that a reference is bound to is read.
 */
#include "softgpu/driver/reference.h"

#include <string.h>

/* NAME sets something of the reference r, if VALID. */
#define SETS(name, parameters, valid, ...)                                                     \
	CUresult name parameters                                                               \
	{                                                                                      \
		struct reference *r;                                                           \
		CUresult ret = reference_begin(hTexRef, false, &r);                            \
                                                                                               \
		if (ret)                                                                       \
			return ret;                                                            \
		if (!(valid))                                                                  \
			return CUDA_ERROR_INVALID_VALUE;                                       \
		__VA_ARGS__                                                                    \
		return reference_end(r);                                                       \
	}

SETS(cuTexRefSetFormat, (CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents),
	array_element(fmt, (unsigned)NumPackedComponents) != 0, r->format = fmt;
	r->channels = NumPackedComponents;)
SETS(cuTexRefSetAddressMode, (CUtexref hTexRef, int dim, CUaddress_mode am),
	dim >= 0 && dim <= 2 && (unsigned)am <= CU_TR_ADDRESS_MODE_BORDER,
	r->texture.addressMode[dim] = am;)
SETS(cuTexRefSetFilterMode, (CUtexref hTexRef, CUfilter_mode fm),
	(unsigned)fm <= CU_TR_FILTER_MODE_LINEAR, r->texture.filterMode = fm;)
SETS(cuTexRefSetMipmapFilterMode, (CUtexref hTexRef, CUfilter_mode fm),
	(unsigned)fm <= CU_TR_FILTER_MODE_LINEAR, r->texture.mipmapFilterMode = fm;)
SETS(cuTexRefSetMipmapLevelBias, (CUtexref hTexRef, float bias), true,
	r->texture.mipmapLevelBias = bias;)
SETS(cuTexRefSetMipmapLevelClamp,
	(CUtexref hTexRef, float minMipmapLevelClamp, float maxMipmapLevelClamp), true,
	r->texture.minMipmapLevelClamp = minMipmapLevelClamp;
	r->texture.maxMipmapLevelClamp = maxMipmapLevelClamp;)
SETS(cuTexRefSetMaxAnisotropy, (CUtexref hTexRef, unsigned int maxAniso), true,
	r->texture.maxAnisotropy = maxAniso;)
SETS(cuTexRefSetBorderColor, (CUtexref hTexRef, float *pBorderColor), pBorderColor != NULL,
	memcpy(r->texture.borderColor, pBorderColor, sizeof(r->texture.borderColor));)
SETS(cuTexRefSetFlags, (CUtexref hTexRef, unsigned int Flags), true, r->texture.flags = Flags;)

/* A reference of a module is bound to its variable already. */
CUresult cuParamSetTexRef(CUfunction hfunc, int texunit, CUtexref hTexRef)
{
	const struct reference *r = (const void *)hTexRef;
	struct CUctx_st *context;
	struct CUfunc_st *function;
	CUresult ret = soft_context_current(&context);

	if (!ret)
		ret = function_use(hfunc, context, &function);
	if (ret)
		return ret;
	return texunit == CU_PARAM_TR_DEFAULT && object_is(hTexRef, OBJECT_TEXREF) && r->module
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

/* ---- questions ---- */

/* NAME tells something of the reference r; OUT, the place for it, is not NULL. */
#define TELLS(name, parameters, out, valid, ...)                                               \
	CUresult name parameters                                                               \
	{                                                                                      \
		const struct reference *r;                                                     \
		CUresult ret = reference_ask(hTexRef, false, out, &r);                         \
                                                                                               \
		if (ret)                                                                       \
			return ret;                                                            \
		if (!(valid))                                                                  \
			return CUDA_ERROR_INVALID_VALUE;                                       \
		__VA_ARGS__                                                                    \
		return CUDA_SUCCESS;                                                           \
	}

TELLS(cuTexRefGetFormat, (CUarray_format * pFormat, int *pNumChannels, CUtexref hTexRef),
	pFormat, true, *pFormat = r->format;
	if (pNumChannels) *pNumChannels = r->channels;)
TELLS(cuTexRefGetAddressMode, (CUaddress_mode * pam, CUtexref hTexRef, int dim), pam,
	dim >= 0 && dim <= 2, *pam = r->texture.addressMode[dim];)
TELLS(cuTexRefGetFilterMode, (CUfilter_mode * pfm, CUtexref hTexRef), pfm, true,
	*pfm = r->texture.filterMode;)
TELLS(cuTexRefGetMipmapFilterMode, (CUfilter_mode * pfm, CUtexref hTexRef), pfm, true,
	*pfm = r->texture.mipmapFilterMode;)
TELLS(cuTexRefGetMipmapLevelBias, (float *pbias, CUtexref hTexRef), pbias, true,
	*pbias = r->texture.mipmapLevelBias;)
TELLS(cuTexRefGetMipmapLevelClamp,
	(float *pminMipmapLevelClamp, float *pmaxMipmapLevelClamp, CUtexref hTexRef), hTexRef,
	true, if (pminMipmapLevelClamp) *pminMipmapLevelClamp = r->texture.minMipmapLevelClamp;
	if (pmaxMipmapLevelClamp) *pmaxMipmapLevelClamp = r->texture.maxMipmapLevelClamp;)
TELLS(cuTexRefGetMaxAnisotropy, (int *pmaxAniso, CUtexref hTexRef), pmaxAniso, true,
	*pmaxAniso = (int)r->texture.maxAnisotropy;)
TELLS(cuTexRefGetBorderColor, (float *pBorderColor, CUtexref hTexRef), pBorderColor, true,
	memcpy(pBorderColor, r->texture.borderColor, sizeof(r->texture.borderColor));)
TELLS(cuTexRefGetFlags, (unsigned int *pFlags, CUtexref hTexRef), pFlags, true,
	*pFlags = r->texture.flags;)
