/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/light/quic_tls.h"

#include <errno.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>
#include <string.h>

/* One suite: the fastest with AES in hardware, and of the hash that the key is for. */
static const char priority[] = "NONE:+VERS-TLS1.3:+AES-128-GCM:+AEAD:+SHA256:+GROUP-X25519:"
			       "+GROUP-SECP256R1:+ECDHE-PSK:+SIGN-ALL:"
			       "%DISABLE_TLS13_COMPAT_MODE";
static const char user_name[] = "vcuda";

static int agent_key(gnutls_session_t session, const char *name, gnutls_datum_t *key)
{
	const struct quic_tls *tls = gnutls_db_get_ptr(session);
	const struct light_key *mine = tls->key;

	(void)name;
	key->data = gnutls_malloc(sizeof(mine->bytes));
	if (!key->data)
		return -1;
	memcpy(key->data, mine->bytes, sizeof(mine->bytes));
	key->size = sizeof(mine->bytes);
	return 0;
}

static int fail(struct quic_tls *tls, int code, struct error *error)
{
	quic_tls_close(tls);
	error_set(error, 0, "light link: TLS: %s", gnutls_strerror(code));
	return -EIO;
}

static int open_client(struct quic_tls *tls, const struct light_key *key)
{
	const gnutls_datum_t datum = {(void *)(uintptr_t)key->bytes, sizeof(key->bytes)};
	int ret = gnutls_psk_allocate_client_credentials(&tls->client);

	if (!ret)
		ret = gnutls_psk_set_client_credentials(
			tls->client, user_name, &datum, GNUTLS_PSK_KEY_RAW);
	if (!ret)
		ret = gnutls_init(&tls->session,
			GNUTLS_CLIENT | GNUTLS_NO_TICKETS | GNUTLS_NO_END_OF_EARLY_DATA);
	if (!ret)
		ret = gnutls_credentials_set(tls->session, GNUTLS_CRD_PSK, tls->client);
	return ret;
}

static int open_agent(struct quic_tls *tls)
{
	int ret = gnutls_psk_allocate_server_credentials(&tls->server);

	if (!ret)
		ret = gnutls_init(&tls->session, GNUTLS_SERVER | GNUTLS_NO_TICKETS |
							 GNUTLS_NO_AUTO_SEND_TICKET |
							 GNUTLS_NO_END_OF_EARLY_DATA);
	if (ret)
		return ret;
	gnutls_psk_set_server_credentials_function(tls->server, agent_key);
	return gnutls_credentials_set(tls->session, GNUTLS_CRD_PSK, tls->server);
}

int quic_tls_open(struct quic_tls *tls, enum transport_end end, const struct light_key *key,
	ngtcp2_crypto_get_conn conn_of, void *user, struct error *error)
{
	int ret;

	*tls = (struct quic_tls){.key = key, .ref = {conn_of, user}};
	ret = end == TRANSPORT_CLIENT ? open_client(tls, key) : open_agent(tls);
	if (!ret)
		ret = gnutls_priority_set_direct(tls->session, priority, NULL);
	if (ret)
		return fail(tls, ret, error);
	gnutls_session_set_ptr(tls->session, &tls->ref);
	gnutls_db_set_ptr(tls->session, tls);
	ret = end == TRANSPORT_CLIENT
		      ? ngtcp2_crypto_gnutls_configure_client_session(tls->session)
		      : ngtcp2_crypto_gnutls_configure_server_session(tls->session);
	return ret ? fail(tls, GNUTLS_E_INTERNAL_ERROR, error) : 0;
}

void quic_tls_close(struct quic_tls *tls)
{
	if (tls->session)
		gnutls_deinit(tls->session);
	if (tls->client)
		gnutls_psk_free_client_credentials(tls->client);
	if (tls->server)
		gnutls_psk_free_server_credentials(tls->server);
	*tls = (struct quic_tls){0};
}
