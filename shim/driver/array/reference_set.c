/* SPDX-License-Identifier: Apache-2.0
 *
 * What references to textures and surfaces are set to: all is the driver's to know and to tell.
 */
#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "protocol/wire/reference.h"
#include "shim/driver/array/array.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/module/module.h"
#include "shim/driver/array/reference.h"
#include "shim/engine/engine.h"
#include "shim/generated/cuda_hand.h"

static CUresult reference_set(const struct reference *reference, enum reference_what what,
	const struct reference_setting *setting, size_t *offset)
{
	struct shim_call call;
	struct wire_vcudaReferenceSet *body;
	const struct wire_vcudaReferenceSet_reply *reply;

	if (!reference)
		return CUDA_ERROR_INVALID_VALUE;
	body = shim_begin(&call, OP_vcudaReferenceSet, sizeof(*body));
	body->reference = reference->handle;
	body->what = what;
	shim_put(&call, &body->setting, setting, sizeof(*setting));
	reply = shim_wait(&call, sizeof(*reply));
	if (reply && offset)
		*offset = reply->offset;
	return shim_end(&call);
}

static CUresult texture_set(
	CUtexref hTexRef, enum reference_what what, const struct reference_setting *setting)
{
	return reference_set(reference_find((uint64_t)(uintptr_t)hTexRef, KIND_CUtexref), what,
		setting, NULL);
}

static CUresult reference_ask(const struct reference *reference, enum reference_what what,
	int dimension, struct reference_setting *setting)
{
	struct shim_call call;
	struct wire_vcudaReferenceAsk *body;
	const struct wire_vcudaReferenceAsk_reply *reply;
	const void *from;
	size_t n;

	if (!reference)
		return CUDA_ERROR_INVALID_VALUE;
	*setting = (struct reference_setting){0};
	body = shim_begin(&call, OP_vcudaReferenceAsk, sizeof(*body));
	body->reference = reference->handle;
	body->what = what;
	body->dimension = dimension;
	reply = shim_wait(&call, sizeof(*reply));
	from = reply ? shim_run(&call, &reply->setting, &n) : NULL;
	if (from && n >= sizeof(*setting))
		memcpy(setting, from, sizeof(*setting));
	return shim_end(&call);
}

static CUresult texture_ask(CUtexref hTexRef, enum reference_what what, int dimension,
	struct reference_setting *setting)
{
	return reference_ask(reference_find((uint64_t)(uintptr_t)hTexRef, KIND_CUtexref), what,
		dimension, setting);
}

CUresult hand_cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags)
{
	const struct reference_setting setting = {
		.place = (uint64_t)(uintptr_t)hArray, .flags = Flags};

	if (!array_find(setting.place, false))
		return CUDA_ERROR_INVALID_VALUE;
	return texture_set(hTexRef, REFERENCE_ARRAY, &setting);
}

CUresult hand_cuTexRefSetMipmappedArray(
	CUtexref hTexRef, CUmipmappedArray hMipmappedArray, unsigned int Flags)
{
	const struct reference_setting setting = {
		.place = (uint64_t)(uintptr_t)hMipmappedArray, .flags = Flags};

	if (!array_find(setting.place, true))
		return CUDA_ERROR_INVALID_VALUE;
	return texture_set(hTexRef, REFERENCE_MIPMAPPED, &setting);
}

CUresult hand_cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags)
{
	const struct reference_setting setting = {
		.place = (uint64_t)(uintptr_t)hArray, .flags = Flags};

	if (!array_find(setting.place, false))
		return CUDA_ERROR_INVALID_VALUE;
	return reference_set(reference_find((uint64_t)(uintptr_t)hSurfRef, KIND_CUsurfref),
		REFERENCE_SURFACE, &setting, NULL);
}

CUresult hand_cuTexRefSetAddress_v2(
	size_t *ByteOffset, CUtexref hTexRef, CUdeviceptr dptr, size_t bytes)
{
	const struct reference_setting setting = {.place = dptr, .bytes = bytes};

	if (!memory_inside(dptr, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return reference_set(reference_find((uint64_t)(uintptr_t)hTexRef, KIND_CUtexref),
		REFERENCE_MEMORY, &setting, ByteOffset);
}

CUresult hand_cuTexRefSetAddress2D_v3(
	CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr, size_t Pitch)
{
	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	return texture_set(hTexRef, REFERENCE_PITCHED,
		&(struct reference_setting){.place = dptr,
			.bytes = Pitch,
			.width = desc->Width,
			.height = desc->Height,
			.format = (uint32_t)desc->Format,
			.channels = desc->NumChannels});
}

CUresult hand_cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents)
{
	return texture_set(hTexRef, REFERENCE_FORMAT,
		&(struct reference_setting){
			.format = (uint32_t)fmt, .channels = (uint32_t)NumPackedComponents});
}

CUresult hand_cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am)
{
	return texture_set(hTexRef, REFERENCE_ADDRESS_MODE,
		&(struct reference_setting){.dimension = dim, .mode = (uint32_t)am});
}

CUresult hand_cuTexRefSetFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
	return texture_set(
		hTexRef, REFERENCE_FILTER, &(struct reference_setting){.mode = (uint32_t)fm});
}

CUresult hand_cuTexRefSetMipmapFilterMode(CUtexref hTexRef, CUfilter_mode fm)
{
	return texture_set(hTexRef, REFERENCE_LEVEL_FILTER,
		&(struct reference_setting){.mode = (uint32_t)fm});
}

CUresult hand_cuTexRefSetMipmapLevelBias(CUtexref hTexRef, float bias)
{
	return texture_set(
		hTexRef, REFERENCE_LEVEL_BIAS, &(struct reference_setting){.number = {bias}});
}

CUresult hand_cuTexRefSetMipmapLevelClamp(
	CUtexref hTexRef, float minMipmapLevelClamp, float maxMipmapLevelClamp)
{
	return texture_set(hTexRef, REFERENCE_LEVEL_CLAMP,
		&(struct reference_setting){
			.number = {minMipmapLevelClamp, maxMipmapLevelClamp}});
}

CUresult hand_cuTexRefSetMaxAnisotropy(CUtexref hTexRef, unsigned int maxAniso)
{
	return texture_set(
		hTexRef, REFERENCE_ANISOTROPY, &(struct reference_setting){.mode = maxAniso});
}

CUresult hand_cuTexRefSetBorderColor(CUtexref hTexRef, float *pBorderColor)
{
	struct reference_setting setting = {0};

	if (!pBorderColor)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(setting.number, pBorderColor, sizeof(setting.number));
	return texture_set(hTexRef, REFERENCE_BORDER, &setting);
}

CUresult hand_cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags)
{
	return texture_set(
		hTexRef, REFERENCE_FLAGS, &(struct reference_setting){.flags = Flags});
}

CUresult hand_cuParamSetTexRef(CUfunction hfunc, int texunit, CUtexref hTexRef)
{
	struct function *function;
	CUresult status = function_find(hfunc, &function);

	if (status)
		return status;
	return texture_set(hTexRef, REFERENCE_PARAMETER,
		&(struct reference_setting){
			.place = function_handle(function), .dimension = texunit});
}

/* ---- questions ---- */

CUresult hand_cuTexRefGetArray(CUarray *phArray, CUtexref hTexRef)
{
	struct reference_setting setting;
	CUresult status;

	if (!phArray)
		return CUDA_ERROR_INVALID_VALUE;
	status = texture_ask(hTexRef, REFERENCE_ARRAY, 0, &setting);
	if (!status)
		*phArray = (CUarray)(uintptr_t)setting.place;
	return status;
}

CUresult hand_cuTexRefGetMipmappedArray(CUmipmappedArray *phMipmappedArray, CUtexref hTexRef)
{
	struct reference_setting setting;
	CUresult status;

	if (!phMipmappedArray)
		return CUDA_ERROR_INVALID_VALUE;
	status = texture_ask(hTexRef, REFERENCE_MIPMAPPED, 0, &setting);
	if (!status)
		*phMipmappedArray = (CUmipmappedArray)(uintptr_t)setting.place;
	return status;
}

CUresult hand_cuSurfRefGetArray(CUarray *phArray, CUsurfref hSurfRef)
{
	struct reference_setting setting;
	CUresult status;

	if (!phArray)
		return CUDA_ERROR_INVALID_VALUE;
	status = reference_ask(reference_find((uint64_t)(uintptr_t)hSurfRef, KIND_CUsurfref),
		REFERENCE_SURFACE, 0, &setting);
	if (!status)
		*phArray = (CUarray)(uintptr_t)setting.place;
	return status;
}

CUresult hand_cuTexRefGetAddress_v2(CUdeviceptr *pdptr, CUtexref hTexRef)
{
	struct reference_setting setting;
	CUresult status;

	if (!pdptr)
		return CUDA_ERROR_INVALID_VALUE;
	status = texture_ask(hTexRef, REFERENCE_MEMORY, 0, &setting);
	if (!status)
		*pdptr = setting.place;
	return status;
}

CUresult hand_cuTexRefGetFormat(CUarray_format *pFormat, int *pNumChannels, CUtexref hTexRef)
{
	struct reference_setting setting;
	CUresult status = texture_ask(hTexRef, REFERENCE_FORMAT, 0, &setting);

	if (!status && pFormat)
		*pFormat = (CUarray_format)setting.format;
	if (!status && pNumChannels)
		*pNumChannels = (int)setting.channels;
	return status;
}

CUresult hand_cuTexRefGetAddressMode(CUaddress_mode *pam, CUtexref hTexRef, int dim)
{
	struct reference_setting setting;
	CUresult status;

	if (!pam)
		return CUDA_ERROR_INVALID_VALUE;
	status = texture_ask(hTexRef, REFERENCE_ADDRESS_MODE, dim, &setting);
	if (!status)
		*pam = (CUaddress_mode)setting.mode;
	return status;
}

static CUresult filter_ask(CUfilter_mode *filter, CUtexref hTexRef, enum reference_what what)
{
	struct reference_setting setting;
	CUresult status;

	if (!filter)
		return CUDA_ERROR_INVALID_VALUE;
	status = texture_ask(hTexRef, what, 0, &setting);
	if (!status)
		*filter = (CUfilter_mode)setting.mode;
	return status;
}

CUresult hand_cuTexRefGetFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
	return filter_ask(pfm, hTexRef, REFERENCE_FILTER);
}

CUresult hand_cuTexRefGetMipmapFilterMode(CUfilter_mode *pfm, CUtexref hTexRef)
{
	return filter_ask(pfm, hTexRef, REFERENCE_LEVEL_FILTER);
}

CUresult hand_cuTexRefGetMipmapLevelBias(float *pbias, CUtexref hTexRef)
{
	struct reference_setting setting;
	CUresult status;

	if (!pbias)
		return CUDA_ERROR_INVALID_VALUE;
	status = texture_ask(hTexRef, REFERENCE_LEVEL_BIAS, 0, &setting);
	if (!status)
		*pbias = setting.number[0];
	return status;
}

CUresult hand_cuTexRefGetMipmapLevelClamp(
	float *pminMipmapLevelClamp, float *pmaxMipmapLevelClamp, CUtexref hTexRef)
{
	struct reference_setting setting;
	CUresult status = texture_ask(hTexRef, REFERENCE_LEVEL_CLAMP, 0, &setting);

	if (!status && pminMipmapLevelClamp)
		*pminMipmapLevelClamp = setting.number[0];
	if (!status && pmaxMipmapLevelClamp)
		*pmaxMipmapLevelClamp = setting.number[1];
	return status;
}

CUresult hand_cuTexRefGetMaxAnisotropy(int *pmaxAniso, CUtexref hTexRef)
{
	struct reference_setting setting;
	CUresult status;

	if (!pmaxAniso)
		return CUDA_ERROR_INVALID_VALUE;
	status = texture_ask(hTexRef, REFERENCE_ANISOTROPY, 0, &setting);
	if (!status)
		*pmaxAniso = (int)setting.mode;
	return status;
}

CUresult hand_cuTexRefGetBorderColor(float *pBorderColor, CUtexref hTexRef)
{
	struct reference_setting setting;
	CUresult status;

	if (!pBorderColor)
		return CUDA_ERROR_INVALID_VALUE;
	status = texture_ask(hTexRef, REFERENCE_BORDER, 0, &setting);
	if (!status)
		memcpy(pBorderColor, setting.number, sizeof(setting.number));
	return status;
}

CUresult hand_cuTexRefGetFlags(unsigned int *pFlags, CUtexref hTexRef)
{
	struct reference_setting setting;
	CUresult status;

	if (!pFlags)
		return CUDA_ERROR_INVALID_VALUE;
	status = texture_ask(hTexRef, REFERENCE_FLAGS, 0, &setting);
	if (!status)
		*pFlags = setting.flags;
	return status;
}
