/* SPDX-License-Identifier: Apache-2.0
 *
 * The TLS 1.3 of a QUIC connection: GnuTLS, with a key that both ends know in the place of
 * certificates, and a Diffie-Hellman exchange, so that who learns the key later reads nothing.
 */
#ifndef VCUDA_TRANSPORT_LIGHT_QUIC_TLS_H
#define VCUDA_TRANSPORT_LIGHT_QUIC_TLS_H

#include <gnutls/gnutls.h>
#include <ngtcp2/ngtcp2_crypto.h>

#include "transport/light/knock.h"
#include "transport/transport.h"

struct quic_tls {
	gnutls_session_t session;
	gnutls_psk_client_credentials_t client;
	gnutls_psk_server_credentials_t server;
	ngtcp2_crypto_conn_ref ref;
	const struct light_key *key; /* agent: whose lifetime is the connection's */
};

/* CONN_OF(ref) finds the connection by ref->user_data, which is USER. TLS must not move. 0, or
 * -errno with *error. */
int quic_tls_open(struct quic_tls *tls, enum transport_end end, const struct light_key *key,
	ngtcp2_crypto_get_conn conn_of, void *user, struct error *error);
void quic_tls_close(struct quic_tls *tls);

#endif
