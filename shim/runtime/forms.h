/* SPDX-License-Identifier: Apache-2.0
 *
 * What shim/generated/cudart_forms.c may name: runtime functions that hand on to the driver or
 * to another one, as their as() in cudart.api says.
 */
#ifndef VCUDA_RUNTIME_FORMS_H
#define VCUDA_RUNTIME_FORMS_H

#include "shim/runtime/register.h"
#include "shim/runtime/runtime.h"

#endif
