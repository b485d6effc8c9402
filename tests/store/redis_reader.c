/* SPDX-License-Identifier: Apache-2.0
 *
 * redis_reader SOCKET NAME read|write|forge: a program that knows Redis and CUDA's runtime and
 * nothing of vcuda: opens the ipc_handle that the hash tensor:NAME has.
 *
 * read: says the byte that all of it is, and holds it until its input ends, then says it again.
 * write: fills it with 9.  forge: no handle with one bit changed opens, twice opened is one
 * address, and what was closed opens again.
 */
#include <cuda_runtime_api.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what, cudaError_t error)
{
	printf("error %d: %s: %s\n", (int)error, what, cudaGetErrorString(error));
	return 1;
}

/* The field, exactly N bytes of it, or up to N with a NUL. */
static int field(redisContext *redis, const char *name, const char *key, void *out, size_t n)
{
	redisReply *reply = redisCommand(redis, "HGET tensor:%s %s", name, key);
	int there = reply && reply->type == REDIS_REPLY_STRING && reply->len <= n;

	if (there) {
		memset(out, 0, n);
		memcpy(out, reply->str, reply->len);
	}
	if (reply)
		freeReplyObject(reply);
	return there;
}

static int say(const char *what, void *at, size_t bytes)
{
	unsigned char *copy = malloc(bytes);
	cudaError_t error = cudaMemcpy(copy, at, bytes, cudaMemcpyDeviceToHost);
	size_t same = 1;

	if (error)
		return fail("cudaMemcpy", error);
	while (same < bytes && copy[same] == copy[0])
		same++;
	printf("%s: %zu bytes of %d\n", what, same, copy[0]);
	fflush(stdout);
	free(copy);
	return 0;
}

static int forge(const cudaIpcMemHandle_t *handle)
{
	void *at = NULL, *again = NULL;

	for (unsigned i = 0; i < 8 * sizeof(*handle); i++) {
		cudaIpcMemHandle_t other = *handle;

		((unsigned char *)&other)[i / 8] ^= (unsigned char)(1u << i % 8);
		if (!cudaIpcOpenMemHandle(&at, other, cudaIpcMemLazyEnablePeerAccess)) {
			printf("forged: bit %u changed, and it opens\n", i);
			return 1;
		}
		cudaGetLastError();
	}
	if (cudaIpcOpenMemHandle(&at, *handle, cudaIpcMemLazyEnablePeerAccess) ||
		cudaIpcOpenMemHandle(&again, *handle, cudaIpcMemLazyEnablePeerAccess) ||
		at != again || cudaIpcCloseMemHandle(at) || say("once", at, 1) ||
		cudaIpcCloseMemHandle(at) || !cudaIpcCloseMemHandle(at) ||
		cudaIpcOpenMemHandle(&at, *handle, cudaIpcMemLazyEnablePeerAccess)) {
		printf("forged: opened twice, closed twice, opened again: not as it should\n");
		return 1;
	}
	printf("forged: none opens\n");
	return 0;
}

int main(int argc, char **argv)
{
	cudaIpcMemHandle_t handle;
	redisContext *redis;
	cudaError_t error;
	char text[32];
	void *at;
	size_t bytes;

	if (argc != 4)
		return 2;
	redis = redisConnectUnix(argv[1]);
	if (!redis || redis->err || !field(redis, argv[2], "ipc_handle", &handle, 64) ||
		!field(redis, argv[2], "bytes", text, sizeof(text))) {
		printf("error: Redis has no handle of %s\n", argv[2]);
		return 1;
	}
	redisFree(redis);
	bytes = strtoull(text, NULL, 10);
	if (!strcmp(argv[3], "forge"))
		return forge(&handle);
	error = cudaIpcOpenMemHandle(&at, handle, cudaIpcMemLazyEnablePeerAccess);
	if (error)
		return fail("cudaIpcOpenMemHandle", error);
	if (!strcmp(argv[3], "write")) {
		error = cudaMemset(at, 9, bytes);
		if (!error)
			error = cudaDeviceSynchronize();
		return error ? fail("cudaMemset", error) : say("wrote", at, bytes);
	}
	if (say("right", at, bytes))
		return 1;
	while (getchar() != EOF)
		;
	if (say("still", at, bytes))
		return 1;
	error = cudaIpcCloseMemHandle(at);
	return error ? fail("cudaIpcCloseMemHandle", error) : 0;
}
