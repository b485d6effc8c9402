/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_ERRNO_H
#define VCUDA_COMPAT_ERRNO_H
#include_next <errno.h>

const char *os_program(void);
#define program_invocation_short_name os_program()
#define program_invocation_name os_program()
#define EHOSTDOWN 200
/* One number, as on Linux: code asks for either. */
#undef EWOULDBLOCK
#define EWOULDBLOCK EAGAIN
#endif
