/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans on several GPUs: which GPUs they have, how they are made, and their ends.  See multi.h.
 */
#include "shim/libraries/cufft/multi.h"

#include <stdlib.h>

#define ALIGNED 256u

/* The program's plan may be made on any of its threads; the context that is current stays. */
cufftResult hand_cufftXtSetGPUs(cufftHandle number, int count, int *devices)
{
	struct plan *plan = fft_plan(number);
	struct fft_multi *m;

	if (!plan || plan->made)
		return CUFFT_INVALID_PLAN;
	if (count < 2 || count > FFT_GPUS || !devices)
		return CUFFT_INVALID_VALUE;
	if (cuInit(0))
		return CUFFT_SETUP_FAILED;
	m = calloc(1, sizeof(*m));
	if (!m)
		return CUFFT_ALLOC_FAILED;
	m->count = count;
	for (int i = 0; i < count; i++) {
		struct fft_gpu *gpu = &m->gpu[i];

		gpu->device = devices[i];
		/* Retained for as long as the process has it, as the runtime's is. */
		if (cuDevicePrimaryCtxRetain(&gpu->context, gpu->device)) {
			free(m);
			return CUFFT_INVALID_DEVICE;
		}
	}
	free(plan->multi);
	plan->multi = m;
	return CUFFT_SUCCESS;
}

/* ---- the work area of each GPU ---- */

static void areas_set(const struct fft_gpu *gpu)
{
	CUdeviceptr behind = gpu->area ? gpu->area + gpu->buffer_bytes : 0;

	for (int i = 0; i < 2; i++)
		if (gpu->plan[i])
			hand_cufftSetWorkArea(gpu->plan[i], (void *)(uintptr_t)behind);
}

static void area_set(struct fft_gpu *gpu, CUdeviceptr area, bool own)
{
	if (gpu->own_area)
		cuMemFree(gpu->area);
	gpu->area = area;
	gpu->own_area = own;
	areas_set(gpu);
}

void fft_multi_areas(const struct plan *plan, void **areas)
{
	for (int g = 0; g < plan->multi->count; g++)
		area_set(&plan->multi->gpu[g], (CUdeviceptr)(uintptr_t)areas[g], false);
}

/* What is exchanged comes here first: of a line all of it, on the first GPU. */
static size_t buffer_bytes(const struct fft_multi *m, int gpu)
{
	size_t bytes = 0;

	if (m->split == FFT_SLABS)
		bytes = fft_part_bytes(m, CUFFT_XT_FORMAT_INPLACE_SHUFFLED, gpu);
	else if (m->split == FFT_LINE && !gpu)
		bytes = m->x * m->each;
	return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* ---- making ---- */

static cufftResult part_make(struct fft_multi *m, const struct cufft_whole *whole, int g, int i,
	const char *name, size_t *bytes)
{
	cufftHandle *number = &m->gpu[g].plan[i];
	struct cufft_whole part;
	cufftResult status;

	if (!fft_multi_part(m, whole, g, i, &part))
		return CUFFT_SUCCESS;
	status = hand_cufftCreate(number);
	if (status)
		return status;
	hand_cufftSetAutoAllocation(*number, 0);
	return fft_plan_make(*number, &part, name, bytes);
}

static cufftResult part_size(struct fft_multi *m, const struct cufft_whole *whole, int g, int i,
	const char *name, size_t *bytes)
{
	struct cufft_whole part;

	return fft_multi_part(m, whole, g, i, &part) ? fft_plan_size(&part, name, bytes)
						     : CUFFT_SUCCESS;
}

typedef cufftResult part_do(struct fft_multi *m, const struct cufft_whole *whole, int g, int i,
	const char *name, size_t *bytes);

/* Does it for both plans of a GPU, in its context; they share one work area. */
static cufftResult gpu_do(struct fft_multi *m, const struct cufft_whole *whole, int g,
	part_do *what, const char *name)
{
	struct fft_gpu *gpu = &m->gpu[g];
	cufftResult status = CUFFT_SUCCESS;
	CUcontext was;

	if (cuCtxPushCurrent(gpu->context))
		return CUFFT_SETUP_FAILED;
	gpu->buffer_bytes = buffer_bytes(m, g);
	gpu->area_bytes = gpu->buffer_bytes;
	for (int i = 0; !status && i < 2; i++) {
		size_t bytes = 0;

		status = what(m, whole, g, i, name, &bytes);
		if (gpu->buffer_bytes + bytes > gpu->area_bytes)
			gpu->area_bytes = gpu->buffer_bytes + bytes;
	}
	cuCtxPopCurrent(&was);
	return status;
}

static cufftResult gpus_do(struct fft_multi *m, const struct cufft_whole *whole, part_do *what,
	const char *name, size_t *bytes)
{
	cufftResult status = whole->extra.callbacks ? CUFFT_NOT_SUPPORTED
						    : fft_multi_shape(m, &whole->plain);

	for (int g = 0; !status && g < m->count; g++) {
		status = gpu_do(m, whole, g, what, name);
		bytes[g] = m->gpu[g].area_bytes;
	}
	return status;
}

static cufftResult areas_make(struct fft_multi *m)
{
	cufftResult status = CUFFT_SUCCESS;

	for (int g = 0; !status && g < m->count; g++) {
		struct fft_gpu *gpu = &m->gpu[g];
		CUdeviceptr area = 0;
		CUcontext was;

		if (!gpu->area_bytes)
			continue;
		if (cuCtxPushCurrent(gpu->context))
			return CUFFT_SETUP_FAILED;
		if (cuMemAlloc(&area, gpu->area_bytes))
			status = CUFFT_ALLOC_FAILED;
		else
			area_set(gpu, area, true);
		cuCtxPopCurrent(&was);
	}
	return status;
}

static void parts_end(struct fft_multi *m)
{
	for (int g = 0; g < m->count; g++) {
		for (int i = 0; i < 2; i++) {
			if (m->gpu[g].plan[i])
				hand_cufftDestroy(m->gpu[g].plan[i]);
			m->gpu[g].plan[i] = 0;
		}
		area_set(&m->gpu[g], 0, false);
	}
}

cufftResult fft_multi_make(
	struct plan *plan, const struct cufft_whole *content, const char *name, size_t *bytes)
{
	struct fft_multi *m = plan->multi;
	cufftResult status = gpus_do(m, content, part_make, name, bytes);

	if (!status && !plan->no_allocation)
		status = areas_make(m);
	if (status)
		parts_end(m);
	else
		plan->content = *content;
	plan->made = !status;
	return status;
}

cufftResult fft_multi_size(const struct plan *plan, const struct cufft_whole *content,
	const char *name, size_t *bytes)
{
	struct fft_multi asked = *plan->multi;

	return gpus_do(&asked, content, part_size, name, bytes);
}

void fft_multi_sizes(const struct plan *plan, size_t *bytes)
{
	for (int g = 0; g < plan->multi->count; g++)
		bytes[g] = plan->multi->gpu[g].area_bytes;
}

void fft_multi_end(struct plan *plan)
{
	parts_end(plan->multi);
	free(plan->multi);
	plan->multi = NULL;
}
