/* SPDX-License-Identifier: Apache-2.0
 *
 * The software GPU that writes down which steps of tests/faults/app.cu were launched: the
 * process's and the step's number, 8 bytes each, to its stdin, which is a file of the test's
 * (stack.py, reporting).  So a step that was executed twice shows also where its session is
 * lost.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
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
	const uint32_t line[] = {step->pid, step->number};

	if (write(STDIN_FILENO, line, sizeof(line)) != sizeof(line))
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
