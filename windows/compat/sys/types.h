/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_SYS_TYPES_H
#define VCUDA_COMPAT_SYS_TYPES_H
#include_next <sys/types.h>

typedef unsigned uid_t;
typedef unsigned gid_t;
#endif
