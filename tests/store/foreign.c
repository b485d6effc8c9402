/* SPDX-License-Identifier: Apache-2.0
 *
 * foreign NAMESPACE COUNT: asks COUNT times for tensors of another namespace, by names that are
 * there and by such that are not, to read, to write, to look at and to delete. Says how many it
 * had: none.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/vcuda/tensor.h"

#define BATCH 12

int main(int argc, char **argv)
{
	char texts[BATCH][96];
	const char *names[BATCH];
	struct vcuda_tensor tensors[BATCH];
	struct vcuda_tensor_stat stat;
	unsigned long count, had = 0, asked = 0;
	CUcontext context;

	if (argc != 3 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
		cuCtxSetCurrent(context))
		return 2;
	count = strtoul(argv[2], NULL, 10);
	for (unsigned long i = 0; asked < count; i++) {
		/* The store asks for each of a batch, and answers each. */
		for (unsigned k = 0; k < BATCH; k++) {
			snprintf(texts[k], sizeof(texts[k]), "%s/t%lu", argv[1], (i + k) % 7);
			names[k] = texts[k];
		}
		had += !vcuda_tensor_get(
			names, BATCH, -1, i % 2 ? VCUDA_TENSOR_WRITE : 0, tensors);
		asked += BATCH;
		if (i % 16)
			continue;
		had += !vcuda_tensor_get(names, 1, -1, 0, tensors);
		had += !vcuda_tensor_stat(names[0], -1, &stat);
		had += !vcuda_tensor_touch(names[0], -1);
		had += !vcuda_tensor_share(names[0], "*", -1);
		had += !vcuda_tensor_delete(names[0], -1);
		asked += 5;
	}
	printf("asked %lu, had %lu\n", asked, had);
	return had != 0;
}
