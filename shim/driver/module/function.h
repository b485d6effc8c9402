/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes and parameters of a function, for cuFunc… and cuKernel… alike.
 */
#ifndef VCUDA_SHIM_DRIVER_MODULE_FUNCTION_H
#define VCUDA_SHIM_DRIVER_MODULE_FUNCTION_H

#include "shim/driver/module/module.h"

CUresult function_attribute(const struct function *function, int attribute, int *value);
/* Whether it can be set to that. */
CUresult function_settable(const struct function *function, int attribute, int value);
CUresult function_set(struct function *function, int attribute, int value);
/* The compiler gave it a cluster, which cannot be set any more. */
bool function_compiled_for_cluster(const struct function *function);
CUresult function_cache_config(struct function *function, CUfunc_cache config);
CUresult function_param(
	const struct function *function, size_t index, size_t *offset, size_t *size);

CUresult function_param_count(const struct function *function, size_t *count);

#endif
