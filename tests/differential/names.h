// SPDX-License-Identifier: Apache-2.0
/*
 * What a trace has seen: handles and addresses by class, their names, and what programs on the
 * device there are.
 */
#pragma once

/* With the types of older versions. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime.h>

#include <condition_variable>
#include <dlfcn.h>
#include <functional>
#include <initializer_list>
#include <map>
#include <mutex>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

enum { THREADS = 3, SLOTS = 6, SECONDS = 20, BUFFER = 65536, HOST = 16 << 20 };

enum handle_class {
	CLASS_stream,
	CLASS_event,
	CLASS_context,
	CLASS_module,
	CLASS_function,
	CLASS_kernel,
	CLASS_library,
	CLASS_graph,
	CLASS_node,
	CLASS_exec,
	CLASS_pool,
	CLASS_allocation,
	CLASS_link,
	CLASS_array,
	CLASS_mipmapped,
	CLASS_texture,
	CLASS_surface,
	CLASS_user,
	CLASS_pinned,
	CLASS_memory,
	CLASS_managed,
	CLASS_green,
	CLASS_description,
	CLASS_conditional,
	CLASS_body,
	CLASSES
};
static const char *const class_names[] = {"stream", "event", "context", "module", "function",
	"kernel", "library", "graph", "node", "exec", "pool", "allocation", "link", "array",
	"mipmapped", "texture", "surface", "user", "pinned", "memory", "managed", "green",
	"description", "conditional", "body"};

/* Parts of the names of functions that make and take nodes of a type, in the order of
 * CUgraphNodeType. */
static const char *const node_kinds[] = {"Kernel", "Memcpy", "Memset", "Host", "ChildGraph",
	"Empty", "EventWait", "EventRecord", "SemaphoresSignal", "SemaphoresWait", "MemAlloc",
	"MemFree", "BatchMemOp"};

enum gone { GONE_NOTHING, GONE_IT, GONE_FAMILY, GONE_ALL };

struct slot {
	uint64_t value;
	bool live;
	uint64_t owner; /* the green context that takes it with it */
	int node;	/* of a node, which of node_kinds; -1: another */
	bool variable;	/* a few bytes only */
};

/* Bytes that a driver made for another call, or another process, to give back. */
enum blob_class {
	BLOB_memory,
	BLOB_event,
	BLOB_pointer,
	BLOB_descriptor,
	BLOB_pool,
	BLOB_tensor,
	BLOBS
};
static const char *const blob_names[] = {
	"ipc-memory", "ipc-event", "pool-pointer", "descriptor", "pool-descriptor", "tensor"};

struct blob {
	unsigned char bytes[128];
	std::string name;
};

static struct slot slots[CLASSES][SLOTS];
/* Names by value: a destroyed handle's value may come again, as a new one. */
static std::map<uint64_t, std::string> names[CLASSES];
static unsigned counters[CLASSES];
static unsigned char *host_pool;
static FILE *out;
static struct blob blobs[BLOBS][SLOTS];
static unsigned blob_counters[BLOBS];
static CUdevResource resources[SLOTS];
/* Device memory that nothing writes: what is waited for on it has come already. */
static CUdeviceptr waited;
/* Conditions that may begin as anything: a loop on one might never end. */
static std::map<uint64_t, bool> endless;

__device__ unsigned counter;
__device__ unsigned table[1024];
__global__ void add_one()
{
	atomicAdd(&counter, 1u);
}
__global__ void add_shared()
{
	extern __shared__ unsigned shared[];
	unsigned bytes;

	asm("mov.u32 %0, %dynamic_smem_size;" : "=r"(bytes));
	if (bytes < 4 * sizeof(*shared))
		return;
	shared[threadIdx.x % 4] = 1;
	__syncthreads();
	if (!threadIdx.x)
		atomicAdd(&counter, shared[0]);
}

static const char image[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .global .align 4 .u32 number;\n"
	".visible .const .align 4 .u32 fixed[4] = {1, 2, 3, 4};\n"
	".visible .entry nothing()\n{ ret; }\n"
	".visible .entry count()\n{ .reg .b32 %r<3>; .reg .b64 %d<2>;\n"
	"  mov.u64 %d1, number; atom.global.add.u32 %r1, [%d1], 1; ret; }\n";

/* What is loaded: most of it is wrong. */
static const char *const images[] = {image,
	".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry other()\n{ ret; }\n",
	".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{ no.such "
	"%r; }\n",
	".version 99.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{ ret; }\n",
	".version 7.0\n.target sm_999\n.address_size 64\n.visible .entry nothing()\n{ ret; }\n",
	"neither text nor code", ""};

/* A host function. */
static void CUDA_CB nothing(void *)
{
}

static uint64_t mix(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* ---- names ---- */

static std::string name_in(handle_class kind, uint64_t value)
{
	auto &known = names[kind];
	auto found = known.find(value);

	if (found != known.end())
		return found->second;
	if (kind == CLASS_memory || kind == CLASS_managed) {
		auto above = known.upper_bound(value);

		if (above != known.begin()) {
			--above;
			if (value - above->first < (4u << 20))
				return above->second + "+" +
				       std::to_string(value - above->first);
		}
	}
	return "";
}

static std::string name_new(handle_class kind, uint64_t value)
{
	/* Where managed memory comes to lie beside other is the process's own. */
	const bool known = kind == CLASS_managed ? names[kind].count(value)
						 : !name_in(kind, value).empty();

	if (known)
		return name_in(kind, value);
	return names[kind][value] =
		       std::string(class_names[kind]) + "#" + std::to_string(++counters[kind]);
}

/* A word that may be a number, an address or a handle of any class. */
static std::string word_text(uint64_t word)
{
	char text[32];

	if (word == (uint64_t)(void *)nothing)
		return "nothing";
	if (waited && word - waited < 4)
		return word == waited ? "waited" : "waited+" + std::to_string(word - waited);
	if (word == (uint64_t)(void *)add_one)
		return "add_one";
	if (word >= 4096) {
		if (word - (uint64_t)host_pool < HOST)
			return "host+" + std::to_string(word - (uint64_t)host_pool);
		for (const auto &known : names) {
			auto found = known.find(word);

			if (found != known.end())
				return found->second;
		}
		for (int kind = 0; kind < CLASSES; kind++) {
			std::string name = name_in((handle_class)kind, word);

			if (!name.empty())
				return name;
		}
	}
	/* Of this process: another one at each run. Those that the software GPU chooses begin
	 * with 0x11. */
	if ((word >> 40 >= 0x55 && word >> 40 < 0x80) || word >> 40 == 0x11)
		return "0xaddress";
	snprintf(text, sizeof(text), word < 1000000 ? "%llu" : "0x%llx",
		(unsigned long long)word);
	return text;
}
