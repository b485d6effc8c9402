/* SPDX-License-Identifier: Apache-2.0
 *
 * Sockets, epoll and timers of this process alone, in place of the kernel's: a conversation
 * with a Redis is some 200 system calls, which were most of an input's time.
 */
#ifndef VCUDA_TESTS_FUZZ_WIRE_H
#define VCUDA_TESTS_FUZZ_WIRE_H

#include <stdbool.h>
#include <stddef.h>

/* What is made from here on is ours; until wire_end, which aborts where something is open. */
void wire_begin(void);
void wire_end(void);
/* The peer's end of the connection that was made first of those not accepted yet; -1: none. */
int wire_accept(void);
/* PEER says; it does nothing where the other end is closed. */
void wire_say(int peer, const void *bytes, size_t n);

#endif
