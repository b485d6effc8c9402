/* SPDX-License-Identifier: Apache-2.0
 *
 * Textures and surfaces: the driver's objects, described in the runtime's terms.
 */
#include <string.h>

#include "shim/runtime/array.h"

_Static_assert((int)cudaAddressModeBorder == CU_TR_ADDRESS_MODE_BORDER &&
		       (int)cudaAddressModeWrap == CU_TR_ADDRESS_MODE_WRAP &&
		       (int)cudaFilterModeLinear == CU_TR_FILTER_MODE_LINEAR &&
		       (int)cudaResourceTypePitch2D == CU_RESOURCE_TYPE_PITCH2D &&
		       (int)cudaResViewFormatUnsignedBlockCompressed7 ==
			       CU_RES_VIEW_FORMAT_UNSIGNED_BC7,
	"textures");

/* ---- to the driver ---- */

/* FORMAT: of what is read. */
static cudaError_t resource_to(
	CUDA_RESOURCE_DESC *to, const struct cudaResourceDesc *from, CUarray_format *format)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;
	cudaError_t error = cudaSuccess;
	CUarray level;

	memset(to, 0, sizeof(*to));
	to->resType = (CUresourcetype)from->resType;
	switch (from->resType) {
	case cudaResourceTypeArray:
		to->res.array.hArray = array_driver(from->res.array.array);
		error = runtime_status(cuArray3DGetDescriptor(&desc, to->res.array.hArray));
		*format = desc.Format;
		break;
	case cudaResourceTypeMipmappedArray:
		to->res.mipmap.hMipmappedArray =
			(CUmipmappedArray)(uintptr_t)from->res.mipmap.mipmap;
		error = runtime_status(
			cuMipmappedArrayGetLevel(&level, to->res.mipmap.hMipmappedArray, 0));
		if (!error)
			error = runtime_status(cuArray3DGetDescriptor(&desc, level));
		*format = desc.Format;
		break;
	case cudaResourceTypeLinear:
		to->res.linear.devPtr = (CUdeviceptr)from->res.linear.devPtr;
		to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
		error = array_format(&from->res.linear.desc, &to->res.linear.format,
			&to->res.linear.numChannels);
		*format = to->res.linear.format;
		break;
	case cudaResourceTypePitch2D:
		to->res.pitch2D.devPtr = (CUdeviceptr)from->res.pitch2D.devPtr;
		to->res.pitch2D.width = from->res.pitch2D.width;
		to->res.pitch2D.height = from->res.pitch2D.height;
		to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
		error = array_format(&from->res.pitch2D.desc, &to->res.pitch2D.format,
			&to->res.pitch2D.numChannels);
		*format = to->res.pitch2D.format;
		break;
	default: return cudaErrorInvalidValue;
	}
	return error;
}

static bool format_float(CUarray_format format)
{
	return format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT ||
	       format >= CU_AD_FORMAT_BC1_UNORM;
}

static bool format_wide(CUarray_format format)
{
	return format == CU_AD_FORMAT_UNSIGNED_INT32 || format == CU_AD_FORMAT_SIGNED_INT32;
}

/* Whole numbers that are read as parts of one, compressed or not. */
static bool format_normalized(CUarray_format format)
{
	return (format >= CU_AD_FORMAT_UNORM_INT8X1 && format <= CU_AD_FORMAT_SNORM_INT16X4) ||
	       (format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC5_SNORM) ||
	       format == CU_AD_FORMAT_BC7_UNORM || format == CU_AD_FORMAT_BC7_UNORM_SRGB;
}

/* An H200's runtime refuses to read it as what it is. */
static bool format_packed(CUarray_format format)
{
	return format == CU_AD_FORMAT_UNORM_INT_101010_2;
}

/* The read mode says something of whole numbers only. */
static cudaError_t sampler_to(
	CUDA_TEXTURE_DESC *to, const struct cudaTextureDesc *from, CUarray_format format)
{
	bool integers = !format_float(format) && !format_packed(format) &&
			from->readMode == cudaReadModeElementType;

	memset(to, 0, sizeof(*to));
	if (from->filterMode == cudaFilterModeLinear && (integers || format_wide(format)))
		return cudaErrorInvalidFilterSetting;
	if (from->readMode == cudaReadModeNormalizedFloat
			? format_wide(format) || format_packed(format) ||
				  format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT
			: format_normalized(format))
		return cudaErrorInvalidNormSetting;
	for (int i = 0; i < 3; i++)
		to->addressMode[i] = (CUaddress_mode)from->addressMode[i];
	to->filterMode = (CUfilter_mode)from->filterMode;
	to->flags = (integers ? CU_TRSF_READ_AS_INTEGER : 0u) |
		    (from->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0u) |
		    (from->sRGB ? CU_TRSF_SRGB : 0u) |
		    (from->disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION
							: 0u) |
		    (from->seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0u);
	to->maxAnisotropy = from->maxAnisotropy;
	to->mipmapFilterMode = (CUfilter_mode)from->mipmapFilterMode;
	to->mipmapLevelBias = from->mipmapLevelBias;
	to->minMipmapLevelClamp = from->minMipmapLevelClamp;
	to->maxMipmapLevelClamp = from->maxMipmapLevelClamp;
	memcpy(to->borderColor, from->borderColor, sizeof(to->borderColor));
	return cudaSuccess;
}

static void view_to(CUDA_RESOURCE_VIEW_DESC *to, const struct cudaResourceViewDesc *from)
{
	memset(to, 0, sizeof(*to));
	to->format = (CUresourceViewFormat)from->format;
	to->width = from->width;
	to->height = from->height;
	to->depth = from->depth;
	to->firstMipmapLevel = from->firstMipmapLevel;
	to->lastMipmapLevel = from->lastMipmapLevel;
	to->firstLayer = from->firstLayer;
	to->lastLayer = from->lastLayer;
}

/* ---- and back ---- */

static CUarray_format resource_back(struct cudaResourceDesc *to, const CUDA_RESOURCE_DESC *from)
{
	struct cudaResourceDesc ask;
	CUDA_RESOURCE_DESC again;
	CUarray_format format = CU_AD_FORMAT_FLOAT;

	memset(to, 0, sizeof(*to));
	to->resType = (enum cudaResourceType)from->resType;
	switch (from->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		to->res.array.array = (cudaArray_t)(uintptr_t)from->res.array.hArray;
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		to->res.mipmap.mipmap =
			(cudaMipmappedArray_t)(uintptr_t)from->res.mipmap.hMipmappedArray;
		break;
	case CU_RESOURCE_TYPE_LINEAR:
		to->res.linear.devPtr = (void *)from->res.linear.devPtr;
		to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
		to->res.linear.desc =
			array_channels(from->res.linear.format, from->res.linear.numChannels);
		break;
	default:
		to->res.pitch2D.devPtr = (void *)from->res.pitch2D.devPtr;
		to->res.pitch2D.width = from->res.pitch2D.width;
		to->res.pitch2D.height = from->res.pitch2D.height;
		to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
		to->res.pitch2D.desc =
			array_channels(from->res.pitch2D.format, from->res.pitch2D.numChannels);
		break;
	}
	ask = *to;
	resource_to(&again, &ask, &format);
	return format;
}

static void sampler_back(
	struct cudaTextureDesc *to, const CUDA_TEXTURE_DESC *from, CUarray_format format)
{
	memset(to, 0, sizeof(*to));
	for (int i = 0; i < 3; i++)
		to->addressMode[i] = (enum cudaTextureAddressMode)from->addressMode[i];
	to->filterMode = (enum cudaTextureFilterMode)from->filterMode;
	to->readMode =
		!format_normalized(format) && (format_float(format) || format_packed(format) ||
						      from->flags & CU_TRSF_READ_AS_INTEGER)
			? cudaReadModeElementType
			: cudaReadModeNormalizedFloat;
	to->sRGB = (from->flags & CU_TRSF_SRGB) != 0;
	to->normalizedCoords = (from->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
	to->disableTrilinearOptimization =
		(from->flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
	to->seamlessCubemap = (from->flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
	to->maxAnisotropy = from->maxAnisotropy;
	to->mipmapFilterMode = (enum cudaTextureFilterMode)from->mipmapFilterMode;
	to->mipmapLevelBias = from->mipmapLevelBias;
	to->minMipmapLevelClamp = from->minMipmapLevelClamp;
	to->maxMipmapLevelClamp = from->maxMipmapLevelClamp;
	memcpy(to->borderColor, from->borderColor, sizeof(to->borderColor));
}

/* ---- objects ---- */

cudaError_t hand_cudaCreateTextureObject(cudaTextureObject_t *pTexObject,
	const struct cudaResourceDesc *pResDesc, const struct cudaTextureDesc *pTexDesc,
	const struct cudaResourceViewDesc *pResViewDesc)
{
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC sampler;
	CUDA_RESOURCE_VIEW_DESC view;
	CUarray_format format;
	cudaError_t error;

	if (!pResDesc)
		return cudaErrorInvalidValue;
	if (!pTexDesc)
		return cudaErrorInvalidResourceHandle;
	error = runtime_enter();
	if (!error)
		error = resource_to(&resource, pResDesc, &format);
	if (!error)
		error = sampler_to(&sampler, pTexDesc, format);
	if (!error && !pTexObject)
		error = cudaErrorInvalidValue;
	if (error)
		return error;
	if (pResViewDesc)
		view_to(&view, pResViewDesc);
	return runtime_status(cuTexObjectCreate(
		pTexObject, &resource, &sampler, pResViewDesc ? &view : NULL));
}

cudaError_t hand_cudaDestroyTextureObject(cudaTextureObject_t texObject)
{
	return RUNTIME_DRIVER(cuTexObjectDestroy(texObject));
}

cudaError_t hand_cudaGetTextureObjectResourceDesc(
	struct cudaResourceDesc *pResDesc, cudaTextureObject_t texObject)
{
	CUDA_RESOURCE_DESC resource;
	cudaError_t error;

	if (!pResDesc)
		return cudaErrorInvalidValue;
	error = RUNTIME_DRIVER(cuTexObjectGetResourceDesc(&resource, texObject));
	if (!error)
		resource_back(pResDesc, &resource);
	return error;
}

cudaError_t hand_cudaGetTextureObjectTextureDesc(
	struct cudaTextureDesc *pTexDesc, cudaTextureObject_t texObject)
{
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC sampler;
	struct cudaResourceDesc unused;
	cudaError_t error;

	if (!pTexDesc)
		return cudaErrorInvalidResourceHandle;
	error = RUNTIME_DRIVER(cuTexObjectGetTextureDesc(&sampler, texObject));
	if (!error)
		error = runtime_status(cuTexObjectGetResourceDesc(&resource, texObject));
	if (!error)
		sampler_back(pTexDesc, &sampler, resource_back(&unused, &resource));
	return error;
}

cudaError_t hand_cudaGetTextureObjectResourceViewDesc(
	struct cudaResourceViewDesc *pResViewDesc, cudaTextureObject_t texObject)
{
	CUDA_RESOURCE_VIEW_DESC view;
	cudaError_t error;

	if (!pResViewDesc)
		return cudaErrorInvalidValue;
	error = RUNTIME_DRIVER(cuTexObjectGetResourceViewDesc(&view, texObject));
	if (error)
		return error;
	memset(pResViewDesc, 0, sizeof(*pResViewDesc));
	pResViewDesc->format = (enum cudaResourceViewFormat)view.format;
	pResViewDesc->width = view.width;
	pResViewDesc->height = view.height;
	pResViewDesc->depth = view.depth;
	pResViewDesc->firstMipmapLevel = view.firstMipmapLevel;
	pResViewDesc->lastMipmapLevel = view.lastMipmapLevel;
	pResViewDesc->firstLayer = view.firstLayer;
	pResViewDesc->lastLayer = view.lastLayer;
	return cudaSuccess;
}

cudaError_t hand_cudaCreateSurfaceObject(
	cudaSurfaceObject_t *pSurfObject, const struct cudaResourceDesc *pResDesc)
{
	CUDA_RESOURCE_DESC resource;
	CUarray_format format;
	cudaError_t error;

	if (!pSurfObject || !pResDesc)
		return cudaErrorInvalidValue;
	error = runtime_enter();
	if (!error)
		error = resource_to(&resource, pResDesc, &format);
	return error ? error : runtime_status(cuSurfObjectCreate(pSurfObject, &resource));
}

cudaError_t hand_cudaDestroySurfaceObject(cudaSurfaceObject_t surfObject)
{
	return RUNTIME_DRIVER(cuSurfObjectDestroy(surfObject));
}

cudaError_t hand_cudaGetSurfaceObjectResourceDesc(
	struct cudaResourceDesc *pResDesc, cudaSurfaceObject_t surfObject)
{
	CUDA_RESOURCE_DESC resource;
	cudaError_t error;

	if (!pResDesc)
		return cudaErrorInvalidDevice; /* as natively */
	error = RUNTIME_DRIVER(cuSurfObjectGetResourceDesc(&resource, surfObject));
	if (!error)
		resource_back(pResDesc, &resource);
	return error;
}

cudaError_t hand_cudaDeviceGetTexture1DLinearMaxWidth(
	size_t *maxWidthInElements, const struct cudaChannelFormatDesc *fmtDesc, int device)
{
	CUarray_format format;
	unsigned channels;
	CUdevice driver;
	cudaError_t error;

	if (!fmtDesc)
		return cudaErrorInvalidValue;
	error = array_format(fmtDesc, &format, &channels);
	if (!error && !maxWidthInElements)
		return cudaErrorInvalidValue;
	if (!error)
		error = runtime_device(device, &driver);
	return error ? error
		     : runtime_status(cuDeviceGetTexture1DLinearMaxWidth(
			       maxWidthInElements, format, channels, driver));
}
