/* SPDX-License-Identifier: Apache-2.0
 *
 * A library with a CUDA runtime in it and without symbols, as wheels bring them; and what NVRTC
 * does that is linked in beside the runtime.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int device_count(void);
EXPORTED int there_and_back(int value);
EXPORTED int runtime_version(void);
EXPORTED int last_error(void);
EXPORTED CUresult table(CUresult (*get)(const void **table, const CUuuid *id));

int device_count(void)
{
	int count = 0;

	return cudaGetDeviceCount(&count) ? -1 : count;
}

int there_and_back(int value)
{
	int *memory, back = -1;

	if (cudaMalloc((void **)&memory, sizeof(*memory)) ||
		cudaMemcpy(memory, &value, sizeof(value), cudaMemcpyHostToDevice) ||
		cudaMemcpy(&back, memory, sizeof(back), cudaMemcpyDeviceToHost) ||
		cudaFree(memory))
		return -1;
	return back;
}

int runtime_version(void)
{
	int version = 0;

	return cudaRuntimeGetVersion(&version) ? -1 : version;
}

/* After an error of this copy's. */
int last_error(void)
{
	int status = cudaSetDevice(1000), last = cudaGetLastError();

	/* No tail call: docs/RUNTIME.md. */
	__asm__ volatile("" : "+r"(last));
	return status == last ? last : -1;
}

CUresult table(CUresult (*get)(const void **, const CUuuid *))
{
	static const CUuuid id = {{1, 2, 3}};
	const void *found;
	CUresult status = get(&found, &id);

	/* No tail call: the driver sees who asks by where it returns to. */
	__asm__ volatile("" : "+r"(status));
	return status;
}
