/* SPDX-License-Identifier: Apache-2.0
 *
 * What cuFuncSetBlockShape, cuParamSetv and their like keep of a function.
 */
#ifndef VCUDA_SHIM_DRIVER_LAUNCH_LAUNCH_OLD_H
#define VCUDA_SHIM_DRIVER_LAUNCH_LAUNCH_OLD_H

struct launch_old;

/* The function is gone. NULL: it had none. */
void launch_old_free(struct launch_old *old);

#endif
