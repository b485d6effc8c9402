/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of transport_tls (transport/tls.c).  They are weak: a program that is linked
 * without transport/tls knows what such an address looks like, and no more.
 */
#ifndef VCUDA_TRANSPORT_TLS_TLS_H
#define VCUDA_TRANSPORT_TLS_TLS_H

#include "transport/transport.h"

#define TLS_WEAK __attribute__((weak))

extern const struct transport transport_tls;

TLS_WEAK int tls_secure(
	enum transport_end end, const struct transport_tls *settings, struct error *error);
TLS_WEAK int tls_listen(
	const char *address, struct transport_listening *listening, struct error *error);
TLS_WEAK int tls_accept(int listener, struct transport_peer *peer);
TLS_WEAK int tls_dial(const char *address, const struct session_hello *hello,
	struct session_welcome *welcome, uint64_t deadline, struct link **link,
	struct error *error);
TLS_WEAK int tls_link(const int *fds, unsigned count, enum transport_end end,
	struct link **link, struct error *error);
TLS_WEAK int tls_handoff(
	int socket, const void *message, size_t n, const int *fds, unsigned count);
TLS_WEAK int tls_open_stripe(const struct transport_place *place,
	const struct session_hello *hello, uint64_t deadline, unsigned *number,
	struct link **stripe, struct error *error);
TLS_WEAK int tls_join(const char *address, const struct session_hello *hello, uint64_t deadline,
	struct error *error);
TLS_WEAK ssize_t tls_read(int fd, void *bytes, size_t n);
TLS_WEAK int tls_write(int fd, const void *bytes, size_t n);
TLS_WEAK const char *tls_why(int fd);
TLS_WEAK void tls_forget(int fd);
TLS_WEAK void tls_certificate(int fd, struct transport_certificate *certificate);
TLS_WEAK void tls_counts(struct transport_tls_counts *counts);

#endif
