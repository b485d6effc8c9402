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
#include <time.h>
#include <unistd.h>

#include "command/command.h"
#include "command/spawn.h"

#define ATTACH_COPY (16u << 20)
#define ATTACH_COPIES 3
#define ATTACH_STATUS (64u << 10) /* of some hundred programs */
#define ATTACH_PATIENCE 5	  /* s */
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
	CUdeviceptr memory = 0;
	CUcontext context;
	double since = 0;

	if (host && !ATTACH_SYMBOL(cuDevicePrimaryCtxRetain)(&context, 0) &&
		!ATTACH_SYMBOL(cuCtxSetCurrent)(context) &&
		!ATTACH_SYMBOL(cuMemAlloc_v2)(&memory, ATTACH_COPY)) {
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
		if (rate > 0)
			printf(", copies to the device at %.2f GB/s", rate / 1e9);
		printf("\n");
	}
	cJSON_Delete(status);
}

/* What a program gets, and on further lines how it reaches that. Why it failed is what the
 * library says on stderr. */
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
	wire(copy_rate(library));
	return 0;
}
