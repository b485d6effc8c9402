/* SPDX-License-Identifier: Apache-2.0
 *
 * One stripe: what its two threads do.  For stripes.c, which makes them and fills their queues.
 */
#ifndef VCUDA_SIDECAR_STRIPES_STRIPE_H
#define VCUDA_SIDECAR_STRIPES_STRIPE_H

#include "sidecar/stripes/stripes.h"

#define STRIPE_STACK (256u * 1024) /* of both: a TLS handshake is made on it */

/* The sender, of a struct stripe: dials, greets, starts the receiver, and sends what is queued.
 */
void *stripe_main(void *argument);

/* Everything that was queued was sent. */
bool stripe_idle(const struct stripe *stripe);

/* There is something to do: for who sleeps on *work. */
void stripe_work(_Atomic uint32_t *work, _Atomic uint32_t *asleep);

#endif
