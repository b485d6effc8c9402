/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU that writes down which steps of tests/faults/app.cu were launched: the
 * process's and the step's number, 8 bytes each, in a file of each worker in the folder
 * $VCUDA_SOFTGPU_STEPS.  So a step that was executed twice shows also where its session is
 * lost.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAG 0x5eed0fa117ull
#define HOSTILE 0xbad0fa117ull

void hostile(uint32_t which); /* hostile_worker.c */

struct step {
	uint64_t tag, words;
	uint32_t pid, number;
};

static void count(const struct step *step)
{
	static int file = -1;
	const uint32_t line[] = {step->pid, step->number};
	char path[512];

	if (file < 0) {
		const char *folder = getenv("VCUDA_SOFTGPU_STEPS");

		snprintf(path, sizeof(path), "%s/steps-%d", folder ? folder : "/nonexistent",
			getpid());
		file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	}
	if (write(file, line, sizeof(line)) != sizeof(line) && errno != ENOSPC)
		abort(); /* better no result than one that was not counted */
}

/* The worker gives the driver the parameters as they came from the wire: packed. */
static void look(void **extra)
{
	const void *packed = NULL;
	struct step step;
	size_t size = 0;

	for (size_t i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
		if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			packed = extra[i + 1];
		else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
			size = *(size_t *)extra[i + 1];
	}
	if (!packed || size != sizeof(step))
		return;
	memcpy(&step, packed, sizeof(step));
	if (step.tag == TAG)
		count(&step);
	else if (step.tag == HOSTILE)
		hostile(step.number);
}

__attribute__((visibility("default"))) CUresult cuLaunchKernel(CUfunction function,
	unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
	unsigned int bz, unsigned int shared, CUstream stream, void **params, void **extra)
{
	__typeof__(&cuLaunchKernel) launch;

	*(void **)&launch = dlsym(RTLD_NEXT, "cuLaunchKernel");
	look(extra);
	return launch(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}
