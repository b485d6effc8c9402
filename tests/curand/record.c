/* SPDX-License-Identifier: Apache-2.0
 *
 * What cuRAND answers for each generator, distribution, ordering, seed, offset and size, a line
 * a case.  Natively it makes the file that tests/curand/run.py holds the software GPU against.
 *
 *	record [device|host]
 *
 * A case is a generator and calls on it, each of one distribution: "u" 32 bits, "U" 64 bits,
 * "f" uniform, "F" uniform double, "n" "N" normal, "l" "L" log-normal, "p" Poisson.  A line
 * names the case, then for each call its status, the hash of all its bytes and some of its
 * values.
 */
#include <cuda_runtime_api.h>
#include <curand.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST (1 << 20)
#define UNSET UINT64_MAX

struct run {
	int type, ordering; /* ordering 0: not set */
	uint64_t seed, offset;
	unsigned dimensions;
	double parameter; /* of a distribution: deviation, lambda */
	const char *calls;
	size_t sizes[4]; /* of each call */
};

static bool on_host;
static void *device, *host;

static uint64_t hash(const unsigned char *bytes, size_t n)
{
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ bytes[i]) * 1099511628211u;
	return h;
}

static size_t width(char call)
{
	return strchr("UFNL", call) ? 8 : 4;
}

static int generate(curandGenerator_t g, char call, void *to, size_t n, double parameter)
{
	float f = (float)parameter;

	switch (call) {
	case 'u': return curandGenerate(g, to, n);
	case 'U': return curandGenerateLongLong(g, to, n);
	case 'f': return curandGenerateUniform(g, to, n);
	case 'F': return curandGenerateUniformDouble(g, to, n);
	case 'n': return curandGenerateNormal(g, to, n, 0.5f, f);
	case 'N': return curandGenerateNormalDouble(g, to, n, 0.5, parameter);
	case 'l': return curandGenerateLogNormal(g, to, n, 0.5f, f);
	case 'L': return curandGenerateLogNormalDouble(g, to, n, 0.5, parameter);
	default: return curandGeneratePoisson(g, to, n, parameter);
	}
}

/* The first six values, those around 4096, the last. */
static void show(const unsigned char *bytes, size_t n, size_t each)
{
	static const size_t more[] = {1000, 4095, 4096, 4097, 8192, 32768};
	uint64_t value;

	for (size_t i = 0; i < n; i++) {
		bool wanted = i < 6 || i == n - 1;

		for (size_t j = 0; j < sizeof(more) / sizeof(more[0]); j++)
			wanted = wanted || i == more[j];
		if (!wanted)
			continue;
		value = 0;
		memcpy(&value, bytes + i * each, each);
		printf(" %zu=%0*llx", i, (int)each * 2, (unsigned long long)value);
	}
}

static void call_one(curandGenerator_t g, const struct run *run, size_t at)
{
	char call = run->calls[at];
	size_t n = run->sizes[at], bytes = n * width(call);
	int status;

	memset(host, 0xa5, bytes);
	if (!on_host)
		cudaMemset(device, 0xa5, bytes);
	status = generate(g, call, on_host ? host : device, n, run->parameter);
	if (!on_host && cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost)) {
		printf(" %c%zu:lost", call, n);
		return;
	}
	printf(" %c%zu:%d", call, n, status);
	if (!status) {
		printf(":%016llx", (unsigned long long)hash(host, bytes));
		show(host, n, width(call));
	}
}

static void show_case(const struct run *run)
{
	printf("%s type=%d", on_host ? "host" : "device", run->type);
	if (run->ordering)
		printf(" ordering=%d", run->ordering);
	if (run->seed != UNSET)
		printf(" seed=%llu", (unsigned long long)run->seed);
	if (run->offset)
		printf(" offset=%llu", (unsigned long long)run->offset);
	if (run->dimensions)
		printf(" dimensions=%u", run->dimensions);
	printf(" parameter=%g |", run->parameter);
}

static void run_case(const struct run *run)
{
	curandGenerator_t g = NULL;
	int status = on_host ? curandCreateGeneratorHost(&g, run->type)
			     : curandCreateGenerator(&g, run->type);

	show_case(run);
	printf(" create:%d", status);
	if (!status && run->ordering)
		printf(" ordering:%d", curandSetGeneratorOrdering(g, run->ordering));
	if (!status && run->seed != UNSET)
		printf(" seed:%d", curandSetPseudoRandomGeneratorSeed(g, run->seed));
	if (!status && run->offset)
		printf(" offset:%d", curandSetGeneratorOffset(g, run->offset));
	if (!status && run->dimensions)
		printf(" dimensions:%d",
			curandSetQuasiRandomGeneratorDimensions(g, run->dimensions));
	for (size_t i = 0; !status && run->calls[i]; i++)
		call_one(g, run, i);
	if (!status)
		printf(" destroy:%d", curandDestroyGenerator(g));
	putchar('\n');
	fflush(stdout);
}

static const int types[] = {100, 101, 121, 141, 142, 161, 200, 201, 202, 203, 204};
#define TYPES (sizeof(types) / sizeof(types[0]))

static bool quasi(int type)
{
	return type >= CURAND_RNG_QUASI_DEFAULT;
}

static bool is_64(int type)
{
	return type >= CURAND_RNG_QUASI_SOBOL64;
}

static struct run plain(int type, const char *calls)
{
	return (struct run){.type = type,
		.seed = quasi(type) ? UNSET : 1234,
		.parameter = 1,
		.calls = calls,
		.sizes = {50000, 50000, 50000, 50000}};
}

static void distributions(int type)
{
	static const char *const every[] = {"u", "U", "f", "F", "n", "N", "l", "L", "p"};
	static const double lambdas[] = {0.3, 8, 70, 1500, 5000};

	for (size_t i = 0; i < sizeof(every) / sizeof(every[0]); i++) {
		/* Each twice, then raw bits: how far it went. */
		const char tail = is_64(type) ? 'U' : 'u';
		const char calls[] = {every[i][0], every[i][0], tail, 0};
		struct run run = plain(type, calls);

		memcpy(run.sizes, (size_t[]){10000, 6, 20}, 3 * sizeof(size_t));
		run.parameter = 2;
		run_case(&run);
		memcpy(run.sizes, (size_t[]){7, 50001, 20}, 3 * sizeof(size_t));
		run_case(&run);
	}
	for (size_t i = 0; i < sizeof(lambdas) / sizeof(lambdas[0]); i++) {
		struct run run = plain(type, "p");

		run.parameter = lambdas[i];
		run_case(&run);
	}
}

static void orderings(int type)
{
	static const int pseudo[] = {100, 101, 102, 103, 104, 201};
	static const char *const some[] = {"u", "F", "n"};

	for (size_t i = 0; i < sizeof(pseudo) / sizeof(pseudo[0]); i++) {
		for (size_t j = 0; j < sizeof(some) / sizeof(some[0]); j++) {
			struct run run = plain(type, is_64(type) && !j ? "U" : some[j]);

			run.ordering = pseudo[i];
			run_case(&run);
		}
	}
}

static void seeds(int type)
{
	static const uint64_t some[] = {UNSET, 0, 1, 0xdeadbeef, 0xdeadbeefcafebabe};
	static const uint64_t offsets[] = {0, 1, 7, 4096, 1000000, 10000000000};

	for (size_t i = 0; i < (quasi(type) ? 1 : sizeof(some) / sizeof(some[0])); i++) {
		for (size_t j = 0; j < sizeof(offsets) / sizeof(offsets[0]); j++) {
			struct run run = plain(type, is_64(type) ? "UU" : "uu");

			run.seed = some[i];
			run.offset = offsets[j];
			memcpy(run.sizes, (size_t[]){5000, 5000}, 2 * sizeof(size_t));
			run_case(&run);
		}
	}
}

static void dimensions(int type)
{
	static const unsigned some[] = {1, 2, 3, 7, 100, 20000, 20001};

	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		struct run run = plain(type, is_64(type) ? "UFU" : "ufu");

		run.dimensions = some[i];
		for (size_t j = 0; j < 3; j++)
			run.sizes[j] = some[i] < 1000 ? some[i] * (100 + j) : some[i] * (2 + j);
		run_case(&run);
		run.calls = "u";
		run.sizes[0] = some[i] * 3 + 1;
		run_case(&run);
		run.offset = 11;
		run.calls = is_64(type) ? "UNU" : "unu";
		for (size_t j = 0; j < 3; j++)
			run.sizes[j] = some[i] * 8;
		run_case(&run);
	}
}

/* Sizes near what kernels are made of, and calls that follow one another. */
static void sizes(int type)
{
	static const size_t some[] = {1, 2, 255, 4095, 4097, 16384, 131072, 262147, 1000000};

	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		struct run run = plain(type, is_64(type) ? "UU" : "uu");

		run.sizes[0] = run.sizes[1] = some[i];
		if (width(run.calls[0]) * some[i] <= 8u * MOST)
			run_case(&run);
		run.calls = "fF";
		run_case(&run);
	}
}

/* Tables: the first and last vectors, and all of them as a hash. */
static void tables(void)
{
	for (int set = 101; set <= 102; set++) {
		curandDirectionVectors32_t *vectors = NULL;
		int status = curandGetDirectionVectors32(&vectors, set);

		printf("table vectors32 %d | %d", set, status);
		if (!status)
			printf(":%016llx", (unsigned long long)hash(
						   (void *)vectors, 20000 * sizeof(*vectors)));
		putchar('\n');
	}
	for (int set = 103; set <= 104; set++) {
		curandDirectionVectors64_t *vectors = NULL;
		int status = curandGetDirectionVectors64(&vectors, set);

		printf("table vectors64 %d | %d", set, status);
		if (!status)
			printf(":%016llx", (unsigned long long)hash(
						   (void *)vectors, 20000 * sizeof(*vectors)));
		putchar('\n');
	}
}

static void constants(void)
{
	unsigned int *c32 = NULL;
	unsigned long long *c64 = NULL;
	int status = curandGetScrambleConstants32(&c32);

	printf("table constants32 | %d:%016llx\n", status,
		(unsigned long long)(status ? 0 : hash((void *)c32, 20000 * sizeof(*c32))));
	status = curandGetScrambleConstants64(&c64);
	printf("table constants64 | %d:%016llx\n", status,
		(unsigned long long)(status ? 0 : hash((void *)c64, 20000 * sizeof(*c64))));
}

/* What is refused, and with which status. */
static void refusals(int type)
{
	curandGenerator_t g = NULL;
	cudaStream_t stream = NULL;
	curandDiscreteDistribution_t poisson = NULL;
	int create =
		on_host ? curandCreateGeneratorHost(&g, type) : curandCreateGenerator(&g, type);
	void *to = on_host ? host : device;

	printf("%s refusals type=%d | %d", on_host ? "host" : "device", type, create);
	if (create) {
		putchar('\n');
		return;
	}
	printf(" empty:%d", curandGenerate(g, to, 0));
	printf(" seed:%d", curandSetPseudoRandomGeneratorSeed(g, 1));
	printf(" offset:%d", curandSetGeneratorOffset(g, 1));
	for (unsigned n = 0; n < 3; n++)
		printf(" dimensions:%d", curandSetQuasiRandomGeneratorDimensions(g, n * 10001));
	for (int ordering = 99; ordering < 106; ordering++)
		printf(" ordering:%d", curandSetGeneratorOrdering(g, ordering));
	printf(" odd:%d", curandGenerateNormal(g, to, 3, 0, 1));
	printf(" lambda:%d:%d", curandGeneratePoisson(g, to, 4, 0),
		curandGeneratePoisson(g, to, 4, 1e7));
	for (int method = 0; method < 14; method++)
		printf(" method:%d", curandGeneratePoissonMethod(g, to, 4, 5, method));
	printf(" deviation:%d", curandGenerateNormal(g, to, 4, 0, -1));
	cudaStreamCreate(&stream);
	printf(" stream:%d", curandSetStream(g, stream));
	printf(" seeds:%d", curandGenerateSeeds(g));
	printf(" after:%d", curandGenerate(g, to, 4));
	printf(" poisson:%d", curandCreatePoissonDistribution(20, &poisson));
	printf(" destroy:%d:%d\n", poisson ? (int)curandDestroyDistribution(poisson) : -1,
		curandDestroyGenerator(g));
	cudaStreamDestroy(stream);
	fflush(stdout);
}

static void general(void)
{
	curandGenerator_t g = NULL;
	curandDiscreteDistribution_t poisson = NULL;
	int version = 0, property = 0;

	printf("version %d", curandGetVersion(&version));
	printf(":%d", version);
	for (int i = 0; i < 4; i++)
		printf(" %d:%d", curandGetProperty((libraryPropertyType)i, &property),
			property);
	printf("\nnulls %d %d %d", curandCreateGenerator(&g, 99), curandDestroyGenerator(NULL),
		curandGenerate(NULL, device, 4));
	printf(" %d", curandSetPseudoRandomGeneratorSeed(NULL, 1));
	printf(" %d", curandCreatePoissonDistribution(-1, &poisson));
	printf(" %d\n", curandCreatePoissonDistribution(0, &poisson));
}

int main(int argc, char **argv)
{
	bool both = argc < 2;

	host = malloc(8 * MOST);
	if (!host)
		return 1;
	for (int way = 0; way < 2; way++) {
		on_host = way;
		if (!both && strcmp(argv[1], on_host ? "host" : "device"))
			continue;
		if (!on_host && cudaMalloc(&device, 8 * MOST)) {
			fprintf(stderr, "record: no device\n");
			return 1;
		}
		for (size_t i = 0; i < TYPES; i++) {
			refusals(types[i]);
			distributions(types[i]);
			orderings(types[i]);
			seeds(types[i]);
			sizes(types[i]);
			if (quasi(types[i]))
				dimensions(types[i]);
		}
	}
	tables();
	constants();
	general();
	return 0;
}
