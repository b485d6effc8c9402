/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that keeps the mirror in step while work is outstanding; mirror.c's alone.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_MIRROR_MIRROR_THREAD_H
#define VCUDA_SHIM_DRIVER_MEMORY_MIRROR_MIRROR_THREAD_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

#include "protocol/wire/mirror.h"

/* Starts it, once. */
CUresult mirror_thread_start(void);

struct mirror_names;

/* Of mirror.c: sends what the program has written since the last time; *changed: something.
 * NAMES (may be NULL) gets what was noted there since someone asked last. */
CUresult mirror_send(bool *changed, struct mirror_names *names);
/* Of mirror.c: stores what an answer brings, behind those that the agent gave before it. */
CUresult mirror_take_over(const void *bytes, size_t n, struct mirror_answer *answer);

#endif
