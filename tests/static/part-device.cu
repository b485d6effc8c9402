// SPDX-License-Identifier: Apache-2.0
/* The part of part.cu's device code that is linked to it on the device's side. */
__device__ int runs;

__device__ int step(int number)
{
	return number + PART_ADDS;
}
