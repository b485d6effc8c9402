/* SPDX-License-Identifier: Apache-2.0
 *
 * The older forms of what cufftMakePlanMany64 and cufftGetSizeMany64 do, and versions.
 */
#include "softgpu/fft/fft.h"

typedef int many64(int number, int rank, long long *n, long long *in_embed, long long in_stride,
	long long in_dist, long long *out_embed, long long out_stride, long long out_dist,
	int type, long long batch, size_t *bytes);
extern many64 cufftMakePlanMany64, cufftGetSizeMany64;
extern int cufftCreate(int *number), cufftDestroy(int number);

/* Dimensions of the four forms with ints; 0: none of them. */
struct form {
	int rank;
	const int *n, *in_embed, *out_embed;
	int in_stride, in_dist, out_stride, out_dist, type, batch;
};

static int form_do(many64 *what, int number, const struct form *f, size_t *bytes)
{
	long long n[FFT_RANK] = {0}, in[FFT_RANK] = {0}, out[FFT_RANK] = {0};

	if (f->rank < 1 || f->rank > FFT_RANK || !f->n)
		return FFT_INVALID_VALUE;
	for (int i = 0; i < f->rank; i++) {
		n[i] = f->n[i];
		in[i] = f->in_embed ? f->in_embed[i] : 0;
		out[i] = f->out_embed ? f->out_embed[i] : 0;
	}
	return what(number, f->rank, n, f->in_embed ? in : NULL, f->in_stride, f->in_dist,
		f->out_embed ? out : NULL, f->out_stride, f->out_dist, f->type, f->batch,
		bytes);
}

static int form_plan(int *number, const struct form *f)
{
	size_t bytes;
	int made, status;

	if (!number)
		return FFT_INVALID_VALUE;
	status = cufftCreate(&made);
	if (status)
		return status;
	status = form_do(cufftMakePlanMany64, made, f, &bytes);
	if (status)
		cufftDestroy(made);
	else
		*number = made;
	return status;
}

/* A plan that only says how much it would need. */
static int form_estimate(const struct form *f, size_t *bytes)
{
	int number, status = cufftCreate(&number);

	if (status)
		return status;
	status = form_do(cufftGetSizeMany64, number, f, bytes);
	cufftDestroy(number);
	return status;
}

#define N1 int nx, int type, int batch
#define N2 int nx, int ny, int type
#define N3 int nx, int ny, int nz, int type
#define NMANY                                                                                  \
	int rank, int *n, int *in_embed, int in_stride, int in_dist, int *out_embed,           \
		int out_stride, int out_dist, int type, int batch
#define F1                                                                                     \
	&(struct form)                                                                         \
	{                                                                                      \
		.rank = 1, .n = (int[]){nx}, .type = type, .batch = batch                      \
	}
#define F2 &(struct form){.rank = 2, .n = (int[]){nx, ny}, .type = type, .batch = 1}
#define F3 &(struct form){.rank = 3, .n = (int[]){nx, ny, nz}, .type = type, .batch = 1}
#define FMANY                                                                                  \
	&(struct form)                                                                         \
	{                                                                                      \
		rank, n, in_embed, out_embed, in_stride, in_dist, out_stride, out_dist, type,  \
			batch                                                                  \
	}

#define FORMS(SUFFIX, PARAMETERS, FORM)                                                        \
	FFT_CALL(cufftPlan##SUFFIX, int *number, PARAMETERS)                                   \
	{                                                                                      \
		return form_plan(number, FORM);                                                \
	}                                                                                      \
	FFT_CALL(cufftMakePlan##SUFFIX, int number, PARAMETERS, size_t *bytes)                 \
	{                                                                                      \
		return form_do(cufftMakePlanMany64, number, FORM, bytes);                      \
	}                                                                                      \
	FFT_CALL(cufftGetSize##SUFFIX, int number, PARAMETERS, size_t *bytes)                  \
	{                                                                                      \
		return form_do(cufftGetSizeMany64, number, FORM, bytes);                       \
	}                                                                                      \
	FFT_CALL(cufftEstimate##SUFFIX, PARAMETERS, size_t *bytes)                             \
	{                                                                                      \
		return form_estimate(FORM, bytes);                                             \
	}
FORMS(1d, N1, F1)
FORMS(2d, N2, F2)
FORMS(3d, N3, F3)
FORMS(Many, NMANY, FMANY)

FFT_CALL(cufftGetVersion, int *version)
{
	if (!version)
		return FFT_INVALID_VALUE;
	*version = FFT_VERSION;
	return FFT_SUCCESS;
}

FFT_CALL(cufftGetProperty, int type, int *value)
{
	const int parts[] = {FFT_VERSION / 1000, FFT_VERSION / 100 % 10, FFT_VERSION % 100};

	if (type < 0 || type > 2 || !value)
		return FFT_INVALID_VALUE;
	*value = parts[type];
	return FFT_SUCCESS;
}
