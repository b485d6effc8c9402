/* SPDX-License-Identifier: Apache-2.0
 *
 * A slow wire: links that take and give no more bytes a second than it carries, each way by
 * itself.  All links of one name share it, as sessions and stripes share a network card.  For
 * `rate=` of the fault transport.
 */
#ifndef VCUDA_TRANSPORT_RATED_H
#define VCUDA_TRANSPORT_RATED_H

#include <stdint.h>

#include "transport/transport.h"

#define RATED_WIRES 16 /* names that a process has; the last is shared by all that are more */

/* Which wire NAME is, of BYTES_S bytes a second (> 0); the first who asks says how fast. Any
 * thread. */
unsigned rated_wire(const char *name, uint64_t bytes_s);

/* Wraps INNER, which it owns from then on (also when it fails). One thread may send while
 * another is in receive_all. 0, or -errno with *error. */
int rated_wrap(struct link *inner, unsigned wire, struct link **link, struct error *error);

#endif
