/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_ARPA_INET_H
#define VCUDA_COMPAT_ARPA_INET_H
#include <netinet/in.h>

#define inet_pton(family, text, to) os_inet_pton(family, text, to)
#define inet_ntop(family, from, text, n) os_inet_ntop(family, from, text, n)
#endif
