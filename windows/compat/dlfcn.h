/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_DLFCN_H
#define VCUDA_COMPAT_DLFCN_H
#include "windows/os/os.h"

typedef struct {
	const char *dli_fname;
} Dl_info;
/* The name is the thread's until its next call. */
static inline int dladdr(const void *address, Dl_info *info)
{
	static _Thread_local char path[520];

	info->dli_fname = path;
	return os_module_of(address, path, sizeof(path)) == 0;
}
#endif
