/* SPDX-License-Identifier: Apache-2.0
 *
 * The forms of the libraries' stubs (shim/generated/cublas_stubs.c …), a row for each exported
 * function that does not build a frame itself. FAMILY is the first word of the names of its own
 * functions: cublas_count, cublas_refused.
 */
#ifndef VCUDA_LIBRARY_STUB_H
#define VCUDA_LIBRARY_STUB_H

#include "shim/generated/cuda_calls.h"
#include "shim/libraries/common/narrow.h"

#define STUB_EXPORT __attribute__((visibility("default")))

/* What follows a function: its second name, of a library whose functions have one. FUNCTION is
 * what C calls it. */
#define STUB_SECOND(name, function)
#define STUB_SECOND_IS(second, name, function)                                                 \
	STUB_EXPORT __typeof__(function) second_##second __asm__(#second)                      \
		__attribute__((alias(#name)));

/* NAME counts the call and goes to FUNCTION. */
#define STUB(family, result, name, function, parameters, arguments)                            \
	STUB_EXPORT result name parameters                                                     \
	{                                                                                      \
		family##_count(CALL_##name);                                                   \
		return function arguments;                                                     \
	}                                                                                      \
	STUB_SECOND(name, name)

/* The same for a status that is not the app's yet. */
#define STUB_STATUS(family, result, name, function, parameters, arguments)                     \
	STUB_EXPORT result name parameters                                                     \
	{                                                                                      \
		family##_count(CALL_##name);                                                   \
		return family##_app_status(function arguments);                                \
	}

/* NAME, which is not served: WHY says why. No parameter is looked at, so none is declared; for
 * C it is refused_NAME, since a header may declare NAME with them. */
#define REFUSED(family, result, name)                                                          \
	STUB_EXPORT result refused_##name(void) __asm__(#name);                                \
	result refused_##name(void)                                                            \
	{                                                                                      \
		return family##_refused(CALL_##name, #name, WHY);                              \
	}                                                                                      \
	STUB_SECOND(name, refused_##name)

#endif
