/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_SYS_UIO_H
#define VCUDA_COMPAT_SYS_UIO_H
#include <sys/types.h>

#include "windows/os/os.h"

#define iovec os_iovec
#endif
