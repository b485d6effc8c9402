/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection's making, and what ngtcp2 asks while it lives.
 */
#include <errno.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>

#include "common/wait.h"
#include "transport/light/quic_state.h"

#define CID 8 /* bytes of a connection's name */
#define MILLISECOND 1000000ull
/* A round trip takes so long until one was seen: what is lost of a handshake is sent again
 * after three of them. */
#define FIRST_RTT_NS (25 * MILLISECOND)
#define HANDSHAKE_NS                                                                           \
	(750 * MILLISECOND) /* four tries, the last after 525 ms; then TCP has to do */
#define IDLE_NS (30000 * MILLISECOND)
#define QUIET_NS (5000 * MILLISECOND) /* a sign of life that keeps NAT's entries */
/* An acknowledgement waits so long for another one: what is lost last is missed as late. */
#define ACK_DELAY_NS (2 * MILLISECOND)

/* The names that the client gives itself and the agent at first come of the key: nobody else's
 * first packet begins a connection. */
static ngtcp2_cid named(const struct light_key *key, const char *what)
{
	unsigned char hash[32];
	ngtcp2_cid cid;

	gnutls_hmac_fast(
		GNUTLS_MAC_SHA256, key->bytes, sizeof(key->bytes), what, strlen(what), hash);
	ngtcp2_cid_init(&cid, hash, 2 * CID);
	return cid;
}

/* --- what ngtcp2 asks --------------------------------------------------------------------- */

static struct flow *flow_of(struct quic *quic, int64_t stream)
{
	return stream >= 0 && stream / 4 < QUIC_FLOWS ? &quic->flows[stream / 4] : NULL;
}

static int on_stream_data(ngtcp2_conn *conn, uint32_t flags, int64_t stream, uint64_t offset,
	const uint8_t *data, size_t n, void *user, void *stream_user)
{
	struct flow *flow = flow_of(user, stream);

	(void)conn;
	(void)offset;
	(void)stream_user;
	if (!flow || !flow_take(flow, data, n))
		return NGTCP2_ERR_CALLBACK_FAILURE;
	if (flags & NGTCP2_STREAM_DATA_FLAG_FIN)
		flow->in_over = true;
	return 0;
}

static int on_acknowledged(ngtcp2_conn *conn, int64_t stream, uint64_t offset, uint64_t n,
	void *user, void *stream_user)
{
	struct flow *flow = flow_of(user, stream);

	(void)conn;
	(void)stream_user;
	if (flow)
		flow_acknowledged(flow, offset + n);
	return 0;
}

static void on_random(uint8_t *dest, size_t n, const ngtcp2_rand_ctx *context)
{
	(void)context;
	gnutls_rnd(GNUTLS_RND_NONCE, dest, n);
}

static int on_new_name(ngtcp2_conn *conn, ngtcp2_cid *cid, uint8_t *token, size_t n, void *user)
{
	uint8_t name[NGTCP2_MAX_CIDLEN];

	(void)conn;
	(void)user;
	if (gnutls_rnd(GNUTLS_RND_RANDOM, name, n) ||
		gnutls_rnd(GNUTLS_RND_RANDOM, token, NGTCP2_STATELESS_RESET_TOKENLEN))
		return NGTCP2_ERR_CALLBACK_FAILURE;
	ngtcp2_cid_init(cid, name, n);
	return 0;
}

static int on_handshake(ngtcp2_conn *conn, void *user)
{
	struct quic *quic = user;

	for (unsigned i = 0; i < QUIC_FLOWS; i++) {
		int64_t stream;

		if (ngtcp2_conn_open_uni_stream(conn, &stream, NULL) ||
			stream != quic_stream(quic->end, i))
			return NGTCP2_ERR_CALLBACK_FAILURE;
	}
	quic->ready = true;
	return 0;
}

static const ngtcp2_callbacks callbacks_of_both = {
	.recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
	.encrypt = ngtcp2_crypto_encrypt_cb,
	.decrypt = ngtcp2_crypto_decrypt_cb,
	.hp_mask = ngtcp2_crypto_hp_mask_cb,
	.update_key = ngtcp2_crypto_update_key_cb,
	.delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
	.delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
	.get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,
	.version_negotiation = ngtcp2_crypto_version_negotiation_cb,
	.recv_stream_data = on_stream_data,
	.acked_stream_data_offset = on_acknowledged,
	.rand = on_random,
	.get_new_connection_id = on_new_name,
	.handshake_completed = on_handshake,
};

/* --- making it ---------------------------------------------------------------------------- */

static ngtcp2_conn *conn_of(ngtcp2_crypto_conn_ref *ref)
{
	return ((struct quic *)ref->user_data)->conn;
}

static void parameters(ngtcp2_settings *settings, ngtcp2_transport_params *params)
{
	ngtcp2_settings_default(settings);
	settings->cc_algo = NGTCP2_CC_ALGO_BBR;
	settings->initial_ts = wait_now();
	settings->initial_rtt = FIRST_RTT_NS;
	settings->handshake_timeout = HANDSHAKE_NS;
	settings->max_tx_udp_payload_size = QUIC_DATAGRAM;
	ngtcp2_transport_params_default(params);
	params->initial_max_stream_data_uni = FLOW_BYTES;
	params->initial_max_data = (uint64_t)FLOW_BYTES * QUIC_FLOWS;
	params->initial_max_streams_uni = QUIC_FLOWS;
	params->max_idle_timeout = IDLE_NS;
	params->max_ack_delay = ACK_DELAY_NS;
	params->active_connection_id_limit = 4;
}

/* Both ends know both first names: the agent needs no packet to begin. */
static int make(struct quic *quic)
{
	ngtcp2_cid of_agent = named(&quic->key, "agent"),
		   of_client = named(&quic->key, "client"), first;
	ngtcp2_path path = quic_path_of(&quic->paths[0]);
	ngtcp2_callbacks callbacks = callbacks_of_both;
	ngtcp2_transport_params params;
	ngtcp2_settings settings;

	parameters(&settings, &params);
	if (quic->end == TRANSPORT_CLIENT) {
		callbacks.client_initial = ngtcp2_crypto_client_initial_cb;
		callbacks.recv_retry = ngtcp2_crypto_recv_retry_cb;
		return ngtcp2_conn_client_new(&quic->conn, &of_agent, &of_client, &path,
			NGTCP2_PROTO_VER_V1, &callbacks, &settings, &params, NULL, quic);
	}
	callbacks.recv_client_initial = ngtcp2_crypto_recv_client_initial_cb;
	params.original_dcid = of_agent;
#if NGTCP2_VERSION_NUM >= 0x010000
	params.original_dcid_present = 1;
#endif
	first = named(&quic->key, "agent's own");
	return ngtcp2_conn_server_new(&quic->conn, &of_client, &first, &path,
		NGTCP2_PROTO_VER_V1, &callbacks, &settings, &params, NULL, quic);
}

int quic_open(struct quic **made, enum transport_end end, const struct light_key *key, int fd,
	struct flow *flows, struct error *error)
{
	struct quic *quic = calloc(1, sizeof(*quic));
	int ret;

	*made = NULL;
	if (!quic)
		return error_set(error, ENOMEM, "light link");
	quic->end = end;
	quic->key = *key;
	quic->flows = flows;
	quic_path_take(&quic->paths[0], fd);
	quic->paths[1].fd = -1;
	ret = make(quic);
	if (ret) {
		error_set(error, 0, "light link: %s", ngtcp2_strerror(ret));
		quic_close(quic);
		return -EIO;
	}
	ret = quic_tls_open(&quic->tls, end, &quic->key, conn_of, quic, error);
	if (ret) {
		quic_close(quic);
		return ret;
	}
	ngtcp2_conn_set_tls_native_handle(quic->conn, quic->tls.session);
	ngtcp2_conn_set_keep_alive_timeout(quic->conn, QUIET_NS);
	*made = quic;
	return 0;
}

void quic_close(struct quic *quic)
{
	if (!quic)
		return;
	ngtcp2_conn_del(quic->conn);
	quic_tls_close(&quic->tls);
	explicit_bzero(quic, sizeof(*quic));
	free(quic);
}
