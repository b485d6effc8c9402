/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program sets for a kernel holds on a whole device: in contexts that there are, in
 * later ones, over a reset.  A function of it that was told itself (cuFuncSet…) keeps to that.
 */
#ifndef VCUDA_SHIM_DRIVER_MODULE_KERNEL_SETTINGS_H
#define VCUDA_SHIM_DRIVER_MODULE_KERNEL_SETTINGS_H

#include "shim/driver/module/library_core.h"

/* FUNCTION, of which the context is current, gets what was set for KERNEL on its device since
 * it got that last. */
CUresult kernel_follow(const struct kernel *kernel, struct function *function);

/* Both for DEVICE; FUNCTION is any of KERNEL's functions there, by which is checked what can be
 * set. */
CUresult kernel_set_attribute(
	struct kernel *kernel, struct function *function, int device, int attribute, int value);
CUresult kernel_set_cache(struct kernel *kernel, int device, CUfunc_cache config);

/* What was set for KERNEL, and else what the compiler made of FUNCTION. */
CUresult kernel_attribute(const struct kernel *kernel, const struct function *function,
	int device, int attribute, int *value);

void kernel_settings_free(struct kernel *kernel);

#endif
