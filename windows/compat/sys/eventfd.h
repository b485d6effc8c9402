/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_SYS_EVENTFD_H
#define VCUDA_COMPAT_SYS_EVENTFD_H
#include "windows/os/os.h"

#define EFD_CLOEXEC 0x80000
#define EFD_NONBLOCK 0x800
static inline int eventfd(unsigned count, int flags)
{
	return os_eventfd(count, flags & EFD_NONBLOCK);
}
#endif
