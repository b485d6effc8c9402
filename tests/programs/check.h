// SPDX-License-Identifier: Apache-2.0
/*
 * What every program here uses to check its own numbers.
 *
 * A program is an ordinary CUDA program: it ends with 0 when all its numbers are right, with 1
 * after a line that says which one was not, and with 77 after a line that says why it cannot
 * run on this device.  The first wrong number ends it: what follows would only repeat it.
 */
#pragma once

#include <cuda_runtime.h>

#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { EXIT_SKIP = 77 };

[[noreturn]] inline void fail_at(const char *file, int line, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s:%d: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	fflush(stdout);
	_exit(1);
}

inline void check_status_at(
	const char *file, int line, const char *what, cudaError_t got, cudaError_t want)
{
	if (got != want)
		fail_at(file, line, "%s gave %d (%s), not %d (%s)", what, got,
			cudaGetErrorName(got), want, cudaGetErrorName(want));
}

/* Compares as long long or as double, whichever the first value is; bit patterns are compared
 * by passing integers. */
template <typename A, typename B>
inline void check_equal_at(
	const char *file, int line, const char *what, A got, B want, long long index)
{
	if (got == (A)want)
		return;
	char where[32] = "";
	if (index >= 0)
		snprintf(where, sizeof(where), " at %lld", index);
	if ((A)0.5 != (A)0)
		fail_at(file, line, "%s%s is %.17g, not %.17g", what, where, (double)got,
			(double)want);
	fail_at(file, line, "%s%s is %lld (0x%llx), not %lld (0x%llx)", what, where,
		(long long)got, (unsigned long long)got, (long long)want,
		(unsigned long long)want);
}

#define FAIL(...) fail_at(__FILE__, __LINE__, __VA_ARGS__)

#define CHECK(condition)                                                                       \
	do {                                                                                   \
		if (!(condition))                                                              \
			FAIL("%s does not hold", #condition);                                  \
	} while (0)

/* The value must be WANT; the second form names the element of an array. */
#define CHECK_EQ(got, want) check_equal_at(__FILE__, __LINE__, #got, got, want, -1)
#define CHECK_EQ_AT(i, got, want) check_equal_at(__FILE__, __LINE__, #got, got, want, i)

/* A call of the runtime must succeed; must give just this error. */
#define CUDA(call) check_status_at(__FILE__, __LINE__, #call, call, cudaSuccess)
#define CUDA_IS(want, call) check_status_at(__FILE__, __LINE__, #call, call, want)

/* A grid or block that cannot be. CUDA 13's runtime passes on what the driver says. */
#if CUDART_VERSION >= 13000
#define BAD_CONFIGURATION cudaErrorInvalidValue
#else
#define BAD_CONFIGURATION cudaErrorInvalidConfiguration
#endif

/* The launch before it must have been accepted. */
#define LAUNCHED()                                                                             \
	check_status_at(__FILE__, __LINE__, "launch", cudaGetLastError(), cudaSuccess)

#define SKIP(...)                                                                              \
	do {                                                                                   \
		printf(__VA_ARGS__);                                                           \
		putchar('\n');                                                                 \
		exit(EXIT_SKIP);                                                               \
	} while (0)

/* One attribute of device 0. */
inline int device_attribute(cudaDeviceAttr attribute)
{
	int value = 0;
	cudaError_t status = cudaDeviceGetAttribute(&value, attribute, 0);

	if (status != cudaSuccess)
		fail_at(__FILE__, __LINE__, "attribute %d gave %s", attribute,
			cudaGetErrorName(status));
	return value;
}

/* Numbers that are the same on every machine (xorshift32); *state must not be 0. */
inline uint32_t next_random(uint32_t *state)
{
	uint32_t x = *state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return *state = x;
}

/* Starts this same program with one argument; it inherits the environment and the descriptors.
 */
inline pid_t start_self(const char *argument)
{
	char *arguments[] = {(char *)"self", (char *)argument, NULL};
	pid_t pid = 0;
	int failed = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ);

	if (failed)
		fail_at(__FILE__, __LINE__, "cannot start self %s: %s", argument,
			strerror(failed));
	return pid;
}

/* Waits for a child; its exit status, or 128 + the signal that ended it. */
inline int wait_exit(pid_t pid)
{
	int status = 0;

	if (waitpid(pid, &status, 0) != pid)
		fail_at(__FILE__, __LINE__, "cannot wait for a child");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A copy from pageable memory that CUDA calls synchronous returns when the bytes are on their
 * way. Here they are there for all that comes later; of NVIDIA's driver that is not asked. */
inline void copied()
{
	if (getenv("VCUDA_TEST_NATIVE"))
		CUDA(cudaDeviceSynchronize());
}
