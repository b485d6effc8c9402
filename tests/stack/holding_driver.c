/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU, where the second device is not opened while there is the file FILE.hold of
 * `fall-with=FILE`: a new worker has seen the first one by then, and says so later.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) CUresult cuDevicePrimaryCtxRetain(
	CUcontext *context, CUdevice device)
{
	const char *file = strstr(getenv("VCUDA_SOFTGPU_FAULT"), "fall-with=");
	char hold[256];

	snprintf(hold, sizeof(hold), "%.200s.hold", file + strlen("fall-with="));
	while (device == 1 && !access(hold, F_OK))
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	return ((__typeof__(&cuDevicePrimaryCtxRetain))dlsym(
		RTLD_NEXT, "cuDevicePrimaryCtxRetain"))(context, device);
}
