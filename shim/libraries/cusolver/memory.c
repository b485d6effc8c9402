/* SPDX-License-Identifier: Apache-2.0
 *
 * See cusolver.h.
 */
#include "shim/generated/cusolver_hand.h"
#include "shim/libraries/cusolver/cusolver.h"

static void fault(struct cusolver_memory *memory, CUresult status)
{
	if (!memory->status)
		memory->status = front_status(&cusolver_front, status);
}

void *cusolver_memory_put(struct cusolver_memory *memory, const void *from, uint64_t bytes)
{
	CUdeviceptr at = 0;

	if (memory->used == sizeof(memory->at) / sizeof(*memory->at))
		fault(memory, CUDA_ERROR_INVALID_VALUE);
	if (!memory->status)
		fault(memory, vcuda_front_context());
	if (!memory->status)
		fault(memory, cuMemAlloc(&at, bytes ? bytes : 1));
	if (memory->status)
		return NULL;
	memory->at[memory->used++] = at;
	if (from && bytes)
		fault(memory, cuMemcpyHtoD(at, from, bytes));
	return memory->status ? NULL : (void *)(uintptr_t)at;
}

void cusolver_memory_wait(struct cusolver_memory *memory)
{
	if (!memory->status)
		fault(memory, cuStreamSynchronize(CU_STREAM_LEGACY));
}

void cusolver_memory_get(struct cusolver_memory *memory, CUstream stream, void *to,
	const void *from, uint64_t bytes)
{
	if (!memory->status)
		fault(memory, cuStreamSynchronize(stream));
	if (!memory->status && bytes)
		fault(memory, cuMemcpyDtoH(to, (CUdeviceptr)(uintptr_t)from, bytes));
}

int cusolver_memory_end(struct cusolver_memory *memory, int status)
{
	while (memory->used)
		cuMemFree(memory->at[--memory->used]);
	return status ? status : memory->status;
}
