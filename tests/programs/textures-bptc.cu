// SPDX-License-Identifier: Apache-2.0
/*
 * Block-compressed textures of BC6H and BC7, in every mode that a block may have: as arrays of
 * such formats, and as views of arrays of 16 bytes an element. The formats allow one result for
 * each texel only: of 256 blocks a mode, what is read is a sum that another decoder gave for the
 * same blocks; and blocks of two colours are what was put into them.
 */
#include "driver.h"

#include <math.h>
#include <stdint.h>

enum { ACROSS = 16, DOWN = 16, BLOCKS = ACROSS * DOWN, WIDTH = 4 * ACROSS, HEIGHT = 4 * DOWN };
enum { BLOCK_BYTES = 16 };

__global__ void fetch(cudaTextureObject_t t, float4 *out)
{
	int x = threadIdx.x, y = blockIdx.x;

	out[y * blockDim.x + x] = tex2D<float4>(t, x + 0.5f, y + 0.5f);
}

static unsigned char blocks[BLOCKS * BLOCK_BYTES];
static float4 texels[WIDTH * HEIGHT];

struct form {
	const char *name;
	CUresourceViewFormat view;
	CUarray_format format;
	unsigned channels;
};
static const form bc6h = {"BC6H", CU_RES_VIEW_FORMAT_UNSIGNED_BC6H, CU_AD_FORMAT_BC6H_UF16, 3};
static const form bc6h_signed = {
	"BC6H signed", CU_RES_VIEW_FORMAT_SIGNED_BC6H, CU_AD_FORMAT_BC6H_SF16, 3};
static const form bc7 = {"BC7", CU_RES_VIEW_FORMAT_UNSIGNED_BC7, CU_AD_FORMAT_BC7_UNORM, 4};
static const form bc7_srgb = {
	"BC7 sRGB", CU_RES_VIEW_FORMAT_NONE, CU_AD_FORMAT_BC7_UNORM_SRGB, 4};

/* ---- what is read ---- */

static void copy_in(CUarray array)
{
	ENTRY(cuMemcpy2D);
	CUDA_MEMCPY2D copy = {};

	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = blocks;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = array;
	copy.srcPitch = copy.WidthInBytes = ACROSS * BLOCK_BYTES;
	copy.Height = DOWN;
	DRIVER(p_cuMemcpy2D(&copy));
}

/* An array of the format, or (OF_VIEW) one of as large elements seen as blocks. */
static void read_texels(const form &form, bool of_view)
{
	ENTRY(cuArray3DCreate);
	ENTRY(cuArrayDestroy);
	ENTRY(cuTexObjectCreate);
	ENTRY(cuTexObjectDestroy);
	CUDA_ARRAY3D_DESCRIPTOR desc = {};
	CUDA_RESOURCE_VIEW_DESC view = {};
	CUDA_RESOURCE_DESC resource = {};
	CUDA_TEXTURE_DESC how = {};
	CUtexObject texture;
	CUarray array;
	float4 *device;

	desc.Width = of_view ? ACROSS : WIDTH;
	desc.Height = of_view ? DOWN : HEIGHT;
	desc.Format = of_view ? CU_AD_FORMAT_UNSIGNED_INT32 : form.format;
	desc.NumChannels = of_view ? 4 : form.channels;
	DRIVER(p_cuArray3DCreate(&array, &desc));
	copy_in(array);
	view.format = form.view;
	view.width = WIDTH;
	view.height = HEIGHT;
	resource.resType = CU_RESOURCE_TYPE_ARRAY;
	resource.res.array.hArray = array;
	for (int i = 0; i < 3; i++)
		how.addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
	DRIVER(p_cuTexObjectCreate(&texture, &resource, &how, of_view ? &view : NULL));
	CUDA(cudaMalloc(&device, sizeof(texels)));
	fetch<<<HEIGHT, WIDTH>>>(texture, device);
	LAUNCHED();
	CUDA(cudaMemcpy(texels, device, sizeof(texels), cudaMemcpyDeviceToHost));
	CUDA(cudaFree(device));
	DRIVER(p_cuTexObjectDestroy(texture));
	DRIVER(p_cuArrayDestroy(array));
}

/* ---- blocks of every mode ---- */

static void make_blocks(unsigned mode, unsigned bits)
{
	unsigned seed = 12345 + mode;

	for (unsigned char &byte : blocks) {
		seed = seed * 1103515245 + 12345;
		byte = seed >> 16;
	}
	for (int i = 0; i < BLOCKS; i++) {
		unsigned char &low = blocks[i * BLOCK_BYTES];

		low = low & ~((1u << bits) - 1) | mode;
	}
}

static void add(uint32_t &sum, unsigned value)
{
	sum = (sum ^ (value & 255)) * 16777619u;
	sum = (sum ^ value >> 8) * 16777619u;
}

/* A float that is a half, in its bits; both zeroes are one. */
static unsigned half_bits(float f)
{
	uint32_t bits;
	int exponent;

	if (f == 0)
		return 0;
	memcpy(&bits, &f, sizeof(bits));
	exponent = (int)(bits >> 23 & 255) - 112;
	if (exponent > 0)
		return bits >> 16 & 0x8000 | exponent << 10 | bits >> 13 & 1023;
	return bits >> 16 & 0x8000 | (bits & 0x7fffff | 0x800000) >> (14 - exponent);
}

static uint32_t sum_halves()
{
	uint32_t sum = 2166136261u;

	for (const float4 &t : texels) {
		add(sum, half_bits(t.x));
		add(sum, half_bits(t.y));
		add(sum, half_bits(t.z));
	}
	return sum;
}

static uint32_t sum_bytes()
{
	uint32_t sum = 2166136261u;

	for (const float4 &t : texels) {
		const float v[4] = {t.x, t.y, t.z, t.w};

		for (float f : v) {
			CHECK(fabs(f * 255 - rint(f * 255)) < 0.01);
			add(sum, (unsigned)rint(f * 255));
		}
	}
	return sum;
}

static void check(const form &form, unsigned mode, uint32_t want, uint32_t (*sum)())
{
	for (int of_view = 0; of_view < 2; of_view++) {
		read_texels(form, of_view);
		if (sum() != want)
			FAIL("%s, mode %u, %s: %08x, not %08x", form.name, mode,
				of_view ? "a view" : "an array", sum(), want);
	}
}

static void every_mode()
{
	static const struct {
		unsigned mode, bits;
		uint32_t sum, sum_signed;
	} halves[] = {
		{0, 2, 0x5e10a841, 0x1f637748},
		{1, 2, 0xd84ee997, 0x9f9133fc},
		{2, 5, 0x27395859, 0x25938580},
		{6, 5, 0x0b81728d, 0x4e2d286c},
		{10, 5, 0xd6853f68, 0xceb4172d},
		{14, 5, 0x64c682ce, 0x993133cb},
		{18, 5, 0x1f5b174f, 0x995383fe},
		{22, 5, 0x42e90ade, 0x221767dd},
		{26, 5, 0x05272bf7, 0x9da3a694},
		{30, 5, 0xb3baea38, 0x720a30a9},
		{3, 5, 0x204c2ae9, 0x1732dc18},
		{7, 5, 0x4e67338e, 0x23d70fb1},
		{11, 5, 0x1071d297, 0xbeb90c40},
		{15, 5, 0xcfcc3741, 0x6de12fdb},
	};
	static const uint32_t bytes[] = {0xeba60e69, 0x89c414f0, 0x74d3c197, 0x45838f0d, 0x430e9817, 0x02d864a3, 0x6a87c238, 0x28a92e90};

	for (const auto &mode : halves) {
		make_blocks(mode.mode, mode.bits);
		check(bc6h, mode.mode, mode.sum, sum_halves);
		check(bc6h_signed, mode.mode, mode.sum_signed, sum_halves);
	}
	for (unsigned mode = 0; mode < 8; mode++) {
		make_blocks(1 << mode, mode + 1);
		check(bc7, mode, bytes[mode], sum_bytes);
	}
}

/* ---- blocks of known colours ---- */

static void put(unsigned char *block, unsigned &at, unsigned value, unsigned bits)
{
	for (unsigned k = 0; k < bits; k++, at++)
		block[at / 8] |= (value >> k & 1) << at % 8;
}

/* BC7's mode 6: two ends of 8 bits, the lowest one shared by an end's channels, and 16 places
 * between them. The first texel is one end, the last one the other. */
static void known_bytes()
{
	static const unsigned ends[2][4] = {{10, 20, 254, 128}, {201, 101, 1, 255}};
	unsigned at = 0;

	memset(blocks, 0, sizeof(blocks));
	put(blocks, at, 1 << 6, 7);
	for (int c = 0; c < 4; c++)
		for (int e = 0; e < 2; e++)
			put(blocks, at, ends[e][c] >> 1, 7);
	put(blocks, at, ends[0][0] & 1, 1);
	put(blocks, at, ends[1][0] & 1, 1);
	for (int k = 0; k < 16; k++)
		put(blocks, at, k, k ? 4 : 3);
	CHECK_EQ(at, 128u);
	for (int k = 1; k < BLOCKS; k++)
		memcpy(blocks + k * BLOCK_BYTES, blocks, BLOCK_BYTES);
	read_texels(bc7, false);
	for (int e = 0; e < 2; e++) {
		const float4 &t = texels[e ? 3 * WIDTH + 3 : 0];

		CHECK(fabs(t.x * 255 - ends[e][0]) < 0.01);
		CHECK(fabs(t.y * 255 - ends[e][1]) < 0.01);
		CHECK(fabs(t.z * 255 - ends[e][2]) < 0.01);
		CHECK(fabs(t.w * 255 - ends[e][3]) < 0.01);
	}
	/* The same, and all but alpha as light: 201 of 255 is 0.584. */
	read_texels(bc7_srgb, false);
	CHECK(fabs(texels[3 * WIDTH + 3].x - 0.584f) < 0.006f);
	CHECK(fabs(texels[0].w * 255 - 128) < 0.5);
}

/* BC6H's mode 3: ends of 10 bits, which are 16 with 31 of 64 of their range as a half. */
static void known_halves()
{
	static const unsigned ends[6] = {0, 1023, 512, 1023, 0, 512};
	unsigned at = 0;

	memset(blocks, 0, sizeof(blocks));
	put(blocks, at, 3, 5);
	for (unsigned end : ends)
		put(blocks, at, end, 10);
	for (int k = 0; k < 16; k++)
		put(blocks, at, k, k ? 4 : 3);
	CHECK_EQ(at, 128u);
	read_texels(bc6h, false);
	CHECK_EQ(half_bits(texels[0].x), 0u);
	CHECK_EQ(half_bits(texels[0].y), 0x7bffu);
	CHECK_EQ(half_bits(texels[0].z), 0x8020u * 31 / 64);
	CHECK_EQ(texels[0].w, 1.0f);
	CHECK_EQ(half_bits(texels[3 * WIDTH + 3].x), 0x7bffu);
}

int main()
{
	CUDA(cudaFree(NULL));
	every_mode();
	known_bytes();
	known_halves();
	printf("blocks are right\n");
	return 0;
}
