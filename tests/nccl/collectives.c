/* SPDX-License-Identifier: Apache-2.0
 *
 * Every collective, ncclSend and ncclRecv, in every type and operation, against loops: two
 * ranks of one process, at the place of the input and at another.
 */
#include <stdbool.h>

#include "tests/nccl/check.h"

enum { COUNT = 37, ALL = RANKS * COUNT };

static void *from[RANKS], *to[RANKS];

/* --- elements ----------------------------------------------------------------------------- */

static const struct {
	const char *name;
	size_t size;
	bool real;
} types[ncclNumTypes] = {
	[ncclInt8] = {"int8", 1, false},
	[ncclUint8] = {"uint8", 1, false},
	[ncclInt32] = {"int32", 4, false},
	[ncclUint32] = {"uint32", 4, false},
	[ncclInt64] = {"int64", 8, false},
	[ncclUint64] = {"uint64", 8, false},
	[ncclFloat16] = {"float16", 2, true},
	[ncclFloat32] = {"float32", 4, true},
	[ncclFloat64] = {"float64", 8, true},
	[ncclBfloat16] = {"bfloat16", 2, true},
	[ncclFloat8e4m3] = {"float8e4m3", 1, true},
	[ncclFloat8e5m2] = {"float8e5m2", 1, true},
};

/* The numbers that the types of few bits are looked up by. */
static const double numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 5, 6};
static const uint16_t halves[] = {
	0, 0x3800, 0x3c00, 0x3e00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600};
static const uint16_t bfloats[] = {
	0, 0x3f00, 0x3f80, 0x3fc0, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0};
static const uint16_t e4m3s[] = {0, 0x30, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4a, 0x4c};
static const uint16_t e5m2s[] = {0, 0x38, 0x3c, 0x3e, 0x40, 0x42, 0x44, 0x45, 0x46};

static uint16_t few_bits(const uint16_t *bits, double value)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i] == value)
			return bits[i];
	DIE("%f is not in the table", value);
}

static void put_element(int type, void *at, int i, double value)
{
	switch (type) {
	case ncclInt8:
	case ncclUint8: ((uint8_t *)at)[i] = (uint8_t)value; break;
	case ncclInt32:
	case ncclUint32: ((uint32_t *)at)[i] = (uint32_t)value; break;
	case ncclInt64:
	case ncclUint64: ((uint64_t *)at)[i] = (uint64_t)value; break;
	case ncclFloat16: ((uint16_t *)at)[i] = few_bits(halves, value); break;
	case ncclBfloat16: ((uint16_t *)at)[i] = few_bits(bfloats, value); break;
	case ncclFloat8e4m3: ((uint8_t *)at)[i] = (uint8_t)few_bits(e4m3s, value); break;
	case ncclFloat8e5m2: ((uint8_t *)at)[i] = (uint8_t)few_bits(e5m2s, value); break;
	case ncclFloat32: ((float *)at)[i] = (float)value; break;
	default: ((double *)at)[i] = value; break;
	}
}

/* What a rank has: all four pairs of 1 and 2. */
static double value_of(int rank, int i)
{
	return rank ? 1 + (i >> 1 & 1) : 1 + (i & 1);
}

static double reduced(int type, int op, double a, double b)
{
	switch (op) {
	case ncclSum: return a + b;
	case ncclProd: return a * b;
	case ncclMax: return a > b ? a : b;
	case ncclMin: return a < b ? a : b;
	default: return types[type].real ? (a + b) / 2 : (double)(((int)a + (int)b) / 2);
	}
}

/* --- calls -------------------------------------------------------------------------------- */

static void fill(int type)
{
	unsigned char in[ALL * 8];

	for (int r = 0; r < RANKS; r++) {
		for (int i = 0; i < ALL; i++)
			put_element(type, in, i, value_of(r, i));
		put(r, from[r], in, ALL * types[type].size);
		CUDA(cuMemsetD8Async(
			(CUdeviceptr)(uintptr_t)to[r], 0xee, ALL * 8, sides[r].stream));
		CUDA(cuStreamSynchronize(sides[r].stream));
	}
}

static void expect(const char *what, int type, int rank, const void *at, int first, int count,
	double (*want)(int type, int rank, int i))
{
	unsigned char got[ALL * 8], right[8];

	get(rank, got, at, ALL * types[type].size);
	for (int i = first; i < first + count; i++) {
		put_element(type, right, 0, want(type, rank, i));
		if (memcmp(got + (size_t)i * types[type].size, right, types[type].size))
			DIE("%s of %s: rank %d: element %d is wrong", what, types[type].name,
				rank, i);
	}
}

static int operation;

static double want_reduced(int type, int rank, int i)
{
	(void)rank;
	return reduced(type, operation, value_of(0, i), value_of(1, i));
}
static double want_scattered(int type, int rank, int i)
{
	return want_reduced(type, rank, rank * COUNT + i);
}
static double want_first(int type, int rank, int i)
{
	(void)type;
	(void)rank;
	return value_of(0, i);
}
static double want_other(int type, int rank, int i)
{
	(void)type;
	return value_of(!rank, i);
}
static double want_gathered(int type, int rank, int i)
{
	(void)type;
	(void)rank;
	return value_of(i / COUNT, i % COUNT);
}
static double want_exchanged(int type, int rank, int i)
{
	(void)type;
	return value_of(i / COUNT, rank * COUNT + i % COUNT);
}
static double want_piece(int type, int rank, int i)
{
	(void)type;
	return value_of(1, rank * COUNT + i);
}

#define EACH(CALL)                                                                             \
	do {                                                                                   \
		NCCL(ncclGroupStart());                                                        \
		for (int r = 0; r < RANKS; r++) {                                              \
			ncclComm_t comm = sides[r].comm;                                       \
			CUstream stream = sides[r].stream;                                     \
			NCCL(CALL);                                                            \
		}                                                                              \
		NCCL(ncclGroupEnd());                                                          \
	} while (0)
#define BOTH(WHAT, AT, FIRST, N, WANT)                                                         \
	for (int r = 0; r < RANKS; r++)                                                        \
	expect(WHAT, type, r, (AT)[r], FIRST, N, WANT)

static void reductions(ncclDataType_t type)
{
	for (operation = 0; operation < ncclNumOps; operation++) {
		ncclRedOp_t op = (ncclRedOp_t)operation;

		fill(type);
		EACH(ncclAllReduce(from[r], to[r], ALL, type, op, comm, stream));
		BOTH("ncclAllReduce", to, 0, ALL, want_reduced);
		EACH(ncclReduce(from[r], to[r], COUNT, type, op, 1, comm, stream));
		expect("ncclReduce", type, 1, to[1], 0, COUNT, want_reduced);
		EACH(ncclReduceScatter(from[r], to[r], COUNT, type, op, comm, stream));
		BOTH("ncclReduceScatter", to, 0, COUNT, want_scattered);
		EACH(ncclAllReduce(from[r], from[r], ALL, type, op, comm, stream));
		BOTH("ncclAllReduce in place", from, 0, ALL, want_reduced);
	}
}

static void moves(ncclDataType_t type)
{
	fill(type);
	EACH(ncclBroadcast(from[r], to[r], COUNT, type, 0, comm, stream));
	BOTH("ncclBroadcast", to, 0, COUNT, want_first);
	EACH(ncclAllGather(from[r], to[r], COUNT, type, comm, stream));
	BOTH("ncclAllGather", to, 0, ALL, want_gathered);
	EACH(ncclAlltoAll(from[r], to[r], COUNT, type, comm, stream));
	BOTH("ncclAlltoAll", to, 0, ALL, want_exchanged);
	EACH(ncclScatter(from[r], to[r], COUNT, type, 1, comm, stream));
	BOTH("ncclScatter", to, 0, COUNT, want_piece);
	EACH(ncclGather(from[r], to[r], COUNT, type, 1, comm, stream));
	expect("ncclGather", type, 1, to[1], 0, ALL, want_gathered);
	NCCL(ncclGroupStart());
	for (int r = 0; r < RANKS; r++) {
		NCCL(ncclSend(from[r], COUNT, type, !r, sides[r].comm, sides[r].stream));
		NCCL(ncclRecv(to[r], COUNT, type, !r, sides[r].comm, sides[r].stream));
	}
	NCCL(ncclGroupEnd());
	BOTH("ncclSend and ncclRecv", to, 0, COUNT, want_other);
	EACH(ncclBcast(from[r], COUNT, type, 0, comm, stream));
	BOTH("ncclBcast", from, 0, COUNT, want_first);
}

static double want_scaled(int type, int rank, int i)
{
	(void)type;
	(void)rank;
	return 2 * value_of(0, i) + value_of(1, i);
}

/* Each rank's own scalar: 2 and 1, in the host's memory and in the device's. */
static void scaled(ncclDataType_t type)
{
	ncclRedOp_t op[RANKS];
	void *scalar = memory_on(1, 8);
	unsigned char two[8], one[8];

	put_element(type, two, 0, 2);
	put_element(type, one, 0, 1);
	put(1, scalar, one, types[type].size);
	fill(type);
	NCCL(ncclRedOpCreatePreMulSum(
		&op[0], two, type, ncclScalarHostImmediate, sides[0].comm));
	NCCL(ncclRedOpCreatePreMulSum(&op[1], scalar, type, ncclScalarDevice, sides[1].comm));
	EACH(ncclAllReduce(from[r], to[r], 2, type, op[r], comm, stream));
	BOTH("ncclRedOpCreatePreMulSum", to, 0, 2, want_scaled);
	for (int r = 0; r < RANKS; r++)
		NCCL(ncclRedOpDestroy(op[r], sides[r].comm));
	fill(type);
	NCCL(ncclGroupStart());
	for (int r = 0; r < RANKS; r++) {
		NCCL(ncclRedOpCreatePreMulSum(
			&op[r], r ? one : two, type, ncclScalarHostImmediate, sides[r].comm));
		NCCL(ncclAllReduce(
			from[r], to[r], 2, type, op[r], sides[r].comm, sides[r].stream));
		NCCL(ncclRedOpDestroy(op[r], sides[r].comm));
		if (ncclRedOpDestroy(op[r], sides[r].comm) != ncclInvalidArgument)
			DIE("rank %d destroys an operation twice", r);
	}
	NCCL(ncclGroupEnd());
	BOTH("an operation that is destroyed in its group", to, 0, 2, want_scaled);
}

/* A group of many operations travels in more frames than one. */
static void many(void)
{
	enum { MANY = 3000 };
	ncclDataType_t type = ncclInt32;

	fill(type);
	NCCL(ncclGroupStart());
	for (int i = 0; i < MANY / 2; i++)
		for (int r = 0; r < RANKS; r++) {
			int at = i % COUNT;

			NCCL(ncclSend((int *)from[r] + at, 1, type, !r, sides[r].comm,
				sides[r].stream));
			NCCL(ncclRecv((int *)to[r] + at, 1, type, !r, sides[r].comm,
				sides[r].stream));
		}
	NCCL(ncclGroupEnd());
	BOTH("a group of many", to, 0, COUNT, want_other);
}

/* Those of one color, by their keys; and whom nobody has. */
static void split(void)
{
	ncclComm_t parts[RANKS];
	int rank, count;

	NCCL(ncclGroupStart());
	for (int r = 0; r < RANKS; r++)
		NCCL(ncclCommSplit(sides[r].comm, 7, -r, &parts[r], NULL));
	NCCL(ncclGroupEnd());
	for (int r = 0; r < RANKS; r++) {
		NCCL(ncclCommUserRank(parts[r], &rank));
		NCCL(ncclCommCount(parts[r], &count));
		if (rank != !r || count != RANKS)
			DIE("rank %d is %d of %d by its key", r, rank, count);
		NCCL(ncclCommDestroy(parts[r]));
	}
	NCCL(ncclGroupStart());
	for (int r = 0; r < RANKS; r++)
		NCCL(ncclCommSplit(
			sides[r].comm, r ? NCCL_SPLIT_NOCOLOR : 0, 0, &parts[r], NULL));
	NCCL(ncclGroupEnd());
	NCCL(ncclCommCount(parts[0], &count));
	if (count != 1 || parts[1])
		DIE("%d of color 0, and one of no color: %p", count, (void *)parts[1]);
	NCCL(ncclCommDestroy(parts[0]));
}

/* What a stream has before a collective is done before, and what is behind it after. */
static void ordered(void)
{
	enum { ROUNDS = 50 };
	int32_t got;

	for (int n = 0; n < ROUNDS; n++) {
		NCCL(ncclGroupStart());
		for (int r = 0; r < RANKS; r++) {
			use(r);
			CUDA(cuMemsetD32Async((CUdeviceptr)(uintptr_t)from[r], (unsigned)n, 1,
				sides[r].stream));
			NCCL(ncclAllReduce(from[r], to[r], 1, ncclInt32, ncclSum, sides[r].comm,
				sides[r].stream));
		}
		NCCL(ncclGroupEnd());
		get(1, &got, to[1], sizeof(got));
		if (got != 2 * n)
			DIE("round %d: %d", n, got);
	}
}

int main(void)
{
	void *memory, *handle;

	ranks_begin();
	for (int r = 0; r < RANKS; r++) {
		from[r] = memory_on(r, ALL * 8);
		to[r] = memory_on(r, ALL * 8);
	}
	for (int type = 0; type < ncclNumTypes; type++) {
		reductions((ncclDataType_t)type);
		moves((ncclDataType_t)type);
		scaled((ncclDataType_t)type);
	}
	many();
	split();
	ordered();
	use(0);
	NCCL(ncclMemAlloc(&memory, 1 << 20));
	NCCL(ncclCommRegister(sides[0].comm, memory, 1 << 20, &handle));
	NCCL(ncclCommDeregister(sides[0].comm, handle));
	NCCL(ncclMemFree(memory));
	ranks_wait();
	ranks_end();
	printf("%d types, %d operations\n", ncclNumTypes, ncclNumOps);
	return 0;
}
