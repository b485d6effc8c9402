/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor create|get NAME: a C program of include/vcuda/tensor.h, linked with
 * libvcuda-tensor.so: makes a tensor of 1000 ints and holds it until its input ends, or reads
 * one.
 */
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include "include/vcuda/tensor.h"

#define COUNT 1000

static int fail(int status)
{
	printf("error %d: %s\n", status, vcuda_tensor_error());
	return status != 0;
}

static int make(const char *name)
{
	const int64_t shape[] = {COUNT};
	struct vcuda_tensor tensor;
	int numbers[COUNT], status;

	for (int i = 0; i < COUNT; i++)
		numbers[i] = i * i;
	status = vcuda_tensor_create(name, VCUDA_I32, 1, shape, -1, 0, &tensor);
	if (!status)
		status = (int)cuMemcpyHtoD((CUdeviceptr)tensor.data, numbers, sizeof(numbers));
	if (!status)
		status = vcuda_tensor_seal(&tensor, NULL);
	if (status)
		return fail(status);
	printf("sealed\n");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return fail(vcuda_tensor_close(&tensor));
}

static int take(const char *name)
{
	struct vcuda_tensor_stat stat;
	struct vcuda_tensor tensor;
	int numbers[COUNT], status = vcuda_tensor_stat(name, -1, &stat);

	if (!status)
		status = vcuda_tensor_get(&name, 1, -1, 0, &tensor);
	if (!status)
		status = (int)cuMemcpyDtoH(numbers, (CUdeviceptr)tensor.data, sizeof(numbers));
	if (status)
		return fail(status);
	for (int i = 0; i < COUNT; i++)
		if (numbers[i] != i * i)
			return fail(1);
	printf("right: %s\n", stat.name);
	return fail(vcuda_tensor_close(&tensor));
}

int main(int argc, char **argv)
{
	CUcontext context;

	if (argc != 3)
		return 2;
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return fail(vcuda_tensor_close(NULL));
	return strcmp(argv[1], "create") ? take(argv[2]) : make(argv[2]);
}
