/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection that is a TLS one: its handshake, and what is said on it before there is a link.
 * Front and dialer know it by its descriptor; none of this waits.  OpenSSL does the handshake,
 * from memory, one record at a time, so that it never holds bytes that come behind; then only
 * the two directions' keys are left, which travel to a worker with the descriptor.
 */
#ifndef VCUDA_TRANSPORT_TLS_CONNECTION_H
#define VCUDA_TRANSPORT_TLS_CONNECTION_H

#include "transport/tls/record.h"
#include "transport/transport.h"

/* As a link takes it over, or a worker gets it with the descriptor. */
struct tls_state {
	struct record_keys send, receive;
};

/* FD, whose connection was just made, is one at this END. HOST: the client's other side, else
 * NULL. PEER: who the agent's other side is, for the log. 0, or -errno with *error. */
int tls_connection_open(int fd, enum transport_end end, const char *host,
	const struct transport_peer *peer, struct error *error);

/* For transport.read and write: the handshake goes on with each of them. -EPROTO: it is over,
 * and the peer has been told why where that is possible. */
ssize_t tls_connection_read(int fd, void *bytes, size_t n);
int tls_connection_write(int fd, const void *bytes, size_t n);

/* The handshake up to its end, as far as bytes are there. 0: done; -EAGAIN; -EPROTO with why
 * it failed in *error (may be NULL). */
int tls_connection_handshake(int fd, struct error *error);

/* For transport.why. */
const char *tls_connection_why(int fd);

/* For transport.certificate. */
void tls_connection_certificate(int fd, struct transport_certificate *certificate);

/* Its keys as they are now. -EPROTO where bytes were read that nobody took, or there are none.
 */
int tls_connection_state(int fd, struct tls_state *state);

/* It is one no more; the descriptor stays. */
void tls_connection_forget(int fd);

/* For transport.counts. */
void tls_connection_counts(struct transport_tls_counts *counts);

#endif
