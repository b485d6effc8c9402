/* SPDX-License-Identifier: Apache-2.0
 *
 * Poisson distributions for kernels: in the device's memory, as curand_discrete.h lays them
 * out.
 */
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/rand/rand.h"

#define METHOD_M2 5    /* CURAND_M2: Walker's table */
#define METHOD_GAUSS 7 /* CURAND_DISCRETE_GAUSS */

/* One piece of device memory: these, then the table. */
struct device_distribution {
	struct head {
		uint64_t self, m2, host_m2;
		double deviation, mean;
		int32_t method;
		uint32_t host_gen;
	} head;
	struct shift {
		uint64_t histogram, host_histogram;
		uint32_t shift, length, host_gen, reserved;
	} shift;
	struct histogram {
		uint64_t v, host_v, k, host_k;
		uint32_t host_gen, reserved;
	} histogram;
	double v[];
};

static void distribution_lay_out(
	struct device_distribution *at, CUdeviceptr to, const struct rand_discrete *d)
{
	uint64_t v = to + offsetof(struct device_distribution, v);
	uint64_t k = v + d->length * sizeof(*d->v);

	at->head = (struct head){.self = to,
		.m2 = to + offsetof(struct device_distribution, shift),
		.deviation = d->deviation,
		.mean = d->mean,
		.method = d->length ? METHOD_M2 : METHOD_GAUSS};
	at->shift = (struct shift){
		.histogram = to + offsetof(struct device_distribution, histogram),
		.shift = d->shift,
		.length = d->length};
	at->histogram = (struct histogram){.v = v, .k = k};
	if (!d->length)
		return;
	memcpy(at->v, d->v, d->length * sizeof(*d->v));
	memcpy((char *)at->v + d->length * sizeof(*d->v), d->k, d->length * sizeof(*d->k));
}

static int distribution_make(CUdeviceptr *to, const struct rand_discrete *d)
{
	size_t bytes = sizeof(struct device_distribution) +
		       d->length * (sizeof(*d->v) + sizeof(*d->k));
	struct device_distribution *at = calloc(1, bytes);
	CUdeviceptr made = 0;
	int status = RAND_ALLOCATION_FAILED;

	if (at && !cuMemAlloc(&made, bytes)) {
		distribution_lay_out(at, made, d);
		status = cuMemcpyHtoD(made, at, bytes) ? RAND_LAUNCH_FAILURE : RAND_SUCCESS;
		if (status)
			cuMemFree(made);
	}
	free(at);
	if (!status)
		*to = made;
	return status;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT int curandCreatePoissonDistribution(double lambda, CUdeviceptr *distribution);
EXPORT int curandCreatePoissonDistribution(double lambda, CUdeviceptr *distribution)
{
	struct rand_discrete d;
	int status;

	if (!(lambda > 0 && lambda <= RAND_LAMBDA_MAX) || !distribution)
		return RAND_OUT_OF_RANGE;
	if (!rand_discrete_make(&d, lambda))
		return RAND_ALLOCATION_FAILED;
	status = distribution_make(distribution, &d);
	rand_discrete_free(&d);
	return status;
}

EXPORT int curandDestroyDistribution(CUdeviceptr distribution);
EXPORT int curandDestroyDistribution(CUdeviceptr distribution)
{
	if (!distribution)
		return RAND_NOT_INITIALIZED;
	return cuMemFree(distribution) ? RAND_INTERNAL_ERROR : RAND_SUCCESS;
}
