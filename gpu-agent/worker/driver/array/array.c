/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays: made by the driver, known by what was asked for, so that each copy is checked against
 * that before the driver sees it.  They count as used memory like any other.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/driver/array/array.h"
#include "gpu-agent/worker/handle.h"

struct worker_array *array_box(struct worker *w, struct request *r, uint64_t handle, uint64_t x,
	uint64_t y, uint64_t z, uint64_t width, uint64_t height, uint64_t depth)
{
	struct worker_array *array = worker_handle(w, r, handle, KIND_CUarray);

	if (array && (!array->array || !width || !height || !depth ||
			     !array_holds(&array->level, x, y, z, width, height, depth)))
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	return array;
}

/* The name of one of the driver's arrays, or mipmapped arrays. */
static uint64_t name_of(const struct worker *w, CUarray array, CUmipmappedArray mipmap)
{
	for (uint32_t i = 0; i < w->name_count; i++) {
		const struct name *name = &w->names[i];
		const struct worker_array *known = name->object;

		if (known && name->kind == KIND_CUarray && known->array == array &&
			known->mipmap == mipmap)
			return handle_make(name->generation, KIND_CUarray, i);
	}
	return 0;
}

uint64_t array_name(const struct worker *w, CUarray array)
{
	return name_of(w, array, NULL);
}

uint64_t array_mipmapped_name(const struct worker *w, CUmipmappedArray mipmap)
{
	return name_of(w, NULL, mipmap);
}

/* The device of a context; false: the request has none. */
static bool array_device(struct worker *w, uint32_t *device)
{
	CUdevice current;

	if (w->cuda.cuCtxGetDevice(&current))
		return false;
	for (*device = 0; *device < w->device_count; ++*device)
		if (w->devices[*device].device == current)
			return true;
	return false;
}

static CUresult array_make(struct worker *w, struct worker_array *array)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;

	memset(&desc, 0, sizeof(desc));
	desc.Width = array->desc.width;
	desc.Height = array->desc.height;
	desc.Depth = array->desc.depth;
	desc.Format = (CUarray_format)array->desc.format;
	desc.NumChannels = array->desc.channels;
	desc.Flags = array->desc.flags;
	if (!array->desc.levels)
		return w->cuda.cuArray3DCreate_v2
			       ? w->cuda.cuArray3DCreate_v2(&array->array, &desc)
			       : CUDA_ERROR_NOT_SUPPORTED;
	return w->cuda.cuMipmappedArrayCreate ? w->cuda.cuMipmappedArrayCreate(&array->mipmap,
							&desc, array->desc.levels)
					      : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult array_close(struct worker *w, struct worker_array *array)
{
	CUresult status = CUDA_SUCCESS;

	if (!array->part) {
		status = array->mipmap ? w->cuda.cuMipmappedArrayDestroy(array->mipmap)
				       : w->cuda.cuArrayDestroy(array->array);
		w->devices[array->device].used -= array->bytes;
	}
	array_tiles_unmap(w, array);
	free(array);
	return status;
}

CUresult serve_vcudaArrayCreate(struct worker *w, struct request *r)
{
	const struct wire_vcudaArrayCreate *req = (const void *)r->body;
	const struct array_desc *desc = worker_in(r, &req->desc, sizeof(*desc));
	struct worker_array *array;
	struct worker_device *d;
	uint64_t bytes;
	uint32_t device;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (!array_valid(desc))
		return CUDA_ERROR_INVALID_VALUE;
	if (!array_device(w, &device))
		return CUDA_ERROR_INVALID_CONTEXT;
	d = &w->devices[device];
	bytes = array_bytes(desc);
	if (bytes > d->lease - d->used)
		return CUDA_ERROR_OUT_OF_MEMORY;
	array = calloc(1, sizeof(*array));
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	array->desc = *desc;
	array->level = array_level(desc);
	array->device = device;
	array->bytes = bytes;
	status = array_make(w, array);
	if (status) {
		free(array);
		return status;
	}
	d->used += bytes;
	worker_bind(w, r, req->array, KIND_CUarray, array);
	if (r->refused)
		array_close(w, array);
	return r->refused;
}

CUresult serve_vcudaArrayLevel(struct worker *w, struct request *r)
{
	const struct wire_vcudaArrayLevel *req = (const void *)r->body;
	struct worker_array *of = worker_handle(w, r, req->of, KIND_CUarray), *array;
	CUresult status;

	if (!of)
		return r->refused;
	if (of->part || req->level >= array_parts(&of->desc))
		return CUDA_ERROR_INVALID_VALUE;
	if (!of->mipmap && !w->cuda.cuArrayGetPlane)
		return worker_lacks(w, "cuArrayGetPlane");
	array = calloc(1, sizeof(*array));
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	array->part = true;
	array->device = of->device;
	array->desc = array_part(&of->desc, req->level);
	array->level = array_level(&array->desc);
	status = of->mipmap ? w->cuda.cuMipmappedArrayGetLevel(
				      &array->array, of->mipmap, req->level)
			    : w->cuda.cuArrayGetPlane(&array->array, of->array, req->level);
	if (!status) {
		worker_bind(w, r, req->array, KIND_CUarray, array);
		status = r->refused;
	}
	if (status)
		free(array);
	else
		handles_own(w, req->array, req->of);
	return status;
}

CUresult serve_vcudaArrayDestroy(struct worker *w, struct request *r)
{
	const struct wire_vcudaArrayDestroy *req = (const void *)r->body;
	struct worker_array *array = worker_handle(w, r, req->array, KIND_CUarray);

	if (!array)
		return r->refused;
	if (array->part)
		return CUDA_ERROR_INVALID_HANDLE;
	worker_unbind(w, r, req->array, KIND_CUarray);
	if (array_parts(&array->desc))
		for (uint32_t i = 0; i < w->name_count; i++)
			if (w->names[i].object && w->names[i].owner == req->array) {
				free(w->names[i].object);
				handles_forget(w, &w->names[i]);
			}
	return array_close(w, array);
}

/* The driver's answer; its functions are NULL where it has none. */
static CUresult array_ask(struct worker *w, const struct worker_array *a, uint32_t what,
	CUdevice device, void *to)
{
	const struct cuda_driver *cuda = &w->cuda;

	if (what == ARRAY_ASK_SPARSE && a->mipmap && cuda->cuMipmappedArrayGetSparseProperties)
		return cuda->cuMipmappedArrayGetSparseProperties(to, a->mipmap);
	if (what == ARRAY_ASK_SPARSE && !a->mipmap && cuda->cuArrayGetSparseProperties)
		return cuda->cuArrayGetSparseProperties(to, a->array);
	if (what == ARRAY_ASK_REQUIREMENTS && a->mipmap &&
		cuda->cuMipmappedArrayGetMemoryRequirements)
		return cuda->cuMipmappedArrayGetMemoryRequirements(to, a->mipmap, device);
	if (what == ARRAY_ASK_REQUIREMENTS && !a->mipmap && cuda->cuArrayGetMemoryRequirements)
		return cuda->cuArrayGetMemoryRequirements(to, a->array, device);
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult serve_vcudaArrayAsk(struct worker *w, struct request *r)
{
	const struct wire_vcudaArrayAsk *req = (const void *)r->body;
	struct wire_vcudaArrayAsk_reply *answer = (void *)r->answer;
	struct worker_array *array = worker_handle(w, r, req->array, KIND_CUarray);
	uint64_t told[8] = {0};
	CUresult status;

	if (!array)
		return r->refused;
	if (req->device < 0 || (uint32_t)req->device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	_Static_assert(sizeof(CUDA_ARRAY_SPARSE_PROPERTIES) <= sizeof(told) &&
			       sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS) <= sizeof(told),
		"answers");
	status = array_ask(w, array, req->what, w->devices[req->device].device, told);
	if (!status)
		memcpy(worker_out(r, &answer->answer, sizeof(told)), told, sizeof(told));
	return status;
}

void array_forget(struct worker *w, struct worker_array *array)
{
	array_close(w, array);
}
