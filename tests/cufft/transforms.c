/* SPDX-License-Identifier: Apache-2.0
 *
 * Transforms of cuFFT against sums over the definition: complex and real ones, in one, two and
 * three dimensions, in both precisions, of sizes that are prime, a power of two and one, in
 * place and not, in batches and in layouts with strides.
 */
#include "tests/cufft/check.h"

#define MOST 4096

static double complex input[MOST];

static cufftHandle plan_of(const int n[3], cufftType type, int batch)
{
	cufftHandle plan;

	if (n[0] > 1)
		FFT(cufftPlan3d(&plan, n[0], n[1], n[2], type));
	else if (n[1] > 1)
		FFT(cufftPlan2d(&plan, n[1], n[2], type));
	else
		FFT(cufftPlan1d(&plan, n[2], type, batch));
	return plan;
}

static void place(int at[3], int index, const int n[3], int last)
{
	at[0] = index / last / n[1];
	at[1] = index / last % n[1];
	at[2] = index % last;
}

static void exec_complex(cufftHandle plan, void *in, void *out, int direction, bool wide)
{
	if (wide)
		FFT(cufftExecZ2Z(plan, in, out, direction));
	else
		FFT(cufftExecC2C(plan, in, out, direction));
}

static void complex_case(int nx, int ny, int nz, int batch, bool wide, bool in_place)
{
	int n[3] = {nx, ny, nz}, all = nx * ny * nz;
	cufftHandle plan = plan_of(n, wide ? CUFFT_Z2Z : CUFFT_C2C, batch);
	struct numbers from = numbers_new(2 * (size_t)(all * batch), wide);
	struct numbers apart = numbers_new(2 * (size_t)(all * batch), wide);
	struct numbers *to = in_place ? &from : &apart;

	for (int direction = CUFFT_FORWARD; direction <= CUFFT_INVERSE;
		direction += CUFFT_INVERSE - CUFFT_FORWARD) {
		numbers_fill(&from);
		numbers_send(&from);
		for (int i = 0; i < all * batch; i++)
			input[i] = complex_at(&from, (size_t)i);
		exec_complex(plan, from.device, to->device, direction, wide);
		numbers_fetch(to);
		for (int i = 0; i < all * batch; i++) {
			int at[3];

			place(at, i % all, n, nz);
			near("complex", (size_t)i, complex_at(to, (size_t)i),
				transform_at(input + i / all * all, n, at, direction),
				(size_t)all, wide);
		}
	}
	FFT(cufftDestroy(plan));
	numbers_free(&from);
	numbers_free(&apart);
}

static void exec_real(
	cufftHandle forward, cufftHandle inverse, void *real, void *half, bool wide)
{
	if (forward && wide)
		FFT(cufftExecD2Z(forward, real, half));
	else if (forward)
		FFT(cufftExecR2C(forward, real, half));
	else if (wide)
		FFT(cufftExecZ2D(inverse, half, real));
	else
		FFT(cufftExecC2R(inverse, half, real));
}

/* There, which is compared with the sums, and back, which gives what was there times how many.
 */
static void real_case(int nx, int ny, int nz, bool wide, bool in_place)
{
	int n[3] = {nx, ny, nz}, all = nx * ny * nz, half = nz / 2 + 1;
	int row = in_place ? 2 * half : nz;
	cufftHandle forward = plan_of(n, wide ? CUFFT_D2Z : CUFFT_R2C, 1);
	cufftHandle inverse = plan_of(n, wide ? CUFFT_Z2D : CUFFT_C2R, 1);
	struct numbers from = numbers_new((size_t)(nx * ny * 2 * half), wide);
	struct numbers apart = numbers_new((size_t)(nx * ny * 2 * half), wide);
	struct numbers *to = in_place ? &from : &apart;

	numbers_fill(&from);
	numbers_send(&from);
	for (int i = 0; i < all; i++)
		input[i] = real_at(&from, (size_t)(i / nz * row + i % nz));
	exec_real(forward, 0, from.device, to->device, wide);
	numbers_fetch(to);
	for (int i = 0; i < nx * ny * half; i++) {
		int at[3];

		place(at, i, n, half);
		near("real to complex", (size_t)i, complex_at(to, (size_t)i),
			transform_at(input, n, at, CUFFT_FORWARD), (size_t)all, wide);
	}
	exec_real(0, inverse, from.device, to->device, wide);
	numbers_fetch(&from);
	for (int i = 0; i < all; i++)
		near("and back", (size_t)i,
			real_at(&from, (size_t)(i / nz * row + i % nz)) / all, input[i], 1,
			wide);
	FFT(cufftDestroy(forward));
	FFT(cufftDestroy(inverse));
	numbers_free(&from);
	numbers_free(&apart);
}

/* Columns of a matrix: the elements of one transform are a row's length apart. */
static void columns(bool wide)
{
	enum { ROWS = 12, COLUMNS = 7 };
	int n[1] = {ROWS}, shape[3] = {1, 1, ROWS};
	struct numbers from = numbers_new(2 * ROWS * COLUMNS, wide);
	struct numbers to = numbers_new(2 * ROWS * COLUMNS, wide);
	cufftHandle plan;

	FFT(cufftPlanMany(
		&plan, 1, n, n, COLUMNS, 1, n, 1, ROWS, wide ? CUFFT_Z2Z : CUFFT_C2C, COLUMNS));
	numbers_fill(&from);
	numbers_send(&from);
	exec_complex(plan, from.device, to.device, CUFFT_FORWARD, wide);
	numbers_fetch(&to);
	for (int column = 0; column < COLUMNS; column++) {
		for (int row = 0; row < ROWS; row++)
			input[row] = complex_at(&from, (size_t)(row * COLUMNS + column));
		for (int i = 0; i < ROWS; i++)
			near("column", (size_t)i, complex_at(&to, (size_t)(column * ROWS + i)),
				transform_at(input, shape, (int[]){0, 0, i}, CUFFT_FORWARD),
				ROWS, wide);
	}
	FFT(cufftDestroy(plan));
	numbers_free(&from);
	numbers_free(&to);
}

int main(void)
{
	static const int sizes[] = {1, 2, 3, 4, 7, 8, 16, 31, 60, 64, 97, 128, 1000, 1024};

	for (int wide = 0; wide < 2; wide++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			complex_case(1, 1, sizes[i], 1, wide, false);
			complex_case(1, 1, sizes[i], 3, wide, true);
			real_case(1, 1, sizes[i], wide, false);
			real_case(1, 1, sizes[i], wide, true);
		}
		complex_case(1, 7, 5, 1, wide, true);
		complex_case(1, 16, 32, 1, wide, false);
		complex_case(3, 4, 5, 1, wide, false);
		complex_case(8, 8, 8, 1, wide, true);
		real_case(1, 5, 6, wide, false);
		real_case(1, 8, 9, wide, true);
		real_case(3, 4, 7, wide, true);
		real_case(4, 4, 8, wide, false);
		columns(wide);
	}
	puts("ok");
	return 0;
}
