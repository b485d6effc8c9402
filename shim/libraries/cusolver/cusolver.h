/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects of parameters, which are the program's own and travel with each call by content.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUSOLVER_CUSOLVER_H
#define VCUDA_SHIM_LIBRARIES_CUSOLVER_CUSOLVER_H

#include "protocol/libraries/cusolver.h"
#include "shim/libraries/common/items.h"

/* A new object of that kind, with nothing set, the program's to destroy. */
cusolverStatus_t cusolver_object_create(void **to, enum cusolver_item kind);
cusolverStatus_t cusolver_object_destroy(void *object, enum cusolver_item kind);
/* Its content; NULL: it is no object of that kind. */
union cusolver_content *cusolver_object(void *object, enum cusolver_item kind);
/* Puts the content of one of that kind (enum cusolver_item), or the handle of what the agent
 * has. */
void cusolver_put_descriptor(
	struct library_items *items, const void *descriptor, uint32_t kind);

#endif
