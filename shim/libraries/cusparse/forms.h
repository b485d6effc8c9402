/* SPDX-License-Identifier: Apache-2.0
 *
 * What shim/generated/cusparse_stubs.c may name: functions that many of cuSPARSE's functions
 * are a form of, as their as() in cusparse.api says.
 */
#ifndef VCUDA_SHIM_CUSPARSE_FORMS_H
#define VCUDA_SHIM_CUSPARSE_FORMS_H

#include "shim/generated/cusparse_hand.h"
#include "shim/libraries/cusparse/cusparse.h"

#endif
