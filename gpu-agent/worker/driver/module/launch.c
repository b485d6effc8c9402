/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches: the parameter block comes packed and goes to the driver as it is.
 */
#include <string.h>

#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/graph/graph_modules.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/wire/launch.h"

/* The attributes of a frame, which a launch takes; how many, or -1: refused. */
static int launch_attributes(struct request *r, const struct wire_run *run, uint32_t bytes,
	CUlaunchAttribute list[LAUNCH_ATTRIBUTES_MAX])
{
	const void *attributes;
	uint32_t count = bytes / (uint32_t)sizeof(CUlaunchAttribute);

	if (!bytes && !run->length)
		return 0;
	attributes = worker_in(r, run, bytes);
	if (bytes % sizeof(CUlaunchAttribute) || count > LAUNCH_ATTRIBUTES_MAX)
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	if (worker_refused(r))
		return -1;
	memcpy(list, attributes, bytes);
	for (uint32_t i = 0; i < count; i++)
		if (!launch_attribute_travels(list[i].id))
			worker_refuse(r, CUDA_ERROR_NOT_SUPPORTED);
	return worker_refused(r) ? -1 : (int)count;
}

CUresult serve_vcudaOccupancyClusters(struct worker *w, struct request *r)
{
	const struct wire_vcudaOccupancyClusters *req = (const void *)r->body;
	struct wire_vcudaOccupancyClusters_reply *answer = (void *)r->answer;
	CUfunction function = worker_handle(w, r, req->function, KIND_CUfunction);
	CUlaunchAttribute list[LAUNCH_ATTRIBUTES_MAX];
	int count = launch_attributes(r, &req->attributes, req->attribute_bytes, list);
	CUlaunchConfig config = {.gridDimX = req->gridX,
		.gridDimY = req->gridY,
		.gridDimZ = req->gridZ,
		.blockDimX = req->blockX,
		.blockDimY = req->blockY,
		.blockDimZ = req->blockZ,
		.sharedMemBytes = req->sharedBytes,
		.attrs = list};

	if (worker_refused(r))
		return r->refused;
	config.numAttrs = (unsigned)count;
	if (req->largest)
		return w->cuda.cuOccupancyMaxPotentialClusterSize
			       ? w->cuda.cuOccupancyMaxPotentialClusterSize(
					 &answer->answer, function, &config)
			       : worker_lacks(w, "cuOccupancyMaxPotentialClusterSize");
	return w->cuda.cuOccupancyMaxActiveClusters
		       ? w->cuda.cuOccupancyMaxActiveClusters(
				 &answer->answer, function, &config)
		       : worker_lacks(w, "cuOccupancyMaxActiveClusters");
}

bool launch_first(struct worker *w)
{
	const struct wire_vcudaLaunch *req = (const void *)w->receiver.body;
	const struct name *name;

	if (w->receiver.frame.op != OP_vcudaLaunch || w->receiver.frame.body < sizeof(*req))
		return false;
	name = handles_find(w, req->function, KIND_CUfunction);
	return name && !name->launched;
}

CUresult serve_vcudaLaunch(struct worker *w, struct request *r)
{
	const struct wire_vcudaLaunch *req = (const void *)r->body;
	struct name *name = handles_find(w, req->function, KIND_CUfunction);
	CUstream stream = worker_stream(w, r, req->stream);
	const void *params = worker_in(r, &req->params, req->param_bytes);
	size_t param_bytes = req->param_bytes;
	CUlaunchAttribute list[LAUNCH_ATTRIBUTES_MAX + 1];
	int given = launch_attributes(r, &req->attributes, req->attribute_bytes, list);
	CUlaunchConfig config;
	CUfunction function;
	unsigned count;
	void *extra[] = {
		CU_LAUNCH_PARAM_BUFFER_POINTER,
		(void *)(uintptr_t)params,
		CU_LAUNCH_PARAM_BUFFER_SIZE,
		&param_bytes,
		CU_LAUNCH_PARAM_END,
	};
	void **args = param_bytes ? extra : NULL;

	if (!name)
		worker_refuse(r, CUDA_ERROR_INVALID_HANDLE);
	if (worker_refused(r))
		return r->refused;
	function = name->object;
	name->launched = true;
	/* It may become a node. */
	if (w->graphs.captures && !graph_modules_add(w, &w->graphs.captured, req->function))
		return CUDA_ERROR_OUT_OF_MEMORY;
	w->stats.launches++;
	if (!req->attribute_bytes && !(req->flags & LAUNCH_COOPERATIVE))
		return w->cuda.cuLaunchKernel(function, req->gridX, req->gridY, req->gridZ,
			req->blockX, req->blockY, req->blockZ, req->sharedBytes, stream, NULL,
			args);

	count = (unsigned)given;
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
