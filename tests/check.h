/* SPDX-License-Identifier: Apache-2.0
 *
 * How the programs of the libraries check what a call answers, of whichever API it is.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include "tests/die.h"

#define ANSWERS(CALL, WANT)                                                                    \
	do {                                                                                   \
		int answer_ = (int)(CALL);                                                     \
		if (answer_ != (int)(WANT))                                                    \
			DIE("%s gave %d, not %d", #CALL, answer_, (int)(WANT));                \
	} while (0)
/* What a library leaves out, or answers otherwise than we know it to: told, for tests/gpu says
 * it beside the program's name. On the software GPU nothing may be told (tests/cublas/run.py).
 */
#define TELL(...)                                                                              \
	do {                                                                                   \
		printf("skip: ");                                                              \
		printf(__VA_ARGS__);                                                           \
		putchar('\n');                                                                 \
	} while (0)
/* The same of an answer that no measurement of NVIDIA's stands behind. */
#define EXPECTED(CALL, WANT)                                                                   \
	do {                                                                                   \
		int answer_ = (int)(CALL);                                                     \
		if (answer_ != (int)(WANT))                                                    \
			TELL("%s gave %d, not %d", #CALL, answer_, (int)(WANT));               \
	} while (0)
/* A call of the driver or the runtime. */
#define CUDA(CALL) ANSWERS(CALL, 0)

#endif
