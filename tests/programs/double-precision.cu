// SPDX-License-Identifier: Apache-2.0
/*
 * Floating point where IEEE 754 leaves no choice: the four operations, fma, square root,
 * conversions and the other rounding directions, bit for bit as this CPU does them.
 */
#include "check.h"

#include <fenv.h>
#include <math.h>
#include <vector>

enum { N = 4096, DOUBLES = 9, FLOATS = 8, DIRECTED = 8, CONVERSIONS = 8 };

__global__ void doubles(const double *a, const double *b, const double *c, double *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	double *o = out + i * DOUBLES;

	o[0] = __dadd_rn(a[i], b[i]);
	o[1] = __dsub_rn(a[i], b[i]);
	o[2] = __dmul_rn(a[i], b[i]);
	o[3] = __ddiv_rn(a[i], b[i]);
	o[4] = __fma_rn(a[i], b[i], c[i]);
	o[5] = __dsqrt_rn(fabs(a[i]));
	o[6] = trunc(a[i]);
	o[7] = floor(b[i]);
	o[8] = rint(c[i]);
}

__global__ void floats(const float *a, const float *b, const float *c, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float *o = out + i * FLOATS;

	o[0] = __fadd_rn(a[i], b[i]);
	o[1] = __fsub_rn(a[i], b[i]);
	o[2] = __fmul_rn(a[i], b[i]);
	o[3] = __fdiv_rn(a[i], b[i]);
	o[4] = __fmaf_rn(a[i], b[i], c[i]);
	o[5] = __fsqrt_rn(fabsf(a[i]));
	o[6] = ceilf(a[i]);
	o[7] = fminf(a[i], fmaxf(b[i], c[i]));
}

__global__ void directed(const double *a, const double *b, double *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	double *o = out + i * DIRECTED;

	o[0] = __dadd_rd(a[i], b[i]);
	o[1] = __dadd_ru(a[i], b[i]);
	o[2] = __dadd_rz(a[i], b[i]);
	o[3] = __dmul_rd(a[i], b[i]);
	o[4] = __dmul_ru(a[i], b[i]);
	o[5] = __dmul_rz(a[i], b[i]);
	o[6] = __double2float_rd(a[i]);
	o[7] = __double2float_ru(b[i]);
}

__global__ void conversions(const double *a, const long long *whole, long long *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	long long *o = out + i * CONVERSIONS;

	o[0] = (int)a[i];
	o[1] = __double2int_rn(a[i]);
	o[2] = (long long)(a[i] * 4096.0);
	o[3] = __float_as_int((float)a[i]);
	o[4] = __double_as_longlong((double)whole[i]);
	o[5] = __float_as_int((float)whole[i]);
	o[6] = __double_as_longlong((double)(unsigned long long)whole[i]);
	o[7] = (short)(int)a[i];
}

static void check_bits(const char *what, long long i, double got, double want)
{
	if (isnan(got) && isnan(want))
		return;
	if (memcmp(&got, &want, sizeof(got)))
		FAIL("%s of element %lld is %a, not %a", what, i, got, want);
}

template <typename T> static T *upload(const std::vector<T> &host)
{
	T *device;

	CUDA(cudaMalloc(&device, host.size() * sizeof(T)));
	CUDA(cudaMemcpy(
		device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
	return device;
}

template <typename T> static std::vector<T> download(T *device, size_t n)
{
	std::vector<T> host(n);

	LAUNCHED();
	CUDA(cudaMemcpy(host.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost));
	CUDA(cudaFree(device));
	return host;
}

template <typename T> static T *room(size_t n)
{
	T *device;

	CUDA(cudaMalloc(&device, n * sizeof(T)));
	return device;
}

/* Computes with volatile operands, so that the host compiler folds and fuses nothing. */
static double in_direction(int direction, char operation, double x, double y)
{
	volatile double a = x, b = y, result;

	fesetround(direction);
	if (operation == 'f')
		result = (float)a;
	else
		result = operation == '+' ? a + b : a * b;
	fesetround(FE_TONEAREST);
	return result;
}

int main()
{
	std::vector<double> a(N), b(N), c(N);
	std::vector<float> fa(N), fb(N), fc(N);
	std::vector<long long> whole(N);
	uint32_t seed = 99;
	const double special[] = {0.0, -0.0, 1.0, INFINITY, NAN, 5e-324, 2.3e-308, 0.5, 1.5, 1e308};

	for (int i = 0; i < N; i++) {
		int exponent = (int)(next_random(&seed) % 60) - 30;
		a[i] = ldexp((double)(int)next_random(&seed) + 0.3, exponent - 31);
		b[i] = ldexp((double)(int)next_random(&seed) + 0.7, -20);
		c[i] = -a[i] * b[i] * (1 + ldexp(1.0, -50));
		fa[i] = (float)a[i];
		fb[i] = (float)b[i];
		fc[i] = -fa[i] * fb[i];
		whole[i] = (long long)((uint64_t)next_random(&seed) << 32 | next_random(&seed));
	}
	for (int i = 0; i < 100; i++) {
		a[i] = special[i / 10];
		b[i] = special[i % 10];
		fa[i] = (float)a[i];
		fb[i] = (float)b[i];
	}

	double *da = upload(a), *db = upload(b), *dc = upload(c);
	double *dout = room<double>(N * DOUBLES);
	doubles<<<N / 128, 128>>>(da, db, dc, dout);
	std::vector<double> got = download(dout, N * DOUBLES);
	for (int i = 0; i < N; i++) {
		const double want[DOUBLES] = {a[i] + b[i], a[i] - b[i], a[i] * b[i], a[i] / b[i],
			fma(a[i], b[i], c[i]), sqrt(fabs(a[i])), trunc(a[i]), floor(b[i]),
			rint(c[i])};
		for (int j = 0; j < DOUBLES; j++)
			check_bits("a double", i * DOUBLES + j, got[i * DOUBLES + j], want[j]);
	}

	float *fda = upload(fa), *fdb = upload(fb), *fdc = upload(fc);
	float *fout = room<float>(N * FLOATS);
	floats<<<N / 128, 128>>>(fda, fdb, fdc, fout);
	std::vector<float> gotf = download(fout, N * FLOATS);
	for (int i = 0; i < N; i++) {
		const float want[FLOATS] = {fa[i] + fb[i], fa[i] - fb[i], fa[i] * fb[i],
			fa[i] / fb[i], fmaf(fa[i], fb[i], fc[i]), sqrtf(fabsf(fa[i])),
			ceilf(fa[i]), 0};
		for (int j = 0; j < FLOATS - 1; j++)
			check_bits("a float", i * FLOATS + j, gotf[i * FLOATS + j], want[j]);
		if (fa[i] != fa[i] || fb[i] != fb[i] || (fa[i] == 0 && fb[i] == 0))
			continue; /* minus zero may stand for zero in a minimum */
		float most = fb[i] > fc[i] || fc[i] != fc[i] ? fb[i] : fc[i];
		CHECK_EQ_AT(i, gotf[i * FLOATS + 7], fa[i] < most ? fa[i] : most);
	}

	double *rout = room<double>(N * DIRECTED);
	directed<<<N / 128, 128>>>(da, db, rout);
	got = download(rout, N * DIRECTED);
	const int directions[] = {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD,
		FE_TOWARDZERO};
	for (int i = 0; i < N; i++) {
		double *mine = &got[i * DIRECTED];
		for (int j = 0; j < 6; j++)
			check_bits("a directed rounding", i * DIRECTED + j, mine[j],
				in_direction(directions[j], j < 3 ? '+' : '*', a[i], b[i]));
		check_bits("float downward", i, mine[6],
			in_direction(FE_DOWNWARD, 'f', a[i], 0));
		check_bits("float upward", i, mine[7], in_direction(FE_UPWARD, 'f', b[i], 0));
	}

	/* Conversions are checked where the CPU's answer is defined: from element 100 on. */
	long long *dwhole = upload(whole), *cout = room<long long>(N * CONVERSIONS);
	for (int i = 100; i < N; i++)
		a[i] = fmod(a[i], 1e9);
	CUDA(cudaMemcpy(da, a.data(), N * sizeof(double), cudaMemcpyHostToDevice));
	conversions<<<N / 128, 128>>>(da, dwhole, cout);
	std::vector<long long> gotc = download(cout, N * CONVERSIONS);
	for (int i = 100; i < N; i++) {
		long long want[CONVERSIONS], *mine = &gotc[i * CONVERSIONS];
		float single = (float)a[i], from_whole = (float)whole[i];
		double wide = (double)whole[i], wider = (double)(unsigned long long)whole[i];
		int bits;
		want[0] = (int)a[i];
		want[1] = (int)nearbyint(a[i]);
		want[2] = (long long)(a[i] * 4096.0);
		memcpy(&bits, &single, sizeof(bits));
		want[3] = bits;
		memcpy(&want[4], &wide, sizeof(wide));
		memcpy(&bits, &from_whole, sizeof(bits));
		want[5] = bits;
		memcpy(&want[6], &wider, sizeof(wider));
		want[7] = (short)(int)a[i];
		for (int j = 0; j < CONVERSIONS; j++)
			CHECK_EQ_AT(i * CONVERSIONS + j, mine[j], want[j]);
	}
	CUDA(cudaDeviceReset());
	printf("floating point is as the CPU has it\n");
	return 0;
}
