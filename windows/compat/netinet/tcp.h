/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_NETINET_TCP_H
#define VCUDA_COMPAT_NETINET_TCP_H
#define TCP_NODELAY 0x0001
#define TCP_KEEPIDLE 3
#define TCP_KEEPCNT 16
#define TCP_KEEPINTVL 17
/* Winsock has none of these: setting them fails, which their callers bear. */
#define TCP_USER_TIMEOUT 0x7001
#define TCP_DEFER_ACCEPT 0x7002
#define TCP_CONGESTION 0x7003
#endif
