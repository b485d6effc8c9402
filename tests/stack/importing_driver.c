/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU, where memory of another process is not imported while there is the file
 * that VCUDA_SOFTGPU_IMPORT_HOLD names, for a minute.  NVIDIA's driver takes 36 us for each.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define STEP_MS 5
#define MOST_MS 60000

__attribute__((visibility("default"))) CUresult cuMemImportFromShareableHandle(
	CUmemGenericAllocationHandle *memory, void *handle, CUmemAllocationHandleType type)
{
	const char *hold = getenv("VCUDA_SOFTGPU_IMPORT_HOLD");

	for (int ms = 0; hold && ms < MOST_MS && !access(hold, F_OK); ms += STEP_MS)
		nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
	return ((__typeof__(&cuMemImportFromShareableHandle))dlsym(
		RTLD_NEXT, "cuMemImportFromShareableHandle"))(memory, handle, type);
}
