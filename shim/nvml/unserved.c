/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of nvml.h that are not served (protocol/api/nvml.api).  Each says so once where
 * VCUDA_DEBUG is set.  The header is not included: none of them looks at its arguments.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <stdio.h>

static int unserved(_Atomic char *logged_once, const char *name, int status)
{
	const char *debug = secure_getenv("VCUDA_DEBUG");

	if (!atomic_exchange(logged_once, 1) && debug && *debug)
		fprintf(stderr, "vcuda: %s is not served\n", name);
	return status;
}

#define UNSERVED(name)                                                                         \
	__attribute__((visibility("default"))) int name(void);                                 \
	int name(void)                                                                         \
	{                                                                                      \
		static _Atomic char logged_once;                                               \
                                                                                               \
		return unserved(&logged_once, #name, UNSERVED_STATUS);                         \
	}

#include "shim/generated/nvml_unserved.inc"
