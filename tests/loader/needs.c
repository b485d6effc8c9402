/* SPDX-License-Identifier: Apache-2.0
 *
 * A program linked with the shared runtime: it must get ours, of its own ABI, whether NVIDIA's
 * is installed or not.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	cudaError_t (*function)(int *) = cudaRuntimeGetVersion;
	Dl_info info = {0};
	void *address;
	int version = 0;

	memcpy(&address, &function, sizeof(address));
	if (!dladdr(address, &info) || !strstr(info.dli_fname, "/libvcuda-1")) {
		printf("fail  the runtime is %s\n",
			info.dli_fname ? info.dli_fname : "unknown");
		return 1;
	}
	if (cudaRuntimeGetVersion(&version) || version != CUDART_VERSION) {
		printf("fail  the runtime's version is %d, not %d\n", version, CUDART_VERSION);
		return 1;
	}
	printf("pass  the runtime is ours, version %d\n", version);
	return 0;
}
