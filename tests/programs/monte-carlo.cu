// SPDX-License-Identifier: Apache-2.0
/* The price of an Asian option by Monte Carlo: numbers of cuRAND's generators on the host's
 * side, and of its functions in a kernel, paths in a kernel, sums in blocks; both ways come
 * near the same price, and pi comes near pi. */
#include "check.h"

#include <curand.h>
#include <curand_kernel.h>
#include <dlfcn.h>
#include <math.h>

constexpr int PATHS = 8192, STEPS = 16, THREADS = 128;
constexpr float START = 100, STRIKE = 95, RATE = 0.03f, CHANGE = 0.2f, YEARS = 1;

/* A function of the library, which is opened: a machine may have none. */
template <typename F> F *function(const char *name)
{
	static void *library = dlopen("libcurand.so.10", RTLD_NOW);

	if (!library)
		SKIP("no cuRAND: %s", dlerror());
	F *found = (F *)dlsym(library, name);
	if (!found)
		FAIL("no %s", name);
	return found;
}

#define RAND(name, ...)                                                                        \
	do {                                                                                   \
		curandStatus_t status = function<decltype(name)>(#name)(__VA_ARGS__);          \
		if (status != CURAND_STATUS_SUCCESS)                                           \
			FAIL("%s gave %d", #name, (int)status);                                \
	} while (0)

__device__ void add_block(double *to, double mine)
{
	__shared__ double sums[THREADS];

	sums[threadIdx.x] = mine;
	for (int distance = THREADS / 2; distance; distance /= 2) {
		__syncthreads();
		if (threadIdx.x < distance)
			sums[threadIdx.x] += sums[threadIdx.x + distance];
	}
	if (!threadIdx.x)
		atomicAdd(to, sums[0]);
}

__device__ float next_price(float price, float normal)
{
	const float dt = YEARS / STEPS;

	return price * expf((RATE - 0.5f * CHANGE * CHANGE) * dt + CHANGE * sqrtf(dt) * normal);
}

__device__ double paid(float mean)
{
	return exp(-RATE * YEARS) * fmaxf(mean - STRIKE, 0);
}

__global__ void paths_of(const float *normals, double *sum)
{
	int path = blockIdx.x * blockDim.x + threadIdx.x;
	float price = START, mean = 0;

	for (int k = 0; k < STEPS; k++) {
		price = next_price(price, normals[k * PATHS + path]);
		mean += price / STEPS;
	}
	add_block(sum, paid(mean));
}

__global__ void paths_drawn(unsigned long long seed, double *sum)
{
	int path = blockIdx.x * blockDim.x + threadIdx.x;
	float price = START, mean = 0;
	curandStatePhilox4_32_10_t state;

	curand_init(seed, path, 0, &state);
	for (int k = 0; k < STEPS; k += 4) {
		float4 normal = curand_normal4(&state);

		for (float z : {normal.x, normal.y, normal.z, normal.w}) {
			price = next_price(price, z);
			mean += price / STEPS;
		}
	}
	add_block(sum, paid(mean));
}

__global__ void inside_circle(unsigned long long seed, int each, double *sum)
{
	curandStateXORWOW_t state;
	int hits = 0;

	curand_init(seed, blockIdx.x * blockDim.x + threadIdx.x, 0, &state);
	for (int k = 0; k < each; k++) {
		float x = curand_uniform(&state), y = curand_uniform(&state);

		hits += x * x + y * y <= 1;
	}
	add_block(sum, hits);
}

static double fetched(double *sum, double divisor)
{
	double got, zero = 0;

	CUDA(cudaMemcpy(&got, sum, sizeof(got), cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(sum, &zero, sizeof(zero), cudaMemcpyHostToDevice));
	return got / divisor;
}

static void near_to(const char *what, double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance))
		FAIL("%s is %g, not near %g", what, got, want);
}

int main()
{
	const curandRngType_t kinds[] = {CURAND_RNG_PSEUDO_XORWOW,
		CURAND_RNG_PSEUDO_PHILOX4_32_10, CURAND_RNG_PSEUDO_MRG32K3A};
	const double want = 8.4; /* ± 0.35: four times what so many paths leave open */
	float *normals;
	double *sum;

	CUDA(cudaMalloc(&normals, PATHS * STEPS * sizeof(float)));
	CUDA(cudaMalloc(&sum, sizeof(double)));
	CUDA(cudaMemset(sum, 0, sizeof(double)));
	for (curandRngType_t kind : kinds) {
		curandGenerator_t generator;
		cudaStream_t stream;

		CUDA(cudaStreamCreate(&stream));
		RAND(curandCreateGenerator, &generator, kind);
		RAND(curandSetPseudoRandomGeneratorSeed, generator, 1234);
		RAND(curandSetStream, generator, stream);
		RAND(curandGenerateNormal, generator, normals, PATHS * STEPS, 0, 1);
		paths_of<<<PATHS / THREADS, THREADS, 0, stream>>>(normals, sum);
		LAUNCHED();
		CUDA(cudaStreamSynchronize(stream));
		near_to("a price of a generator", fetched(sum, PATHS), want, 0.35);
		RAND(curandDestroyGenerator, generator);
		CUDA(cudaStreamDestroy(stream));
	}
	paths_drawn<<<PATHS / THREADS, THREADS>>>(1234, sum);
	LAUNCHED();
	near_to("the price of the kernel's numbers", fetched(sum, PATHS), want, 0.35);
	inside_circle<<<8, THREADS>>>(42, 200, sum);
	LAUNCHED();
	near_to("pi", 4 * fetched(sum, 8.0 * THREADS * 200), 3.14159265, 0.02);
	return 0;
}
