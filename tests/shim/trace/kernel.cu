// SPDX-License-Identifier: Apache-2.0
/*
 * A kernel as compiled code registers it, for trace.c.
 */
__global__ void nothing(unsigned long long) {}

extern "C" const void *trace_kernel(void);
const void *trace_kernel(void)
{
	return (const void *)nothing;
}
