// SPDX-License-Identifier: Apache-2.0
/* __managed__ variables: with a value from the image, shared by host and kernels, by name and by
 * address, beside device variables that are not the host's. */
#include "check.h"

#ifdef __clang__
int main()
{
	SKIP("clang knows no __managed__");
}
#else

__managed__ int counter = 5;
__device__ int between = 77;
__managed__ double table[3000];
__managed__ struct {
	char name[12];
	int value;
} record = {"first", 1};

__global__ void step(int *by_address)
{
	counter += 10;
	*by_address += 100;
	between++;
	record.value *= 3;
	record.name[0] = 'F';
	for (int i = threadIdx.x; i < 3000; i += blockDim.x)
		table[i] = table[i] + i;
}

int main()
{
	int device_side = 0, copied = 0;
	struct cudaPointerAttributes attributes;

	if (!device_attribute(cudaDevAttrManagedMemory))
		SKIP("no managed memory");
	CHECK_EQ(counter, 5);
	CHECK_EQ(record.value, 1);
	CHECK(!strcmp(record.name, "first"));
	for (int i = 0; i < 3000; i++)
		CHECK_EQ_AT(i, table[i], 0.0);
	counter = 6;
	table[17] = 0.5;
	step<<<1, 1>>>(&counter);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());

	CHECK_EQ(counter, 116);
	CHECK(!strcmp(record.name, "First"));
	CHECK_EQ(table[17], 17.5);
	CHECK_EQ(table[2999], 2999.0);
	CUDA(cudaMemcpyFromSymbol(&device_side, between, sizeof(between)));
	CHECK_EQ(device_side, 78);

	CUDA(cudaPointerGetAttributes(&attributes, &counter));
	CHECK_EQ(attributes.type, cudaMemoryTypeManaged);
	counter = 1000;
	CUDA(cudaMemcpy(&copied, &counter, sizeof(copied), cudaMemcpyDefault));
	CHECK_EQ(copied, 1000);
	return 0;
}
#endif
