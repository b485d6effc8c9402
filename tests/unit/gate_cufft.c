/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU's cuFFT with a gate before each plan: it opens for one when the test writes
 * a byte to the pipe whose end is in $VCUDA_SOFTGPU_GATE.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

typedef int make_1d(int plan, int nx, int type, int batch, size_t *bytes);

__attribute__((visibility("default"))) make_1d cufftMakePlan1d;
int cufftMakePlan1d(int plan, int nx, int type, int batch, size_t *bytes)
{
	const char *fd = getenv("VCUDA_SOFTGPU_GATE");
	make_1d *make;
	char byte;

	if (fd && read(atoi(fd), &byte, 1) != 1)
		return 5; /* CUFFT_INTERNAL_ERROR */
	*(void **)&make = dlsym(RTLD_NEXT, "cufftMakePlan1d");
	return make(plan, nx, type, batch, bytes);
}
