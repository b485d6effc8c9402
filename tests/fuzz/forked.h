/* SPDX-License-Identifier: Apache-2.0
 *
 * For fuzz targets whose subject runs in a process of its own, made by fork: it tells the
 * fuzzer which edges it covered, and what a sanitizer finds there ends the input.
 *
 * Linked with -Wl,--wrap=_exit, so that it is told at any end that is not a crash.
 */
#ifndef VCUDA_TESTS_FUZZ_FORKED_H
#define VCUDA_TESTS_FUZZ_FORKED_H

#include <stdint.h>
#include <sys/types.h>

/* Once, before the first forked_start. */
void forked_setup(void);
/* As fork; the child's reports come to this process's stderr, and it dies with it. */
pid_t forked_start(void);
/* Takes the child's coverage, and aborts where it crashed or did not end with 0. One that still
 * runs at `until` (CLOCK_MONOTONIC ns) hangs, which is no better. */
void forked_end(pid_t child, uint64_t until);

#endif
