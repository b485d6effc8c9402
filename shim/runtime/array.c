/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays: the driver's, made and described in the runtime's terms.
 */
#include "shim/runtime/array.h"

#include <string.h>

_Static_assert(cudaArrayLayered == CUDA_ARRAY3D_LAYERED &&
		       cudaArraySurfaceLoadStore == CUDA_ARRAY3D_SURFACE_LDST &&
		       cudaArrayCubemap == CUDA_ARRAY3D_CUBEMAP &&
		       cudaArrayTextureGather == CUDA_ARRAY3D_TEXTURE_GATHER &&
		       cudaArrayColorAttachment == CUDA_ARRAY3D_COLOR_ATTACHMENT &&
		       cudaArraySparse == CUDA_ARRAY3D_SPARSE &&
		       cudaArrayDeferredMapping == CUDA_ARRAY3D_DEFERRED_MAPPING,
	"array flags");

/* ---- formats ---- */

/* Those that are no whole numbers or floats, by kind. */
static const struct {
	enum cudaChannelFormatKind kind;
	CUarray_format format;
	unsigned char channels, bits;
} fixed[] = {
	{cudaChannelFormatKindNV12, CU_AD_FORMAT_NV12, 3, 8},
	{cudaChannelFormatKindUnsignedNormalized8X1, CU_AD_FORMAT_UNORM_INT8X1, 1, 8},
	{cudaChannelFormatKindUnsignedNormalized8X2, CU_AD_FORMAT_UNORM_INT8X2, 2, 8},
	{cudaChannelFormatKindUnsignedNormalized8X4, CU_AD_FORMAT_UNORM_INT8X4, 4, 8},
	{cudaChannelFormatKindUnsignedNormalized16X1, CU_AD_FORMAT_UNORM_INT16X1, 1, 16},
	{cudaChannelFormatKindUnsignedNormalized16X2, CU_AD_FORMAT_UNORM_INT16X2, 2, 16},
	{cudaChannelFormatKindUnsignedNormalized16X4, CU_AD_FORMAT_UNORM_INT16X4, 4, 16},
	{cudaChannelFormatKindSignedNormalized8X1, CU_AD_FORMAT_SNORM_INT8X1, 1, 8},
	{cudaChannelFormatKindSignedNormalized8X2, CU_AD_FORMAT_SNORM_INT8X2, 2, 8},
	{cudaChannelFormatKindSignedNormalized8X4, CU_AD_FORMAT_SNORM_INT8X4, 4, 8},
	{cudaChannelFormatKindSignedNormalized16X1, CU_AD_FORMAT_SNORM_INT16X1, 1, 16},
	{cudaChannelFormatKindSignedNormalized16X2, CU_AD_FORMAT_SNORM_INT16X2, 2, 16},
	{cudaChannelFormatKindSignedNormalized16X4, CU_AD_FORMAT_SNORM_INT16X4, 4, 16},
#if CUDART_VERSION >= 13000
	{cudaChannelFormatKindUnsignedNormalized1010102, CU_AD_FORMAT_UNORM_INT_101010_2, 4,
		10},
	/* CUDA 13.5's YUV: packed, of pairs of planes and of three, 4:2:0, 4:2:2 and 4:4:4. */
	{32, 0x51, 4, 8},
	{33, 0x52, 4, 8},
	{34, 0x53, 3, 8},
	{35, 0x54, 3, 16},
	{36, 0x55, 3, 8},
	{37, 0x56, 3, 16},
	{38, 0x57, 3, 8},
	{39, 0x58, 3, 16},
	{40, 0x59, 3, 8},
	{41, 0x5a, 3, 16},
	{42, 0x5b, 3, 8},
	{43, 0x5c, 3, 16},
	{44, 0x5d, 3, 8},
	{45, 0x5e, 3, 16},
#endif
	{cudaChannelFormatKindUnsignedBlockCompressed1, CU_AD_FORMAT_BC1_UNORM, 4, 8},
	{cudaChannelFormatKindUnsignedBlockCompressed1SRGB, CU_AD_FORMAT_BC1_UNORM_SRGB, 4, 8},
	{cudaChannelFormatKindUnsignedBlockCompressed2, CU_AD_FORMAT_BC2_UNORM, 4, 8},
	{cudaChannelFormatKindUnsignedBlockCompressed2SRGB, CU_AD_FORMAT_BC2_UNORM_SRGB, 4, 8},
	{cudaChannelFormatKindUnsignedBlockCompressed3, CU_AD_FORMAT_BC3_UNORM, 4, 8},
	{cudaChannelFormatKindUnsignedBlockCompressed3SRGB, CU_AD_FORMAT_BC3_UNORM_SRGB, 4, 8},
	{cudaChannelFormatKindUnsignedBlockCompressed4, CU_AD_FORMAT_BC4_UNORM, 1, 8},
	{cudaChannelFormatKindSignedBlockCompressed4, CU_AD_FORMAT_BC4_SNORM, 1, 8},
	{cudaChannelFormatKindUnsignedBlockCompressed5, CU_AD_FORMAT_BC5_UNORM, 2, 8},
	{cudaChannelFormatKindSignedBlockCompressed5, CU_AD_FORMAT_BC5_SNORM, 2, 8},
	{cudaChannelFormatKindUnsignedBlockCompressed6H, CU_AD_FORMAT_BC6H_UF16, 3, 16},
	{cudaChannelFormatKindSignedBlockCompressed6H, CU_AD_FORMAT_BC6H_SF16, 3, 16},
	{cudaChannelFormatKindUnsignedBlockCompressed7, CU_AD_FORMAT_BC7_UNORM, 4, 8},
	{cudaChannelFormatKindUnsignedBlockCompressed7SRGB, CU_AD_FORMAT_BC7_UNORM_SRGB, 4, 8},
};

static CUarray_format plain_format(enum cudaChannelFormatKind kind, int bits)
{
	switch (kind) {
	case cudaChannelFormatKindSigned:
		return bits == 8    ? CU_AD_FORMAT_SIGNED_INT8
		       : bits == 16 ? CU_AD_FORMAT_SIGNED_INT16
		       : bits == 32 ? CU_AD_FORMAT_SIGNED_INT32
				    : 0;
	case cudaChannelFormatKindUnsigned:
		return bits == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
		       : bits == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
		       : bits == 32 ? CU_AD_FORMAT_UNSIGNED_INT32
				    : 0;
	case cudaChannelFormatKindFloat:
		return bits == 16 ? CU_AD_FORMAT_HALF : bits == 32 ? CU_AD_FORMAT_FLOAT : 0;
	default: return 0;
	}
}

cudaError_t array_format(
	const struct cudaChannelFormatDesc *desc, CUarray_format *format, unsigned *channels)
{
	const int bits[4] = {desc->x, desc->y, desc->z, desc->w};
	unsigned n = 0;

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (fixed[i].kind == desc->f) {
			*format = fixed[i].format;
			*channels = fixed[i].channels;
			return cudaSuccess;
		}
	while (n < 4 && bits[n])
		n++;
	for (unsigned i = 0; i < 4; i++)
		if (bits[i] != (i < n ? desc->x : 0))
			return cudaErrorInvalidChannelDescriptor;
	*format = plain_format(desc->f, desc->x);
	*channels = n;
	return *format && (n == 1 || n == 2 || n == 4) ? cudaSuccess
						       : cudaErrorInvalidChannelDescriptor;
}

static int format_bits(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8: return 8;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF: return 16;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT: return 32;
	default: return 0;
	}
}

struct cudaChannelFormatDesc array_channels(CUarray_format format, unsigned channels)
{
	int bits = format_bits(format);
	struct cudaChannelFormatDesc desc = {.f = cudaChannelFormatKindNone};

	if (bits) {
		desc.f = format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT
				 ? cudaChannelFormatKindFloat
			 : format >= CU_AD_FORMAT_SIGNED_INT8 ? cudaChannelFormatKindSigned
							      : cudaChannelFormatKindUnsigned;
	} else {
		for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
			if (fixed[i].format == format) {
				desc.f = fixed[i].kind;
				bits = fixed[i].bits;
			}
	}
	desc.x = bits;
	desc.y = channels > 1 ? bits : 0;
	desc.z = channels > 2 ? bits : 0;
	desc.w = channels <= 3 ? 0 : format == CU_AD_FORMAT_UNORM_INT_101010_2 ? 2 : bits;
	return desc;
}

size_t array_element_bytes(CUarray_format format, unsigned channels)
{
	size_t bytes = (size_t)format_bits(format) / 8;

	if (format == CU_AD_FORMAT_UNORM_INT_101010_2)
		return channels == 4 ? 4 : 0;
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (fixed[i].format == format && format >= CU_AD_FORMAT_UNORM_INT8X1)
			bytes = fixed[i].bits / 8;
	return bytes * channels;
}

/* ---- arrays ---- */

/* Shapes come before formats. */
static bool array_shape(struct cudaExtent extent, unsigned flags)
{
	const bool layered = flags & cudaArrayLayered, cube = flags & cudaArrayCubemap;

	if (!extent.width || flags >= CUDA_ARRAY3D_DEFERRED_MAPPING << 2)
		return false;
	if (cube && (extent.width != extent.height || extent.depth % 6))
		return false;
	if (layered || cube)
		return extent.depth && (cube ? layered || extent.depth == 6 : true);
	return extent.height || !extent.depth;
}

static cudaError_t array_desc(CUDA_ARRAY3D_DESCRIPTOR *out, bool ask,
	const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned flags)
{
	cudaError_t error = ask && desc ? runtime_enter() : cudaErrorInvalidValue;

	if (!error && !array_shape(extent, flags))
		error = cudaErrorInvalidValue;
	*out = (CUDA_ARRAY3D_DESCRIPTOR){.Width = extent.width,
		.Height = extent.height,
		.Depth = extent.depth,
		.Flags = flags};
	if (!error)
		error = array_format(desc, &out->Format, &out->NumChannels);
	/* An array of depths cannot be made by the runtime: the driver refuses one of no width,
	 * once it has asked the captures. */
	if (!error && flags & CUDA_ARRAY3D_DEPTH_TEXTURE)
		out->Width = 0;
	return error;
}

cudaError_t hand_cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
	struct cudaExtent extent, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR driver;
	cudaError_t error = array_desc(&driver, array != NULL, desc, extent, flags);

	if (array && desc)
		*array = NULL;
	return error ? error
		     : runtime_status(cuArray3DCreate((CUarray *)(void *)array, &driver));
}

cudaError_t hand_cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
	size_t width, size_t height, unsigned int flags)
{
	return hand_cudaMalloc3DArray(
		array, desc, (struct cudaExtent){.width = width, .height = height}, flags);
}

cudaError_t hand_cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmappedArray,
	const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
	unsigned int numLevels, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR driver;
	cudaError_t error = array_desc(&driver, mipmappedArray != NULL, desc, extent, flags);

	if (mipmappedArray && desc)
		*mipmappedArray = NULL;

	return error ? error
		     : runtime_status(cuMipmappedArrayCreate(
			       (CUmipmappedArray *)(void *)mipmappedArray, &driver, numLevels));
}

cudaError_t hand_cudaGetMipmappedArrayLevel(
	cudaArray_t *levelArray, cudaMipmappedArray_const_t mipmappedArray, unsigned int level)
{
	return RUNTIME_DRIVER(cuMipmappedArrayGetLevel((CUarray *)(void *)levelArray,
		(CUmipmappedArray)(uintptr_t)mipmappedArray, level));
}

cudaError_t hand_cudaFreeArray(cudaArray_t array)
{
	cudaError_t error = runtime_enter();

	return error || !array ? error : runtime_status(cuArrayDestroy(array_driver(array)));
}

cudaError_t hand_cudaFreeMipmappedArray(cudaMipmappedArray_t mipmappedArray)
{
	cudaError_t error = runtime_enter();

	return error || !mipmappedArray ? error
					: runtime_status(cuMipmappedArrayDestroy(
						  (CUmipmappedArray)(uintptr_t)mipmappedArray));
}

cudaError_t hand_cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent,
	unsigned int *flags, cudaArray_t array)
{
	CUDA_ARRAY3D_DESCRIPTOR driver;
	cudaError_t error = array ? runtime_enter() : runtime_init();

	if (error)
		return error;
	/* What is not told is 0. */
	if (desc)
		memset(desc, 0, sizeof(*desc));
	if (extent)
		memset(extent, 0, sizeof(*extent));
	if (flags)
		*flags = 0;
	error = runtime_status(cuArray3DGetDescriptor(&driver, array_driver(array)));
	if (error)
		return error;
	if (desc)
		*desc = array_channels(driver.Format, driver.NumChannels);
	if (extent)
		*extent = (struct cudaExtent){
			.width = driver.Width, .height = driver.Height, .depth = driver.Depth};
	if (flags)
		*flags = driver.Flags;
	return cudaSuccess;
}

cudaError_t hand_cudaGetChannelDesc(struct cudaChannelFormatDesc *desc, cudaArray_const_t array)
{
	CUDA_ARRAY3D_DESCRIPTOR driver;
	cudaError_t error;

	if (!desc)
		return cudaErrorInvalidValue;
	error = RUNTIME_DRIVER(cuArray3DGetDescriptor(&driver, array_driver(array)));
	if (!error)
		*desc = array_channels(driver.Format, driver.NumChannels);
	return error;
}

cudaError_t hand_cudaArrayGetPlane(
	cudaArray_t *pPlaneArray, cudaArray_t hArray, unsigned int planeIdx)
{
	return RUNTIME_DRIVER(cuArrayGetPlane(
		(CUarray *)(void *)pPlaneArray, array_driver(hArray), planeIdx));
}

/* ---- arrays whose memory is mapped later ---- */

_Static_assert(
	sizeof(struct cudaArraySparseProperties) == sizeof(CUDA_ARRAY_SPARSE_PROPERTIES) &&
		offsetof(struct cudaArraySparseProperties, miptailSize) ==
			offsetof(CUDA_ARRAY_SPARSE_PROPERTIES, miptailSize) &&
		sizeof(struct cudaArrayMemoryRequirements) ==
			sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS),
	"what an array needs");

/* The array says where it is: as natively, nothing becomes current. */
cudaError_t hand_cudaArrayGetSparseProperties(
	struct cudaArraySparseProperties *sparseProperties, cudaArray_t array)
{
	return RUNTIME_ANYWHERE(cuArrayGetSparseProperties(
		(CUDA_ARRAY_SPARSE_PROPERTIES *)sparseProperties, array_driver(array)));
}

cudaError_t hand_cudaMipmappedArrayGetSparseProperties(
	struct cudaArraySparseProperties *sparseProperties, cudaMipmappedArray_t mipmap)
{
	return RUNTIME_ANYWHERE(cuMipmappedArrayGetSparseProperties(
		(CUDA_ARRAY_SPARSE_PROPERTIES *)sparseProperties,
		(CUmipmappedArray)(uintptr_t)mipmap));
}

cudaError_t hand_cudaArrayGetMemoryRequirements(
	struct cudaArrayMemoryRequirements *memoryRequirements, cudaArray_t array, int device)
{
	if (memoryRequirements)
		*memoryRequirements = (struct cudaArrayMemoryRequirements){0};
	return RUNTIME_ANYWHERE(cuArrayGetMemoryRequirements(
		(CUDA_ARRAY_MEMORY_REQUIREMENTS *)memoryRequirements, array_driver(array),
		device));
}

cudaError_t hand_cudaMipmappedArrayGetMemoryRequirements(
	struct cudaArrayMemoryRequirements *memoryRequirements, cudaMipmappedArray_t mipmap,
	int device)
{
	if (memoryRequirements)
		*memoryRequirements = (struct cudaArrayMemoryRequirements){0};
	return RUNTIME_ANYWHERE(cuMipmappedArrayGetMemoryRequirements(
		(CUDA_ARRAY_MEMORY_REQUIREMENTS *)memoryRequirements,
		(CUmipmappedArray)(uintptr_t)mipmap, device));
}
