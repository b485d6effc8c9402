/* SPDX-License-Identifier: Apache-2.0
 *
 * A front in this very process for the fuzz targets: real listening sockets and the real loop;
 * the supervisor's place is taken by a socket that nobody answers, so no worker ever starts.
 */
#ifndef VCUDA_TESTS_FUZZ_AGENT_TARGET_H
#define VCUDA_TESTS_FUZZ_AGENT_TARGET_H

#include <stddef.h>
#include <stdint.h>

#include "gpu-agent/front/front.h"

/* The front; made at the first call. */
struct front *target_front(void);

/* Connects to listener 0, 1 or 2 (enum agent_port), sends the bytes, ends its sending side,
 * and turns the front's loop until it closed the connection or waits for more. */
void target_send(int listener, const uint8_t *bytes, size_t n);

/* Its parts, for targets of their own. A connection to a listener, not blocking; a turn of the
 * loop, which waits for ns at most; what the front told its supervisor, if anything. */
int target_connect(int listener);
void target_turn(uint64_t ns);
bool target_told(struct control *c);

#endif
