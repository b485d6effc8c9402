/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_LINUX_FUTEX_H
#define VCUDA_COMPAT_LINUX_FUTEX_H
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#endif
