/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLASLt's descriptors and algorithms on the software GPU.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/blas/lt.h"

struct field {
	uint8_t number, bytes;
	uint16_t at;
};
#define FIELD(NUMBER, STRUCT, MEMBER)                                                          \
	{NUMBER, sizeof(((struct STRUCT *)0)->MEMBER), offsetof(struct STRUCT, MEMBER)}

static const struct field layout_fields[] = {
	FIELD(0, lt_layout, type),
	FIELD(1, lt_layout, order),
	FIELD(2, lt_layout, rows),
	FIELD(3, lt_layout, cols),
	FIELD(4, lt_layout, ld),
	FIELD(5, lt_layout, batch),
	FIELD(6, lt_layout, batch_stride),
	FIELD(7, lt_layout, plane),
	FIELD(8, lt_layout, batch_mode),
	FIELD(9, lt_layout, array[0]),
	FIELD(10, lt_layout, array[1]),
	FIELD(11, lt_layout, array[2]),
	FIELD(12, lt_layout, shape_width),
	FIELD(13, lt_layout, ld_width),
	{0},
};
static const struct field matmul_fields[] = {
	FIELD(0, lt_matmul, compute),
	FIELD(1, lt_matmul, scale),
	FIELD(2, lt_matmul, pointer_mode),
	FIELD(3, lt_matmul, transa),
	FIELD(4, lt_matmul, transb),
	FIELD(5, lt_matmul, transc),
	FIELD(6, lt_matmul, fill),
	FIELD(7, lt_matmul, epilogue),
	FIELD(8, lt_matmul, bias),
	FIELD(10, lt_matmul, bias_stride),
	FIELD(11, lt_matmul, aux),
	FIELD(12, lt_matmul, aux_ld),
	FIELD(13, lt_matmul, aux_stride),
	FIELD(14, lt_matmul, alpha_stride),
	FIELD(15, lt_matmul, sm_count),
	FIELD(17, lt_matmul, scale_a),
	FIELD(18, lt_matmul, scale_b),
	FIELD(19, lt_matmul, scale_c),
	FIELD(20, lt_matmul, scale_d),
	FIELD(21, lt_matmul, amax),
	FIELD(22, lt_matmul, aux_type),
	FIELD(23, lt_matmul, aux_scale),
	FIELD(24, lt_matmul, aux_amax),
	FIELD(25, lt_matmul, fast_accum),
	FIELD(26, lt_matmul, bias_type),
	FIELD(31, lt_matmul, modes[0]),
	FIELD(32, lt_matmul, modes[1]),
	FIELD(33, lt_matmul, modes[2]),
	FIELD(34, lt_matmul, modes[3]),
	FIELD(35, lt_matmul, modes[4]),
	FIELD(37, lt_matmul, modes[5]),
	FIELD(38, lt_matmul, emulation),
	FIELD(39, lt_matmul, alpha_batch),
	FIELD(40, lt_matmul, beta_batch),
	FIELD(41, lt_matmul, invariance),
	{0},
};
static const struct field emulation_fields[] = {
	FIELD(0, lt_emulation, strategy),
	FIELD(1, lt_emulation, special_values),
	FIELD(2, lt_emulation, mantissa_control),
	FIELD(3, lt_emulation, max_bits),
	FIELD(4, lt_emulation, bit_offset),
	FIELD(5, lt_emulation, bit_count),
	{0},
};
static const struct field transform_fields[] = {
	FIELD(0, lt_transform, scale),
	FIELD(1, lt_transform, pointer_mode),
	FIELD(2, lt_transform, transa),
	FIELD(3, lt_transform, transb),
	{0},
};
static const struct field preference_fields[] = {
	FIELD(0, lt_preference, search_mode),
	FIELD(1, lt_preference, max_workspace),
	FIELD(3, lt_preference, reduction_mask),
	FIELD(5, lt_preference, alignment[0]),
	FIELD(6, lt_preference, alignment[1]),
	FIELD(7, lt_preference, alignment[2]),
	FIELD(8, lt_preference, alignment[3]),
	FIELD(9, lt_preference, max_waves),
	FIELD(12, lt_preference, impl_mask),
	FIELD(13, lt_preference, average[0]),
	FIELD(14, lt_preference, average[1]),
	FIELD(15, lt_preference, average[2]),
	{0},
};

static int set(
	void *object, const struct field *fields, int number, const void *from, size_t bytes)
{
	if (!object || !from)
		return BLAS_INVALID_VALUE;
	for (; fields->bytes; fields++)
		if (fields->number == number && fields->bytes == bytes) {
			memcpy((char *)object + fields->at, from, bytes);
			return BLAS_SUCCESS;
		}
	return BLAS_INVALID_VALUE;
}

/* Set and Destroy of a kind. */
#define KIND(NAME, FIELDS)                                                                     \
	BLAS_EXPORT int cublasLt##NAME##SetAttribute(                                          \
		void *object, int number, const void *from, size_t bytes);                     \
	BLAS_EXPORT int cublasLt##NAME##SetAttribute(                                          \
		void *object, int number, const void *from, size_t bytes)                      \
	{                                                                                      \
		return set(object, FIELDS, number, from, bytes);                               \
	}                                                                                      \
	BLAS_EXPORT int cublasLt##NAME##Destroy(void *object);                                 \
	BLAS_EXPORT int cublasLt##NAME##Destroy(void *object)                                  \
	{                                                                                      \
		free(object);                                                                  \
		return BLAS_SUCCESS;                                                           \
	}
KIND(MatrixLayout, layout_fields)
KIND(MatmulDesc, matmul_fields)
KIND(MatrixTransformDesc, transform_fields)
KIND(MatmulPreference, preference_fields)
KIND(EmulationDesc, emulation_fields)

static int made(void **to, const void *content, size_t bytes)
{
	if (!to)
		return BLAS_INVALID_VALUE;
	*to = malloc(bytes);
	if (!*to)
		return BLAS_ALLOC_FAILED;
	memcpy(*to, content, bytes);
	return BLAS_SUCCESS;
}

BLAS_EXPORT int cublasLtMatrixLayoutCreate(
	void **layout, int type, uint64_t rows, uint64_t cols, int64_t ld);
BLAS_EXPORT int cublasLtMatrixLayoutCreate(
	void **layout, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
	struct lt_layout new = {
		.type = (uint32_t)type, .rows = rows, .cols = cols, .ld = ld, .batch = 1};

	return made(layout, &new, sizeof(new));
}

BLAS_EXPORT int cublasLtGroupedMatrixLayoutCreate(
	void **layout, int type, int count, const void *rows, const void *cols, const void *ld);
BLAS_EXPORT int cublasLtGroupedMatrixLayoutCreate(
	void **layout, int type, int count, const void *rows, const void *cols, const void *ld)
{
	struct lt_layout new = {.type = (uint32_t)type,
		.batch = count,
		.batch_mode = LT_GROUPED,
		.array = {rows, cols, ld}};

	return made(layout, &new, sizeof(new));
}

BLAS_EXPORT int cublasLtMatmulDescCreate(void **desc, int compute, int scale);
BLAS_EXPORT int cublasLtMatmulDescCreate(void **desc, int compute, int scale)
{
	struct lt_matmul new = {.compute = compute,
		.scale = scale,
		.fill = 2,
		.epilogue = LT_DEFAULT,
		.aux_type = -1,
		.bias_type = -1,
		.invariance = 0x8000};

	return made(desc, &new, sizeof(new));
}

BLAS_EXPORT int cublasLtMatrixTransformDescCreate(void **desc, int scale);
BLAS_EXPORT int cublasLtMatrixTransformDescCreate(void **desc, int scale)
{
	struct lt_transform new = {.scale = scale};

	return made(desc, &new, sizeof(new));
}

BLAS_EXPORT int cublasLtMatmulPreferenceCreate(void **preference);
BLAS_EXPORT int cublasLtMatmulPreferenceCreate(void **preference)
{
	struct lt_preference new = {.reduction_mask = 7,
		.alignment = {256, 256, 256, 256},
		.impl_mask = UINT64_MAX};

	return made(preference, &new, sizeof(new));
}

BLAS_EXPORT int cublasLtEmulationDescCreate(void **emulation);
BLAS_EXPORT int cublasLtEmulationDescCreate(void **emulation)
{
	struct lt_emulation new = {.special_values = 0xffff};

	return made(emulation, &new, sizeof(new));
}

/* ---- handles ---- */

BLAS_EXPORT int cublasLtCreate(void **handle);
BLAS_EXPORT int cublasLtCreate(void **handle)
{
	static const struct blas_handle one = {.refs = 1};

	return made(handle, &one, sizeof(one));
}

BLAS_EXPORT int cublasLtDestroy(void *handle);
BLAS_EXPORT int cublasLtDestroy(void *handle)
{
	if (!handle)
		return BLAS_NOT_INITIALIZED;
	cuCtxSynchronize();
	blas_handle_drop(handle); /* tasks may still name it */
	return BLAS_SUCCESS;
}

BLAS_EXPORT size_t cublasLtGetVersion(void);
BLAS_EXPORT size_t cublasLtGetVersion(void)
{
	return BLAS_VERSION;
}

static size_t capacity = 8192;

BLAS_EXPORT int cublasLtHeuristicsCacheGetCapacity(size_t *value);
BLAS_EXPORT int cublasLtHeuristicsCacheGetCapacity(size_t *value)
{
	*value = capacity;
	return BLAS_SUCCESS;
}

BLAS_EXPORT int cublasLtHeuristicsCacheSetCapacity(size_t value);
BLAS_EXPORT int cublasLtHeuristicsCacheSetCapacity(size_t value)
{
	capacity = value;
	return BLAS_SUCCESS;
}

/* ---- the algorithm ---- */

static void algo_init(struct lt_algo *algo, int id)
{
	*algo = (struct lt_algo){.mark = LT_ALGO, .config = {[0] = (uint32_t)id, [2] = 1}};
}

BLAS_EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, const void *desc, const void *a,
	const void *b, const void *c, const void *d, const void *preference, int wanted,
	struct lt_result *results, int *count);
BLAS_EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, const void *desc, const void *a,
	const void *b, const void *c, const void *d, const void *preference, int wanted,
	struct lt_result *results, int *count)
{
	const struct lt_preference *pref = preference;
	int status;

	if (!handle)
		return BLAS_NOT_INITIALIZED;
	if (!desc || !a || !b || !d || wanted <= 0 || !pref || pref->search_mode > 1)
		return BLAS_INVALID_VALUE;
	if (pref->search_mode && results[0].algo.mark != LT_ALGO)
		return BLAS_INVALID_VALUE;
	*count = 0;
	status = lt_check(desc, a, b, c, d);
	if (status)
		return status;
	memset(results, 0, sizeof(*results));
	algo_init(&results[0].algo, 0);
	results[0].waves = 1;
	*count = 1;
	return BLAS_SUCCESS;
}

BLAS_EXPORT int cublasLtMatmulAlgoCheck(void *handle, const void *desc, const void *a,
	const void *b, const void *c, const void *d, const struct lt_algo *algo,
	struct lt_result *result);
BLAS_EXPORT int cublasLtMatmulAlgoCheck(void *handle, const void *desc, const void *a,
	const void *b, const void *c, const void *d, const struct lt_algo *algo,
	struct lt_result *result)
{
	int status;

	if (!handle)
		return BLAS_NOT_INITIALIZED;
	if (!desc || !a || !b || !d || algo->mark != LT_ALGO)
		return BLAS_INVALID_VALUE;
	status = lt_check(desc, a, b, c, d);
	if (!status) {
		result->workspace = 0;
		result->status = BLAS_SUCCESS;
		result->waves = 1;
	}
	return status;
}

/* A part of the device has the algorithm that all of it has. A stream is one of the device's.
 */
BLAS_EXPORT int cublasLtMatmulAlgoGetHeuristicForStream(void *handle, const void *desc,
	const void *a, const void *b, const void *c, const void *d, const void *preference,
	int wanted, struct lt_result *results, int *count, CUstream stream);
BLAS_EXPORT int cublasLtMatmulAlgoGetHeuristicForStream(void *handle, const void *desc,
	const void *a, const void *b, const void *c, const void *d, const void *preference,
	int wanted, struct lt_result *results, int *count, CUstream stream)
{
	unsigned flags;

	if (cuStreamGetFlags(stream, &flags))
		return BLAS_INVALID_VALUE;
	return cublasLtMatmulAlgoGetHeuristic(
		handle, desc, a, b, c, d, preference, wanted, results, count);
}

BLAS_EXPORT int cublasLtMatmulAlgoCheckForStream(void *handle, const void *desc, const void *a,
	const void *b, const void *c, const void *d, const struct lt_algo *algo,
	struct lt_result *result, CUstream stream);
BLAS_EXPORT int cublasLtMatmulAlgoCheckForStream(void *handle, const void *desc, const void *a,
	const void *b, const void *c, const void *d, const struct lt_algo *algo,
	struct lt_result *result, CUstream stream)
{
	unsigned flags;

	if (cuStreamGetFlags(stream, &flags))
		return BLAS_INVALID_VALUE;
	return cublasLtMatmulAlgoCheck(handle, desc, a, b, c, d, algo, result);
}

BLAS_EXPORT int cublasLtMatmulAlgoGetIds(void *handle, int compute, int scale, int a, int b,
	int c, int d, int wanted, int *ids, int *count);
BLAS_EXPORT int cublasLtMatmulAlgoGetIds(void *handle, int compute, int scale, int a, int b,
	int c, int d, int wanted, int *ids, int *count)
{
	struct lt_matmul desc = {.compute = compute, .scale = scale, .epilogue = LT_DEFAULT};
	struct lt_layout la = {.type = (uint32_t)a, .batch = 1, .rows = 1, .cols = 1, .ld = 1};
	struct lt_layout lb = la, lc = la, ld = la;

	if (!handle)
		return BLAS_NOT_INITIALIZED;
	if (wanted <= 0)
		return BLAS_INVALID_VALUE;
	lb.type = (uint32_t)b;
	lc.type = (uint32_t)c;
	ld.type = (uint32_t)d;
	desc.fill = 2;
	desc.aux_type = desc.bias_type = -1;
	*count = !lt_check(&desc, &la, &lb, &lc, &ld);
	if (*count)
		ids[0] = 0;
	return BLAS_SUCCESS;
}

BLAS_EXPORT int cublasLtMatmulAlgoInit(void *handle, int compute, int scale, int a, int b,
	int c, int d, int id, struct lt_algo *algo);
BLAS_EXPORT int cublasLtMatmulAlgoInit(void *handle, int compute, int scale, int a, int b,
	int c, int d, int id, struct lt_algo *algo)
{
	int none[1], count = 0;
	int status =
		cublasLtMatmulAlgoGetIds(handle, compute, scale, a, b, c, d, 1, none, &count);

	/* A program may have the number of one that it found on another GPU. */
	if (status || id < 0 || id >= LT_IDS)
		return status ? status : BLAS_INVALID_VALUE;
	if (!count)
		return BLAS_NOT_SUPPORTED;
	algo_init(algo, id);
	return BLAS_SUCCESS;
}

static int give(void *to, size_t room, size_t *written, const void *from, size_t bytes)
{
	if (room && room < bytes)
		return BLAS_INVALID_VALUE;
	if (room && bytes)
		memcpy(to, from, bytes);
	if (written)
		*written = bytes;
	return BLAS_SUCCESS;
}

BLAS_EXPORT int cublasLtMatmulAlgoCapGetAttribute(
	const struct lt_algo *algo, int number, void *to, size_t room, size_t *written);
BLAS_EXPORT int cublasLtMatmulAlgoCapGetAttribute(
	const struct lt_algo *algo, int number, void *to, size_t room, size_t *written)
{
	enum { TILES = 640 };
	uint32_t tiles[TILES];
	uint32_t epilogues = LT_RELU | LT_BIAS | LT_DRELU | LT_BGRAD | LT_GELU | LT_DGELU |
			     LT_AUX | LT_BGRADA | LT_BGRADB | LT_DEFAULT;
	uint64_t numerics = LT_FMA;
	uint32_t value;

	if (algo->mark != LT_ALGO)
		return BLAS_INVALID_VALUE;
	switch (number) {
	case 3:	 /* strided batches */
	case 21: /* batches by addresses */
	case 23: /* the same, each of its own shape */
	case 4:	 /* D beside C */
	case 16: /* alignments */
	case 17:
	case 18:
	case 19: value = 1; break;
	case 6: /* any tile is as good as any other */
		for (uint32_t i = 0; i < TILES; i++)
			tiles[i] = i;
		return give(to, room, written, tiles, sizeof(tiles));
	case 11: value = 31; break; /* pointer modes */
	case 12: value = epilogues; break;
	case 13: return give(to, room, written, NULL, 0); /* a list without a stage */
	case 15: return give(to, room, written, &numerics, sizeof(numerics));
	case 0:
	case 1:
	case 2:
	case 5:
	case 7:
	case 10:
	case 14:
	case 22: value = 0; break;
	default: return BLAS_INVALID_VALUE;
	}
	return give(to, room, written, &value, sizeof(value));
}

static uint32_t config_bytes(int number)
{
	return number == 7 || number == 8 ? 2 : 4;
}

BLAS_EXPORT int cublasLtMatmulAlgoConfigGetAttribute(
	const struct lt_algo *algo, int number, void *to, size_t room, size_t *written);
BLAS_EXPORT int cublasLtMatmulAlgoConfigGetAttribute(
	const struct lt_algo *algo, int number, void *to, size_t room, size_t *written)
{
	if (algo->mark != LT_ALGO || number < 0 || number >= LT_CONFIGS)
		return BLAS_INVALID_VALUE;
	return give(to, room, written, &algo->config[number], config_bytes(number));
}

BLAS_EXPORT int cublasLtMatmulAlgoConfigSetAttribute(
	struct lt_algo *algo, int number, const void *from, size_t bytes);
BLAS_EXPORT int cublasLtMatmulAlgoConfigSetAttribute(
	struct lt_algo *algo, int number, const void *from, size_t bytes)
{
	if (algo->mark != LT_ALGO || number < 1 || number >= LT_CONFIGS ||
		bytes != config_bytes(number))
		return BLAS_INVALID_VALUE;
	memcpy(&algo->config[number], from, bytes);
	return BLAS_SUCCESS;
}
