// SPDX-License-Identifier: Apache-2.0
/* Textures of every kind, address mode and filter, against the formulas of the CUDA programming
 * guide.
 *
 * textures                 checks; texels that no filter blends must be equal, others within
 * 1/256 of the texels' differences (weights have 8 bits behind the point) textures --record
 * also prints every result, as bits: what tests/programs/textures-h200.txt is textures
 * --against FILE  compares with such a record instead of the formulas, by the same rule
 */
#include "check.h"

#include <math.h>
#include <string>
#include <vector>

enum kind {
	ONE,
	TWO,
	THREE,
	ONE_LAYERED,
	TWO_LAYERED,
	CUBE,
	CUBE_LAYERED,
	LEVELS,
	FETCH,
	PITCH,
	GATHER,
	KINDS
};
static const char *const kind_names[] = {"1d", "2d", "3d", "1d-layered", "2d-layered", "cube",
	"cube-layered", "levels", "linear", "pitch", "gather"};
static const char *const mode_names[] = {"wrap", "clamp", "mirror", "border"};

enum { PLACES = 24, RANGE = 64, LAYERS = 3, LEVEL_COUNT = 4 };
static const float BORDER = 5.0f;

struct place {
	float x, y, z, level;
	int layer;
};

__global__ void fetch(cudaTextureObject_t t, int kind, const place *places, float4 *out)
{
	place p = places[threadIdx.x];
	float4 v = make_float4(0, 0, 0, 0);

	switch (kind) {
	case ONE: v.x = tex1D<float>(t, p.x); break;
	case TWO:
	case PITCH: v.x = tex2D<float>(t, p.x, p.y); break;
	case THREE: v.x = tex3D<float>(t, p.x, p.y, p.z); break;
	case ONE_LAYERED: v.x = tex1DLayered<float>(t, p.x, p.layer); break;
	case TWO_LAYERED: v.x = tex2DLayered<float>(t, p.x, p.y, p.layer); break;
	case CUBE: v.x = texCubemap<float>(t, p.x, p.y, p.z); break;
	case CUBE_LAYERED: v.x = texCubemapLayered<float>(t, p.x, p.y, p.z, p.layer); break;
	case LEVELS: v.x = tex2DLod<float>(t, p.x, p.y, p.level); break;
	case FETCH: v.x = tex1Dfetch<float>(t, (int)p.x); break;
	default: v = tex2Dgather<float4>(t, p.x, p.y, 0); break;
	}
	out[threadIdx.x] = v;
}

__global__ void fetch_channels(cudaTextureObject_t t, const place *places, float4 *out)
{
	out[threadIdx.x] = tex2D<float4>(t, places[threadIdx.x].x, places[threadIdx.x].y);
}

/* ---- what is in the textures ---- */

struct image {
	int w, h, d; /* d: slices, layers or faces */
	std::vector<float> v;
	float at(int x, int y, int z) const
	{
		return v[(size_t)((z * h + y) * w + x)];
	}
};

static image image_of(int w, int h, int d, uint32_t seed)
{
	image m = {w, h, d, {}};

	for (int i = 0; i < w * h * d; i++)
		m.v.push_back((float)(next_random(&seed) % RANGE));
	return m;
}

/* ---- the formulas ---- */

struct setting {
	enum kind kind;
	cudaTextureAddressMode mode;
	bool linear, normalized;
	bool beyond; /* the mode is also that of dimensions the texture does not have */
};

static int index_of(int i, int n, cudaTextureAddressMode mode)
{
	if (i >= 0 && i < n)
		return i;
	switch (mode) {
	case cudaAddressModeWrap: return (i % n + n) % n;
	case cudaAddressModeMirror:
		i = (i % (2 * n) + 2 * n) % (2 * n);
		return i < n ? i : 2 * n - 1 - i;
	case cudaAddressModeBorder: return -1;
	default: return i < 0 ? 0 : n - 1;
	}
}

static double texel(const image &m, int x, int y, int z)
{
	return x < 0 || y < 0 || z < 0 ? BORDER : m.at(x, y, z);
}

/* DIMS of the three coordinates are filtered; the others are indices already. */
static double sample(const image &m, const setting &s, const double *at, int dims, int layer)
{
	const int size[3] = {m.w, m.h, m.d};
	int low[3] = {0, 0, layer}, high[3] = {0, 0, layer};
	double weight[3] = {0, 0, 0}, sum = 0;

	for (int k = 0; k < dims; k++) {
		double c = s.normalized ? at[k] * size[k] : at[k];

		if (s.linear) {
			c -= 0.5;
			weight[k] = floor((c - floor(c)) * 256 + 0.5) / 256;
		}
		low[k] = index_of((int)floor(c), size[k], s.mode);
		high[k] = s.linear ? index_of((int)floor(c) + 1, size[k], s.mode) : low[k];
	}
	for (int k = 0; k < 8; k++) {
		double w = (k & 1 ? weight[0] : 1 - weight[0]) *
			   (k & 2 ? weight[1] : 1 - weight[1]) *
			   (k & 4 ? weight[2] : 1 - weight[2]);

		if (w != 0)
			sum += w * texel(m, k & 1 ? high[0] : low[0], k & 2 ? high[1] : low[1],
					   k & 4 ? high[2] : low[2]);
	}
	return sum;
}

/* The face of a direction, and the place on it (table "Cubemap fetch" of the guide). */
static int face_of(const place &p, double *at)
{
	double x = p.x, y = p.y, z = p.z, m, s, t;
	int face;

	if (fabs(x) >= fabs(y) && fabs(x) >= fabs(z)) {
		face = x >= 0 ? 0 : 1;
		m = fabs(x);
		s = x >= 0 ? -z : z;
		t = -y;
	} else if (fabs(y) >= fabs(z)) {
		face = y >= 0 ? 2 : 3;
		m = fabs(y);
		s = x;
		t = y >= 0 ? z : -z;
	} else {
		face = z >= 0 ? 4 : 5;
		m = fabs(z);
		s = z >= 0 ? x : -x;
		t = -y;
	}
	at[0] = (s / m + 1) / 2;
	at[1] = (t / m + 1) / 2;
	return face;
}

static void expect(
	const std::vector<image> &levels, const setting &s, const place &p, double *v)
{
	const image &m = levels[0];
	double at[3] = {p.x, p.y, p.z}, level, low;
	setting point = s;
	int face;

	v[1] = v[2] = v[3] = 0;
	switch (s.kind) {
	case ONE:
		v[0] = sample(m, s, at, 1, 0);
		/* The filter sees a row of two dimensions, at 0: halfway to what is before. */
		if (s.beyond && s.linear && s.mode == cudaAddressModeBorder)
			v[0] = (v[0] + (double)BORDER) / 2;
		break;
	case THREE: v[0] = sample(m, s, at, 3, 0); break;
	case ONE_LAYERED: v[0] = sample(m, s, at, 1, p.layer); break;
	case TWO_LAYERED: v[0] = sample(m, s, at, 2, p.layer); break;
	case CUBE:
		face = face_of(p, at);
		v[0] = sample(m, s, at, 2, face);
		break;
	case CUBE_LAYERED:
		face = face_of(p, at);
		v[0] = sample(m, s, at, 2, 6 * p.layer + face);
		break;
	case LEVELS:
		level = p.level < 0 ? 0 : p.level > LEVEL_COUNT - 1 ? LEVEL_COUNT - 1 : p.level;
		if (!s.linear) {
			v[0] = sample(levels[(size_t)floor(level + 0.5)], s, at, 2, 0);
			break;
		}
		low = floor(level);
		v[0] = sample(levels[(size_t)low], s, at, 2, 0);
		if (level > low)
			v[0] += (level - low) *
				(sample(levels[(size_t)low + 1], s, at, 2, 0) - v[0]);
		break;
	case FETCH:
		v[0] = p.x >= 0 && p.x < (float)m.w ? (double)m.at((int)p.x, 0, 0) : 0.0;
		break;
	case GATHER: {
		/* Counter-clockwise from the lower left. */
		static const int dx[4] = {0, 1, 1, 0}, dy[4] = {1, 1, 0, 0};

		point.linear = false;
		for (int k = 0; k < 4; k++) {
			double corner[3] = {floor(at[0] - 0.5) + dx[k] + 0.5,
				floor(at[1] - 0.5) + dy[k] + 0.5, 0};
			v[k] = sample(m, point, corner, 2, 0);
		}
		break;
	}
	default: v[0] = sample(m, s, at, 2, 0); break;
	}
}

/* ---- making them ---- */

static const cudaChannelFormatDesc floats = {32, 0, 0, 0, cudaChannelFormatKindFloat};

static void fill(cudaArray_t array, const void *from, size_t element, int w, int h, int d)
{
	cudaMemcpy3DParms p = {};

	p.srcPtr = make_cudaPitchedPtr((void *)from, w * element, (size_t)w, (size_t)h);
	p.dstArray = array;
	p.extent = make_cudaExtent((size_t)w, (size_t)h, (size_t)d);
	p.kind = cudaMemcpyHostToDevice;
	CUDA(cudaMemcpy3D(&p));
}

struct texture {
	cudaArray_t array;
	cudaMipmappedArray_t levels;
	void *memory;
	cudaResourceDesc resource;
	std::vector<image> images;
};

static texture texture_new(enum kind kind)
{
	texture t = {};
	bool one = kind == ONE || kind == ONE_LAYERED || kind == FETCH;
	bool cube = kind == CUBE || kind == CUBE_LAYERED;
	bool layered = kind == ONE_LAYERED || kind == TWO_LAYERED || kind == CUBE_LAYERED;
	int w = cube ? 8 : 16, h = one ? 1 : 8;
	int d = kind == THREE ? 4 : (cube ? 6 : 1) * (layered ? (cube ? 2 : LAYERS) : 1);
	unsigned flags = (cube ? cudaArrayCubemap : 0u) | (layered ? cudaArrayLayered : 0u) |
			 (kind == GATHER ? cudaArrayTextureGather : 0u);
	cudaExtent extent = make_cudaExtent((size_t)w, one ? 0 : (size_t)h,
		kind == THREE || cube || layered ? (size_t)d : 0);
	size_t pitch = 0;

	for (int i = 0; i < (kind == LEVELS ? LEVEL_COUNT : 1); i++)
		t.images.push_back(image_of(w >> i, h >> i ? h >> i : 1, d,
			77u + (unsigned)kind + 16u * (unsigned)i));
	if (kind == LEVELS) {
		CUDA(cudaMallocMipmappedArray(&t.levels, &floats, extent, LEVEL_COUNT, 0));
		for (unsigned i = 0; i < LEVEL_COUNT; i++) {
			cudaArray_t level;

			CUDA(cudaGetMipmappedArrayLevel(&level, t.levels, i));
			fill(level, t.images[i].v.data(), 4, t.images[i].w, t.images[i].h, 1);
		}
		t.resource.resType = cudaResourceTypeMipmappedArray;
		t.resource.res.mipmap.mipmap = t.levels;
	} else if (kind == FETCH) {
		CUDA(cudaMalloc(&t.memory, (size_t)w * 4));
		CUDA(cudaMemcpy(
			t.memory, t.images[0].v.data(), (size_t)w * 4, cudaMemcpyHostToDevice));
		t.resource.resType = cudaResourceTypeLinear;
		t.resource.res.linear.devPtr = t.memory;
		t.resource.res.linear.desc = floats;
		t.resource.res.linear.sizeInBytes = (size_t)w * 4;
	} else if (kind == PITCH) {
		CUDA(cudaMallocPitch(&t.memory, &pitch, (size_t)w * 4, (size_t)h));
		CUDA(cudaMemcpy2D(t.memory, pitch, t.images[0].v.data(), (size_t)w * 4,
			(size_t)w * 4, (size_t)h, cudaMemcpyHostToDevice));
		t.resource.resType = cudaResourceTypePitch2D;
		t.resource.res.pitch2D.devPtr = t.memory;
		t.resource.res.pitch2D.desc = floats;
		t.resource.res.pitch2D.width = (size_t)w;
		t.resource.res.pitch2D.height = (size_t)h;
		t.resource.res.pitch2D.pitchInBytes = pitch;
	} else {
		CUDA(cudaMalloc3DArray(&t.array, &floats, extent, flags));
		fill(t.array, t.images[0].v.data(), 4, w, h, d);
		t.resource.resType = cudaResourceTypeArray;
		t.resource.res.array.array = t.array;
	}
	return t;
}

static void texture_free(texture *t)
{
	if (t->array)
		CUDA(cudaFreeArray(t->array));
	if (t->levels)
		CUDA(cudaFreeMipmappedArray(t->levels));
	if (t->memory)
		CUDA(cudaFree(t->memory));
}

/* ---- places ---- */

/* A coordinate from well outside to well outside, never where two texels meet: even ones in
 * 64ths of a texel, which the filter's weights can tell exactly, odd ones anywhere. */
static float coordinate(uint32_t *seed, int size, bool exact, bool normalized)
{
	double c = (double)(next_random(seed) % (uint32_t)(3 * size)) - size;

	c += exact ? (1 + 2 * (next_random(seed) % 32)) / 64.0
		   : 0.01 + 0.98 * (next_random(seed) % 100000) / 100000.0;
	return (float)(normalized ? c / size : c);
}

static std::vector<place> places_of(const texture &t, const setting &s)
{
	std::vector<place> places;
	uint32_t seed = 1 + (uint32_t)s.kind + 32 * (uint32_t)s.normalized;

	for (int i = 0; i < PLACES; i++) {
		bool exact = i % 2 == 0;
		place p = {};

		if (s.kind == CUBE || s.kind == CUBE_LAYERED) {
			/* Not near an edge, where a filter would leave the face. */
			float side[3] = {0, 0, 0};
			int major = (int)(next_random(&seed) % 3);

			for (int k = 0; k < 3; k++)
				side[k] = ((float)(next_random(&seed) % 97) - 48) / 64;
			side[major] = next_random(&seed) % 2 ? 1.0f : -1.0f;
			p.x = side[0];
			p.y = side[1];
			p.z = side[2];
			p.layer = (int)(next_random(&seed) % 2);
		} else {
			p.x = coordinate(&seed, t.images[0].w, exact, s.normalized);
			p.y = coordinate(&seed, t.images[0].h, exact, s.normalized);
			p.z = coordinate(&seed, t.images[0].d, exact, s.normalized);
			p.layer = (int)(next_random(&seed) % LAYERS);
			p.level = (float)(next_random(&seed) % 15) / 4 + 0.125f;
			if (s.kind == FETCH)
				p.x = floorf(p.x);
			/* The same place in each level: inside. */
			if (s.kind == LEVELS) {
				p.x = (float)(next_random(&seed) % 16 + 0.25) / 16;
				p.y = (float)(next_random(&seed) % 8 + 0.25) / 8;
			}
		}
		places.push_back(p);
	}
	return places;
}

/* ---- running ---- */

static bool recording;
static FILE *against;
static unsigned compared, blended_apart;

static std::vector<float4> run(
	cudaTextureObject_t object, int kind, const std::vector<place> &places)
{
	std::vector<float4> out(places.size());
	place *at;
	float4 *values;

	CUDA(cudaMalloc(&at, sizeof(place) * places.size()));
	CUDA(cudaMalloc(&values, sizeof(float4) * places.size()));
	CUDA(cudaMemcpy(
		at, places.data(), sizeof(place) * places.size(), cudaMemcpyHostToDevice));
	if (kind < KINDS)
		fetch<<<1, (unsigned)places.size()>>>(object, kind, at, values);
	else
		fetch_channels<<<1, (unsigned)places.size()>>>(object, at, values);
	LAUNCHED();
	CUDA(cudaMemcpy(
		out.data(), values, sizeof(float4) * out.size(), cudaMemcpyDeviceToHost));
	CUDA(cudaFree(at));
	CUDA(cudaFree(values));
	return out;
}

static uint32_t bits_of(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static float float_of(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* One line of the record; against one, the next line of that must be it. WITHIN: how far a
 * value may be from the record's. */
static void report(const std::string &name, const std::vector<float> &values, double within)
{
	char word[64];

	if (recording) {
		printf("%s", name.c_str());
		for (float v : values)
			printf(" %08x", bits_of(v));
		printf("\n");
	}
	if (!against)
		return;
	if (fscanf(against, "%63s", word) != 1 || name != word)
		FAIL("the record has %s, not %s", word, name.c_str());
	for (size_t i = 0; i < values.size(); i++) {
		unsigned bits;
		double away;

		if (fscanf(against, "%x", &bits) != 1)
			FAIL("the record of %s ends at %zu", name.c_str(), i);
		away = fabs((double)values[i] - (double)float_of(bits));
		compared++;
		blended_apart += bits_of(values[i]) != bits && within > 0;
		if (bits_of(values[i]) != bits && !(away <= within))
			FAIL("%s, value %zu: %.9g, not %.9g", name.c_str(), i,
				(double)values[i], (double)float_of(bits));
	}
}

static void check(const texture &t, const setting &s)
{
	std::string name = std::string(kind_names[s.kind]) + "/" + mode_names[s.mode] + "/" +
			   (s.linear ? "linear" : "point") +
			   (s.normalized ? "/normalized" : "") + (s.beyond ? "/beyond" : "");
	std::vector<place> places = places_of(t, s);
	std::vector<float> values;
	std::vector<float4> got;
	cudaTextureDesc desc = {};
	cudaTextureObject_t object;
	double within = s.linear && s.kind != GATHER ? RANGE / 256.0 : 0;
	int dims = s.kind == ONE || s.kind == ONE_LAYERED ? 1 : s.kind == THREE ? 3 : 2;

	for (int k = 0; k < 3; k++)
		desc.addressMode[k] = k < dims || s.beyond ? s.mode : cudaAddressModeClamp;
	desc.filterMode = s.linear ? cudaFilterModeLinear : cudaFilterModePoint;
	desc.normalizedCoords = s.normalized;
	desc.mipmapFilterMode = s.linear ? cudaFilterModeLinear : cudaFilterModePoint;
	desc.maxMipmapLevelClamp = LEVEL_COUNT - 1;
	for (int k = 0; k < 4; k++)
		desc.borderColor[k] = BORDER;
	CUDA(cudaCreateTextureObject(&object, &t.resource, &desc, NULL));
	got = run(object, s.kind, places);
	CUDA(cudaDestroyTextureObject(object));
	for (size_t i = 0; i < places.size(); i++) {
		const float v[4] = {got[i].x, got[i].y, got[i].z, got[i].w};
		double want[4];

		expect(t.images, s, places[i], want);
		for (int k = 0; k < (s.kind == GATHER ? 4 : 1); k++) {
			values.push_back(v[k]);
			if (!against && !(fabs((double)v[k] - want[k]) <= within))
				FAIL("%s at %g %g %g, layer %d, level %g: %.9g, not %.9g",
					name.c_str(), (double)places[i].x, (double)places[i].y,
					(double)places[i].z, places[i].layer,
					(double)places[i].level, (double)v[k], want[k]);
		}
	}
	report(name, values, within);
}

static void every_setting(enum kind kind)
{
	texture t = texture_new(kind);
	bool cube = kind == CUBE || kind == CUBE_LAYERED;

	for (int mode = 0; mode < 4; mode++)
		for (int linear = 0; linear < 2; linear++)
			for (int normalized = 0; normalized < 2; normalized++) {
				setting s = {kind, (cudaTextureAddressMode)mode, linear != 0,
					normalized != 0, false};

				/* Only what is normalised can go round. */
				if (!normalized && mode != cudaAddressModeClamp &&
					mode != cudaAddressModeBorder)
					continue;
				if ((cube || kind == LEVELS) &&
					(!normalized || mode != cudaAddressModeClamp))
					continue;
				if (kind == FETCH &&
					(linear || normalized || mode != cudaAddressModeClamp))
					continue;
				if (kind == GATHER && (!linear || normalized))
					continue;
				check(t, s);
			}
	if (kind == ONE)
		for (int linear = 0; linear < 2; linear++)
			check(t, {ONE, cudaAddressModeBorder, linear != 0, false, true});
	texture_free(&t);
}

/* ---- formats ---- */

struct format {
	const char *name;
	cudaChannelFormatDesc desc;
	size_t element; /* bytes */
	bool srgb;
};

static double channel(const format &f, const unsigned char *p, int k)
{
	int bits = f.desc.x;
	uint16_t half;
	int16_t small;

	if (k >= 4 || !(&f.desc.x)[k])
		return 0;
	p += k * bits / 8;
	if (bits == 8 && f.desc.f == cudaChannelFormatKindUnsigned) {
		double v = *p / 255.0;

		if (!f.srgb || k == 3)
			return v;
		return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
	}
	if (bits == 8)
		return (signed char)*p < -127 ? -1.0 : (signed char)*p / 127.0;
	memcpy(&half, p, 2);
	memcpy(&small, p, 2);
	if (f.desc.f == cudaChannelFormatKindUnsigned)
		return half / 65535.0;
	if (f.desc.f == cudaChannelFormatKindSigned)
		return small < -32767 ? -1.0 : small / 32767.0;
	/* Normal numbers only: see formats(). */
	return ldexp(1024 + (half & 1023), (half >> 10 & 31) - 25) * (half >> 15 ? -1 : 1);
}

/* Small whole numbers are read as 0 .. 1 or -1 .. 1, halves as they are. */
static void formats()
{
	const cudaChannelFormatKind u = cudaChannelFormatKindUnsigned,
				    i = cudaChannelFormatKindSigned;
	const format all[] = {{"u8x1", {8, 0, 0, 0, u}, 1, false},
		{"u8x4", {8, 8, 8, 8, u}, 4, false}, {"s8x2", {8, 8, 0, 0, i}, 2, false},
		{"u16x1", {16, 0, 0, 0, u}, 2, false}, {"s16x4", {16, 16, 16, 16, i}, 8, false},
		{"halfx4", {16, 16, 16, 16, cudaChannelFormatKindFloat}, 8, false},
		{"srgb", {8, 8, 8, 8, u}, 4, true}};
	enum { W = 8, H = 4 };

	for (const format &f : all) {
		bool half = f.desc.f == cudaChannelFormatKindFloat;
		int channels = f.desc.w ? 4 : f.desc.y ? 2 : 1;
		std::vector<unsigned char> bytes;
		std::vector<place> places;
		std::vector<float> values;
		std::vector<float4> got;
		cudaTextureObject_t object;
		cudaResourceDesc resource = {};
		cudaTextureDesc desc = {};
		cudaArray_t array;
		uint32_t seed = 99;

		for (size_t n = 0; n < W * H * f.element; n++)
			bytes.push_back((unsigned char)next_random(&seed));
		for (size_t n = 1; half && n < bytes.size(); n += 2)
			bytes[n] = (unsigned char)((bytes[n] & 0x83) | 0x38);
		for (int n = 0; n < W * H; n++)
			places.push_back({n % W + 0.5f, n / W + 0.5f, 0, 0, 0});
		CUDA(cudaMallocArray(&array, &f.desc, W, H));
		fill(array, bytes.data(), f.element, W, H, 1);
		resource.resType = cudaResourceTypeArray;
		resource.res.array.array = array;
		desc.readMode = half ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
		desc.sRGB = f.srgb;
		CUDA(cudaCreateTextureObject(&object, &resource, &desc, NULL));
		got = run(object, KINDS, places);
		for (size_t n = 0; n < places.size(); n++) {
			const float v[4] = {got[n].x, got[n].y, got[n].z, got[n].w};

			for (int k = 0; k < channels; k++) {
				double want = channel(f, &bytes[n * f.element], k);

				/* sRGB comes from a table of the device's: 209/256 for 0.8148 on
				 * an H200. */
				if (!(fabs((double)v[k] - want) <= (f.srgb ? 1.0 / 256 : 1e-6)))
					FAIL("%s, texel %zu, channel %d: %.9g, not %.9g",
						f.name, n, k, (double)v[k], want);
				values.push_back(v[k]);
			}
		}
		report(std::string("format/") + f.name, values, f.srgb ? 1.0 / 256 : 0);
		CUDA(cudaDestroyTextureObject(object));
		CUDA(cudaFreeArray(array));
	}
}

/* Linear memory that is said to be longer than it is: what is there is read. */
static void behind_the_end()
{
	const size_t bytes = 4 << 20;
	cudaTextureObject_t object;
	cudaResourceDesc resource = {};
	cudaTextureDesc desc = {};
	float value = 2.5f, *memory;
	std::vector<place> places(1);

	CUDA(cudaMalloc(&memory, bytes));
	CUDA(cudaMemcpy(memory + bytes / 4 - 1, &value, sizeof(value), cudaMemcpyHostToDevice));
	resource.resType = cudaResourceTypeLinear;
	resource.res.linear.devPtr = memory;
	resource.res.linear.desc = cudaCreateChannelDesc<float>();
	resource.res.linear.sizeInBytes = bytes + 65536;
	CUDA(cudaCreateTextureObject(&object, &resource, &desc, NULL));
	places[0].x = (float)(bytes / 4 - 1);
	if (run(object, FETCH, places)[0].x != value)
		FAIL("the last float of linear memory is not what was copied there");
	CUDA(cudaDestroyTextureObject(object));
	/* It is none any more, which is passed over. */
	CUDA(cudaDestroyTextureObject(object));
	CUDA(cudaFree(memory));
}

int main(int argc, char **argv)
{
	recording = argc > 1 && !strcmp(argv[1], "--record");
	if (argc > 2 && !strcmp(argv[1], "--against")) {
		against = fopen(argv[2], "r");
		if (!against)
			FAIL("cannot open %s", argv[2]);
	}
	for (int kind = 0; kind < KINDS; kind++)
		every_setting((enum kind)kind);
	formats();
	behind_the_end();
	if (against)
		printf("%u values as recorded, %u of them but for the filter's rounding\n",
			compared, blended_apart);
	else if (!recording)
		printf("textures are right\n");
	return 0;
}
