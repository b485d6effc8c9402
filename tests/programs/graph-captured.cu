// SPDX-License-Identifier: Apache-2.0
/*
 * A program that looks at what it captured, as XLA does: how many nodes and roots there are, of
 * which types, and which edges.  Again and again, of graphs of every size, and of graphs that
 * were looked at before a further capture went into them.
 */
#include <vector>

#include "check.h"

static unsigned char *data;
static cudaStream_t stream, other;

#if CUDART_VERSION >= 13000
#define GET_EDGES(graph, from, to, count) cudaGraphGetEdges(graph, from, to, NULL, count)
#else
#define GET_EDGES(graph, from, to, count) cudaGraphGetEdges(graph, from, to, count)
#endif

struct look {
	std::vector<cudaGraphNode_t> nodes, roots, from, to;
};

static look look_at(cudaGraph_t graph)
{
	size_t nodes, roots, edges;
	look l;

	CUDA(cudaGraphGetRootNodes(graph, NULL, &roots));
	CUDA(cudaGraphGetNodes(graph, NULL, &nodes));
	CUDA(GET_EDGES(graph, NULL, NULL, &edges));
	l.nodes.resize(nodes);
	l.roots.resize(roots);
	l.from.resize(edges);
	l.to.resize(edges);
	if (nodes)
		CUDA(cudaGraphGetNodes(graph, l.nodes.data(), &nodes));
	if (roots)
		CUDA(cudaGraphGetRootNodes(graph, l.roots.data(), &roots));
	if (edges)
		CUDA(GET_EDGES(graph, l.from.data(), l.to.data(), &edges));
	CHECK(nodes == l.nodes.size() && roots == l.roots.size() && edges == l.from.size());
	return l;
}

static bool has_edge(const look &l, cudaGraphNode_t from, cudaGraphNode_t to)
{
	for (size_t i = 0; i < l.from.size(); i++)
		if (l.from[i] == from && l.to[i] == to)
			return true;
	return false;
}

static int count_type(const look &l, cudaGraphNodeType wanted)
{
	int n = 0;

	for (cudaGraphNode_t node : l.nodes) {
		cudaGraphNodeType type;

		CUDA(cudaGraphNodeGetType(node, &type));
		n += type == wanted;
	}
	return n;
}

static void begin(cudaGraph_t into, const cudaGraphNode_t *after, size_t count)
{
	if (into)
		CUDA(cudaStreamBeginCaptureToGraph(
			stream, into, after, NULL, count, cudaStreamCaptureModeRelaxed));
	else
		CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
}

static void fills(int count)
{
	for (int i = 0; i < count; i++)
		CUDA(cudaMemsetAsync(data, i, 16, stream));
}

/* N nodes, one behind the other. */
static void chain(size_t n)
{
	cudaGraph_t graph;
	look l;

	begin(NULL, NULL, 0);
	fills((int)n);
	CUDA(cudaStreamEndCapture(stream, &graph));
	l = look_at(graph);
	CHECK_EQ(l.nodes.size(), n);
	CHECK_EQ(l.roots.size(), (size_t)(n != 0));
	CHECK_EQ(l.from.size(), n ? n - 1 : 0);
	CHECK_EQ(count_type(l, cudaGraphNodeTypeMemset), (int)n);
	for (size_t i = 1; i < n; i++) {
		size_t before, behind;
		cudaGraphNode_t node;

		before = behind = 0;
		for (size_t k = 0; k < l.from.size(); k++) {
			before += l.to[k] == l.nodes[i];
			behind += l.from[k] == l.nodes[i];
		}
		node = l.nodes[i];
		CHECK_EQ_AT((int)i, before + (node == l.roots[0]), (size_t)1);
		CHECK(behind <= 1);
	}
	CUDA(cudaGraphDestroy(graph));
}

/* One node, two beside each other, one behind both. */
static void diamond()
{
	cudaEvent_t fork, join;
	cudaGraph_t graph;
	look l;

	CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
	CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
	begin(NULL, NULL, 0);
	fills(1);
	CUDA(cudaEventRecord(fork, stream));
	CUDA(cudaStreamWaitEvent(other, fork, 0));
	CUDA(cudaMemsetAsync(data + 64, 1, 16, other));
	CUDA(cudaEventRecord(join, other));
	fills(1);
	CUDA(cudaStreamWaitEvent(stream, join, 0));
	fills(1);
	CUDA(cudaStreamEndCapture(stream, &graph));
	l = look_at(graph);
	CHECK_EQ(l.nodes.size(), (size_t)4);
	CHECK_EQ(l.roots.size(), (size_t)1);
	CHECK_EQ(l.from.size(), (size_t)4);
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaEventDestroy(fork));
	CUDA(cudaEventDestroy(join));
}

static void memory()
{
	cudaGraph_t graph;
	void *own;
	look l;

	begin(NULL, NULL, 0);
	CUDA(cudaMallocAsync(&own, 4096, stream));
	CUDA(cudaMemsetAsync(own, 0, 4096, stream));
	CUDA(cudaFreeAsync(own, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	l = look_at(graph);
	CHECK_EQ(l.nodes.size(), (size_t)3);
	CHECK_EQ(count_type(l, cudaGraphNodeTypeMemAlloc), 1);
	CHECK_EQ(count_type(l, cudaGraphNodeTypeMemFree), 1);
	CHECK_EQ(l.from.size(), (size_t)2);
	CUDA(cudaGraphDestroy(graph));
}

/* Two captures into one graph that was looked at before and between. */
static void into_one()
{
	cudaGraphNode_t first;
	cudaGraph_t graph;
	look l;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddEmptyNode(&first, graph, NULL, 0));
	CHECK_EQ(look_at(graph).from.size(), (size_t)0);
	begin(graph, &first, 1);
	fills(2);
	CUDA(cudaStreamEndCapture(stream, NULL));
	l = look_at(graph);
	CHECK_EQ(l.nodes.size(), (size_t)3);
	CHECK_EQ(l.from.size(), (size_t)2);
	CHECK(l.roots.size() == 1 && l.roots[0] == first);
	begin(graph, NULL, 0);
	fills(3);
	CUDA(cudaStreamEndCapture(stream, NULL));
	l = look_at(graph);
	CHECK_EQ(l.nodes.size(), (size_t)6);
	CHECK_EQ(l.roots.size(), (size_t)2);
	CHECK_EQ(l.from.size(), (size_t)4);
	/* What comes behind it is known too. */
	CUDA(cudaGraphAddEmptyNode(&first, graph, l.roots.data(), 2));
	l = look_at(graph);
	CHECK_EQ(l.from.size(), (size_t)6);
	CHECK(has_edge(l, l.roots[0], first) && has_edge(l, l.roots[1], first));
	CUDA(cudaGraphDestroyNode(first));
	CHECK_EQ(look_at(graph).nodes.size(), (size_t)5 + 1);
	begin(graph, l.roots.data(), 1);
	fills(1);
	CUDA(cudaStreamEndCapture(stream, NULL));
	l = look_at(graph);
	CHECK_EQ(l.nodes.size(), (size_t)7);
	CHECK_EQ(l.from.size(), (size_t)5);
	CUDA(cudaGraphDestroy(graph));
}

/* As CCCL's path_builder: the last node of a capture into a graph, read when the capture has
 * ended, is what comes next to the graph waits for. */
static void behind_the_end()
{
	cudaStreamCaptureStatus state;
	const cudaGraphNode_t *after = NULL;
	cudaGraph_t graph, same;
	cudaGraphNode_t next;
	size_t count = 0;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaStreamBeginCaptureToGraph(
		stream, graph, NULL, NULL, 0, cudaStreamCaptureModeGlobal));
	CUDA(cudaMemsetAsync(data, 1, 64, stream));
#if CUDART_VERSION >= 13000
	CUDA(cudaStreamGetCaptureInfo(stream, &state, NULL, NULL, &after, NULL, &count));
#else
	CUDA(cudaStreamGetCaptureInfo_v2(stream, &state, NULL, NULL, &after, &count));
#endif
	CHECK_EQ(count, (size_t)1);
	CUDA(cudaStreamEndCapture(stream, &same));
	CHECK(same == graph);
	CUDA(cudaGraphAddEmptyNode(&next, graph, after, count));
	CHECK_EQ(look_at(graph).from.size(), (size_t)1);
	CUDA(cudaGraphDestroy(graph));
}

int main()
{
	CUDA(cudaMalloc(&data, 128));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	into_one(); /* before the first look at something captured */
	for (int round = 0; round < 3; round++) {
		for (size_t n : {0, 1, 2, 20, 95, 96, 400})
			chain(n);
		diamond();
		memory();
		into_one();
		behind_the_end();
	}
	CUDA(cudaFree(data));
	return 0;
}
