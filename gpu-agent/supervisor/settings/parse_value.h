/* SPDX-License-Identifier: Apache-2.0
 *
 * Values as people write them, in the configuration and in the token file.
 */
#ifndef VCUDA_GPU_AGENT_SUPERVISOR_PARSE_VALUE_H
#define VCUDA_GPU_AGENT_SUPERVISOR_PARSE_VALUE_H

#include <stdint.h>

/* Decimal digits at text; *end is what follows. -EINVAL where there is no digit, or too many.
 */
int parse_number(const char *text, uint64_t *number, const char **end);

/* "256MiB", "2Gi", "1G", "4096": binary with an i, decimal without, as Kubernetes writes them.
 */
int parse_bytes(const char *text, uint64_t *bytes);

/* "30", "30s", "500ms", "2m": milliseconds. */
int parse_time(const char *text, uint64_t *ms);

#endif
