/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches: the parameter block comes packed and goes to the driver as it is.
 */
#include <string.h>

#include "gpu-agent/worker/worker_state.h"
#include "protocol/wire/launch.h"

CUresult serve_vcudaLaunch(struct worker *w, struct request *r)
{
	const struct wire_vcudaLaunch *req = (const void *)r->body;
	CUfunction function = worker_handle(w, r, req->function, KIND_CUfunction);
	CUstream stream = worker_stream(w, r, req->stream);
	const void *attributes = worker_in(r, &req->attributes, req->attribute_bytes);
	const void *params = worker_in(r, &req->params, req->param_bytes);
	size_t param_bytes = req->param_bytes;
	CUlaunchAttribute list[LAUNCH_ATTRIBUTES_MAX + 1];
	CUlaunchConfig config;
	unsigned count;
	void *extra[] = {
		CU_LAUNCH_PARAM_BUFFER_POINTER,
		(void *)(uintptr_t)params,
		CU_LAUNCH_PARAM_BUFFER_SIZE,
		&param_bytes,
		CU_LAUNCH_PARAM_END,
	};
	void **args = param_bytes ? extra : NULL;

	if (req->attribute_bytes % sizeof(CUlaunchAttribute) ||
		req->attribute_bytes / sizeof(CUlaunchAttribute) > LAUNCH_ATTRIBUTES_MAX)
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	if (worker_refused(r))
		return r->refused;
	w->stats.launches++;
	if (!req->attribute_bytes && !(req->flags & LAUNCH_COOPERATIVE))
		return w->cuda.cuLaunchKernel(function, req->gridX, req->gridY, req->gridZ,
			req->blockX, req->blockY, req->blockZ, req->sharedBytes, stream, NULL,
			args);

	count = req->attribute_bytes / (unsigned)sizeof(CUlaunchAttribute);
	memcpy(list, attributes, req->attribute_bytes);
	for (unsigned i = 0; i < count; i++)
		if (!launch_attribute_travels(list[i].id))
			return CUDA_ERROR_NOT_SUPPORTED;
	if (req->flags & LAUNCH_COOPERATIVE) {
		memset(&list[count], 0, sizeof(list[count]));
		list[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
		list[count++].value.cooperative = 1;
	}
	if (!w->cuda.cuLaunchKernelEx)
		return worker_lacks(w, "cuLaunchKernelEx");
	memset(&config, 0, sizeof(config));
	config.gridDimX = req->gridX;
	config.gridDimY = req->gridY;
	config.gridDimZ = req->gridZ;
	config.blockDimX = req->blockX;
	config.blockDimY = req->blockY;
	config.blockDimZ = req->blockZ;
	config.sharedMemBytes = req->sharedBytes;
	config.hStream = stream;
	config.attrs = list;
	config.numAttrs = count;
	return w->cuda.cuLaunchKernelEx(&config, function, NULL, args);
}
