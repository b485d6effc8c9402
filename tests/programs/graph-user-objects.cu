// SPDX-License-Identifier: Apache-2.0
/*
 * User objects: the destructor runs once, when the last reference is gone, whoever held it: the
 * program, a graph, its clone, a node's child graph, an executable graph, or a launch that
 * still runs.  CUDA does not say on which thread, nor how soon, so that it is waited for.
 */
#include "driver.h"

#include <atomic>
#include <thread>
#include <time.h>

struct Tracked {
	std::atomic<int> gone{0};
};

static void CUDART_CB destroy(void *at)
{
	Tracked *t = (Tracked *)at;

	t->gone++;
}

static void pause_ms(int ms)
{
	timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

static bool gone(Tracked &t)
{
	for (int i = 0; i < 5000 && !t.gone; i++)
		pause_ms(1);
	return t.gone == 1;
}

static bool there(Tracked &t)
{
	pause_ms(30);
	return t.gone == 0;
}

static cudaUserObject_t object_of(Tracked &t, unsigned refs)
{
	cudaUserObject_t object;

	CUDA(cudaUserObjectCreate(&object, &t, destroy, refs, cudaUserObjectNoDestructorSync));
	return object;
}

static void counted()
{
	static Tracked many; /* more references than can be given back at once: it stays */
	Tracked t;
	cudaUserObject_t object = object_of(many, 0x80000000u);

	object = object_of(t, 2);

	CUDA(cudaUserObjectRetain(object, 3));
	CUDA(cudaUserObjectRelease(object, 4));
	CHECK(there(t));
	CUDA(cudaUserObjectRelease(object, 1));
	CHECK(gone(t));
}

static void mistakes()
{
	Tracked t;
	cudaUserObject_t object;
	cudaGraph_t graph;

	CUDA_IS(cudaErrorInvalidValue,
		cudaUserObjectCreate(&object, &t, destroy, 0, cudaUserObjectNoDestructorSync));
	CUDA_IS(cudaErrorInvalidValue, cudaUserObjectCreate(&object, &t, destroy, 1, 0));
	CUDA_IS(cudaErrorInvalidValue,
		cudaUserObjectCreate(&object, &t, NULL, 1, cudaUserObjectNoDestructorSync));
	object = object_of(t, 1);
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA_IS(cudaErrorInvalidValue, cudaUserObjectRetain(object, 0));
	CUDA_IS(cudaErrorInvalidValue, cudaUserObjectRelease(object, 0));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphRetainUserObject(graph, object, 0, 0));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphRetainUserObject(graph, object, 1, 2));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaUserObjectRelease(object, 1));
	CHECK(gone(t));
	(void)cudaGetLastError();
}

/* A graph's own references, retained and moved, and released again. */
static void in_graphs()
{
	Tracked kept, moved, released;
	cudaUserObject_t a = object_of(kept, 1), b = object_of(moved, 1),
			 c = object_of(released, 3);
	cudaGraph_t graph;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphRetainUserObject(graph, a, 1, 0));
	CUDA(cudaUserObjectRelease(a, 1));
	CUDA(cudaGraphRetainUserObject(graph, b, 1, cudaGraphUserObjectMove));
	CUDA(cudaGraphRetainUserObject(graph, c, 3, cudaGraphUserObjectMove));
	CUDA(cudaGraphReleaseUserObject(graph, c, 2));
	CHECK(there(released));
	CUDA(cudaGraphReleaseUserObject(graph, c, 1));
	CHECK(gone(released));
	CHECK(there(kept));
	CHECK(moved.gone == 0);
	CUDA(cudaGraphDestroy(graph));
	CHECK(gone(kept));
	CHECK(gone(moved));
}

/* What is made of a graph has references of its own. */
static void in_copies()
{
	Tracked t;
	cudaUserObject_t object = object_of(t, 1);
	cudaGraph_t graph, clone, around;
	cudaGraphExec_t exec;
	cudaGraphNode_t node;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphCreate(&around, 0));
	CUDA(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
	CUDA(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
	CUDA(cudaGraphClone(&clone, graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphAddChildGraphNode(&node, around, NULL, 0, graph));
	CUDA(cudaGraphReleaseUserObject(graph, object, 1));
	CUDA(cudaGraphDestroy(graph));
	CHECK(there(t));
	CUDA(cudaGraphDestroy(clone));
	CHECK(there(t));
	CUDA(cudaGraphExecDestroy(exec));
	CHECK(there(t));
	CUDA(cudaGraphDestroy(around));
	CHECK(gone(t));
}

static std::atomic<bool> go;

static void CUDART_CB until_told(void *)
{
	for (int i = 0; i < 20000 && !go; i++)
		pause_ms(1);
}

/* Destroyed while it runs, BESIDE by a thread without a context: the object stays until the launch is
 * done. */
static void while_it_runs(bool beside)
{
	ENTRY(cuGraphExecDestroy);
	Tracked t;
	cudaUserObject_t object = object_of(t, 1);
	cudaHostNodeParams host = {until_told, NULL};
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t node;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddHostNode(&node, graph, NULL, 0, &host));
	CUDA(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	go = false;
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaGraphDestroy(graph));
	if (beside)
		std::thread([&] { DRIVER(p_cuGraphExecDestroy((CUgraphExec)exec)); }).join();
	else
		CUDA(cudaGraphExecDestroy(exec));
	CHECK(there(t));
	go = true;
	CUDA(cudaStreamSynchronize(stream));
	CHECK(gone(t));
	CUDA(cudaStreamDestroy(stream));
}

/* The graph inside of a node has the references of the one that was put there, and lets them go. */
static void let_go_inside()
{
	Tracked t;
	cudaUserObject_t object = object_of(t, 3);
	cudaGraph_t graph, around, inside;
	cudaGraphNode_t node;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
	CUDA(cudaGraphRetainUserObject(graph, object, 3, cudaGraphUserObjectMove));
	CUDA(cudaGraphCreate(&around, 0));
	CUDA(cudaGraphAddChildGraphNode(&node, around, NULL, 0, graph));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaGraphChildGraphNodeGetGraph(node, &inside));
	CHECK(there(t));
	CUDA(cudaGraphReleaseUserObject(inside, object, 1));
	CHECK(there(t));
	CUDA(cudaGraphReleaseUserObject(inside, object, 2));
	CHECK(gone(t));
	CUDA(cudaGraphDestroy(around));
}

int main()
{
	counted();
	mistakes();
	in_graphs();
	in_copies();
	while_it_runs(false);
	while_it_runs(true);
	let_go_inside();
	return 0;
}
