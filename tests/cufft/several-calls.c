/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans on several GPUs, called as CuPy does (work areas and memory of the program's), in a
 * stream, out of place, from a spectrum in natural order, and on one GPU that is named twice;
 * and what wrong calls and wrong orders of calls are answered.
 */
#include "tests/cufft/several.h"

#define N 256

static const struct shape line = {{1, 1, N}, 1, false, false, false};

static cudaXtDesc parts;
static cudaLibXtDesc mine = {.descriptor = &parts};

/* Memory of the program's, each part of it on its GPU. */
static void parts_make(size_t first, size_t second)
{
	parts = (cudaXtDesc){.nGPUs = 2, .size = {first, second}};
	for (int g = 0; g < 2; g++) {
		parts.GPUs[g] = both_gpus[g];
		CUDA(cudaSetDevice(both_gpus[g]));
		CUDA(cudaMalloc(&parts.data[g], parts.size[g]));
	}
	mine.subFormat = CUFFT_XT_FORMAT_INPLACE;
}

static void parts_free(void)
{
	for (int g = 0; g < 2; g++)
		CUDA(cudaFree(parts.data[g]));
}

/* As cupy.cuda.cufft.Plan1d: BATCH transforms whose parts the program copies itself. */
static void as_cupy(int batch)
{
	struct shape s = {{1, 1, N}, batch, false, false, false};
	size_t bytes = host_bytes(&s), work[2] = {0}, half;
	double complex *in = calloc(numbers(&s), sizeof(*in));
	char *host = malloc(bytes);
	void *area[2] = {NULL, NULL};
	cudaLibXtDesc *natural;
	cufftHandle plan;

	for (size_t i = 0; i < numbers(&s); i++) {
		in[i] = some_value(i) + I * some_value(3 * i);
		host_put(&s, host, i, in[i]);
	}
	FFT(cufftCreate(&plan));
	FFT(cufftSetAutoAllocation(plan, 0));
	FFT(cufftXtSetGPUs(plan, 2, both_gpus));
	FFT(plan_make(plan, &s, work));
	half = batch > 1 ? (size_t)(batch + 1) / 2 * N * 8 : bytes / 2;
	parts_make(half, bytes - half);
	if (work[0]) /* nobody has given it a work area */
		EXPECTED(cufftXtExecDescriptorC2C(plan, &mine, &mine, CUFFT_FORWARD),
			CUFFT_NO_WORKSPACE);
	for (int g = 0; g < 2; g++) {
		CUDA(cudaSetDevice(both_gpus[g]));
		if (work[g])
			CUDA(cudaMalloc(&area[g], work[g]));
		CUDA(cudaMemcpy(parts.data[g], host + (g ? half : 0), parts.size[g],
			cudaMemcpyHostToDevice));
	}
	FFT(cufftXtSetWorkArea(plan, area));
	FFT(cufftXtExecDescriptorC2C(plan, &mine, &mine, CUFFT_FORWARD));
	if (batch == 1) {
		FFT(cufftXtMalloc(plan, &natural, CUFFT_XT_FORMAT_INPLACE));
		FFT(cufftXtMemcpy(plan, natural, &mine, CUFFT_COPY_DEVICE_TO_DEVICE));
		for (int g = 0; g < 2; g++)
			CUDA(cudaMemcpy(parts.data[g], natural->descriptor->data[g],
				parts.size[g], cudaMemcpyDeviceToDevice));
		FFT(cufftXtFree(natural));
	}
	memset(host, 0xff, bytes);
	for (int g = 0; g < 2; g++)
		CUDA(cudaMemcpy(host + (g ? half : 0), parts.data[g], parts.size[g],
			cudaMemcpyDeviceToHost));
	for (int i = 0; i < N * batch; i += 3)
		near("as CuPy", (size_t)i, complex_of(&s, host, (size_t)i),
			transform_at(in + i / N * N, s.n, (int[]){0, 0, i % N}, CUFFT_FORWARD),
			N, false);
	FFT(cufftDestroy(plan));
	for (int g = 0; g < 2; g++)
		CUDA(cudaFree(area[g]));
	parts_free();
	free(host);
	free(in);
}

/* Packed real numbers become a spectrum elsewhere, and come back. */
static void out_of_place(void)
{
	struct shape there = {{1, 3, 7}, 5, false, true, false}, back = there;
	size_t all = numbers(&there);
	float *in = calloc(all, sizeof(*in)), *out = calloc(all, sizeof(*out));
	cufftHandle forward = plan_of(&there), inverse;
	cudaLibXtDesc *real, *half;
	cufftResult done;

	back.inverse = true;
	inverse = plan_of(&back);
	for (size_t i = 0; i < all; i++)
		in[i] = (float)some_value(i);
	FFT(cufftXtMalloc(forward, &real, CUFFT_XT_FORMAT_INPUT));
	FFT(cufftXtMalloc(forward, &half, CUFFT_XT_FORMAT_OUTPUT));
	FFT(cufftXtMemcpy(forward, real, in, CUFFT_COPY_HOST_TO_DEVICE));
	done = cufftXtExecDescriptorR2C(forward, real, half);
	half->subFormat = CUFFT_XT_FORMAT_INPUT; /* of the way back */
	real->subFormat = CUFFT_XT_FORMAT_OUTPUT;
	if (!done)
		done = cufftXtExecDescriptorC2R(inverse, half, real);
	EXPECTED(done, CUFFT_SUCCESS); /* NVIDIA's header has it otherwise */
	if (!done)
		FFT(cufftXtMemcpy(inverse, out, real, CUFFT_COPY_DEVICE_TO_HOST));
	for (size_t i = 0; !done && i < all; i++)
		near("out of place", i, out[i] / 21, in[i], 1, false);
	FFT(cufftXtFree(real));
	FFT(cufftXtFree(half));
	FFT(cufftDestroy(forward));
	FFT(cufftDestroy(inverse));
	free(in);
	free(out);
}

/* An impulse's spectrum is ones: those are transformed back, from either order. */
static void from_a_spectrum(cufftXtSubFormat format)
{
	struct shape s = {{32, 33, 6}, 1, true, true, true};
	double *host = calloc(host_bytes(&s), 1);
	cufftHandle plan = plan_of(&s);
	cudaLibXtDesc *data;
	cufftResult done;

	for (size_t i = 0; i < spectrum(&s); i++)
		host[2 * i] = 1;
	FFT(cufftXtMalloc(plan, &data, format));
	done = cufftXtMemcpy(plan, data, host, CUFFT_COPY_HOST_TO_DEVICE);
	if (!done)
		done = cufftXtExecDescriptorZ2D(plan, data, data);
	EXPECTED(done, CUFFT_SUCCESS); /* NVIDIA's may take one order only */
	if (!done)
		FFT(cufftXtMemcpy(plan, host, data, CUFFT_COPY_DEVICE_TO_HOST));
	for (size_t i = 0; !done && i < numbers(&s); i++)
		near("from a spectrum", i, host_at(&s, host, i), i ? 0 : (double)numbers(&s),
			numbers(&s), true);
	FFT(cufftXtFree(data));
	FFT(cufftDestroy(plan));
	free(host);
}

/* What the program put into the plan's stream comes first. */
static void in_a_stream(int *gpus)
{
	struct shape s = {{1, 64, 64}, 1, false, false, false};
	float *host = calloc(host_bytes(&s), 1);
	cudaStream_t stream;
	cudaLibXtDesc *data;
	cufftHandle plan;
	size_t work[2];

	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	FFT(cufftCreate(&plan));
	FFT(cufftSetStream(plan, stream));
	FFT(cufftXtSetGPUs(plan, 2, gpus));
	FFT(plan_make(plan, &s, work));
	FFT(cufftXtMalloc(plan, &data, CUFFT_XT_FORMAT_INPLACE));
	FFT(cufftXtMemcpy(plan, data, host, CUFFT_COPY_HOST_TO_DEVICE));
	host[0] = 1;
	for (int i = 0; i < 50; i++) /* the last of these is an impulse */
		CUDA(cudaMemcpyAsync(data->descriptor->data[0], host + (i == 49 ? 0 : 2),
			host_bytes(&s) / 2 - 8, cudaMemcpyHostToDevice, stream));
	FFT(cufftXtExecDescriptor(plan, data, data, CUFFT_FORWARD));
	FFT(cufftXtMemcpy(plan, host, data, CUFFT_COPY_DEVICE_TO_HOST));
	for (size_t i = 0; i < numbers(&s); i++)
		near("in a stream", i, complex_of(&s, host, i), 1, numbers(&s), false);
	FFT(cufftXtFree(data));
	FFT(cufftDestroy(plan));
	CUDA(cudaStreamDestroy(stream));
	free(host);
}

static void plan_is(int rank, int n, cufftType type, cufftResult want)
{
	int sizes[3] = {n, n, n};
	size_t work[2];
	cufftHandle plan;

	FFT(cufftCreate(&plan));
	FFT(cufftXtSetGPUs(plan, 2, both_gpus));
	EXPECTED(cufftMakePlanMany(plan, rank, sizes, NULL, 1, 0, NULL, 1, 0, type, 1, work),
		want);
	FFT(cufftDestroy(plan));
}

/* A plan that is made has its GPUs; one that has one GPU has no descriptors. */
static void wrong_order(void)
{
	int few[1] = {0}, none[2] = {0, 4711};
	size_t work[2];
	cudaLibXtDesc *data;
	cufftHandle plan;

	FFT(cufftCreate(&plan));
	FFT_IS(cufftXtSetGPUs(1 << 20, 2, both_gpus), CUFFT_INVALID_PLAN);
	FFT_IS(cufftXtSetGPUs(plan, 1, few), CUFFT_INVALID_VALUE);
	FFT_IS(cufftXtSetGPUs(plan, 2, none), CUFFT_INVALID_DEVICE);
	FFT(cufftXtSetGPUs(plan, 2, both_gpus));
	EXPECTED(cufftXtMalloc(plan, &data, CUFFT_XT_FORMAT_INPLACE), CUFFT_INVALID_PLAN);
	FFT(plan_make(plan, &line, work));
	EXPECTED(cufftXtSetGPUs(plan, 2, both_gpus), CUFFT_INVALID_PLAN);
	EXPECTED(plan_make(plan, &line, work), CUFFT_INVALID_PLAN);
	EXPECTED(cufftSetWorkArea(plan, &work), CUFFT_INVALID_PLAN);
	EXPECTED(cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_MINIMAL, NULL),
		CUFFT_NOT_SUPPORTED);
	FFT(cufftDestroy(plan));
	EXPECTED(cufftXtExecDescriptorC2C(plan, &mine, &mine, CUFFT_FORWARD),
		CUFFT_INVALID_PLAN);
	FFT(cufftPlan1d(&plan, N, CUFFT_C2C, 1));
	EXPECTED(cufftXtExecDescriptorC2C(plan, &mine, &mine, CUFFT_FORWARD),
		CUFFT_INVALID_PLAN);
	FFT(cufftDestroy(plan));
}

static void wrong_descriptors(void)
{
	cufftHandle plan = plan_of(&line);
	cudaLibXtDesc *data, *other;
	float host[2 * N] = {1};
	cufftXt1dFactors factors;
	size_t work[2];
	cufftResult made;

	FFT(cufftXtMalloc(plan, &data, CUFFT_XT_FORMAT_INPLACE));
	FFT(cufftXtMalloc(plan, &other, CUFFT_XT_FORMAT_INPLACE));
	EXPECTED(cufftXtMalloc(plan, &other, CUFFT_FORMAT_UNDEFINED), CUFFT_INVALID_VALUE);
	EXPECTED(cufftXtMemcpy(plan, data, host, CUFFT_COPY_UNDEFINED), CUFFT_INVALID_VALUE);
	EXPECTED(cufftXtQueryPlan(plan, &factors, CUFFT_QUERY_UNDEFINED), CUFFT_INVALID_VALUE);
	FFT(cufftXtMemcpy(plan, data, host, CUFFT_COPY_HOST_TO_DEVICE));
	EXPECTED(cufftXtExecDescriptorC2C(plan, data, data, 7), CUFFT_INVALID_VALUE);
	EXPECTED(cufftXtExecDescriptorZ2Z(plan, data, data, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
	EXPECTED(cufftExecC2C(plan, data->descriptor->data[0], data->descriptor->data[0],
			 CUFFT_FORWARD),
		CUFFT_INTERNAL_ERROR);
	EXPECTED(cufftXtExecDescriptorC2C(plan, data, other, CUFFT_FORWARD), CUFFT_EXEC_FAILED);
	/* NVIDIA's plan is of no more use then, and on one GPU none is made any more. */
	FFT(cufftXtFree(data));
	FFT(cufftXtFree(other));
	FFT(cufftDestroy(plan));
	FFT(cufftCreate(&plan));
	FFT(cufftXtSetGPUs(plan, 2, both_gpus));
	made = plan_make(plan, &line, work);
	EXPECTED(made, CUFFT_SUCCESS);
	if (made)
		return;
	FFT(cufftXtMalloc(plan, &data, CUFFT_XT_FORMAT_INPLACE));
	FFT(cufftXtMalloc(plan, &other, CUFFT_XT_FORMAT_INPLACE));
	FFT(cufftXtMemcpy(plan, data, host, CUFFT_COPY_HOST_TO_DEVICE));
	FFT(cufftXtExecDescriptorC2C(plan, data, data, CUFFT_FORWARD));
	EXPECTED(cufftXtExecDescriptorC2C(plan, data, data, CUFFT_INVERSE), CUFFT_INVALID_TYPE);
	data->descriptor->GPUs[1] = 4711;
	EXPECTED(cufftXtMemcpy(plan, host, data, CUFFT_COPY_DEVICE_TO_HOST),
		CUFFT_INVALID_DEVICE);
	data->descriptor->GPUs[1] = both_gpus[1];
	data->descriptor->size[1]--;
	EXPECTED(cufftXtMemcpy(plan, host, data, CUFFT_COPY_DEVICE_TO_HOST),
		CUFFT_INVALID_VALUE);
	data->descriptor->size[1]++;
	FFT(cufftXtMemcpy(plan, host, data, CUFFT_COPY_DEVICE_TO_HOST));
	for (size_t i = 0; i < N; i++)
		near("of an impulse", i, host[2 * i] + I * host[2 * i + 1], 1, N, false);
	FFT(cufftXtFree(data));
	FFT(cufftXtFree(other));
	FFT(cufftDestroy(plan));
}

int main(void)
{
	int twice[2] = {0, 0};

	if (!two_gpus())
		return 0;
	wrong_order();
	wrong_descriptors();
	plan_is(1, 32, CUFFT_C2C, CUFFT_INVALID_SIZE);
	plan_is(1, 96, CUFFT_C2C, CUFFT_INVALID_SIZE);
	plan_is(1, 128, CUFFT_R2C, CUFFT_INVALID_SIZE);
	plan_is(2, 31, CUFFT_C2C, CUFFT_INVALID_SIZE);
	plan_is(3, 31, CUFFT_D2Z, CUFFT_INVALID_SIZE);
	plan_is(2, 32, CUFFT_C2C, CUFFT_SUCCESS);
	as_cupy(1);
	as_cupy(5);
	as_cupy(2);
	out_of_place();
	from_a_spectrum(CUFFT_XT_FORMAT_INPLACE_SHUFFLED);
	from_a_spectrum(CUFFT_XT_FORMAT_INPLACE);
	in_a_stream(both_gpus);
	in_a_stream(twice);
	puts("ok");
	return 0;
}
