/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_SCHED_H
#define VCUDA_COMPAT_SCHED_H
#include_next <sched.h>

#include "windows/os/os.h"

typedef struct {
	unsigned count;
} cpu_set_t;
static inline int sched_getaffinity(int pid, size_t size, cpu_set_t *set)
{
	(void)pid, (void)size;
	set->count = os_cores();
	return 0;
}
#define CPU_COUNT(set) ((set)->count)
#endif
