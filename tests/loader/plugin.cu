// A library with the CUDA runtime linked in, opened by host.c after the program has started.
__device__ int value = 5;

__global__ void kernel(int *p)
{
	*p = 7;
}

extern "C" int plugin_devices(void)
{
	int count = -1;

	return cudaGetDeviceCount(&count) == cudaSuccess ? count : -1;
}

/* True where the library's variable and kernel are known to the runtime that answers. */
extern "C" int plugin_registered(void)
{
	size_t size = 0;
	cudaError_t symbol = cudaGetSymbolSize(&size, value);

	kernel<<<1, 1>>>(nullptr);
	return symbol != cudaErrorInvalidSymbol &&
			cudaGetLastError() != cudaErrorInvalidDeviceFunction;
}
