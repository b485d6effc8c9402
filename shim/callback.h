/* SPDX-License-Identifier: Apache-2.0
 *
 * Host functions that the app has queued.
 */
#ifndef VCUDA_SHIM_CALLBACK_H
#define VCUDA_SHIM_CALLBACK_H

#include <stdbool.h>

/* Is there one that has not run to its end? */
bool callback_outstanding(void);

#endif
