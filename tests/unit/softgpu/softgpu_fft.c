/* SPDX-License-Identifier: Apache-2.0
 *
 * cuFFT on the software GPU: what each form of plan computes is what the definition of the
 * transform gives, summed here term by term; and what NVIDIA documents of wrong arguments.
 */
#include "tests/unit/softgpu/softgpu_test.h"

#include <complex.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

/* The library's own names, as far as they are used here. */
int cufftCreate(int *plan);
int cufftDestroy(int plan);
int cufftPlan1d(int *plan, int nx, int type, int batch);
int cufftPlan2d(int *plan, int nx, int ny, int type);
int cufftPlan3d(int *plan, int nx, int ny, int nz, int type);
int cufftMakePlan1d(int plan, int nx, int type, int batch, size_t *bytes);
int cufftMakePlanMany64(int plan, int rank, long long *n, long long *in_embed,
	long long in_stride, long long in_dist, long long *out_embed, long long out_stride,
	long long out_dist, int type, long long batch, size_t *bytes);
int cufftXtMakePlanMany(int plan, int rank, long long *n, long long *in_embed,
	long long in_stride, long long in_dist, int in_type, long long *out_embed,
	long long out_stride, long long out_dist, int out_type, long long batch, size_t *bytes,
	int run_type);
int cufftEstimate1d(int nx, int type, int batch, size_t *bytes);
int cufftGetSize(int plan, size_t *bytes);
int cufftSetStream(int plan, CUstream stream);
int cufftSetAutoAllocation(int plan, int automatic);
int cufftSetWorkArea(int plan, void *area);
int cufftExecC2C(int plan, void *in, void *out, int direction);
int cufftExecR2C(int plan, void *in, void *out);
int cufftXtExec(int plan, void *in, void *out, int direction);
int cufftSetPlanPropertyInt64(int plan, int property, long long value);
int cufftGetPlanPropertyInt64(int plan, int property, long long *value);
int cufftXtSetJITCallback(
	int plan, const char *symbol, const void *code, size_t bytes, int type, void **info);

enum { C2C = 0x29, R2C = 0x2a, C2R = 0x2c, Z2Z = 0x69, D2Z = 0x6a, Z2D = 0x6c };
enum {
	INVALID_PLAN = 1,
	INVALID_TYPE = 3,
	INVALID_VALUE = 4,
	EXEC_FAILED = 6,
	INVALID_SIZE = 8,
	NO_WORKSPACE = 13,
	MISSING_DEPENDENCY = 17
};
enum { FORWARD = -1, INVERSE = 1 };
enum { COMPLEX_HALF = 6, COMPLEX_BFLOAT = 15 };

#define MOST 4096 /* numbers of a test */

static double values[MOST];

static double value_at(int at)
{
	return sin(0.7 * at) + 0.25 * cos(3.1 * at * at);
}

static void *device(size_t bytes)
{
	CUdeviceptr at;

	ok(cuMemAlloc(&at, bytes));
	return (void *)(uintptr_t)at;
}

static void *device_of(const void *from, size_t bytes)
{
	void *at = device(bytes);

	ok(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)at, from, bytes));
	return at;
}

static void host_of(void *to, void *from, size_t bytes)
{
	ok(cuMemcpyDtoH(to, (CUdeviceptr)(uintptr_t)from, bytes));
	ok(cuMemFree((CUdeviceptr)(uintptr_t)from));
}

/* Element (u, v, w) of the transform of nx * ny * nz elements in `from`. */
static double complex term(
	const double complex *from, const int n[3], const int at[3], int direction)
{
	double complex sum = 0;

	for (int x = 0; x < n[0]; x++)
		for (int y = 0; y < n[1]; y++)
			for (int z = 0; z < n[2]; z++) {
				double turns = (double)at[0] * x / n[0] +
					       (double)at[1] * y / n[1] +
					       (double)at[2] * z / n[2];

				sum += from[(x * n[1] + y) * n[2] + z] *
				       cexp(direction * 2 * M_PI * I * turns);
			}
	return sum;
}

static void near(double complex got, double complex want, double scale)
{
	if (cabs(got - want) > scale * (1 + cabs(want)))
		fail_msg("%.9g%+.9gi, not %.9g%+.9gi", creal(got), cimag(got), creal(want),
			cimag(want));
}

/* Complex numbers of one batch in double, out of what a plan of that type reads or writes. */
static double complex number(const void *at, int index, bool wide, bool real)
{
	const double *d = at;
	const float *f = at;

	if (real)
		return wide ? d[index] : (double)f[index];
	return wide ? d[2 * index] + I * d[2 * index + 1]
		    : (double)f[2 * index] + I * (double)f[2 * index + 1];
}

static void number_put(void *at, int index, double value, bool wide)
{
	if (wide)
		((double *)at)[index] = value;
	else
		((float *)at)[index] = (float)value;
}

/* A plan's output for `batch` batches that follow each other, against the sums. */
static void compare(const void *out, const double complex *in, const int n[3], int batch,
	int last, int direction, bool wide, bool real)
{
	int all = n[0] * n[1] * n[2];

	for (int b = 0; b < batch; b++)
		for (int i = 0; i < n[0] * n[1] * last; i++) {
			int at[3] = {i / last / n[1], i / last % n[1], i % last};

			near(number(out, b * n[0] * n[1] * last + i, wide, real),
				term(in + b * all, n, at, direction), wide ? 1e-11 : 2e-5);
		}
}

static void complex_case(int nx, int ny, int nz, int batch, bool wide, bool in_place)
{
	int n[3] = {nx, ny, nz}, all = nx * ny * nz * batch, plan;
	static double complex in[MOST];
	static double buffer[2 * MOST];
	size_t bytes = (size_t)all * (wide ? 16 : 8);
	int type = wide ? Z2Z : C2C;

	if (nx > 1)
		is(cufftPlan3d(&plan, nx, ny, nz, type), 0);
	else if (ny > 1)
		is(cufftPlan2d(&plan, ny, nz, type), 0);
	else
		is(cufftPlan1d(&plan, nz, type, batch), 0);
	for (int direction = FORWARD; direction <= INVERSE; direction += 2) {
		void *from, *to;

		for (int i = 0; i < 2 * all; i++)
			number_put(buffer, i, values[i], wide);
		for (int i = 0; i < all; i++)
			in[i] = number(buffer, i, wide, false);
		from = device_of(buffer, bytes);
		to = in_place ? from : device(bytes);
		is(cufftXtExec(plan, from, to, direction), 0);
		ok(cuStreamSynchronize(NULL));
		host_of(buffer, to, bytes);
		if (!in_place)
			ok(cuMemFree((CUdeviceptr)(uintptr_t)from));
		compare(buffer, in, n, batch, nz, direction, wide, false);
	}
	is(cufftDestroy(plan), 0);
}

static void complex_transforms_are_the_sums(void **state)
{
	static const int sizes[] = {1, 2, 3, 4, 7, 8, 13, 16, 31, 60, 64, 97, 128};

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (int wide = 0; wide < 2; wide++) {
			complex_case(1, 1, sizes[i], 1, wide, false);
			complex_case(1, 1, sizes[i], 3, wide, true);
		}
	for (int wide = 0; wide < 2; wide++) {
		complex_case(1, 7, 5, 1, wide, true);
		complex_case(1, 8, 16, 1, wide, false);
		complex_case(3, 4, 5, 1, wide, false);
		complex_case(2, 7, 8, 1, wide, true);
	}
}

/* Forward against the sums, and back: all elements of the result are the first ones, n times.
 */
static void real_case(int nx, int ny, int nz, bool wide, bool in_place)
{
	int n[3] = {nx, ny, nz}, all = nx * ny * nz, half = nz / 2 + 1;
	int row = in_place ? 2 * half : nz, forward, inverse;
	long long n64[3] = {nx, ny, nz};
	static double complex in[MOST];
	static double buffer[2 * MOST];
	size_t width = wide ? 8 : 4, work;
	void *from, *to;

	is(cufftCreate(&forward), 0);
	is(cufftCreate(&inverse), 0);
	is(cufftMakePlanMany64(
		   forward, 3, n64, NULL, 1, 0, NULL, 1, 0, wide ? D2Z : R2C, 1, &work),
		0);
	is(cufftMakePlanMany64(
		   inverse, 3, n64, NULL, 1, 0, NULL, 1, 0, wide ? Z2D : C2R, 1, &work),
		0);
	for (int i = 0; i < all; i++) {
		number_put(buffer, i / nz * row + i % nz, values[i], wide);
		in[i] = number(buffer, i / nz * row + i % nz, wide, true);
	}
	from = device_of(buffer, (size_t)(nx * ny * 2 * half) * width);
	to = in_place ? from : device((size_t)(nx * ny * 2 * half) * width);
	is(cufftXtExec(forward, from, to, FORWARD), 0);
	ok(cuStreamSynchronize(NULL));
	ok(cuMemcpyDtoH(
		buffer, (CUdeviceptr)(uintptr_t)to, (size_t)(nx * ny * 2 * half) * width));
	compare(buffer, in, n, 1, half, FORWARD, wide, false);
	is(cufftXtExec(inverse, to, from, INVERSE), 0);
	ok(cuStreamSynchronize(NULL));
	host_of(buffer, from, (size_t)(nx * ny * row) * width);
	for (int i = 0; i < all; i++)
		near(number(buffer, i / nz * row + i % nz, wide, true) / all, in[i],
			wide ? 1e-12 : 1e-5);
	if (!in_place)
		ok(cuMemFree((CUdeviceptr)(uintptr_t)to));
	is(cufftDestroy(forward), 0);
	is(cufftDestroy(inverse), 0);
}

static void real_transforms_go_there_and_back(void **state)
{
	static const int sizes[] = {1, 2, 3, 8, 11, 32, 90, 101};

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (int how = 0; how < 4; how++)
			real_case(1, 1, sizes[i], how & 1, how & 2);
	for (int how = 0; how < 4; how++) {
		real_case(1, 5, 6, how & 1, how & 2);
		real_case(3, 4, 7, how & 1, how & 2);
	}
}

/* Rows of a matrix that is wider than they are, read with a step and written side by side. */
static void a_layout_says_where_elements_lie(void **state)
{
	enum { N = 6, BATCH = 4, STEP = 3, PITCH = 40 };
	long long n[1] = {N}, embed[1] = {PITCH / STEP};
	static double buffer[2 * MOST];
	static double complex in[MOST];
	int shape[3] = {1, 1, N}, plan;
	void *from, *to;
	size_t work;

	(void)state;
	for (int i = 0; i < 2 * PITCH * BATCH; i++)
		buffer[i] = values[i];
	for (int i = 0; i < N * BATCH; i++)
		in[i] = number(buffer, i / N * PITCH + i % N * STEP, true, false);
	from = device_of(buffer, PITCH * BATCH * 16);
	to = device(N * BATCH * 16);
	is(cufftCreate(&plan), 0);
	is(cufftMakePlanMany64(plan, 1, n, embed, STEP, PITCH, n, BATCH, 1, Z2Z, BATCH, &work),
		0);
	is(cufftXtExec(plan, from, to, FORWARD), 0);
	ok(cuStreamSynchronize(NULL));
	host_of(buffer, to, N * BATCH * 16);
	/* Batch b is column b: side by side means that they take turns. */
	for (int b = 0; b < BATCH; b++)
		for (int i = 0; i < N; i++)
			near(number(buffer, i * BATCH + b, true, false),
				term(in + b * N, shape, (int[]){0, 0, i}, FORWARD), 1e-12);
	is(cufftDestroy(plan), 0);
	ok(cuMemFree((CUdeviceptr)(uintptr_t)from));
}

/* Eight ones are an eight, and nothing else. */
static void halves_are_computed_wider(void **state)
{
	static const struct {
		int type;
		uint16_t one, eight; /* 1 and 8 in that type */
	} types[] = {{COMPLEX_HALF, 0x3c00, 0x4800}, {COMPLEX_BFLOAT, 0x3f80, 0x4100}};
	long long n[1] = {8}, odd[1] = {6};
	uint16_t half[2 * 8];
	size_t work;
	void *at;
	int plan;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		for (int k = 0; k < 16; k++)
			half[k] = k % 2 ? 0 : types[i].one;
		at = device_of(half, sizeof(half));
		is(cufftCreate(&plan), 0);
		is(cufftXtMakePlanMany(plan, 1, odd, NULL, 1, 0, types[i].type, NULL, 1, 0,
			   types[i].type, 1, &work, types[i].type),
			16);
		is(cufftXtMakePlanMany(plan, 1, n, NULL, 1, 0, types[i].type, NULL, 1, 0,
			   types[i].type, 1, &work, types[i].type),
			0);
		is(cufftXtExec(plan, at, at, FORWARD), 0);
		ok(cuStreamSynchronize(NULL));
		host_of(half, at, sizeof(half));
		for (int k = 0; k < 16; k++)
			is(half[k] & 0x7fff, k ? 0 : types[i].eight);
		is(cufftDestroy(plan), 0);
	}
}

static void wrong_arguments_have_their_status(void **state)
{
	long long value, n[4] = {4, 4, 4, 4};
	void *area = device(4096);
	size_t work;
	int plan;

	(void)state;
	is(cufftPlan1d(NULL, 8, C2C, 1), INVALID_VALUE);
	is(cufftPlan1d(&plan, 0, C2C, 1), INVALID_SIZE);
	is(cufftPlan1d(&plan, -3, C2C, 1), INVALID_SIZE);
	is(cufftPlan1d(&plan, 8, 7, 1), INVALID_TYPE);
	is(cufftEstimate1d(0, C2C, 1, &work), INVALID_SIZE);
	is(cufftExecC2C(4000, area, area, FORWARD), INVALID_PLAN);
	is(cufftDestroy(4000), INVALID_PLAN);
	is(cufftCreate(&plan), 0);
	is(cufftExecC2C(plan, area, area, FORWARD), INVALID_PLAN);
	is(cufftMakePlan1d(plan, 8, C2C, 1, NULL), INVALID_VALUE);
	is(cufftMakePlanMany64(plan, 4, n, NULL, 1, 0, NULL, 1, 0, C2C, 1, &work),
		INVALID_VALUE);
	is(cufftSetPlanPropertyInt64(plan, 1, 1), 0);
	is(cufftGetPlanPropertyInt64(plan, 1, &value), 0);
	is(value, 1);
	is(cufftSetAutoAllocation(plan, 0), 0);
	is(cufftMakePlan1d(plan, 256, C2C, 1, &work), 0);
	is(cufftMakePlan1d(plan, 256, C2C, 1, &work), INVALID_PLAN);
	is(cufftSetPlanPropertyInt64(plan, 1, 0), 16);
	assert_true(work && work <= 4096);
	is(cufftGetSize(plan, &work), 0);
	is(cufftExecC2C(plan, area, area, FORWARD), NO_WORKSPACE);
	is(cufftSetWorkArea(plan, area), 0);
	is(cufftExecC2C(plan, NULL, area, FORWARD), INVALID_VALUE);
	is(cufftExecC2C(plan, area, area, 2), INVALID_VALUE);
	is(cufftExecR2C(plan, area, area), INVALID_TYPE);
	is(cufftExecC2C(plan, area, area, FORWARD), 0);
	ok(cuCtxSynchronize());
	is(cufftDestroy(plan), 0);
	is(cufftDestroy(plan), INVALID_PLAN);
	ok(cuMemFree((CUdeviceptr)(uintptr_t)area));
}

/* What one transform could not reach is told once, and the plan does others. */
static void a_plan_outlives_wrong_addresses(void **state)
{
	char *area = device(4096), *beyond = (char *)((uintptr_t)1 << 60);
	float got[2 * 16];
	int plan;

	(void)state;
	ok(cuMemsetD8((CUdeviceptr)(uintptr_t)area, 0, 4096));
	ok(cuMemsetD32((CUdeviceptr)(uintptr_t)area, 0x3f800000, 1));
	is(cufftPlan1d(&plan, 16, C2C, 1), 0);
	is(cufftExecC2C(plan, area + 4, area + 512, FORWARD), INVALID_VALUE);
	is(cufftExecC2C(plan, area, area + 513, FORWARD), INVALID_VALUE);
	is(cufftExecC2C(plan, area, beyond, FORWARD), 0);
	ok(cuCtxSynchronize());
	is(cufftExecC2C(plan, area, area + 512, FORWARD), EXEC_FAILED);
	is(cufftExecC2C(plan, area, area + 512, FORWARD), 0);
	ok(cuMemcpyDtoH(got, (CUdeviceptr)(uintptr_t)(area + 512), sizeof(got)));
	for (int i = 0; i < 32; i++)
		assert_true(got[i] == (i % 2 ? 0 : 1));
	is(cufftDestroy(plan), 0);
	ok(cuMemFree((CUdeviceptr)(uintptr_t)area));
}

/* The transform comes after what was put into its stream before it. */
static void a_graph_repeats_a_transform(void **state)
{
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)device(8 * 16);
	CUgraphExec exec;
	CUstream stream;
	CUgraph graph;
	float got[32];
	int plan;

	(void)state;
	ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	is(cufftPlan1d(&plan, 16, C2C, 1), 0);
	is(cufftSetStream(plan, stream), 0);
	ok(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	ok(cuMemsetD8Async(at, 0, 8 * 16, stream));
	ok(cuMemsetD32Async(at, 0x3f800000, 1, stream));
	is(cufftExecC2C(plan, (void *)(uintptr_t)at, (void *)(uintptr_t)at, FORWARD), 0);
	ok(cuStreamEndCapture(stream, &graph));
	ok(cuGraphInstantiate(&exec, graph, 0));
	ok(cuGraphDestroy(graph));
	for (int run = 0; run < 2; run++) {
		ok(cuGraphLaunch(exec, stream));
		ok(cuStreamSynchronize(stream));
		ok(cuMemcpyDtoH(got, at, sizeof(got)));
		for (int i = 0; i < 32; i++)
			assert_true(
				got[i] == (i % 2 ? 0 : 1)); /* of an impulse: one everywhere */
	}
	is(cufftDestroy(plan), 0);
	ok(cuGraphExecDestroy(exec));
	ok(cuStreamDestroy(stream));
	ok(cuMemFree(at));
}

/* LTO-IR does not run here, and stderr says so, once. */
static void a_callback_is_refused_with_a_sentence(void **state)
{
	int plan, kept = dup(STDERR_FILENO), file = memfd_create("stderr", MFD_CLOEXEC);
	const char *at;
	char text[1024];
	size_t bytes;
	ssize_t n;

	(void)state;
	assert_true(kept >= 0 && file >= 0);
	assert_true(dup2(file, STDERR_FILENO) >= 0);
	for (int i = 0; i < 2; i++) {
		is(cufftCreate(&plan), 0);
		is(cufftXtSetJITCallback(plan, "load", "code", 5, 0, NULL), 0);
		is(cufftMakePlan1d(plan, 16, C2C, 1, &bytes), MISSING_DEPENDENCY);
		is(cufftDestroy(plan), 0);
	}
	assert_true(dup2(kept, STDERR_FILENO) >= 0);
	close(kept);
	n = pread(file, text, sizeof(text) - 1, 0);
	close(file);
	assert_true(n >= 0);
	text[n] = 0;
	at = strstr(text, "LTO-IR");
	assert_non_null(at);
	assert_null(strstr(at + 1, "LTO-IR"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complex_transforms_are_the_sums),
		cmocka_unit_test(real_transforms_go_there_and_back),
		cmocka_unit_test(a_layout_says_where_elements_lie),
		cmocka_unit_test(halves_are_computed_wider),
		cmocka_unit_test(wrong_arguments_have_their_status),
		cmocka_unit_test(a_plan_outlives_wrong_addresses),
		cmocka_unit_test(a_graph_repeats_a_transform),
		cmocka_unit_test(a_callback_is_refused_with_a_sentence),
	};

	for (int i = 0; i < MOST; i++)
		values[i] = value_at(i);
	return cmocka_run_group_tests(tests, context_setup, context_teardown);
}
