/* SPDX-License-Identifier: Apache-2.0
 *
 * A picture of a graph, in Graphviz' language: the worker's driver draws it.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "shim/driver/forms.h"
#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "shim/engine/engine.h"
#include "shim/driver/graph/graph.h"

static CUresult dot_write(int fd, const char *text, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t wrote = write(fd, text + done, n - done);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return CUDA_ERROR_OPERATING_SYSTEM;
		done += (size_t)wrote;
	}
	return CUDA_SUCCESS;
}

CUresult hand_cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
	struct graph *graph = graph_find(hGraph);
	uint64_t at = 0, total = 0;
	CUresult status;
	int fd;

	if (!graph || !path)
		return CUDA_ERROR_INVALID_VALUE;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	do {
		const struct wire_vcudaGraphDot_reply *reply;
		struct wire_vcudaGraphDot *body;
		CUresult wrote = CUDA_SUCCESS;
		struct shim_call call;
		size_t n = 0;

		body = shim_begin(&call, OP_vcudaGraphDot, sizeof(*body));
		body->graph = graph->handle;
		body->flags = flags;
		body->first = at;
		reply = shim_wait(&call, sizeof(*reply));
		if (reply) {
			const char *text = shim_run(&call, &reply->text, &n);

			total = reply->total;
			if (text)
				wrote = dot_write(fd, text, n);
		}
		status = shim_end(&call);
		if (!status)
			status = wrote;
		at += n;
		if (!n)
			break;
	} while (!status && at < total);
	if (close(fd) && !status)
		status = CUDA_ERROR_OPERATING_SYSTEM;
	return status;
}
