/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts and times a program's calls of cuDNN, cuBLAS and the CUDA runtime, natively as well as
 * through vcuda: preloaded before everything else, it stands before both.  first_time.py builds
 * it and reads what it wrote down by calls_take().
 *
 * A wrapper passes sixteen words on as they came, so only functions without floating-point
 * parameters can stand in the list.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define LABELS 256
#define KNOWN 8192 /* descriptors of the graph API, by address */

static struct label {
	char name[72];
	uint64_t count, nanoseconds;
} labels[LABELS];
static unsigned label_count;
static struct {
	uintptr_t descriptor;
	int type;
} known[KNOWN];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int within; /* a library that calls another is counted once */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void note(const char *name, uint64_t nanoseconds)
{
	unsigned i = 0;

	pthread_mutex_lock(&lock);
	while (i < label_count && strcmp(labels[i].name, name))
		i++;
	if (i == label_count && i < LABELS) {
		snprintf(labels[i].name, sizeof(labels[i].name), "%s", name);
		label_count++;
	}
	if (i < LABELS) {
		labels[i].count++;
		labels[i].nanoseconds += nanoseconds;
	}
	pthread_mutex_unlock(&lock);
}

static const char *kind(int type)
{
	switch (type) {
	case 2: return "engine";
	case 3: return "configuration";
	case 4: return "heuristics";
	case 5: return "plan";
	case 15: return "graph";
	default: return "other";
	}
}

static void remember(uintptr_t descriptor, int type)
{
	known[descriptor / 16 % KNOWN].descriptor = descriptor;
	known[descriptor / 16 % KNOWN].type = type;
}

static int type_of(uintptr_t descriptor)
{
	return known[descriptor / 16 % KNOWN].descriptor == descriptor
		       ? known[descriptor / 16 % KNOWN].type
		       : -1;
}

/* The next one behind us, or the library's own where it is not in the global scope. */
static void *real(const char *name)
{
	static const char *const libraries[] = {"libcudnn.so.9", "libcublas.so.13",
		"libcublasLt.so.13", "libcudart.so.13", "libcublas.so.12", "libcublasLt.so.12",
		"libcudart.so.12"};
	void *found = dlsym(RTLD_NEXT, name);

	for (unsigned i = 0; !found && i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);

		if (library)
			found = dlsym(library, name);
	}
	return found;
}

typedef long (*any)(long, long, long, long, long, long, long, long, long, long, long, long,
	long, long, long, long);

static void tell(const char *name, const long *a, uint64_t took)
{
	char text[72];

	if (!strcmp(name, "cudnnBackendFinalize"))
		snprintf(text, sizeof(text), "%s(%s)", name, kind(type_of((uintptr_t)a[0])));
	else if (!strcmp(name, "cudnnBackendGetAttribute"))
		snprintf(
			text, sizeof(text), "%s(%d%s)", name, (int)a[1], a[3] ? "" : ", count");
	else
		snprintf(text, sizeof(text), "%s", name);
	note(text, took);
}

#define CALL(NAME)                                                                             \
	EXPORT long NAME(long a, long b, long c, long d, long e, long f, long g, long h,       \
		long i, long j, long k, long l, long m, long n, long o, long p)                \
	{                                                                                      \
		static any next;                                                               \
		const long args[] = {a, b, c, d};                                              \
		uint64_t start;                                                                \
		long result;                                                                   \
                                                                                               \
		if (!next)                                                                     \
			next = (any)(uintptr_t)real(#NAME);                                    \
		within++;                                                                      \
		start = now();                                                                 \
		result = next(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);                 \
		if (!--within)                                                                 \
			tell(#NAME, args, now() - start);                                      \
		if (#NAME[5] == 'B' && !strcmp(#NAME, "cudnnBackendCreateDescriptor") &&       \
			!(int)result)                                                          \
			remember(*(uintptr_t *)(uintptr_t)b, (int)a);                          \
		return result;                                                                 \
	}

CALL(cudnnCreate)
CALL(cudnnBackendCreateDescriptor)
CALL(cudnnBackendDestroyDescriptor)
CALL(cudnnBackendSetAttribute)
CALL(cudnnBackendGetAttribute)
CALL(cudnnBackendFinalize)
CALL(cudnnBackendExecute)
CALL(cudnnGetConvolutionForwardAlgorithm_v7)
CALL(cudnnGetConvolutionBackwardDataAlgorithm_v7)
CALL(cudnnGetConvolutionBackwardFilterAlgorithm_v7)
CALL(cudnnGetConvolutionForwardWorkspaceSize)
CALL(cudnnGetConvolutionBackwardDataWorkspaceSize)
CALL(cudnnGetConvolutionBackwardFilterWorkspaceSize)
CALL(cudnnConvolutionForward)
CALL(cudnnConvolutionBackwardData)
CALL(cudnnConvolutionBackwardFilter)
CALL(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize)
CALL(cudnnGetBatchNormalizationTrainingExReserveSpaceSize)
CALL(cudnnGetBatchNormalizationBackwardExWorkspaceSize)
CALL(cudnnGetRNNTempSpaceSizes)
CALL(cudnnGetRNNWeightSpaceSize)
CALL(cudnnGetRNNWeightParams)
CALL(cudnnRNNForward)
CALL(cudnnRNNBackwardData_v8)
CALL(cudnnRNNBackwardWeights_v8)
CALL(cublasCreate_v2)
CALL(cublasLtCreate)
CALL(cublasLtMatmulAlgoGetHeuristic)
CALL(cublasLtMatmul)
CALL(cublasGemmEx)
CALL(cublasSgemm_v2)
CALL(cublasGemmStridedBatchedEx)
CALL(cudaLaunchKernel)
CALL(cudaLaunchKernelExC)
CALL(cudaMalloc)
CALL(cudaFree)
CALL(cudaMemcpyAsync)
CALL(cudaStreamSynchronize)
CALL(cudaDeviceSynchronize)
CALL(cudaFuncSetAttribute)
CALL(cudaFuncGetAttributes)
CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)

/* All so far, a line each: name, count, nanoseconds; and begins anew. */
EXPORT unsigned calls_take(char *to, unsigned room)
{
	unsigned used = 0;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < label_count && used + 128 < room; i++)
		used += (unsigned)snprintf(to + used, room - used, "%s %llu %llu\n",
			labels[i].name, (unsigned long long)labels[i].count,
			(unsigned long long)labels[i].nanoseconds);
	label_count = 0;
	memset(labels, 0, sizeof(labels));
	pthread_mutex_unlock(&lock);
	return used;
}
