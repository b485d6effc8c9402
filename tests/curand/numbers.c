/* SPDX-License-Identifier: Apache-2.0
 *
 * cuRAND's numbers have the distributions that were asked for, of every generator, on the
 * device and on the host; streams order them; tables and Poisson distributions are there.
 */
#include <math.h>

#include "tests/curand/check.h"

#define N 60000

static const int types[] = {CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_MRG32K3A,
	CURAND_RNG_PSEUDO_MTGP32, CURAND_RNG_PSEUDO_MT19937, CURAND_RNG_PSEUDO_PHILOX4_32_10,
	CURAND_RNG_QUASI_SOBOL32, CURAND_RNG_QUASI_SCRAMBLED_SOBOL32, CURAND_RNG_QUASI_SOBOL64,
	CURAND_RNG_QUASI_SCRAMBLED_SOBOL64};
#define TYPES (sizeof(types) / sizeof(types[0]))

static void *device;
static double host[N], values[N];

/* Whether a mean of N numbers, and their deviation, are what they should be: 6 sigma. */
static void moments(const char *what, int type, double mean, double deviation)
{
	double sum = 0, squares = 0, slack = 6 * deviation / sqrt(N);

	for (int i = 0; i < N; i++)
		sum += values[i];
	for (int i = 0; i < N; i++)
		squares += (values[i] - sum / N) * (values[i] - sum / N);
	if (fabs(sum / N - mean) > slack)
		DIE("%s of %d: mean %g, not %g", what, type, sum / N, mean);
	if (fabs(sqrt(squares / N) / deviation - 1) > 0.05)
		DIE("%s of %d: deviation %g, not %g", what, type, sqrt(squares / N), deviation);
}

static void *begin(bool on_host)
{
	memset(host, 0, sizeof(host));
	return on_host ? (void *)host : device;
}

static void fetch(bool on_host, char form)
{
	if (!on_host)
		CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		values[i] = form == 'd'	  ? host[i]
			    : form == 'f' ? ((float *)host)[i]
			    : form == 'l' ? (double)((uint64_t *)host)[i] * 0x1p-64
			    : form == 'b' ? ((unsigned *)host)[i] * 0x1p-32
					  : ((unsigned *)host)[i];
}

static void distributions(curandGenerator_t g, int type, bool on_host)
{
	bool wide = type >= CURAND_RNG_QUASI_SOBOL64;
	double uniform = 1 / sqrt(12), e = exp(0.125);

	if (wide)
		RAND(curandGenerateLongLong(g, begin(on_host), N));
	else
		RAND(curandGenerate(g, begin(on_host), N));
	fetch(on_host, wide ? 'l' : 'b');
	moments("bits", type, 0.5, uniform);
	RAND(curandGenerateUniform(g, begin(on_host), N));
	fetch(on_host, 'f');
	moments("uniform", type, 0.5, uniform);
	RAND(curandGenerateUniformDouble(g, begin(on_host), N));
	fetch(on_host, 'd');
	moments("uniform double", type, 0.5, uniform);
	RAND(curandGenerateNormal(g, begin(on_host), N, 3, 2));
	fetch(on_host, 'f');
	moments("normal", type, 3, 2);
	RAND(curandGenerateNormalDouble(g, begin(on_host), N, -1, 0.5));
	fetch(on_host, 'd');
	moments("normal double", type, -1, 0.5);
	RAND(curandGenerateLogNormal(g, begin(on_host), N, 0, 0.5f));
	fetch(on_host, 'f');
	moments("log-normal", type, e, e * sqrt(exp(0.25) - 1));
	RAND(curandGenerateLogNormalDouble(g, begin(on_host), N, 0, 0.5));
	fetch(on_host, 'd');
	moments("log-normal double", type, e, e * sqrt(exp(0.25) - 1));
	for (double lambda = 0.5; lambda < 10000; lambda *= 13) {
		RAND(curandGeneratePoisson(g, begin(on_host), N, lambda));
		fetch(on_host, 'p');
		moments("Poisson", type, lambda, sqrt(lambda));
	}
}

static void every_generator(bool on_host)
{
	for (size_t i = 0; i < TYPES; i++) {
		curandGenerator_t g;

		RAND(on_host ? curandCreateGeneratorHost(&g, types[i])
			     : curandCreateGenerator(&g, types[i]));
		distributions(g, types[i], on_host);
		RAND(curandDestroyGenerator(g));
	}
}

/* What a stream copies behind a call is what the call wrote. */
static void streams(void)
{
	curandGenerator_t g;
	cudaStream_t stream;
	static float first[N], second[N];

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	RAND(curandCreateGenerator(&g, CURAND_RNG_PSEUDO_PHILOX4_32_10));
	RAND(curandSetPseudoRandomGeneratorSeed(g, 42));
	RAND(curandSetStream(g, stream));
	for (int i = 0; i < 20; i++) {
		RAND(curandSetGeneratorOffset(g, 0));
		RAND(curandGenerateUniform(g, device, N));
		CUDA(cudaMemcpyAsync(i ? second : first, device, sizeof(first),
			cudaMemcpyDeviceToHost, stream));
		CUDA(cudaMemsetAsync(device, 0, sizeof(first), stream));
	}
	CUDA(cudaStreamSynchronize(stream));
	if (!first[0] || memcmp(first, second, sizeof(first)))
		DIE("the same offset gave other numbers");
	RAND(curandGenerateUniform(g, device, N));
	CUDA(cudaMemcpyAsync(second, device, sizeof(first), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	if (!memcmp(first, second, sizeof(first)))
		DIE("the next numbers are those of before");
	RAND(curandDestroyGenerator(g));
	CUDA(cudaStreamDestroy(stream));
}

/* A generator's numbers by its own direction vectors. */
static void tables(void)
{
	curandDirectionVectors32_t *vectors = NULL, *again = NULL;
	curandDirectionVectors64_t *wide = NULL;
	unsigned int *constants = NULL, numbers[64], x;
	curandGenerator_t g;

	RAND(curandGetDirectionVectors32(&vectors, CURAND_DIRECTION_VECTORS_32_JOEKUO6));
	RAND(curandGetDirectionVectors32(&again, CURAND_DIRECTION_VECTORS_32_JOEKUO6));
	RAND(curandGetDirectionVectors64(&wide, CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6));
	RAND(curandGetScrambleConstants32(&constants));
	RAND_IS(curandGetDirectionVectors32(&again, CURAND_DIRECTION_VECTORS_64_JOEKUO6),
		CURAND_STATUS_OUT_OF_RANGE);
	if (vectors[0][0] != 0x80000000 || !wide[19999][63] || !constants[19999])
		DIE("the tables are not whole");
	RAND(curandCreateGeneratorHost(&g, CURAND_RNG_QUASI_SOBOL32));
	RAND(curandSetQuasiRandomGeneratorDimensions(g, 4));
	RAND(curandGenerate(g, numbers, 64));
	for (unsigned i = 0; i < 64; i++) {
		x = 0;
		for (unsigned j = 0; j < 32; j++)
			if (((i % 16) ^ (i % 16) >> 1) >> j & 1)
				x ^= vectors[i / 16][j];
		if (numbers[i] != x)
			DIE("number %u of dimension %u is not its vectors'", i % 16, i / 16);
	}
	RAND(curandDestroyGenerator(g));
}

static void discrete(void)
{
	curandDiscreteDistribution_t made[3];

	for (int i = 0; i < 3; i++)
		RAND(curandCreatePoissonDistribution(i == 2 ? 5000 : 3 + i, &made[i]));
	if (made[0] == made[1])
		DIE("two distributions are one");
	for (int i = 0; i < 3; i++)
		RAND(curandDestroyDistribution(made[i]));
	RAND_IS(curandCreatePoissonDistribution(0, &made[0]), CURAND_STATUS_OUT_OF_RANGE);
}

/* Both say the same, before CUDA is used and after. */
static void version(void)
{
	int number = 0, parts[3] = {0};

	RAND(curandGetVersion(&number));
	for (int i = 0; i < 3; i++)
		RAND(curandGetProperty((libraryPropertyType)i, &parts[i]));
	if (number < 10000 || parts[0] * 1000 + parts[1] * 100 + parts[2] != number)
		DIE("version %d, but parts %d %d %d", number, parts[0], parts[1], parts[2]);
}

int main(void)
{
	version();
	CUDA(cudaMalloc(&device, sizeof(host)));
	version();
	every_generator(false);
	every_generator(true);
	streams();
	tables();
	discrete();
	return 0;
}
