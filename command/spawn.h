/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding what was installed beside this command, and starting it.
 */
#ifndef VCUDA_COMMAND_SPAWN_H
#define VCUDA_COMMAND_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"

/* The path of a product beside this command (build/bin/NAME). 0, or -errno with *error. */
int spawn_beside(const char *name, char *path, size_t n, struct error *error);

/* The path of a library: ../lib/NAME or ../lib/vcuda/NAME. -ENOENT where there is none. */
int spawn_library(const char *name, char *path, size_t n);

/* Starts argv[0] with stderr in LOG (-1: ours) and stdin from /dev/null. It gets SIGTERM when
 * the calling process dies. pid or -errno. */
pid_t spawn_service(char *const argv[], int log);

/* SIGTERM, SIGKILL after `patience_ms`; reaps. */
void spawn_end(pid_t pid, unsigned patience_ms);

/* Runs argv[0] and keeps what it prints (out and err, the first n - 1 bytes). Exit status, or
 * -errno; a program that runs longer than `seconds` is killed: -ETIMEDOUT. */
int spawn_capture(char *const argv[], unsigned seconds, char *out, char *err, size_t n);

#endif
