/* SPDX-License-Identifier: Apache-2.0
 *
 * libvcuda-tensor.so: what a program that uses tensors with names is linked with.  Preloaded,
 * the driver front has the same names and is asked first (shim/driver/tensor.c); these answer
 * in a process where it is not.
 */
#include "include/vcuda/tensor.h"

#define EXPORT __attribute__((visibility("default")))
#define NO_DEVICE 100 /* CUDA_ERROR_NO_DEVICE */

EXPORT const char *vcuda_tensor_error(void)
{
	return "vcuda is not preloaded here: run the program in an annotated pod, or by `vcuda "
	       "run`";
}

EXPORT int vcuda_tensor_create(const char *name, uint32_t dtype, uint32_t rank,
	const int64_t *shape, int device, uint32_t flags, struct vcuda_tensor *tensor)
{
	(void)name;
	(void)dtype;
	(void)rank;
	(void)shape;
	(void)device;
	(void)flags;
	(void)tensor;
	return NO_DEVICE;
}

EXPORT int vcuda_tensor_get(const char *const *names, size_t count, int device, uint32_t flags,
	struct vcuda_tensor *tensors)
{
	(void)names;
	(void)count;
	(void)device;
	(void)flags;
	(void)tensors;
	return NO_DEVICE;
}

EXPORT int vcuda_tensor_seal(struct vcuda_tensor *tensor, void *stream)
{
	(void)tensor;
	(void)stream;
	return NO_DEVICE;
}

EXPORT int vcuda_tensor_close(struct vcuda_tensor *tensor)
{
	(void)tensor;
	return NO_DEVICE;
}

EXPORT int vcuda_tensor_delete(const char *name, int device)
{
	(void)name;
	(void)device;
	return NO_DEVICE;
}

EXPORT int vcuda_tensor_touch(const char *name, int device)
{
	(void)name;
	(void)device;
	return NO_DEVICE;
}

EXPORT int vcuda_tensor_share(const char *name, const char *space, int device)
{
	(void)name;
	(void)space;
	(void)device;
	return NO_DEVICE;
}

EXPORT int vcuda_tensor_stat(const char *name, int device, struct vcuda_tensor_stat *stat)
{
	(void)name;
	(void)device;
	(void)stat;
	return NO_DEVICE;
}

EXPORT int vcuda_tensor_list(
	const char *prefix, int device, uint64_t *cursor, struct vcuda_tensor_stat *stat)
{
	(void)prefix;
	(void)device;
	(void)cursor;
	(void)stat;
	return NO_DEVICE;
}

EXPORT int vcuda_tensor_wait(
	const char *name, int device, uint32_t ms, struct vcuda_tensor_stat *stat)
{
	(void)name;
	(void)device;
	(void)ms;
	(void)stat;
	return NO_DEVICE;
}
