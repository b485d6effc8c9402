/* SPDX-License-Identifier: Apache-2.0
 *
 * A picture of a graph, in Graphviz' language, as NVIDIA's driver draws it: a kernel's node has
 * the kernel's name and its launch's shape.
 */
#include <stdio.h>

#include "softgpu/driver/graph/graph.h"

static const char *const type_names[] = {"KERNEL", "MEMCPY", "MEMSET", "HOST", "GRAPH", "EMPTY",
	"WAIT_EVENT", "EVENT_RECORD", "EXT_SEMAS_SIGNAL", "EXT_SEMAS_WAIT", "MEM_ALLOC",
	"MEM_FREE", "BATCH_MEM_OP", "CONDITIONAL"};

/* In a label of the shape "record", < and > would be ports. */
static void kernel_print(FILE *file, const struct CUgraphNode_st *node)
{
	CUDA_KERNEL_NODE_PARAMS p;

	launch_op_read(node->op, &p);
	fprintf(file, "%s\\<\\<\\<(%u,%u,%u),(%u,%u,%u),%u\\>\\>\\>", p.func->name, p.gridDimX,
		p.gridDimY, p.gridDimZ, p.blockDimX, p.blockDimY, p.blockDimZ,
		p.sharedMemBytes);
}

static void node_print(FILE *file, const struct CUgraphNode_st *node, unsigned flags)
{
	const char *type = type_names[(unsigned)node->type];
	bool kernel = node->type == CU_GRAPH_NODE_TYPE_KERNEL;
	bool verbose = flags & CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE;
	bool handles =
		flags & (CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE | CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES);

	fprintf(file, "\"graph_0_node_%zu\"[shape=\"record\" label=\"{", node->index);
	if (verbose || !kernel)
		fprintf(file, "%s | ", type);
	fprintf(file, "%zu", node->index);
	if (kernel) {
		fprintf(file, " | ");
		kernel_print(file, node);
	}
	if (handles)
		fprintf(file, " | {node handle | %p}", (const void *)node);
	fprintf(file, "}\"];\n");
	for (size_t i = 0; i < node->after.count; i++)
		fprintf(file, "\"graph_0_node_%zu\" -> \"graph_0_node_%zu\";\n",
			node->after.item[i]->index, node->index);
}

CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
	FILE *file;
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	file = fopen(path, "we");
	if (!file)
		return CUDA_ERROR_OPERATING_SYSTEM;
	pthread_mutex_lock(&queue_lock);
	if (object_is(hGraph, OBJECT_GRAPH)) {
		fprintf(file, "digraph dot {\nsubgraph cluster_0 {\nlabel=\"graph_0\"\n");
		for (size_t i = 0; i < hGraph->count; i++)
			node_print(file, hGraph->nodes[i], flags);
		fprintf(file, "}\n}\n");
		ret = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&queue_lock);
	if (fclose(file) && !ret)
		ret = CUDA_ERROR_OPERATING_SYSTEM;
	return ret;
}
