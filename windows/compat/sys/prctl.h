/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_SYS_PRCTL_H
#define VCUDA_COMPAT_SYS_PRCTL_H
#define PR_SET_TIMERSLACK 29
#define prctl(...) ((void)0)
#endif
