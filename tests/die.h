/* SPDX-License-Identifier: Apache-2.0
 *
 * How the programs with NVIDIA's libraries (tests/cublas, cudnn, cusolver and others) end where
 * something is wrong: place and text on stderr, exit status 1.
 */
#ifndef TESTS_DIE_H
#define TESTS_DIE_H

#include <stdio.h>
#include <stdlib.h>

#define DIE(...)                                                                               \
	do {                                                                                   \
		fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                \
		fprintf(stderr, __VA_ARGS__);                                                  \
		fputc('\n', stderr);                                                           \
		exit(1);                                                                       \
	} while (0)

#endif
