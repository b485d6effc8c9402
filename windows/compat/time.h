/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_TIME_H
#define VCUDA_COMPAT_TIME_H
#include_next <time.h>

#define CLOCK_MONOTONIC_COARSE CLOCK_MONOTONIC
#undef gmtime_r
#undef localtime_r
#define gmtime_r(from, to) (gmtime_s(to, from) ? NULL : (to))
#define localtime_r(from, to) (localtime_s(to, from) ? NULL : (to))
#endif
