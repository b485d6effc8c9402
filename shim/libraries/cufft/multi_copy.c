/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of plans on several GPUs: descriptors, and copies of their parts.  See multi.h.
 */
#include "shim/libraries/cufft/multi.h"

#include <stdlib.h>

#define DESCRIPTOR_VERSION (CUDA_XT_DESCRIPTOR_VERSION + (VCUDA_ABI == 11 ? 12000 : 13000))

/* ---- copies ---- */

static CUresult move_device(
	struct fft_place to, struct fft_place from, size_t width, size_t rows)
{
	CUDA_MEMCPY3D_PEER c = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = from.at,
		.srcContext = from.context,
		.srcPitch = from.pitch,
		.srcHeight = rows,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to.at,
		.dstContext = to.context,
		.dstPitch = to.pitch,
		.dstHeight = rows,
		.WidthInBytes = width,
		.Height = rows,
		.Depth = 1,
	};

	return cuMemcpy3DPeer(&c);
}

static CUresult move_host(struct fft_place to, struct fft_place from, size_t width, size_t rows)
{
	CUDA_MEMCPY2D c = {
		.srcMemoryType = from.context ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
		.srcDevice = from.context ? from.at : 0,
		.srcHost = from.context ? NULL : (const void *)from.at,
		.srcPitch = from.pitch,
		.dstMemoryType = to.context ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
		.dstDevice = to.context ? to.at : 0,
		.dstHost = to.context ? NULL : (void *)to.at,
		.dstPitch = to.pitch,
		.WidthInBytes = width,
		.Height = rows,
	};

	if (rows > 1)
		return cuMemcpy2D(&c);
	return to.context ? cuMemcpyHtoD(to.at, (const void *)from.at, width)
			  : cuMemcpyDtoH((void *)to.at, from.at, width);
}

CUresult fft_move(struct fft_place to, struct fft_place from, size_t width, size_t rows)
{
	CUcontext was;
	CUresult status;

	if (!width || !rows)
		return CUDA_SUCCESS;
	if (to.pitch == width && from.pitch == width) { /* rows without gaps are one */
		to.pitch = from.pitch = width *= rows;
		rows = 1;
	}
	status = cuCtxPushCurrent(to.context ? to.context : from.context);
	if (status)
		return status;
	if (to.context && from.context && rows > 1)
		status = move_device(to, from, width, rows);
	else if (to.context && from.context)
		status = cuMemcpyPeer(to.at, to.context, from.at, from.context, width);
	else
		status = move_host(to, from, width, rows);
	cuCtxPopCurrent(&was);
	return status;
}

/* Rows of a block that begin at WHERE or behind. */
static size_t rows_before(const struct fft_block *b, size_t where)
{
	size_t rows = where > b->base ? (where - b->base + b->pitch - 1) / b->pitch : 0;

	return rows < b->rows ? rows : b->rows;
}

/* What block B of GPU h's part and the part in natural order of GPU g have in common. */
static CUresult block_exchange(const struct fft_multi *m, const struct fft_block *b, int g,
	int h, uintptr_t natural, uintptr_t other, bool to_natural)
{
	struct fft_block n;
	size_t first, rows;
	struct fft_place one, two;

	fft_block(m, CUFFT_XT_FORMAT_INPLACE, g, 0, &n);
	first = rows_before(b, n.base);
	rows = rows_before(b, n.base + n.width * n.rows) - first;
	if (!rows)
		return CUDA_SUCCESS;
	one = (struct fft_place){
		m->gpu[g].context, natural + b->base + first * b->pitch - n.base, b->pitch};
	two = (struct fft_place){m->gpu[h].context, other + b->at + first * b->width, b->width};
	return to_natural ? fft_move(one, two, b->width, rows)
			  : fft_move(two, one, b->width, rows);
}

CUresult fft_exchange(const struct fft_multi *m, cufftXtSubFormat format, void *const *natural,
	void *const *other, bool to_natural)
{
	CUresult status = CUDA_SUCCESS;
	struct fft_block b;

	for (int h = 0; h < m->count; h++)
		for (size_t i = 0; fft_block(m, format, h, i, &b); i++)
			for (int g = 0; !status && g < m->count; g++)
				status = block_exchange(m, &b, g, h, (uintptr_t)natural[g],
					(uintptr_t)other[h], to_natural);
	return status;
}

/* ---- descriptors ---- */

/* In place the part is as large as it is in either order. */
static size_t part_most(const struct fft_multi *m, cufftXtSubFormat format, int gpu)
{
	size_t bytes = fft_part_bytes(m, format, gpu), other;

	if (m->split != FFT_SLABS)
		return bytes;
	other = fft_part_bytes(m,
		fft_order(m, format) == CUFFT_XT_FORMAT_INPLACE
			? CUFFT_XT_FORMAT_INPLACE_SHUFFLED
			: CUFFT_XT_FORMAT_INPLACE,
		gpu);
	return bytes > other ? bytes : other;
}

/* One allocation: the program gets the first, which points to the second. */
struct descriptor {
	cudaLibXtDesc shown;
	cudaXtDesc parts;
};

static void parts_free(cudaXtDesc *parts)
{
	for (int i = 0; i < parts->nGPUs; i++)
		if (parts->data[i])
			cuMemFree((CUdeviceptr)(uintptr_t)parts->data[i]);
}

static cufftResult part_alloc(struct fft_multi *m, cudaXtDesc *parts, int g)
{
	CUdeviceptr at = 0;
	CUcontext was;
	CUresult status;

	parts->GPUs[g] = m->gpu[g].device;
	if (!parts->size[g])
		return CUFFT_SUCCESS;
	if (cuCtxPushCurrent(m->gpu[g].context))
		return CUFFT_SETUP_FAILED;
	status = cuMemAlloc(&at, parts->size[g]);
	cuCtxPopCurrent(&was);
	parts->data[g] = (void *)(uintptr_t)at;
	return status ? CUFFT_ALLOC_FAILED : CUFFT_SUCCESS;
}

static const struct plan *plan_multi(cufftHandle number)
{
	const struct plan *plan = fft_plan(number);

	return plan && plan->made && plan->multi ? plan : NULL;
}

cufftResult hand_cufftXtMalloc(
	cufftHandle number, cudaLibXtDesc **descriptor, cufftXtSubFormat format)
{
	const struct plan *plan = plan_multi(number);
	cufftResult status = CUFFT_SUCCESS;
	struct descriptor *d;

	if (!plan)
		return CUFFT_INVALID_PLAN;
	if (!descriptor || !fft_format(plan->multi, format))
		return CUFFT_INVALID_VALUE;
	d = calloc(1, sizeof(*d));
	if (!d)
		return CUFFT_ALLOC_FAILED;
	d->shown = (cudaLibXtDesc){
		.version = DESCRIPTOR_VERSION, .descriptor = &d->parts, .subFormat = format};
	d->parts.version = DESCRIPTOR_VERSION;
	d->parts.nGPUs = plan->multi->count;
	for (int g = 0; !status && g < plan->multi->count; g++) {
		d->parts.size[g] = part_most(plan->multi, format, g);
		status = part_alloc(plan->multi, &d->parts, g);
	}
	if (status) {
		parts_free(&d->parts);
		free(d);
		return status;
	}
	*descriptor = &d->shown;
	return CUFFT_SUCCESS;
}

cufftResult hand_cufftXtFree(cudaLibXtDesc *descriptor)
{
	if (!descriptor || !descriptor->descriptor)
		return CUFFT_INVALID_VALUE;
	parts_free(descriptor->descriptor);
	free(descriptor);
	return CUFFT_SUCCESS;
}

cufftResult fft_descriptor_check(const struct fft_multi *m, const cudaLibXtDesc *d)
{
	const cudaXtDesc *parts = d ? d->descriptor : NULL;

	if (!parts)
		return CUFFT_INVALID_VALUE;
	if (parts->nGPUs != m->count)
		return CUFFT_INVALID_DEVICE;
	if (!fft_format(m, d->subFormat))
		return CUFFT_INVALID_TYPE;
	for (int g = 0; g < m->count; g++) {
		size_t bytes = fft_part_bytes(m, d->subFormat, g);

		if (parts->GPUs[g] != m->gpu[g].device)
			return CUFFT_INVALID_DEVICE;
		if (parts->size[g] < bytes || (bytes && !parts->data[g]))
			return CUFFT_INVALID_VALUE;
	}
	return CUFFT_SUCCESS;
}

/* ---- cufftXtMemcpy ---- */

/* Between the descriptor and memory of the program's, which is in natural order. */
static CUresult copy_host(
	const struct fft_multi *m, const cudaLibXtDesc *d, uintptr_t host, bool to_host)
{
	CUresult status = CUDA_SUCCESS;
	struct fft_block b;

	for (int g = 0; g < m->count; g++)
		for (size_t i = 0; !status && fft_block(m, d->subFormat, g, i, &b); i++) {
			struct fft_place there = {NULL, host + b.base, b.pitch};
			struct fft_place here = {m->gpu[g].context,
				(uintptr_t)d->descriptor->data[g] + b.at, b.width};

			status = to_host ? fft_move(there, here, b.width, b.rows)
					 : fft_move(here, there, b.width, b.rows);
		}
	return status;
}

/* The same order on both sides. */
static CUresult copy_parts(
	const struct fft_multi *m, const cudaLibXtDesc *to, const cudaLibXtDesc *from)
{
	CUresult status = CUDA_SUCCESS;

	for (int g = 0; !status && g < m->count; g++) {
		size_t bytes = fft_part_bytes(m, from->subFormat, g);

		status = fft_move((struct fft_place){m->gpu[g].context,
					  (uintptr_t)to->descriptor->data[g], bytes},
			(struct fft_place){
				m->gpu[g].context, (uintptr_t)from->descriptor->data[g], bytes},
			bytes, 1);
	}
	return status;
}

static cufftResult copy_devices(
	const struct fft_multi *m, cudaLibXtDesc *to, const cudaLibXtDesc *from)
{
	cufftXtSubFormat source = fft_order(m, from->subFormat);
	cufftXtSubFormat target = fft_order(m, to->subFormat);
	CUresult status;

	if (source == target)
		status = copy_parts(m, to, from);
	else if (m->split == FFT_BATCHES)
		return CUFFT_INVALID_TYPE;
	else if (target == CUFFT_XT_FORMAT_INPLACE)
		status = fft_exchange(
			m, source, to->descriptor->data, from->descriptor->data, true);
	else if (source == CUFFT_XT_FORMAT_INPLACE)
		status = fft_exchange(
			m, target, from->descriptor->data, to->descriptor->data, false);
	else
		return CUFFT_INVALID_TYPE;
	return status ? CUFFT_INTERNAL_ERROR : CUFFT_SUCCESS;
}

/* What is in the plan's stream comes first; all else waits by the legacy streams. */
static cufftResult copy_do(const struct plan *plan, void *to, void *from, cufftXtCopyType type)
{
	const struct fft_multi *m = plan->multi;
	cufftResult status = CUFFT_SUCCESS;
	CUresult copied;

	if (type != CUFFT_COPY_HOST_TO_DEVICE)
		status = fft_descriptor_check(m, from);
	if (!status && type != CUFFT_COPY_DEVICE_TO_HOST)
		status = fft_descriptor_check(m, to);
	if (status)
		return status;
	if (plan->stream && cuStreamSynchronize(plan->stream))
		return CUFFT_INTERNAL_ERROR;
	if (type == CUFFT_COPY_DEVICE_TO_DEVICE)
		return copy_devices(m, to, from);
	copied = type == CUFFT_COPY_HOST_TO_DEVICE ? copy_host(m, to, (uintptr_t)from, false)
						   : copy_host(m, from, (uintptr_t)to, true);
	return copied ? CUFFT_INTERNAL_ERROR : CUFFT_SUCCESS;
}

cufftResult hand_cufftXtMemcpy(cufftHandle number, void *to, void *from, cufftXtCopyType type)
{
	const struct plan *plan = plan_multi(number);

	if (!plan)
		return CUFFT_INVALID_PLAN;
	if (!to || !from || type < 0 || type > CUFFT_COPY_DEVICE_TO_DEVICE)
		return CUFFT_INVALID_VALUE;
	return copy_do(plan, to, from, type);
}

cufftResult hand_cufftXtQueryPlan(cufftHandle number, void *to, cufftXtQueryType type)
{
	const struct plan *plan = plan_multi(number);

	if (!plan || plan->multi->split != FFT_LINE)
		return CUFFT_INVALID_PLAN;
	if (!to || type != CUFFT_QUERY_1D_FACTORS)
		return CUFFT_INVALID_VALUE;
	*(cufftXt1dFactors *)to = plan->multi->factors;
	return CUFFT_SUCCESS;
}
