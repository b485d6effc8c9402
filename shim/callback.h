/* SPDX-License-Identifier: Apache-2.0
 *
 * Host functions that the app has queued.
 */
#ifndef VCUDA_SHIM_CALLBACK_H
#define VCUDA_SHIM_CALLBACK_H

#include <stdbool.h>
#include <stdint.h>

/* A host node's function, kept under its ticket: once more launched; its last graph is gone. */
void callback_node_launched(uint64_t ticket);
void callback_node_drop(uint64_t ticket);

/* Is there one that has not run to its end? */
bool callback_outstanding(void);

#endif
