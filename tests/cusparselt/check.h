/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cuSPARSELt programs share.
 */
#ifndef TESTS_CUSPARSELT_CHECK_H
#define TESTS_CUSPARSELT_CHECK_H

#include <stdalign.h>

#include <cusparseLt.h>

#include "tests/cusparse/check.h"

#define N CUSPARSE_OPERATION_NON_TRANSPOSE
#define T CUSPARSE_OPERATION_TRANSPOSE
#define ROW CUSPARSE_ORDER_ROW

static cusparseLtHandle_t lt;

#endif
