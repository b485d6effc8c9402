/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU with a lock that a library may hold (gate_libraries.c), and for which
 * queries of events wait, as they do in NVIDIA's driver.  $VCUDA_SOFTGPU_INSIDE is a descriptor
 * of memory in which the library counts itself.  Its function comes before that of the library
 * with which it is linked.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((visibility("default"))) CUresult cuEventQuery(CUevent event)
{
	static volatile _Atomic int *inside;
	const char *fd = getenv("VCUDA_SOFTGPU_INSIDE");
	__typeof__(&cuEventQuery) query;

	if (fd && !inside) {
		void *memory = mmap(NULL, sizeof(*inside), PROT_READ, MAP_SHARED, atoi(fd), 0);

		if (memory == MAP_FAILED)
			return CUDA_ERROR_UNKNOWN;
		inside = memory;
	}
	while (inside && *inside)
		usleep(100);
	*(void **)&query = dlsym(RTLD_NEXT, "cuEventQuery");
	return query(event);
}
