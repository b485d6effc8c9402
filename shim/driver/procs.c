/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/driver/procs.h"

#include <stddef.h>
#include <string.h>

/* The stubs under names that only this library has (shim/engine/stub.h). What they take does
 * not matter here. */
#define LOCAL(name) extern __attribute__((visibility("hidden"))) void local_##name(void);
#define PROC(asked, name, since) LOCAL(name)
#define PROC_TWIN(asked, name, since, twin, twin_since) LOCAL(name) LOCAL(twin)
#include "shim/generated/cuda_procs.inc"
#undef PROC
#undef PROC_TWIN

static const struct cuda_proc procs[] = {
#define PROC(asked, name, since) {#asked, since, 0, (void *)local_##name, NULL},
#define PROC_TWIN(asked, name, since, twin, twin_since)                                        \
	{#asked, since, twin_since, (void *)local_##name, (void *)local_##twin},
#include "shim/generated/cuda_procs.inc"
};

#define PROCS (sizeof(procs) / sizeof(procs[0]))

const struct cuda_proc *cuda_proc_find(const char *name, unsigned *count)
{
	size_t low = 0;
	size_t high = PROCS;

	while (low < high) { /* the first that is not before NAME */
		size_t middle = (low + high) / 2;

		if (strcmp(procs[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (high = low; high < PROCS && !strcmp(procs[high].name, name);)
		high++;
	*count = (unsigned)(high - low);
	return *count ? &procs[low] : NULL;
}
