/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program does first, done by `vcuda doctor`: the driver's library is loaded and cuInit
 * called, so sidecar, shared memory, agent and worker are all in it.  In a process of its own,
 * `vcuda doctor --attach`, since a library that waits is ended from outside.
 */
#include <cjson/cJSON.h>
#include <cuda.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "command/command.h"
#include "command/spawn.h"

#define ATTACH_COPY (16u << 20)
#define ATTACH_COPIES 3
#define ATTACH_STATUS (64u << 10) /* of some hundred programs */
#define ATTACH_PATIENCE 5	  /* s */
#define ATTACH_AGENTS 8		  /* between which copies are tried */
#define ATTACH_SYMBOL(name) ((__typeof__(&name))dlsym(library, #name))

/* Which of COUNT devices reach each other's memory, in words; "": there is one only. */
static const char *peers(void *library, int count)
{
	int able = 0, pairs = count * (count - 1);

	for (int i = 0; i < pairs; i++) {
		int one = i / (count - 1), other = i % (count - 1), can = 0;

		other += other >= one;
		if (!ATTACH_SYMBOL(cuDeviceCanAccessPeer)(&can, one, other) && can)
			able++;
	}
	return !pairs	       ? ""
	       : able == pairs ? "; they reach each other's memory"
	       : able	       ? "; some reach each other's memory (vcuda smi topo -p2p r)"
		      : "; none reaches another one's memory, copies between them work";
}

/* The device's primary context is current then. 0: it cannot be had. */
static CUdeviceptr memory_on(void *library, int device, size_t bytes, CUcontext *context)
{
	CUdeviceptr at = 0;

	if (ATTACH_SYMBOL(cuDevicePrimaryCtxRetain)(context, device) ||
		ATTACH_SYMBOL(cuCtxSetCurrent)(*context) ||
		ATTACH_SYMBOL(cuMemAlloc_v2)(&at, bytes))
		return 0;
	return at;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Bytes a second of copies to the device, behind the first, which opens the stripes. Their
 * bytes are such that coding saves nothing. 0: where the memory cannot be had. */
static double copy_rate(void *library)
{
	uint64_t *host = malloc(ATTACH_COPY), x = 88172645463325252u;
	CUcontext context;
	CUdeviceptr memory = host ? memory_on(library, 0, ATTACH_COPY, &context) : 0;
	double since = 0;

	if (memory) {
		for (size_t i = 0; i < ATTACH_COPY / sizeof(*host); i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			host[i] = x;
		}
		for (int i = 0; i <= ATTACH_COPIES; i++) {
			if (ATTACH_SYMBOL(cuMemcpyHtoD_v2)(memory, host, ATTACH_COPY) ||
				ATTACH_SYMBOL(cuCtxSynchronize)()) {
				since = 0;
				break;
			}
			if (!i)
				since = now();
		}
	}
	free(host);
	return since > 0 ? (double)ATTACH_COPY * ATTACH_COPIES / (now() - since) : 0;
}

/* How the sidecar reaches the agent for this process, as long as it is joined. */
static void wire(double rate)
{
	static char out[ATTACH_STATUS], err[ATTACH_STATUS];
	char program[PATH_MAX];
	struct error error;
	cJSON *status = NULL;
	const cJSON *channel;

	if (!spawn_beside("vcuda-client", program, sizeof(program), &error) &&
		!spawn_capture((char *[]){program, "status", "--json", NULL}, ATTACH_PATIENCE,
			out, err, sizeof(out)))
		status = cJSON_Parse(out);
	cJSON_ArrayForEach(channel, cJSON_GetObjectItemCaseSensitive(status, "channels"))
	{
		const cJSON *pid = cJSON_GetObjectItemCaseSensitive(channel, "pid");

		if (!cJSON_IsNumber(pid) || pid->valuedouble != getpid())
			continue;
		printf("%s with %.0f stripes, compress %s",
			cJSON_GetStringValue(
				cJSON_GetObjectItemCaseSensitive(channel, "transport")),
			cJSON_GetNumberValue(
				cJSON_GetObjectItemCaseSensitive(channel, "lanes")),
			cJSON_GetStringValue(
				cJSON_GetObjectItemCaseSensitive(channel, "compress")));
		if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(channel, "upload_cache")))
			printf(", uploads by content");
		if (rate > 0)
			printf(", copies to the device at %.2f GB/s", rate / 1e9);
		printf("\n");
	}
	cJSON_Delete(status);
}

/* Whose GPUs these are. NULL: the library does not say it. */
static const char *agent_of(void *library, int device)
{
	const char *(*agent)(unsigned) =
		(const char *(*)(unsigned))dlsym(library, "vcuda_nvml_agent");
	int (*index)(CUdevice) = (int (*)(CUdevice))dlsym(library, "vcuda_nvml_index");

	return agent && index ? agent((unsigned)index(device)) : NULL;
}

/* The library says on stderr which way a copy between two agents goes. */
static void try_copy(void *library, int from, int to)
{
	CUcontext contexts[2];
	CUdeviceptr source = memory_on(library, from, 4, &contexts[0]);
	CUdeviceptr target = source ? memory_on(library, to, 4, &contexts[1]) : 0;

	if (target)
		ATTACH_SYMBOL(cuMemcpyPeer)(target, contexts[1], source, contexts[0], 4);
}

/* A line for each agent with its GPUs on stderr, where there are several, and a copy between
 * the first GPUs of each two. */
static void agents(void *library, int count)
{
	int first[ATTACH_AGENTS], found = 0, last = 0;

	for (int i = 0; i < count; i++) {
		const char *now = agent_of(library, i);
		const char *before = i ? agent_of(library, i - 1) : NULL;

		if (!now)
			return;
		if ((!before || strcmp(now, before)) && found < ATTACH_AGENTS)
			first[found++] = i;
	}
	for (int i = 0; found > 1 && i < found; i++) {
		last = (i + 1 < found ? first[i + 1] : count) - 1;
		if (last == first[i])
			fprintf(stderr, "vcuda: GPU %d: agent %s\n", last,
				agent_of(library, last));
		else
			fprintf(stderr, "vcuda: GPUs %d to %d: agent %s\n", first[i], last,
				agent_of(library, last));
	}
	for (int i = 0; i < found; i++)
		for (int j = i + 1; j < found; j++)
			try_copy(library, first[i], first[j]);
}

/* What a program gets, and on further lines how it reaches that. What else there is to say, and
 * why it failed, the library says on stderr. */
int command_attach(void)
{
	char path[PATH_MAX], name[128] = "?";
	struct error error;
	void *library;
	int count = 0;
	CUresult status;

	library = spawn_library("libvcuda-cuda.so", path, sizeof(path)) < 0
			  ? NULL
			  : dlopen(path, RTLD_NOW);
	if (!library) {
		error_set(&error, 0, "libvcuda-cuda.so cannot be loaded: install all of vcuda");
		return command_complain(&error, 1);
	}
	status = ATTACH_SYMBOL(cuInit)(0);
	if (!status)
		status = ATTACH_SYMBOL(cuDeviceGetCount)(&count);
	if (status) {
		printf("cuInit answers %d\n", (int)status);
		return 1;
	}
	ATTACH_SYMBOL(cuDeviceGetName)(name, sizeof(name), 0);
	printf("a program gets %d GPU%s: %s%s%s\n", count, count == 1 ? "" : "s", name,
		count > 1 ? ", …" : "", peers(library, count));
	fflush(stdout);
	agents(library, count);
	wire(copy_rate(library));
	return 0;
}
