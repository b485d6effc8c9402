/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program is told of a capture under way.
 */
#include <string.h>

#include "softgpu/driver/graph/graph.h"

/* Whether one of the edges says more than a list without their data can. */
static bool tail_lossy(const struct node_set *tail)
{
	static const CUgraphEdgeData none;

	for (size_t i = 0; i < tail->count; i++)
		if (memcmp(&tail->data[i], &none, sizeof(none)))
			return true;
	return false;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
	cuuint64_t *id_out, CUgraph *graph_out, const CUgraphNode **dependencies_out,
	const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
	struct CUstream_st *stream;
	CUresult ret = cuStreamIsCapturing(hStream, captureStatus_out);

	if (ret || *captureStatus_out != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return ret;
	ret = soft_stream_find(hStream, &stream);
	if (ret)
		return ret;
	pthread_mutex_lock(&queue_lock);
	if (stream->capture) {
		if (id_out)
			*id_out = stream->capture->id;
		if (graph_out)
			*graph_out = stream->capture->graph;
		if (dependencies_out && !edgeData_out && tail_lossy(&stream->tail))
			ret = CUDA_ERROR_LOSSY_QUERY;
		else if (dependencies_out)
			*dependencies_out = stream->tail.item;
		if (edgeData_out)
			*edgeData_out = stream->tail.data;
		if (numDependencies_out)
			*numDependencies_out = stream->tail.count;
	}
	queue_unref(stream);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
	cuuint64_t *id_out, CUgraph *graph_out, const CUgraphNode **dependencies_out,
	size_t *numDependencies_out)
{
	return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out,
		dependencies_out, NULL, numDependencies_out);
}

CUresult cuStreamGetCaptureInfo(
	CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out)
{
	return cuStreamGetCaptureInfo_v2(hStream, captureStatus_out, id_out, NULL, NULL, NULL);
}
