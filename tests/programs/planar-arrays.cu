// SPDX-License-Identifier: Apache-2.0
/* Planar arrays: NV12, whose planes are arrays of their own, copied and read one by one; by the
 * driver and by the runtime. Those of other formats, and arrays whose colours are packed. */
#include "driver.h"

enum { WIDTH = 32, HEIGHT = 16 };

/* Two colours of a plane, as texels. */
__global__ void colours(cudaTextureObject_t t, int width, uchar2 *out)
{
	out[blockIdx.x * width + threadIdx.x] = tex2D<uchar2>(t, threadIdx.x, blockIdx.x);
}

static void put(CUarray plane, const unsigned char *bytes, int row, int rows)
{
	ENTRY(cuMemcpy2D);
	CUDA_MEMCPY2D copy = {};

	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = bytes;
	copy.srcPitch = copy.WidthInBytes = row;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = plane;
	copy.Height = rows;
	DRIVER(p_cuMemcpy2D(&copy));
}

static void plane_is(CUarray plane, const unsigned char *want, int row, int rows)
{
	ENTRY(cuMemcpy2D);
	unsigned char got[WIDTH * HEIGHT];
	CUDA_MEMCPY2D copy = {};

	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = plane;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = got;
	copy.dstPitch = copy.WidthInBytes = row;
	copy.Height = rows;
	DRIVER(p_cuMemcpy2D(&copy));
	for (int i = 0; i < row * rows; i++)
		CHECK_EQ_AT(i, got[i], want[i]);
}

static void described(CUarray plane, size_t width, size_t height, unsigned channels)
{
	ENTRY(cuArray3DGetDescriptor);
	CUDA_ARRAY3D_DESCRIPTOR desc;

	DRIVER(p_cuArray3DGetDescriptor(&desc, plane));
	CHECK_EQ(desc.Width, width);
	CHECK_EQ(desc.Height, height);
	CHECK_EQ(desc.Format, CU_AD_FORMAT_UNSIGNED_INT8);
	CHECK_EQ(desc.NumChannels, channels);
}

static void texture_of(CUarray plane, const unsigned char *want)
{
	const int width = WIDTH / 2, height = HEIGHT / 2;
	unsigned char got[WIDTH * HEIGHT / 2];
	struct cudaResourceDesc resource = {};
	struct cudaTextureDesc how = {};
	cudaTextureObject_t texture;
	uchar2 *out;

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = (cudaArray_t)plane;
	how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
	CUDA(cudaCreateTextureObject(&texture, &resource, &how, NULL));
	CUDA(cudaMalloc(&out, sizeof(got)));
	colours<<<height, width>>>(texture, width, out);
	LAUNCHED();
	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < sizeof(got); i++)
		CHECK_EQ_AT(i, got[i], want[i]);
	CUDA(cudaDestroyTextureObject(texture));
	CUDA(cudaFree(out));
}

static void by_the_runtime()
{
	struct cudaChannelFormatDesc desc = cudaCreateChannelDescNV12(), told;
	struct cudaExtent extent;
	cudaArray_t array, plane;
	unsigned flags;

	CUDA(cudaMallocArray(&array, &desc, WIDTH, HEIGHT, 0));
	CUDA(cudaArrayGetPlane(&plane, array, 1));
	CUDA(cudaArrayGetInfo(&told, &extent, &flags, plane));
	CHECK_EQ(told.f, cudaChannelFormatKindUnsigned);
	CHECK_EQ(told.x, 8);
	CHECK_EQ(told.y, 8);
	CHECK_EQ(told.z, 0);
	CHECK_EQ(extent.width, (size_t)WIDTH / 2);
	CHECK_EQ(extent.height, (size_t)HEIGHT / 2);
	CUDA(cudaFreeArray(array));
#if CUDART_VERSION >= 13000
	/* Of CUDA 13.5: three planes of words, 4:2:2; and what is none any more. */
	desc = cudaCreateChannelDesc(16, 16, 16, 0, (cudaChannelFormatKind)43);
	CUDA(cudaMallocArray(&array, &desc, WIDTH, HEIGHT, 0));
	CUDA(cudaArrayGetInfo(&told, NULL, NULL, array));
	CHECK(!memcmp(&told, &desc, sizeof(desc)));
	CUDA(cudaArrayGetPlane(&plane, array, 2));
	CUDA(cudaArrayGetInfo(&told, &extent, NULL, plane));
	CHECK_EQ(told.x, 16);
	CHECK_EQ(told.y, 0);
	CHECK_EQ(extent.width, (size_t)WIDTH / 2);
	CHECK_EQ(extent.height, (size_t)HEIGHT);
	CUDA(cudaFreeArray(array));
	desc.f = (cudaChannelFormatKind)46;
	CUDA_IS(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&array, &desc, WIDTH, HEIGHT, 0));
	(void)cudaGetLastError();
#endif
}

/* Not every device has them: an H200 refuses them as invalid. What else it refuses is said. */
static void create_or_skip(CUarray *array)
{
	static const unsigned flags[] = {
		0, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, CUDA_ARRAY3D_SURFACE_LDST};
	ENTRY(cuArray3DCreate);
	ENTRY(cuArrayDestroy);
	CUDA_ARRAY3D_DESCRIPTOR desc = {};
	CUresult status, others[3];

	desc.Width = WIDTH;
	desc.Height = HEIGHT;
	desc.Format = CU_AD_FORMAT_NV12;
	desc.NumChannels = 3;
	status = p_cuArray3DCreate(array, &desc);
	if (!status)
		return;
	desc.Width = desc.Height = 512;
	for (int i = 0; i < 3; i++) {
		desc.Flags = flags[i];
		others[i] = p_cuArray3DCreate(array, &desc);
		if (!others[i])
			DRIVER(p_cuArrayDestroy(*array));
	}
	if ((status != CUDA_ERROR_NOT_SUPPORTED && status != CUDA_ERROR_INVALID_VALUE) ||
		!others[0])
		FAIL("a planar array gave %d; larger ones %d, for video %d, for surfaces %d",
			status, others[0], others[1], others[2]);
	SKIP("this device has no planar arrays: %d; larger ones %d, for video %d, for "
	     "surfaces %d",
		status, others[0], others[1], others[2]);
}

/* ROWS of BYTES each, in and out again. */
static void copied(CUarray array, size_t bytes, size_t rows, unsigned first)
{
	ENTRY(cuMemcpy2D);
	static unsigned char in[8 * WIDTH * HEIGHT], out[8 * WIDTH * HEIGHT];
	CUDA_MEMCPY2D copy = {};

	for (size_t i = 0; i < bytes * rows; i++)
		in[i] = (unsigned char)(i * 7 + first);
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = in;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = copy.srcArray = array;
	copy.WidthInBytes = copy.srcPitch = copy.dstPitch = bytes;
	copy.Height = rows;
	DRIVER(p_cuMemcpy2D(&copy));
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = out;
	DRIVER(p_cuMemcpy2D(&copy));
	CHECK(!memcmp(in, out, bytes * rows));
	/* No longer ones. */
	copy.WidthInBytes = copy.dstPitch = bytes + 1;
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuMemcpy2D(&copy));
}

static void other_planes()
{
	ENTRY(cuArray3DCreate);
	ENTRY(cuArray3DGetDescriptor);
	ENTRY(cuArrayDestroy);
	ENTRY(cuArrayGetPlane);
	static const struct {
		CUarray_format format;
		unsigned planes, bytes, across, down;
	} forms[] = {
		{CU_AD_FORMAT_P010, 2, 2, 1, 1},
		{CU_AD_FORMAT_P016, 2, 2, 1, 1},
		{CU_AD_FORMAT_NV16, 2, 1, 1, 0},
		{CU_AD_FORMAT_P210, 2, 2, 1, 0},
		{CU_AD_FORMAT_P216, 2, 2, 1, 0},
		{CU_AD_FORMAT_Y444_PLANAR8, 3, 1, 0, 0},
		{CU_AD_FORMAT_Y444_PLANAR10, 3, 2, 0, 0},
		{CU_AD_FORMAT_YUV444_8bit_SemiPlanar, 2, 1, 0, 0},
		{CU_AD_FORMAT_YUV444_16bit_SemiPlanar, 2, 2, 0, 0},
		/* CUDA 13.5's */
		{(CUarray_format)0x53, 2, 1, 1, 1},
		{(CUarray_format)0x54, 2, 2, 1, 1},
		{(CUarray_format)0x55, 2, 1, 1, 0},
		{(CUarray_format)0x56, 2, 2, 1, 0},
		{(CUarray_format)0x57, 2, 1, 0, 0},
		{(CUarray_format)0x58, 2, 2, 0, 0},
		{(CUarray_format)0x59, 3, 1, 1, 1},
		{(CUarray_format)0x5a, 3, 2, 1, 1},
		{(CUarray_format)0x5b, 3, 1, 1, 0},
		{(CUarray_format)0x5c, 3, 2, 1, 0},
		{(CUarray_format)0x5d, 3, 1, 0, 0},
		{(CUarray_format)0x5e, 3, 2, 0, 0},
	};

	for (const auto &form : forms) {
		CUDA_ARRAY3D_DESCRIPTOR desc = {}, told;
		CUarray array, plane;

		desc.Width = WIDTH;
		desc.Height = HEIGHT;
		desc.Format = form.format;
		desc.NumChannels = 2;
		DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuArray3DCreate(&array, &desc));
		desc.NumChannels = 3;
		DRIVER(p_cuArray3DCreate(&array, &desc));
		for (unsigned k = 0; k < form.planes; k++) {
			const size_t width = k ? WIDTH >> form.across : WIDTH;
			const size_t height = k ? HEIGHT >> form.down : HEIGHT;
			const unsigned channels = k && form.planes == 2 ? 2 : 1;

			DRIVER(p_cuArrayGetPlane(&plane, array, k));
			DRIVER(p_cuArray3DGetDescriptor(&told, plane));
			CHECK_EQ(told.Width, width);
			CHECK_EQ(told.Height, height);
			CHECK_EQ(told.NumChannels, channels);
			CHECK(told.Format == (form.bytes == 1 ? CU_AD_FORMAT_UNSIGNED_INT8
							      : CU_AD_FORMAT_UNSIGNED_INT16));
			copied(plane, width * channels * form.bytes, height, form.format + k);
		}
		DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
			p_cuArrayGetPlane(&plane, array, form.planes));
		DRIVER(p_cuArrayDestroy(array));
	}
}

static void packed()
{
	ENTRY(cuArray3DCreate);
	ENTRY(cuArrayDestroy);
	ENTRY(cuArrayGetPlane);
	static const struct {
		CUarray_format format;
		unsigned channels, bytes;
	} forms[] = {
		{CU_AD_FORMAT_YUY2, 2, 2},
		{CU_AD_FORMAT_Y210, 2, 4},
		{CU_AD_FORMAT_Y216, 2, 4},
		{CU_AD_FORMAT_AYUV, 4, 4},
		{CU_AD_FORMAT_Y410, 4, 4},
		{CU_AD_FORMAT_Y416, 4, 8},
		{(CUarray_format)0x51, 4, 4}, /* CUDA 13.5's */
		{(CUarray_format)0x52, 4, 4},
	};

	for (const auto &form : forms) {
		CUDA_ARRAY3D_DESCRIPTOR desc = {};
		CUarray array, plane;

		desc.Width = WIDTH;
		desc.Height = HEIGHT;
		desc.Format = form.format;
		desc.NumChannels = 1;
		DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuArray3DCreate(&array, &desc));
		desc.NumChannels = form.channels;
		DRIVER(p_cuArray3DCreate(&array, &desc));
		copied(array, WIDTH * form.bytes, HEIGHT, form.format);
		DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuArrayGetPlane(&plane, array, 0));
		DRIVER(p_cuArrayDestroy(array));
	}
}

int main()
{
	ENTRY(cuArray3DCreate);
	ENTRY(cuArrayGetPlane);
	ENTRY(cuArrayDestroy);
	CUDA_ARRAY3D_DESCRIPTOR desc = {};
	unsigned char brightness[WIDTH * HEIGHT], colour[WIDTH * HEIGHT / 2];
	CUarray array, plain, plane[2], again;

	CUDA(cudaFree(NULL));
	create_or_skip(&array);
	DRIVER(p_cuArrayGetPlane(&plane[0], array, 0));
	DRIVER(p_cuArrayGetPlane(&plane[1], array, 1));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuArrayGetPlane(&again, array, 2));
	described(plane[0], WIDTH, HEIGHT, 1);
	described(plane[1], WIDTH / 2, HEIGHT / 2, 2);
	for (int i = 0; i < WIDTH * HEIGHT; i++)
		brightness[i] = (unsigned char)(i * 3);
	for (int i = 0; i < WIDTH * HEIGHT / 2; i++)
		colour[i] = (unsigned char)(255 - i);
	put(plane[0], brightness, WIDTH, HEIGHT);
	put(plane[1], colour, WIDTH, HEIGHT / 2);
	plane_is(plane[0], brightness, WIDTH, HEIGHT);
	plane_is(plane[1], colour, WIDTH, HEIGHT / 2);
	texture_of(plane[1], colour);
	DRIVER(p_cuArrayDestroy(array));

	/* Other arrays have no planes. */
	desc.Width = WIDTH;
	desc.Height = HEIGHT;
	desc.Format = CU_AD_FORMAT_UNSIGNED_INT8;
	desc.NumChannels = 1;
	DRIVER(p_cuArray3DCreate(&plain, &desc));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuArrayGetPlane(&again, plain, 0));
	DRIVER(p_cuArrayDestroy(plain));
	by_the_runtime();
	other_planes();
	packed();
	return 0;
}
