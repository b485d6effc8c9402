/* SPDX-License-Identifier: Apache-2.0
 *
 * What the libraries beside the driver (blas/, dnn/) need of it and CUDA has no call for: their
 * tasks touch the device's memory on the CPU, so it must not go while one of them runs.  Begin
 * and end are called around a task, by its thread, and do not nest; in between no call of CUDA
 * is made that could wait for another task.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_TASK_H
#define VCUDA_SOFTGPU_DRIVER_TASK_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)
void cuSoftgpuTaskBegin(void);
void cuSoftgpuTaskEnd(void);
/* Whether all of [address, address + bytes) is the device's, which it is until the task ends.
 */
bool cuSoftgpuTaskReaches(uint64_t address, uint64_t bytes);
/* An injected fault: whether the task that now begins is to write a wrong bit. */
bool cuSoftgpuTaskSpoils(void);
/* A line where the device's go, for what is refused and no status says why. */
void cuSoftgpuProblem(const char *text);
#pragma GCC visibility pop

#endif
