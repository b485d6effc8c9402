// SPDX-License-Identifier: Apache-2.0
/* References to textures and surfaces: variables of a PTX module (nvcc has had no words for
 * them since CUDA 12, and PTX and the driver have), bound to arrays, mipmapped arrays and
 * memory between launches, with each setting told as it was set. */
#include "driver.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum { WIDTH = 16, HEIGHT = 4, LEVELS = 2 };

static const char module_text[] = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .global .texref image;
.visible .global .texref line;
.visible .global .surfref plane;
.visible .global .u32 number;

.visible .entry fetch(.param .u64 out, .param .f32 level)
{
	.reg .b32 %r<5>;
	.reg .f32 %f<8>;
	.reg .b64 %rd<3>;

	ld.param.u64 %rd1, [out];
	ld.param.f32 %f7, [level];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	cvt.rn.f32.u32 %f1, %r1;
	cvt.rn.f32.u32 %f2, %r2;
	tex.level.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [image, {%f1, %f2}], %f7;
	mad.lo.u32 %r4, %r2, %r3, %r1;
	mul.wide.u32 %rd2, %r4, 4;
	add.u64 %rd1, %rd1, %rd2;
	st.global.f32 [%rd1], %f3;
	ret;
}

.visible .entry scaled(.param .u64 out, .param .f32 x, .param .f32 y, .param .f32 level)
{
	.reg .f32 %f<8>;
	.reg .b64 %rd<2>;

	ld.param.u64 %rd1, [out];
	ld.param.f32 %f1, [x];
	ld.param.f32 %f2, [y];
	ld.param.f32 %f7, [level];
	tex.level.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [image, {%f1, %f2}], %f7;
	st.global.f32 [%rd1], %f3;
	ret;
}

.visible .entry read(.param .u64 out)
{
	.reg .b32 %r<6>;
	.reg .b64 %rd<3>;

	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %tid.x;
	tex.1d.v4.s32.s32 {%r2, %r3, %r4, %r5}, [line, {%r1}];
	mul.wide.u32 %rd2, %r1, 4;
	add.u64 %rd1, %rd1, %rd2;
	st.global.u32 [%rd1], %r2;
	ret;
}

.visible .entry add_seven()
{
	.reg .b32 %r<5>;

	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ctaid.x;
	shl.b32 %r3, %r1, 2;
	suld.b.2d.b32.trap {%r4}, [plane, {%r3, %r2}];
	add.u32 %r4, %r4, 7;
	sust.b.2d.b32.trap [plane, {%r3, %r2}], {%r4};
	ret;
}
)";

static CUfunction kernel(CUmodule module, const char *name)
{
	ENTRY(cuModuleGetFunction);
	CUfunction function;

	DRIVER(p_cuModuleGetFunction(&function, module, name));
	return function;
}

static void launch(CUfunction function, int blocks, int threads, void **parameters)
{
	ENTRY(cuLaunchKernel);
	DRIVER(p_cuLaunchKernel(
		function, blocks, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL));
}

static CUarray array_of(const float *values, unsigned flags, CUarray_format format)
{
	ENTRY(cuArray3DCreate);
	ENTRY(cuMemcpy2D);
	CUDA_ARRAY3D_DESCRIPTOR desc = {};
	CUDA_MEMCPY2D copy = {};
	CUarray array;

	desc.Width = WIDTH;
	desc.Height = HEIGHT;
	desc.Format = format;
	desc.NumChannels = 1;
	desc.Flags = flags;
	DRIVER(p_cuArray3DCreate(&array, &desc));
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = values;
	copy.srcPitch = copy.WidthInBytes = WIDTH * 4;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = array;
	copy.Height = HEIGHT;
	DRIVER(p_cuMemcpy2D(&copy));
	return array;
}

/* What FETCH reads of IMAGE at whole numbers. */
static void image_is(CUmodule module, CUdeviceptr out, const float *want, float add)
{
	float got[WIDTH * HEIGHT], level = 0;
	void *parameters[] = {&out, &level};

	launch(kernel(module, "fetch"), HEIGHT, WIDTH, parameters);
	CUDA(cudaMemcpy(got, (void *)out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < WIDTH * HEIGHT; i++)
		CHECK_EQ_AT(i, got[i], want[i] + add);
}

static float scaled(CUmodule module, CUdeviceptr out, float x, float y, float level)
{
	void *parameters[] = {&out, &x, &y, &level};
	float got;

	launch(kernel(module, "scaled"), 1, 1, parameters);
	CUDA(cudaMemcpy(&got, (void *)out, sizeof(got), cudaMemcpyDeviceToHost));
	return got;
}

/* Every setting that does not bind, told as it was set. */
static void settings(CUtexref ref)
{
	ENTRY(cuTexRefSetFormat);
	ENTRY(cuTexRefGetFormat);
	ENTRY(cuTexRefSetAddressMode);
	ENTRY(cuTexRefGetAddressMode);
	ENTRY(cuTexRefSetFilterMode);
	ENTRY(cuTexRefGetFilterMode);
	ENTRY(cuTexRefSetMipmapFilterMode);
	ENTRY(cuTexRefGetMipmapFilterMode);
	ENTRY(cuTexRefSetMipmapLevelBias);
	ENTRY(cuTexRefGetMipmapLevelBias);
	ENTRY(cuTexRefSetMipmapLevelClamp);
	ENTRY(cuTexRefGetMipmapLevelClamp);
	ENTRY(cuTexRefSetMaxAnisotropy);
	ENTRY(cuTexRefGetMaxAnisotropy);
	ENTRY(cuTexRefSetBorderColor);
	ENTRY(cuTexRefGetBorderColor);
	ENTRY(cuTexRefSetFlags);
	ENTRY(cuTexRefGetFlags);
	float border[4] = {1, 2, 3, 4}, told[4] = {}, least = -1, most = -1, bias = -1;
	CUarray_format format;
	CUaddress_mode mode;
	CUfilter_mode filter;
	unsigned flags;
	int channels, number;

	DRIVER(p_cuTexRefSetFormat(ref, CU_AD_FORMAT_FLOAT, 1));
	DRIVER(p_cuTexRefGetFormat(&format, &channels, ref));
	CHECK_EQ(format, CU_AD_FORMAT_FLOAT);
	CHECK_EQ(channels, 1);
	for (int dim = 0; dim < 2; dim++) {
		DRIVER(p_cuTexRefSetAddressMode(ref, dim, CU_TR_ADDRESS_MODE_CLAMP));
		DRIVER(p_cuTexRefGetAddressMode(&mode, ref, dim));
		CHECK_EQ(mode, CU_TR_ADDRESS_MODE_CLAMP);
	}
	DRIVER(p_cuTexRefSetFilterMode(ref, CU_TR_FILTER_MODE_POINT));
	DRIVER(p_cuTexRefGetFilterMode(&filter, ref));
	CHECK_EQ(filter, CU_TR_FILTER_MODE_POINT);
	DRIVER(p_cuTexRefSetMipmapFilterMode(ref, CU_TR_FILTER_MODE_LINEAR));
	DRIVER(p_cuTexRefGetMipmapFilterMode(&filter, ref));
	CHECK_EQ(filter, CU_TR_FILTER_MODE_LINEAR);
	DRIVER(p_cuTexRefSetMipmapLevelBias(ref, 0.5f));
	DRIVER(p_cuTexRefGetMipmapLevelBias(&bias, ref));
	CHECK_EQ(bias, 0.5f);
	DRIVER(p_cuTexRefSetMipmapLevelBias(ref, 0));
	DRIVER(p_cuTexRefSetMipmapLevelClamp(ref, 0, LEVELS - 1));
	DRIVER(p_cuTexRefGetMipmapLevelClamp(&least, &most, ref));
	CHECK_EQ(least, 0.0f);
	CHECK_EQ(most, (float)(LEVELS - 1));
	DRIVER(p_cuTexRefSetMaxAnisotropy(ref, 2));
	DRIVER(p_cuTexRefGetMaxAnisotropy(&number, ref));
	CHECK_EQ(number, 2);
	DRIVER(p_cuTexRefSetBorderColor(ref, border));
	DRIVER(p_cuTexRefGetBorderColor(told, ref));
	for (int i = 0; i < 4; i++)
		CHECK_EQ_AT(i, told[i], border[i]);
	DRIVER(p_cuTexRefSetFlags(ref, CU_TRSF_NORMALIZED_COORDINATES));
	DRIVER(p_cuTexRefGetFlags(&flags, ref));
	CHECK_EQ(flags, CU_TRSF_NORMALIZED_COORDINATES);
	DRIVER(p_cuTexRefSetFlags(ref, 0));
}

static void arrays(CUmodule module, CUtexref ref, const float *values, CUdeviceptr out)
{
	ENTRY(cuTexRefSetArray);
	ENTRY(cuTexRefGetArray);
	ENTRY(cuTexRefGetMipmappedArray);
	ENTRY(cuTexRefSetFilterMode);
	ENTRY(cuTexRefSetFlags);
	ENTRY(cuArrayDestroy);
	ENTRY(cuParamSetTexRef);
	float more[WIDTH * HEIGHT];
	CUarray first, second, told = NULL;
	CUmipmappedArray none;

	for (int i = 0; i < WIDTH * HEIGHT; i++)
		more[i] = values[i] + 100;
	first = array_of(values, 0, CU_AD_FORMAT_FLOAT);
	second = array_of(more, 0, CU_AD_FORMAT_FLOAT);
	DRIVER(p_cuTexRefSetArray(ref, first, CU_TRSA_OVERRIDE_FORMAT));
	DRIVER(p_cuTexRefGetArray(&told, ref));
	CHECK(told == first);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuTexRefGetMipmappedArray(&none, ref));
	DRIVER(p_cuParamSetTexRef(kernel(module, "fetch"), CU_PARAM_TR_DEFAULT, ref));
	image_is(module, out, values, 0);
	/* Another array for the launches from now on. */
	DRIVER(p_cuTexRefSetArray(ref, second, CU_TRSA_OVERRIDE_FORMAT));
	image_is(module, out, values, 100);
	/* Halfway between four texels; then the same place as a share of the whole. */
	DRIVER(p_cuTexRefSetFilterMode(ref, CU_TR_FILTER_MODE_LINEAR));
	CHECK_EQ(scaled(module, out, 4, 2, 0),
		(more[1 * WIDTH + 3] + more[1 * WIDTH + 4] + more[2 * WIDTH + 3] +
			more[2 * WIDTH + 4]) /
			4);
	DRIVER(p_cuTexRefSetFlags(ref, CU_TRSF_NORMALIZED_COORDINATES));
	CHECK_EQ(scaled(module, out, 0.25f, 0.5f, 0),
		(more[1 * WIDTH + 3] + more[1 * WIDTH + 4] + more[2 * WIDTH + 3] +
			more[2 * WIDTH + 4]) /
			4);
	DRIVER(p_cuTexRefSetFilterMode(ref, CU_TR_FILTER_MODE_POINT));
	DRIVER(p_cuTexRefSetFlags(ref, 0));
	DRIVER(p_cuArrayDestroy(first));
	DRIVER(p_cuArrayDestroy(second));
}

static void mipmapped(CUmodule module, CUtexref ref, CUdeviceptr out)
{
	ENTRY(cuMipmappedArrayCreate);
	ENTRY(cuMipmappedArrayGetLevel);
	ENTRY(cuMipmappedArrayDestroy);
	ENTRY(cuMemcpyHtoA);
	ENTRY(cuTexRefSetMipmappedArray);
	ENTRY(cuTexRefGetMipmappedArray);
	ENTRY(cuTexRefGetArray);
	ENTRY(cuTexRefSetFlags);
	CUDA_ARRAY3D_DESCRIPTOR desc = {};
	const float values[LEVELS] = {8, 16};
	CUmipmappedArray array, told = NULL;
	CUarray level, none;
	float row[4];

	desc.Width = desc.Height = 4;
	desc.Format = CU_AD_FORMAT_FLOAT;
	desc.NumChannels = 1;
	DRIVER(p_cuMipmappedArrayCreate(&array, &desc, LEVELS));
	for (int k = 0; k < LEVELS; k++) {
		DRIVER(p_cuMipmappedArrayGetLevel(&level, array, k));
		for (int i = 0; i < 4; i++)
			row[i] = values[k];
		for (int y = 0; y < 4 >> k; y++) {
			ENTRY(cuMemcpy2D);
			CUDA_MEMCPY2D copy = {};

			copy.srcMemoryType = CU_MEMORYTYPE_HOST;
			copy.srcHost = row;
			copy.srcPitch = copy.WidthInBytes = (4 >> k) * sizeof(float);
			copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
			copy.dstArray = level;
			copy.dstY = y;
			copy.Height = 1;
			DRIVER(p_cuMemcpy2D(&copy));
		}
	}
	DRIVER(p_cuTexRefSetFlags(ref, CU_TRSF_NORMALIZED_COORDINATES));
	DRIVER(p_cuTexRefSetMipmappedArray(ref, array, CU_TRSA_OVERRIDE_FORMAT));
	DRIVER(p_cuTexRefGetMipmappedArray(&told, ref));
	CHECK(told == array);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuTexRefGetArray(&none, ref));
	CHECK_EQ(scaled(module, out, 0.5f, 0.5f, 0), 8.0f);
	CHECK_EQ(scaled(module, out, 0.5f, 0.5f, 1), 16.0f);
	/* Halfway between two levels: their shares are 256ths, and an H200 takes 129. */
	CHECK(fabsf(scaled(module, out, 0.5f, 0.5f, 0.5f) - 12.0f) <= 8.0f / 256);
	DRIVER(p_cuTexRefSetFlags(ref, 0));
	DRIVER(p_cuMipmappedArrayDestroy(array));
}

/* Linear memory, and rows of a pitch. */
static void memory(CUmodule module, CUtexref image, const float *values, CUdeviceptr out)
{
	ENTRY(cuModuleGetTexRef);
	ENTRY(cuTexRefSetAddress);
	ENTRY(cuTexRefSetAddress2D);
	ENTRY(cuTexRefGetAddress);
	ENTRY(cuTexRefGetArray);
	ENTRY(cuTexRefSetFormat);
	ENTRY(cuTexRefSetFlags);
	ENTRY(cuMemAllocPitch);
	ENTRY(cuMemAlloc);
	ENTRY(cuMemFree);
	CUDA_ARRAY_DESCRIPTOR desc = {};
	CUdeviceptr flat, rows, told;
	int numbers[WIDTH], got[WIDTH];
	void *parameters[] = {&out};
	size_t offset = 1, pitch;
	CUtexref line;
	CUarray none;

	DRIVER(p_cuModuleGetTexRef(&line, module, "line"));
	for (int i = 0; i < WIDTH; i++)
		numbers[i] = 1000 - 3 * i;
	DRIVER(p_cuMemAlloc(&flat, sizeof(numbers)));
	CUDA(cudaMemcpy((void *)flat, numbers, sizeof(numbers), cudaMemcpyHostToDevice));
	DRIVER(p_cuTexRefSetFormat(line, CU_AD_FORMAT_SIGNED_INT32, 1));
	DRIVER(p_cuTexRefSetFlags(line, CU_TRSF_READ_AS_INTEGER));
	DRIVER(p_cuTexRefSetAddress(&offset, line, flat, sizeof(numbers)));
	CHECK_EQ(offset, (size_t)0); /* as of all that cuMemAlloc gives */
	DRIVER(p_cuTexRefGetAddress(&told, line));
	CHECK(told == flat);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuTexRefGetArray(&none, line));
	launch(kernel(module, "read"), 1, WIDTH, parameters);
	CUDA(cudaMemcpy(got, (void *)out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < WIDTH; i++)
		CHECK_EQ_AT(i, got[i], numbers[i]);

	DRIVER(p_cuMemAllocPitch(&rows, &pitch, WIDTH * sizeof(float), HEIGHT, 4));
	CUDA(cudaMemcpy2D((void *)rows, pitch, values, WIDTH * sizeof(float),
		WIDTH * sizeof(float), HEIGHT, cudaMemcpyHostToDevice));
	desc.Width = WIDTH;
	desc.Height = HEIGHT;
	desc.Format = CU_AD_FORMAT_FLOAT;
	desc.NumChannels = 1;
	DRIVER(p_cuTexRefSetAddress2D(image, &desc, rows, pitch));
	DRIVER(p_cuTexRefGetAddress(&told, image));
	CHECK(told == rows);
	image_is(module, out, values, 0);
	DRIVER(p_cuMemFree(flat));
	DRIVER(p_cuMemFree(rows));
}

static void surfaces(CUmodule module)
{
	ENTRY(cuModuleGetSurfRef);
	ENTRY(cuSurfRefSetArray);
	ENTRY(cuSurfRefGetArray);
	ENTRY(cuArrayDestroy);
	ENTRY(cuMemcpy2D);
	uint32_t values[WIDTH * HEIGHT], got[WIDTH * HEIGHT];
	CUDA_MEMCPY2D copy = {};
	CUsurfref plane, again;
	CUarray array, told = NULL;

	for (uint32_t i = 0; i < WIDTH * HEIGHT; i++)
		values[i] = i * 5;
	array = array_of(
		(const float *)values, CUDA_ARRAY3D_SURFACE_LDST, CU_AD_FORMAT_UNSIGNED_INT32);
	DRIVER(p_cuModuleGetSurfRef(&plane, module, "plane"));
	DRIVER(p_cuModuleGetSurfRef(&again, module, "plane"));
	CHECK(again == plane);
	DRIVER_IS(CUDA_ERROR_NOT_FOUND,
		p_cuModuleGetSurfRef(&again, module, "image_that_is_not"));
	DRIVER(p_cuSurfRefSetArray(plane, array, 0));
	DRIVER(p_cuSurfRefGetArray(&told, plane));
	CHECK(told == array);
	launch(kernel(module, "add_seven"), HEIGHT, WIDTH, NULL);
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = array;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = got;
	copy.dstPitch = copy.WidthInBytes = WIDTH * 4;
	copy.Height = HEIGHT;
	DRIVER(p_cuMemcpy2D(&copy));
	for (int i = 0; i < WIDTH * HEIGHT; i++)
		CHECK_EQ_AT(i, got[i], values[i] + 7);
	DRIVER(p_cuArrayDestroy(array));
}

int main()
{
	ENTRY(cuModuleLoadData);
	ENTRY(cuModuleUnload);
	ENTRY(cuModuleGetTexRef);
	ENTRY(cuTexRefCreate);
	ENTRY(cuTexRefDestroy);
	ENTRY(cuMemAlloc);
	ENTRY(cuMemFree);
	float values[WIDTH * HEIGHT];
	CUtexref image, again, own;
	CUdeviceptr out;
	CUmodule module;

	for (int i = 0; i < WIDTH * HEIGHT; i++)
		values[i] = (float)(i * 4);
	CUDA(cudaFree(NULL));
	DRIVER(p_cuModuleLoadData(&module, module_text));
	DRIVER(p_cuMemAlloc(&out, sizeof(values)));
	DRIVER(p_cuModuleGetTexRef(&image, module, "image"));
	DRIVER(p_cuModuleGetTexRef(&again, module, "image"));
	CHECK(again == image);
	DRIVER_IS(
		CUDA_ERROR_NOT_FOUND, p_cuModuleGetTexRef(&again, module, "image_that_is_not"));
	settings(image);
	arrays(module, image, values, out);
	mipmapped(module, image, out);
	memory(module, image, values, out);
	surfaces(module);
	DRIVER(p_cuTexRefCreate(&own));
	settings(own);
	DRIVER(p_cuTexRefDestroy(own));
	DRIVER(p_cuMemFree(out));
	DRIVER(p_cuModuleUnload(module));
	return 0;
}
