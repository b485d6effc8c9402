/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects of parameters, which are the program's own and travel with each call by content.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUSOLVER_CUSOLVER_H
#define VCUDA_SHIM_LIBRARIES_CUSOLVER_CUSOLVER_H

#include "protocol/libraries/cusolver.h"
#include "shim/libraries/common/items.h"

/* Puts the content of one of that kind (enum cusolver_item), or that it is NULL. */
void cusolver_put_descriptor(
	struct library_items *items, const void *descriptor, uint32_t kind);

#endif
