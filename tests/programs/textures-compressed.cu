// SPDX-License-Identifier: Apache-2.0
/*
 * Block-compressed textures, BC1 to BC5: views of arrays of 8 or 16 bytes an element, and arrays of
 * such formats, which are copied by their blocks. What lies between a block's ends a device may
 * round as it likes (an H200 is up to 0.05 off in an array of BC4_SNORM or BC5_SNORM). Where a
 * format has no alpha, an array of it reads 1 there, and a view 0.
 */
#include "driver.h"

#include <math.h>

enum { ACROSS = 5, DOWN = 3, BLOCKS = ACROSS * DOWN, WIDTH = 4 * ACROSS, HEIGHT = 4 * DOWN };

static const double CLOSE = 0.06;

__global__ void fetch(cudaTextureObject_t t, float4 *out)
{
	int x = threadIdx.x, y = blockIdx.x;

	out[y * blockDim.x + x] = tex2D<float4>(t, x + 0.5f, y + 0.5f);
}

struct form {
	const char *name;
	CUresourceViewFormat view;
	CUarray_format format;
	unsigned bytes, channels;
};

static const struct form forms[] = {
	{"BC1", CU_RES_VIEW_FORMAT_UNSIGNED_BC1, CU_AD_FORMAT_BC1_UNORM, 8, 4},
	{"BC2", CU_RES_VIEW_FORMAT_UNSIGNED_BC2, CU_AD_FORMAT_BC2_UNORM, 16, 4},
	{"BC3", CU_RES_VIEW_FORMAT_UNSIGNED_BC3, CU_AD_FORMAT_BC3_UNORM, 16, 4},
	{"BC4", CU_RES_VIEW_FORMAT_UNSIGNED_BC4, CU_AD_FORMAT_BC4_UNORM, 8, 1},
	{"BC4 signed", CU_RES_VIEW_FORMAT_SIGNED_BC4, CU_AD_FORMAT_BC4_SNORM, 8, 1},
	{"BC5", CU_RES_VIEW_FORMAT_UNSIGNED_BC5, CU_AD_FORMAT_BC5_UNORM, 16, 2},
	{"BC5 signed", CU_RES_VIEW_FORMAT_SIGNED_BC5, CU_AD_FORMAT_BC5_SNORM, 16, 2},
};

/* ---- the formats ---- */

static double channel(unsigned word, int shift, int bits)
{
	return (word >> shift & ((1u << bits) - 1)) / (double)((1u << bits) - 1);
}

/* The colour of texel AT. Two colours of 5, 6 and 5 bits and two bits for each texel. */
static void colour(const unsigned char *p, int at, bool four_always, double v[4])
{
	static const int shift[3] = {11, 5, 0}, bits[3] = {5, 6, 5};
	unsigned first = p[0] | p[1] << 8, second = p[2] | p[3] << 8;
	int place = p[4 + at / 4] >> 2 * (at % 4) & 3;
	bool four = four_always || first > second;

	v[3] = 1;
	for (int k = 0; k < 3; k++) {
		double a = channel(first, shift[k], bits[k]);
		double b = channel(second, shift[k], bits[k]);

		switch (place) {
		case 0: v[k] = a; break;
		case 1: v[k] = b; break;
		case 2: v[k] = four ? (2 * a + b) / 3 : (a + b) / 2; break;
		default: v[k] = four ? (a + 2 * b) / 3 : 0; break;
		}
	}
	if (!four && place == 3)
		v[3] = 0;
}

static double scale(unsigned char byte, bool is_signed)
{
	int value = is_signed ? (signed char)byte : byte;

	return is_signed ? fmax(value / 127.0, -1.0) : value / 255.0;
}

/* The value of texel AT: two ends and three bits for each texel. */
static double value(const unsigned char *p, int at, bool is_signed)
{
	double a = scale(p[0], is_signed), b = scale(p[1], is_signed);
	bool eight = is_signed ? (signed char)p[0] > (signed char)p[1] : p[0] > p[1];
	unsigned long long bits = 0;
	int place;

	memcpy(&bits, p + 2, 6);
	place = bits >> 3 * at & 7;
	if (place < 2)
		return place ? b : a;
	if (eight)
		return ((8 - place) * a + (place - 1) * b) / 7;
	if (place > 5)
		return place == 7 ? 1 : is_signed ? -1 : 0;
	return ((6 - place) * a + (place - 1) * b) / 5;
}

static void texel(
	const struct form *form, const unsigned char *p, int at, bool of_view, double v[4])
{
	bool is_signed = form->view == CU_RES_VIEW_FORMAT_SIGNED_BC4 ||
			 form->view == CU_RES_VIEW_FORMAT_SIGNED_BC5;

	v[1] = v[2] = 0;
	v[3] = !of_view;
	if (form->channels == 4)
		colour(p + form->bytes - 8, at, form->bytes > 8, v);
	if (form->view == CU_RES_VIEW_FORMAT_UNSIGNED_BC2)
		v[3] = (p[at / 2] >> 4 * (at % 2) & 15) / 15.0;
	if (form->view == CU_RES_VIEW_FORMAT_UNSIGNED_BC3)
		v[3] = value(p, at, false);
	if (form->channels < 4)
		v[0] = value(p, at, is_signed);
	if (form->channels == 2)
		v[1] = value(p + 8, at, is_signed);
}

/* ---- what is read ---- */

static unsigned char blocks[BLOCKS * 16];

/* Any bytes are a block; each kind of ends is among them, and those of signed values are no -128,
 * which is -127 too. */
static void make_blocks()
{
	unsigned seed = 12345;

	for (unsigned char &byte : blocks) {
		seed = seed * 1103515245 + 12345;
		byte = seed >> 16;
		if (byte == 0x80)
			byte = 0x81;
	}
}

static void copy(CUarray array, void *host, const struct form *form, bool out)
{
	ENTRY(cuMemcpy2D);
	CUDA_MEMCPY2D copy = {};

	copy.srcMemoryType = out ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
	copy.dstMemoryType = out ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
	copy.srcArray = copy.dstArray = array;
	copy.srcHost = copy.dstHost = host;
	copy.srcPitch = copy.dstPitch = copy.WidthInBytes = ACROSS * form->bytes;
	copy.Height = DOWN;
	DRIVER(p_cuMemcpy2D(&copy));
}

static void read(const struct form *form, CUarray array, const CUDA_RESOURCE_VIEW_DESC *view)
{
	ENTRY(cuTexObjectCreate);
	ENTRY(cuTexObjectDestroy);
	static float4 host[WIDTH * HEIGHT];
	CUDA_RESOURCE_DESC resource = {};
	CUDA_TEXTURE_DESC how = {};
	CUtexObject texture;
	float4 *device;

	resource.resType = CU_RESOURCE_TYPE_ARRAY;
	resource.res.array.hArray = array;
	for (int i = 0; i < 3; i++)
		how.addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
	DRIVER(p_cuTexObjectCreate(&texture, &resource, &how, view));
	CUDA(cudaMalloc(&device, sizeof(host)));
	fetch<<<HEIGHT, WIDTH>>>(texture, device);
	LAUNCHED();
	CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < WIDTH * HEIGHT; i++) {
		int x = i % WIDTH, y = i / WIDTH;
		const unsigned char *p = blocks + (y / 4 * ACROSS + x / 4) * form->bytes;
		const float got[4] = {host[i].x, host[i].y, host[i].z, host[i].w};
		double want[4];

		texel(form, p, y % 4 * 4 + x % 4, view, want);
		for (int k = 0; k < 4; k++)
			if (fabs(got[k] - want[k]) > CLOSE) {
				printf("%s at (%d, %d), channel %d: %f, not %f\n", form->name, x, y,
					k, got[k], want[k]);
				exit(1);
			}
	}
	DRIVER(p_cuTexObjectDestroy(texture));
	CUDA(cudaFree(device));
}

static CUarray create(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	ENTRY(cuArray3DCreate);
	CUarray array;

	DRIVER(p_cuArray3DCreate(&array, desc));
	return array;
}

/* Elements as large as a block, seen as texels. */
static void viewed(const struct form *form)
{
	ENTRY(cuArrayDestroy);
	ENTRY(cuTexObjectCreate);
	CUDA_ARRAY3D_DESCRIPTOR desc = {};
	CUDA_RESOURCE_VIEW_DESC view = {};
	CUarray array;

	desc.Width = ACROSS;
	desc.Height = DOWN;
	desc.Format = CU_AD_FORMAT_UNSIGNED_INT32;
	desc.NumChannels = form->bytes / 4;
	array = create(&desc);
	copy(array, blocks, form, false);
	view.format = form->view;
	view.width = WIDTH;
	view.height = HEIGHT;
	read(form, array, &view);
	DRIVER(p_cuArrayDestroy(array));
}

static void of_the_format(const struct form *form)
{
	ENTRY(cuArrayDestroy);
	ENTRY(cuArray3DGetDescriptor);
	static unsigned char again[sizeof(blocks)];
	CUDA_ARRAY3D_DESCRIPTOR desc = {}, told;
	CUarray array;

	desc.Width = WIDTH;
	desc.Height = HEIGHT;
	desc.Format = form->format;
	desc.NumChannels = form->channels;
	array = create(&desc);
	DRIVER(p_cuArray3DGetDescriptor(&told, array));
	CHECK_EQ(told.Width, (size_t)WIDTH);
	CHECK_EQ(told.Height, (size_t)HEIGHT);
	CHECK(told.Format == form->format);
	CHECK_EQ(told.NumChannels, form->channels);
	copy(array, blocks, form, false);
	copy(array, again, form, true);
	CHECK(!memcmp(again, blocks, BLOCKS * form->bytes));
	read(form, array, NULL);
	DRIVER(p_cuArrayDestroy(array));
}

int main()
{
	CUDA(cudaFree(NULL));
	make_blocks();
	for (const struct form &form : forms) {
		viewed(&form);
		of_the_format(&form);
	}
	printf("blocks are right\n");
	return 0;
}
