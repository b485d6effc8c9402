/* SPDX-License-Identifier: Apache-2.0
 *
 * Transforms on several GPUs.  They run in the GPUs' legacy streams, with what the program has
 * there, and are done when the call returns, as NVIDIA's are by default.  See multi.h.
 */
#include "shim/libraries/cufft/multi.h"

enum { PLANES, LINES }; /* a GPU's plans of slabs */

/* Plan I of GPU g, in its context. */
static cufftResult part_exec(
	const struct fft_multi *m, int g, int i, void *from, void *to, int direction)
{
	cufftResult status;
	CUcontext was;

	if (!m->gpu[g].plan[i])
		return CUFFT_SUCCESS;
	if (cuCtxPushCurrent(m->gpu[g].context))
		return CUFFT_EXEC_FAILED;
	status = fft_exec(m->gpu[g].plan[i], 0, from, to, direction);
	cuCtxPopCurrent(&was);
	return status;
}

static cufftResult parts_exec(
	const struct fft_multi *m, int i, void *const *from, void *const *to, int direction)
{
	cufftResult status = CUFFT_SUCCESS;

	for (int g = 0; !status && g < m->count; g++)
		status = part_exec(m, g, i, from[g], to[g], direction);
	return status;
}

static cufftResult parts_wait(const struct fft_multi *m)
{
	cufftResult status = CUFFT_SUCCESS;

	for (int g = 0; g < m->count; g++) {
		CUcontext was;

		if (cuCtxPushCurrent(m->gpu[g].context))
			return CUFFT_EXEC_FAILED;
		if (cuStreamSynchronize(CU_STREAM_LEGACY))
			status = CUFFT_EXEC_FAILED;
		cuCtxPopCurrent(&was);
	}
	return status;
}

/* ---- slabs ---- */

static void buffers_get(const struct fft_multi *m, void **buffers)
{
	for (int g = 0; g < m->count; g++)
		buffers[g] = (void *)(uintptr_t)m->gpu[g].area;
}

static cufftResult exchange(
	const struct fft_multi *m, void *const *natural, void *const *other, bool to_natural)
{
	return fft_exchange(m, CUFFT_XT_FORMAT_INPLACE_SHUFFLED, natural, other, to_natural)
		       ? CUFFT_EXEC_FAILED
		       : CUFFT_SUCCESS;
}

static cufftResult slabs_there(const struct fft_multi *m, cudaLibXtDesc *d, int direction)
{
	void *const *data = d->descriptor->data;
	void *buffers[FFT_GPUS];
	cufftResult status = parts_exec(m, PLANES, data, data, direction);

	buffers_get(m, buffers);
	if (!status)
		status = exchange(m, data, buffers, false);
	if (!status)
		status = parts_exec(m, LINES, buffers, data, direction);
	d->subFormat = CUFFT_XT_FORMAT_INPLACE_SHUFFLED;
	return status;
}

/* SHUFFLED: the data is. Else it is exchanged first: real numbers are the last that come. */
static cufftResult slabs_back(
	const struct fft_multi *m, cudaLibXtDesc *d, int direction, bool shuffled)
{
	void *const *data = d->descriptor->data;
	void *buffers[FFT_GPUS];
	cufftResult status = CUFFT_SUCCESS;

	buffers_get(m, buffers);
	if (!shuffled)
		status = exchange(m, data, buffers, false);
	if (!status)
		status = parts_exec(m, LINES, shuffled ? data : buffers, buffers, direction);
	if (!status)
		status = exchange(m, data, buffers, true);
	if (!status)
		status = parts_exec(m, PLANES, data, data, direction);
	d->subFormat = CUFFT_XT_FORMAT_INPLACE;
	return status;
}

static bool parts_hold(const struct fft_multi *m, const cudaLibXtDesc *d)
{
	for (int g = 0; g < m->count; g++)
		if (d->descriptor->size[g] <
				fft_part_bytes(m, CUFFT_XT_FORMAT_INPLACE_SHUFFLED, g) ||
			d->descriptor->size[g] < fft_part_bytes(m, CUFFT_XT_FORMAT_INPLACE, g))
			return false;
	return true;
}

static cufftResult slabs_exec(const struct fft_multi *m, cudaLibXtDesc *d, int direction)
{
	bool shuffled = fft_order(m, d->subFormat) == CUFFT_XT_FORMAT_INPLACE_SHUFFLED;

	if (!parts_hold(m, d))
		return CUFFT_INVALID_VALUE;
	if (shuffled && m->kind == FFT_FORWARD_REAL)
		return CUFFT_INVALID_TYPE;
	if (shuffled || m->kind == FFT_INVERSE_REAL)
		return slabs_back(m, d, m->kind == FFT_INVERSE_REAL ? CUFFT_INVERSE : direction,
			shuffled);
	return slabs_there(m, d, m->kind == FFT_FORWARD_REAL ? CUFFT_FORWARD : direction);
}

/* ---- a line ---- */

/* Between the parts and the first GPU, which has all of it in natural order. */
static CUresult line_move(
	const struct fft_multi *m, const cudaLibXtDesc *d, cufftXtSubFormat format, bool gather)
{
	CUresult status = CUDA_SUCCESS;
	struct fft_block b;

	for (int g = 0; g < m->count; g++)
		for (size_t i = 0; !status && fft_block(m, format, g, i, &b); i++) {
			struct fft_place whole = {
				m->gpu[0].context, m->gpu[0].area + b.base, b.pitch};
			struct fft_place part = {m->gpu[g].context,
				(uintptr_t)d->descriptor->data[g] + b.at, b.width};

			status = gather ? fft_move(whole, part, b.width, b.rows)
					: fft_move(part, whole, b.width, b.rows);
		}
	return status;
}

static cufftResult line_exec(const struct fft_multi *m, cudaLibXtDesc *d, int direction)
{
	void *whole = (void *)(uintptr_t)m->gpu[0].area;
	cufftResult status;

	if (fft_order(m, d->subFormat) == CUFFT_XT_FORMAT_INPLACE_SHUFFLED)
		return CUFFT_INVALID_TYPE;
	if (line_move(m, d, d->subFormat, true))
		return CUFFT_EXEC_FAILED;
	status = part_exec(m, 0, 0, whole, whole, direction);
	d->subFormat = CUFFT_XT_FORMAT_INPLACE_SHUFFLED;
	if (!status && line_move(m, d, d->subFormat, false))
		status = CUFFT_EXEC_FAILED;
	return status;
}

/* ---- the calls ---- */

/* Numbers that are packed on either side are not transformed in their place. */
static cufftResult batches_exec(
	const struct fft_multi *m, cudaLibXtDesc *from, cudaLibXtDesc *to, int direction)
{
	bool in_place = from->descriptor->data[0] == to->descriptor->data[0];

	if (m->kind != FFT_COMPLEX &&
		(from->subFormat !=
				(in_place ? CUFFT_XT_FORMAT_INPLACE : CUFFT_XT_FORMAT_INPUT) ||
			to->subFormat !=
				(in_place ? CUFFT_XT_FORMAT_INPLACE : CUFFT_XT_FORMAT_OUTPUT)))
		return CUFFT_INVALID_TYPE;
	return parts_exec(m, 0, from->descriptor->data, to->descriptor->data, direction);
}

static cufftResult exec_check(const struct fft_multi *m, const cudaLibXtDesc *from,
	const cudaLibXtDesc *to, int direction)
{
	cufftResult status = fft_descriptor_check(m, from);

	if (!status)
		status = fft_descriptor_check(m, to);
	if (status)
		return status;
	if (m->kind == FFT_COMPLEX && direction != CUFFT_FORWARD && direction != CUFFT_INVERSE)
		return CUFFT_INVALID_VALUE;
	if (m->split != FFT_BATCHES && from != to) /* as NVIDIA's */
		return CUFFT_EXEC_FAILED;
	for (int g = 0; g < m->count; g++)
		if (m->gpu[g].area_bytes && !m->gpu[g].area)
			return CUFFT_NO_WORKSPACE;
	return CUFFT_SUCCESS;
}

/* TYPE: of the plans that the call takes; 0: any. */
static cufftResult exec(
	cufftHandle number, int type, cudaLibXtDesc *from, cudaLibXtDesc *to, int direction)
{
	const struct plan *plan = fft_plan(number);
	const struct fft_multi *m = plan && plan->made ? plan->multi : NULL;
	cufftResult status, waited;

	if (!m || (type && type != fft_type(m, m->kind)))
		return CUFFT_INVALID_PLAN;
	status = exec_check(m, from, to, direction);
	if (status)
		return status;
	if (plan->stream && cuStreamSynchronize(plan->stream))
		return CUFFT_EXEC_FAILED;
	status = m->split == FFT_BATCHES ? batches_exec(m, from, to, direction)
		 : m->split == FFT_SLABS ? slabs_exec(m, from, direction)
					 : line_exec(m, from, direction);
	waited = parts_wait(m);
	return status ? status : waited;
}

cufftResult hand_cufftXtExecDescriptor(
	cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output, int direction)
{
	return exec(plan, 0, input, output, direction);
}

#define EXEC_COMPLEX(LETTERS)                                                                  \
	cufftResult hand_cufftXtExecDescriptor##LETTERS(                                       \
		cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output, int direction)  \
	{                                                                                      \
		return exec(plan, CUFFT_##LETTERS, input, output, direction);                  \
	}
#define EXEC_REAL(LETTERS, DIRECTION)                                                          \
	cufftResult hand_cufftXtExecDescriptor##LETTERS(                                       \
		cufftHandle plan, cudaLibXtDesc *input, cudaLibXtDesc *output)                 \
	{                                                                                      \
		return exec(plan, CUFFT_##LETTERS, input, output, DIRECTION);                  \
	}
EXEC_COMPLEX(C2C)
EXEC_COMPLEX(Z2Z)
EXEC_REAL(R2C, CUFFT_FORWARD)
EXEC_REAL(D2Z, CUFFT_FORWARD)
EXEC_REAL(C2R, CUFFT_INVERSE)
EXEC_REAL(Z2D, CUFFT_INVERSE)
