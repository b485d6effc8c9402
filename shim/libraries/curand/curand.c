/* SPDX-License-Identifier: Apache-2.0
 *
 * What is written by hand of the cuRAND front: versions, the library's tables and
 * distributions. Generators are generated (shim/generated/curand_stubs.c over
 * shim/libraries/common/plain.h).
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "protocol/generated/curand_ops.h"
#include "shim/generated/curand_hand.h"
#include "shim/libraries/common/plain.h"

/* What this front stands for, where there is no agent to ask. */
#define FRONT_VERSION 10401

/* That of the agent's library, once the program has begun to use CUDA: to begin it here would
 * be seen after a fork. */
static int version_get(void)
{
	static _Atomic int known;
	struct wire_curandGetVersion body = {.major = VCUDA_ABI};
	struct wire_curandGetVersion_reply reply = {0};
	int version = atomic_load(&known);
	CUcontext context;

	if (version)
		return version;
	if (cuCtxGetCurrent(&context) ||
		front_ask(OP_curandGetVersion, &body, sizeof(body), &reply, sizeof(reply)) ||
		reply.plain.status || reply.version <= 0)
		return FRONT_VERSION;
	atomic_store(&known, reply.version);
	return reply.version;
}

curandStatus_t hand_curandGetVersion(int *to)
{
	if (!to)
		return CURAND_STATUS_OUT_OF_RANGE;
	*to = version_get();
	return CURAND_STATUS_SUCCESS;
}

curandStatus_t hand_curandGetProperty(libraryPropertyType type, int *value)
{
	int version;

	if ((unsigned)type > PATCH_LEVEL || !value)
		return CURAND_STATUS_OUT_OF_RANGE;
	version = version_get();
	*value = type == MAJOR_VERSION	 ? version / 1000
		 : type == MINOR_VERSION ? version / 100 % 10
					 : version % 100;
	return CURAND_STATUS_SUCCESS;
}

/* By way of device memory: it comes as any bytes do. */
static int table_fetch(uint32_t table, void *to, uint64_t bytes)
{
	struct wire_curandGetDirectionVectors32 body = {.major = VCUDA_ABI, .table = table};
	struct wire_curandGetDirectionVectors32_reply reply = {0};
	CUresult done = vcuda_front_context();
	CUdeviceptr between = 0;
	int status;

	if (!done)
		done = cuMemAlloc(&between, bytes);
	if (done)
		return front_status(&curand_front, done);
	body.address = between;
	status = vcuda_library_ask(&curand_front, OP_curandGetDirectionVectors32, &body,
		sizeof(body), &reply, sizeof(reply), "curandGetDirectionVectors32");
	if (!status)
		status = front_status(&curand_front, cuMemcpyDtoH(to, between, bytes));
	cuMemFree(between);
	return status;
}

/* Asked once and kept, as the library's own are; of two threads that ask, one keeps its own. */
static int table_get(uint32_t table, void **to)
{
	static _Atomic(void *) tables[CURAND_TABLES];
	uint64_t bytes = curand_table_bytes(table);
	_Atomic(void *) *kept = &tables[table - CURAND_VECTORS_32];
	void *fresh = NULL, *none = NULL;
	int status;

	if (!bytes || !to)
		return CURAND_STATUS_OUT_OF_RANGE;
	*to = atomic_load(kept);
	if (*to)
		return CURAND_STATUS_SUCCESS;
	fresh = malloc(bytes);
	status = fresh ? table_fetch(table, fresh, bytes) : CURAND_STATUS_ALLOCATION_FAILED;
	if (!status && atomic_compare_exchange_strong(kept, &none, fresh)) {
		*to = fresh;
		return CURAND_STATUS_SUCCESS;
	}
	free(fresh);
	*to = none;
	return status;
}

curandStatus_t hand_curandGetDirectionVectors32(
	curandDirectionVectors32_t *vectors[], curandDirectionVectorSet_t set)
{
	if (set != CURAND_VECTORS_32 && set != CURAND_SCRAMBLED_VECTORS_32)
		return CURAND_STATUS_OUT_OF_RANGE;
	return table_get((uint32_t)set, (void **)vectors);
}

curandStatus_t hand_curandGetDirectionVectors64(
	curandDirectionVectors64_t *vectors[], curandDirectionVectorSet_t set)
{
	if (set != CURAND_VECTORS_64 && set != CURAND_SCRAMBLED_VECTORS_64)
		return CURAND_STATUS_OUT_OF_RANGE;
	return table_get((uint32_t)set, (void **)vectors);
}

curandStatus_t hand_curandGetScrambleConstants32(unsigned int **constants)
{
	return table_get(CURAND_CONSTANTS_32, (void **)constants);
}

curandStatus_t hand_curandGetScrambleConstants64(unsigned long long **constants)
{
	return table_get(CURAND_CONSTANTS_64, (void **)constants);
}

curandStatus_t hand_curandCreatePoissonDistribution(
	double lambda, curandDiscreteDistribution_t *discrete_distribution)
{
	struct wire_curandCreatePoissonDistribution body = {
		.major = VCUDA_ABI, .lambda = lambda};
	struct wire_curandCreatePoissonDistribution_reply reply = {0};
	int status;

	if (!discrete_distribution)
		return CURAND_STATUS_OUT_OF_RANGE;
	status = vcuda_library_ask(&curand_front, OP_curandCreatePoissonDistribution, &body,
		sizeof(body), &reply, sizeof(reply), "curandCreatePoissonDistribution");
	if (!status)
		*discrete_distribution =
			(curandDiscreteDistribution_t)(uintptr_t)reply.distribution;
	return status;
}

curandStatus_t hand_curandDestroyDistribution(
	curandDiscreteDistribution_t discrete_distribution)
{
	struct wire_curandDestroyDistribution body = {
		.major = VCUDA_ABI, .distribution = (uint64_t)(uintptr_t)discrete_distribution};
	struct wire_curandDestroyDistribution_reply reply = {0};

	return vcuda_library_ask(&curand_front, OP_curandDestroyDistribution, &body,
		sizeof(body), &reply, sizeof(reply), "curandDestroyDistribution");
}
