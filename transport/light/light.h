/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of transport_light (transport/light.c) that need QUIC.  They are weak: a
 * program that is linked without transport/light speaks TCP with a light agent.
 */
#ifndef VCUDA_TRANSPORT_LIGHT_LIGHT_H
#define VCUDA_TRANSPORT_LIGHT_LIGHT_H

#include "transport/dial.h"
#include "transport/transport.h"

#define LIGHT_WEAK __attribute__((weak))

extern const struct transport transport_light;

/* As transport.knock, admit, forget, handoff, link and path. */
LIGHT_WEAK int light_udp_listen(
	const char *host, uint16_t port, struct error *error); /* fd or -errno */
LIGHT_WEAK int light_knock(int listener, struct transport_knock *knock);
LIGHT_WEAK int light_admit(int listener, const struct transport_knock *knock);
LIGHT_WEAK void light_forget(int fd);
LIGHT_WEAK int light_handoff(
	int socket, const void *message, size_t n, const int *fds, unsigned count);
LIGHT_WEAK int light_link(const int *fds, unsigned count, enum transport_end end,
	struct link **link, struct error *error);
LIGHT_WEAK int light_path(struct link *link, const int *fds, unsigned count);
/* The number of what carries LINK by UDP, for light_stripe; 0: TCP does. */
LIGHT_WEAK uint64_t light_number(const struct link *link);
/* Stripe I of the link with that number. 0, or -errno with *error. */
LIGHT_WEAK int light_stripe(
	uint64_t number, unsigned i, struct link **stripe, struct error *error);
/* Nothing came by UDP, so for a minute this process asks no agent for it. */
LIGHT_WEAK bool light_shuns_udp(void);
/* As dial.last. */
LIGHT_WEAK int light_dial_last(struct dial *dial, const struct session_hello *hello);

#endif
