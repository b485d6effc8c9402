/* SPDX-License-Identifier: Apache-2.0
 *
 * What the elements of arrays are.
 */
#include "softgpu/driver/array.h"

/* CUDA 13.5's formats, which the headers that this is built with do not have. */
enum {
	PACKED_422 = 0x51,
	PACKED_444,
	SEMIPLANAR_FIRST, /* 4:2:0, 4:2:2, 4:4:4, each of bytes and of words */
	PLANAR_FIRST = 0x59,
	PLANAR_END = 0x5f
};

CUarray_format array_whole(CUarray_format format, unsigned *channels)
{
	static const uint8_t counts[] = {1, 2, 4};
	static const CUarray_format whole[] = {CU_AD_FORMAT_UNSIGNED_INT8,
		CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_SIGNED_INT8,
		CU_AD_FORMAT_SIGNED_INT16};
	unsigned at = (unsigned)format - CU_AD_FORMAT_UNORM_INT8X1;

	*channels = 0;
	if (at > CU_AD_FORMAT_SNORM_INT16X4 - CU_AD_FORMAT_UNORM_INT8X1)
		return format;
	*channels = counts[at % 3];
	return whole[at / 3];
}

size_t array_packed(CUarray_format format, unsigned channels)
{
	switch ((unsigned)format) {
	case PACKED_422:
	case PACKED_444: return channels == 4 ? 4 : 0;
	case CU_AD_FORMAT_YUY2: return channels == 2 ? 2 : 0;
	case CU_AD_FORMAT_Y210:
	case CU_AD_FORMAT_Y216: return channels == 2 ? 4 : 0;
	case CU_AD_FORMAT_AYUV:
	case CU_AD_FORMAT_Y410: return channels == 4 ? 4 : 0;
	case CU_AD_FORMAT_Y416: return channels == 4 ? 8 : 0;
	default: return 0;
	}
}

struct array_planes array_planes(CUarray_format format)
{
	const CUarray_format bytes = CU_AD_FORMAT_UNSIGNED_INT8,
			     words = CU_AD_FORMAT_UNSIGNED_INT16;
	const unsigned at =
		((unsigned)format - SEMIPLANAR_FIRST) % (PLANAR_FIRST - SEMIPLANAR_FIRST);

	if ((unsigned)format >= SEMIPLANAR_FIRST && (unsigned)format < PLANAR_END)
		return (struct array_planes){(unsigned)format < PLANAR_FIRST ? 2 : 3,
			at % 2 ? words : bytes, at / 2 < 2, at / 2 < 1};
	switch (format) {
	case CU_AD_FORMAT_NV12: return (struct array_planes){2, bytes, 1, 1};
	case CU_AD_FORMAT_P010:
	case CU_AD_FORMAT_P016: return (struct array_planes){2, words, 1, 1};
	case CU_AD_FORMAT_NV16: return (struct array_planes){2, bytes, 1, 0};
	case CU_AD_FORMAT_P210:
	case CU_AD_FORMAT_P216: return (struct array_planes){2, words, 1, 0};
	case CU_AD_FORMAT_Y444_PLANAR8: return (struct array_planes){3, bytes, 0, 0};
	case CU_AD_FORMAT_Y444_PLANAR10: return (struct array_planes){3, words, 0, 0};
	case CU_AD_FORMAT_YUV444_8bit_SemiPlanar: return (struct array_planes){2, bytes, 0, 0};
	case CU_AD_FORMAT_YUV444_16bit_SemiPlanar: return (struct array_planes){2, words, 0, 0};
	default: return (struct array_planes){0};
	}
}

size_t array_element(CUarray_format format, unsigned channels)
{
	unsigned fixed;
	size_t size;

	format = array_whole(format, &fixed);
	if (fixed && fixed != channels)
		return 0;
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8: size = 1; break;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF: size = 2; break;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT: size = 4; break;
	case CU_AD_FORMAT_UNORM_INT_101010_2: return channels == 4 ? 4 : 0;
	default: return array_packed(format, channels);
	}
	return channels == 1 || channels == 2 || channels == 4 ? size * channels : 0;
}

enum ptx_blocks array_blocks(CUarray_format format, unsigned *channels)
{
	*channels = 4;
	switch (format) {
	case CU_AD_FORMAT_BC1_UNORM:
	case CU_AD_FORMAT_BC1_UNORM_SRGB: return PTX_BC1;
	case CU_AD_FORMAT_BC2_UNORM:
	case CU_AD_FORMAT_BC2_UNORM_SRGB: return PTX_BC2;
	case CU_AD_FORMAT_BC3_UNORM:
	case CU_AD_FORMAT_BC3_UNORM_SRGB: return PTX_BC3;
	case CU_AD_FORMAT_BC7_UNORM:
	case CU_AD_FORMAT_BC7_UNORM_SRGB: return PTX_BC7;
	default: break;
	}
	*channels = 1;
	if (format == CU_AD_FORMAT_BC4_UNORM || format == CU_AD_FORMAT_BC4_SNORM)
		return format == CU_AD_FORMAT_BC4_UNORM ? PTX_BC4 : PTX_BC4_SIGNED;
	*channels = 2;
	if (format == CU_AD_FORMAT_BC5_UNORM || format == CU_AD_FORMAT_BC5_SNORM)
		return format == CU_AD_FORMAT_BC5_UNORM ? PTX_BC5 : PTX_BC5_SIGNED;
	*channels = 3;
	if (format == CU_AD_FORMAT_BC6H_UF16 || format == CU_AD_FORMAT_BC6H_SF16)
		return format == CU_AD_FORMAT_BC6H_UF16 ? PTX_BC6H : PTX_BC6H_SIGNED;
	return PTX_BLOCKS_NONE;
}
