/* SPDX-License-Identifier: Apache-2.0
 *
 * Does one thing with cuRAND many times, so that what each costs can be counted.
 *
 *	steady bits|normal|poisson|sobol|reseed|stream|make|host COUNT
 */
#include "tests/curand/check.h"

#define N 1000

static curandGenerator_t generator, quasi, host;
static cudaStream_t streams[2];
static void *device;
static unsigned filled[N];

static void step(const char *thing, int i)
{
	curandGenerator_t made;

	if (!strcmp(thing, "bits")) {
		RAND(curandGenerate(generator, device, N));
	} else if (!strcmp(thing, "normal")) {
		RAND(curandGenerateNormal(generator, device, N, 0, 1));
		RAND(curandGenerateLogNormalDouble(generator, device, N, 0, 1));
	} else if (!strcmp(thing, "poisson")) {
		RAND(curandGeneratePoisson(generator, device, N, 4));
	} else if (!strcmp(thing, "sobol")) {
		RAND(curandGenerateUniform(quasi, device, N));
	} else if (!strcmp(thing, "reseed")) { /* another seed each time */
		RAND(curandSetPseudoRandomGeneratorSeed(generator, (unsigned)i));
		RAND(curandSetGeneratorOffset(generator, (unsigned)i));
		RAND(curandGenerateUniform(generator, device, N));
	} else if (!strcmp(thing, "stream")) {
		RAND(curandSetStream(generator, streams[i % 2]));
		RAND(curandGenerateUniformDouble(generator, device, N));
	} else if (!strcmp(thing, "make")) {
		RAND(curandCreateGenerator(&made, CURAND_RNG_PSEUDO_PHILOX4_32_10));
		RAND(curandDestroyGenerator(made));
	} else if (!strcmp(thing, "host")) {
		RAND(curandGenerate(host, filled, N));
	} else {
		DIE("unknown thing '%s'", thing);
	}
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 0;

	if (count < 1)
		DIE("usage: steady THING COUNT");
	CUDA(cudaMalloc(&device, N * sizeof(double)));
	for (int i = 0; i < 2; i++)
		CUDA(cudaStreamCreate(&streams[i]));
	RAND(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
	RAND(curandCreateGenerator(&quasi, CURAND_RNG_QUASI_SOBOL32));
	RAND(curandCreateGeneratorHost(&host, CURAND_RNG_PSEUDO_DEFAULT));
	RAND(curandSetQuasiRandomGeneratorDimensions(quasi, 10));
	for (int i = 0; i < count; i++)
		step(argv[1], i);
	CUDA(cudaDeviceSynchronize());
	return 0;
}
