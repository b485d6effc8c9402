// SPDX-License-Identifier: Apache-2.0
/* The libraries of part.cu, as mixed.cu calls them. Results are cudaError_t. */
#pragma once

extern "C" {
int part_constructed(void);	   /* what CUDA said to a constructor of the library */
int part_add(int *numbers, int n); /* adds PART_ADDS to each, in device memory, and waits */
int part_runs(int *runs);	   /* how often a kernel of the library has run */
int part_fail(void);		   /* a call that fails */
int part_last(void);		   /* cudaGetLastError */
}
