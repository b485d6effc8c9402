/* SPDX-License-Identifier: Apache-2.0
 *
 * How a texture that a reference is bound to is read.
 */
#include "softgpu/driver/reference.h"

#include <string.h>

CUresult cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents)
{
	struct reference *r;
	CUresult ret = reference_begin(hTexRef, false, &r);

	if (ret)
		return ret;
	if (!array_element(fmt, (unsigned)NumPackedComponents))
		return CUDA_ERROR_INVALID_VALUE;
	r->format = fmt;
	r->channels = NumPackedComponents;
	return reference_end(r);
}

CUresult cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am)
{
	struct reference *r;
	CUresult ret = reference_begin(hTexRef, false, &r);

	if (ret)
		return ret;
	if (dim < 0 || dim > 2 || (unsigned)am > CU_TR_ADDRESS_MODE_BORDER)
		return CUDA_ERROR_INVALID_VALUE;
	r->texture.addressMode[dim] = am;
	return reference_end(r);
}

CUresult cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
	struct reference *r;
	CUresult ret = reference_begin(hTexRef, false, &r);

	if (ret)
		return ret;
	if ((unsigned)fm > CU_TR_FILTER_MODE_LINEAR)
		return CUDA_ERROR_INVALID_VALUE;
	r->texture.filterMode = fm;
	return reference_end(r);
}

CUresult cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
	struct reference *r;
	CUresult ret = reference_begin(hTexRef, false, &r);

	if (ret)
		return ret;
	if ((unsigned)fm > CU_TR_FILTER_MODE_LINEAR)
		return CUDA_ERROR_INVALID_VALUE;
	r->texture.mipmapFilterMode = fm;
	return reference_end(r);
}

CUresult cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias)
{
	struct reference *r;
	CUresult ret = reference_begin(hTexRef, false, &r);

	if (ret)
		return ret;
	r->texture.mipmapLevelBias = bias;
	return reference_end(r);
}

CUresult cuTexRefSetMipmapLevelClamp(
	CUtexref hTexRef, float minMipmapLevelClamp, float maxMipmapLevelClamp)
{
	struct reference *r;
	CUresult ret = reference_begin(hTexRef, false, &r);

	if (ret)
		return ret;
	r->texture.minMipmapLevelClamp = minMipmapLevelClamp;
	r->texture.maxMipmapLevelClamp = maxMipmapLevelClamp;
	return reference_end(r);
}

CUresult cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso)
{
	struct reference *r;
	CUresult ret = reference_begin(hTexRef, false, &r);

	if (ret)
		return ret;
	r->texture.maxAnisotropy = maxAniso;
	return reference_end(r);
}

CUresult cuTexRefSetBorderColor(CUtexref hTexRef, float *pBorderColor)
{
	struct reference *r;
	CUresult ret = reference_begin(hTexRef, false, &r);

	if (ret)
		return ret;
	if (!pBorderColor)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(r->texture.borderColor, pBorderColor, sizeof(r->texture.borderColor));
	return reference_end(r);
}

CUresult cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags)
{
	struct reference *r;
	CUresult ret = reference_begin(hTexRef, false, &r);

	if (ret)
		return ret;
	r->texture.flags = Flags;
	return reference_end(r);
}

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

CUresult cuTexRefGetFormat(CUarray_format *pFormat, int *pNumChannels, CUtexref hTexRef)
{
	const struct reference *r;
	CUresult ret = reference_ask(hTexRef, false, pFormat, &r);

	if (ret)
		return ret;
	*pFormat = r->format;
	if (pNumChannels)
		*pNumChannels = r->channels;
	return CUDA_SUCCESS;
}

CUresult cuTexRefGetAddressMode(CUaddress_mode *pam, CUtexref hTexRef, int dim)
{
	const struct reference *r;
	CUresult ret = reference_ask(hTexRef, false, pam, &r);

	if (ret)
		return ret;
	if (dim < 0 || dim > 2)
		return CUDA_ERROR_INVALID_VALUE;
	*pam = r->texture.addressMode[dim];
	return CUDA_SUCCESS;
}

CUresult cuTexRefGetFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
	const struct reference *r;
	CUresult ret = reference_ask(hTexRef, false, pfm, &r);

	if (!ret)
		*pfm = r->texture.filterMode;
	return ret;
}

CUresult cuTexRefGetMipmapFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
	const struct reference *r;
	CUresult ret = reference_ask(hTexRef, false, pfm, &r);

	if (!ret)
		*pfm = r->texture.mipmapFilterMode;
	return ret;
}

CUresult cuTexRefGetMipmapLevelBias(float *pbias, CUtexref hTexRef)
{
	const struct reference *r;
	CUresult ret = reference_ask(hTexRef, false, pbias, &r);

	if (!ret)
		*pbias = r->texture.mipmapLevelBias;
	return ret;
}

CUresult cuTexRefGetMipmapLevelClamp(
	float *pminMipmapLevelClamp, float *pmaxMipmapLevelClamp, CUtexref hTexRef)
{
	const struct reference *r;
	CUresult ret = reference_ask(hTexRef, false, hTexRef, &r);

	if (ret)
		return ret;
	if (pminMipmapLevelClamp)
		*pminMipmapLevelClamp = r->texture.minMipmapLevelClamp;
	if (pmaxMipmapLevelClamp)
		*pmaxMipmapLevelClamp = r->texture.maxMipmapLevelClamp;
	return CUDA_SUCCESS;
}

CUresult cuTexRefGetMaxAnisotropy(int *pmaxAniso, CUtexref hTexRef)
{
	const struct reference *r;
	CUresult ret = reference_ask(hTexRef, false, pmaxAniso, &r);

	if (!ret)
		*pmaxAniso = (int)r->texture.maxAnisotropy;
	return ret;
}

CUresult cuTexRefGetBorderColor(float *pBorderColor, CUtexref hTexRef)
{
	const struct reference *r;
	CUresult ret = reference_ask(hTexRef, false, pBorderColor, &r);

	if (!ret)
		memcpy(pBorderColor, r->texture.borderColor, sizeof(r->texture.borderColor));
	return ret;
}

CUresult cuTexRefGetFlags(unsigned int *pFlags, CUtexref hTexRef)
{
	const struct reference *r;
	CUresult ret = reference_ask(hTexRef, false, pFlags, &r);

	if (!ret)
		*pFlags = r->texture.flags;
	return ret;
}
