// SPDX-License-Identifier: Apache-2.0
/*
 * The picture that the driver draws of a graph: it names each kernel, and says more when it is
 * asked to be verbose. CuPy's tests look for that.
 */
#include "check.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

extern "C" __global__ void picture_first(int *to)
{
	to[threadIdx.x] = 1;
}

extern "C" __global__ void picture_second(int *to)
{
	to[threadIdx.x] += 1;
}

static std::string picture(cudaGraph_t graph, unsigned flags)
{
	char path[] = "/tmp/graph-dot-XXXXXX";
	int fd = mkstemp(path);
	std::stringstream text;

	CHECK(fd >= 0);
	CUDA(cudaGraphDebugDotPrint(graph, path, flags));
	text << std::ifstream(path).rdbuf();
	close(fd);
	unlink(path);
	return text.str();
}

static bool has(const std::string &text, const char *what)
{
	return text.find(what) != std::string::npos;
}

int main()
{
	cudaStream_t stream;
	cudaGraph_t graph;
	std::string brief, verbose;
	int *a;

	CUDA(cudaMalloc(&a, 128 * sizeof(*a)));
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	picture_first<<<1, 128, 0, stream>>>(a);
	CUDA(cudaMemsetAsync(a, 0, 64, stream));
	picture_second<<<1, 128, 0, stream>>>(a);
	CUDA(cudaStreamEndCapture(stream, &graph));

	brief = picture(graph, 0);
	verbose = picture(graph, cudaGraphDebugDotFlagsVerbose);
	for (const std::string &text : {brief, verbose}) {
		CHECK(has(text, "digraph"));
		CHECK(has(text, "picture_first"));
		CHECK(has(text, "picture_second"));
		CHECK(has(text, "->"));
	}
	CHECK(verbose.size() > brief.size());

	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(a));
	return 0;
}
