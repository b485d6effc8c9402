// SPDX-License-Identifier: Apache-2.0
/* The mathematical library on the device, within the errors that CUDA allows it. */
#include "check.h"

#include <math.h>
#include <vector>

enum { N = 1024, FLOATS = 12, DOUBLES = 11 };

__global__ void floats(const float *in, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float x = in[i], size = fabsf(x) + 0.001f, *o = out + i * FLOATS;

	o[0] = sinf(x);
	o[1] = cosf(x);
	o[2] = tanhf(x);
	o[3] = expf(x);
	o[4] = logf(size);
	o[5] = powf(size, 1.7f);
	o[6] = rsqrtf(size);
	o[7] = erff(x);
	o[8] = atan2f(x, 1.5f);
	o[9] = exp2f(x);
	o[10] = cbrtf(x);
	o[11] = log1pf(size);
}

__global__ void doubles(const float *in, double *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	double x = in[i], size = fabs(x) + 0.001, *o = out + i * DOUBLES;

	o[0] = sin(x);
	o[1] = cos(x);
	o[2] = exp(x);
	o[3] = log(size);
	o[4] = pow(size, -2.3);
	o[5] = rsqrt(size);
	o[6] = tgamma(fmod(size, 20.0) + 0.5);
	o[7] = atan(x);
	o[8] = hypot(x, 3.0);
	o[9] = fmod(x, 0.7);
	o[10] = erfc(fmod(x, 5.0));
}

/* The fast forms: only roughly right, but never far off. */
__global__ void fast(const float *in, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float x = fmodf(in[i], 3.0f), *o = out + i * 5;

	o[0] = __sinf(x);
	o[1] = __cosf(x);
	o[2] = __expf(x);
	o[3] = __logf(fabsf(x) + 1.5f);
	o[4] = __fdividef(x, 1.25f);
}

static void near(const char *what, int i, double got, double want, double relative, double absolute)
{
	if (fabs(got - want) > fabs(want) * relative + absolute)
		FAIL("%s of element %d is %.17g, not %.17g", what, i, got, want);
}

int main()
{
	std::vector<float> in(N), f(N * FLOATS), quick(N * 5);
	std::vector<double> d(N * DOUBLES);
	float *device_in, *device_f, *device_fast;
	double *device_d;
	uint32_t seed = 21;

	for (int i = 0; i < N; i++)
		in[i] = ((float)(next_random(&seed) % 2000001) - 1000000.0f) * 4e-5f;
	CUDA(cudaMalloc(&device_in, N * sizeof(float)));
	CUDA(cudaMalloc(&device_f, f.size() * sizeof(float)));
	CUDA(cudaMalloc(&device_fast, quick.size() * sizeof(float)));
	CUDA(cudaMalloc(&device_d, d.size() * sizeof(double)));
	CUDA(cudaMemcpy(device_in, in.data(), N * sizeof(float), cudaMemcpyHostToDevice));
	floats<<<N / 128, 128>>>(device_in, device_f);
	doubles<<<N / 128, 128>>>(device_in, device_d);
	fast<<<N / 128, 128>>>(device_in, device_fast);
	LAUNCHED();
	CUDA(cudaMemcpy(f.data(), device_f, f.size() * sizeof(float), cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(d.data(), device_d, d.size() * sizeof(double), cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(quick.data(), device_fast, quick.size() * sizeof(float),
		cudaMemcpyDeviceToHost));

	for (int i = 0; i < N; i++) {
		double x = in[i], size = (double)(fabsf(in[i]) + 0.001f);
		const double want[FLOATS] = {sin(x), cos(x), tanh(x), exp(x), log(size),
			pow(size, (double)1.7f), 1 / sqrt(size), erf(x), atan2(x, 1.5), exp2(x),
			cbrt(x), log1p(size)};
		for (int j = 0; j < FLOATS; j++)
			near("a float function", i * FLOATS + j, f[i * FLOATS + j], want[j],
				6e-7, 1e-37);
		size = fabs(x) + 0.001;
		const double wide[DOUBLES] = {sin(x), cos(x), exp(x), log(size), pow(size, -2.3),
			1 / sqrt(size), tgamma(fmod(size, 20.0) + 0.5), atan(x), hypot(x, 3.0),
			fmod(x, 0.7), erfc(fmod(x, 5.0))};
		for (int j = 0; j < DOUBLES; j++)
			near("a double function", i * DOUBLES + j, d[i * DOUBLES + j], wide[j],
				4e-15, 1e-300);
		double y = fmodf(in[i], 3.0f);
		const double rough[5] = {sin(y), cos(y), exp(y), log(fabs(y) + 1.5), y / 1.25};
		for (int j = 0; j < 5; j++)
			near("a fast function", i * 5 + j, quick[i * 5 + j], rough[j], 2e-6, 1e-6);
	}
	CUDA(cudaDeviceReset());
	printf("functions are right\n");
	return 0;
}
