/* SPDX-License-Identifier: Apache-2.0
 *
 * One version, one cipher suite: there is nothing to negotiate, and so nothing to be negotiated
 * down.
 */
#include "transport/tls/tls_context.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/log.h"
#include "common/wait.h"

#define SUITE "TLS_AES_128_GCM_SHA256"
#define LOOK_NS 1000000000ull
#define TICKETS 16 /* agents that a client goes on with */
#define FILES 3

/* A file as it was read. */
struct seen {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec changed, modified;
};

struct ticket {
	char host[256];
	SSL_SESSION *session;
	uint64_t used_at;
};

/* Of each end; all of it under `lock`. */
struct context {
	pthread_mutex_t lock;
	struct transport_tls settings;
	SSL_CTX *ctx;
	struct seen seen[FILES];
	uint64_t looked_at;
	struct ticket tickets[TICKETS];
};

static struct context contexts[2] = {
	{.lock = PTHREAD_MUTEX_INITIALIZER}, {.lock = PTHREAD_MUTEX_INITIALIZER}};
static int secrets_index, host_index;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void start(void)
{
	/* A worker has no files by then, and nobody's openssl.cnf should weaken this. */
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	secrets_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
	host_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

/* --- the secrets of a handshake ----------------------------------------------------------- */

void tls_context_watch(SSL *session, struct tls_secrets *secrets)
{
	SSL_set_ex_data(session, secrets_index, secrets);
}

static bool unhex(const char *text, unsigned char *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (sscanf(text + 2 * i, "%2hhx", &out[i]) != 1)
			return false;
	return !text[2 * n];
}

/* OpenSSL's way of telling them: LABEL RANDOM SECRET, for a tool that looks into records. */
static void keylog(const SSL *session, const char *line)
{
	struct tls_secrets *secrets = SSL_get_ex_data(session, secrets_index);
	const char *secret = strrchr(line, ' ');

	if (!secrets || !secret)
		return;
	if (!strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24) &&
		unhex(secret + 1, secrets->client, sizeof(secrets->client)))
		secrets->have |= 1;
	if (!strncmp(line, "SERVER_TRAFFIC_SECRET_0 ", 24) &&
		unhex(secret + 1, secrets->server, sizeof(secrets->server)))
		secrets->have |= 2;
}

/* --- tickets, at the client --------------------------------------------------------------- */

static struct ticket *ticket_of(struct context *context, const char *host)
{
	struct ticket *oldest = &context->tickets[0];

	for (int i = 0; i < TICKETS; i++) {
		struct ticket *ticket = &context->tickets[i];

		if (!strcmp(ticket->host, host))
			return ticket;
		if (ticket->used_at < oldest->used_at)
			oldest = ticket;
	}
	SSL_SESSION_free(oldest->session);
	*oldest = (struct ticket){0};
	snprintf(oldest->host, sizeof(oldest->host), "%s", host);
	return oldest;
}

/* Called by OpenSSL with the agent's ticket; owns it where it returns 1. */
static int ticket_came(SSL *ssl, SSL_SESSION *session)
{
	struct context *context = &contexts[TRANSPORT_CLIENT];
	const char *host = SSL_get_ex_data(ssl, host_index);
	struct ticket *ticket;

	if (!host || !SSL_SESSION_is_resumable(session))
		return 0;
	pthread_mutex_lock(&context->lock);
	ticket = ticket_of(context, host);
	SSL_SESSION_free(ticket->session);
	ticket->session = session;
	ticket->used_at = wait_now();
	pthread_mutex_unlock(&context->lock);
	return 1;
}

static void forget_tickets(struct context *context)
{
	for (int i = 0; i < TICKETS; i++) {
		SSL_SESSION_free(context->tickets[i].session);
		context->tickets[i] = (struct ticket){0};
	}
}

/* --- the files ---------------------------------------------------------------------------- */

static const char *file_of(const struct transport_tls *settings, int which)
{
	return which == 0 ? settings->cert : which == 1 ? settings->key : settings->ca;
}

static void look_at(const struct transport_tls *settings, struct seen seen[FILES])
{
	memset(seen, 0, FILES * sizeof(*seen));
	for (int i = 0; i < FILES; i++) {
		const char *path = file_of(settings, i);
		struct stat st;

		if (*path && !stat(path, &st))
			seen[i] = (struct seen){
				st.st_dev, st.st_ino, st.st_size, st.st_ctim, st.st_mtim};
	}
}

/* OpenSSL's reason for what failed last, behind the file that it is about. */
static int fail(struct error *error, const char *key, const char *path)
{
	unsigned long code = ERR_peek_error();
	const char *reason = ERR_reason_error_string(code);
	int ret;

	if (ERR_SYSTEM_ERROR(code))
		ret = error_set(error, ERR_GET_REASON(code), "tls.%s: %s", key, path);
	else
		ret = error_set(error, 0, "tls.%s: %s: %s", key, path,
			reason ? reason : "cannot be read");
	ERR_clear_error();
	return ret;
}

static int load(SSL_CTX *ctx, enum transport_end end, const struct transport_tls *settings,
	struct error *error)
{
	int verify = SSL_VERIFY_NONE;

	if (settings->cert[0]) {
		if (SSL_CTX_use_certificate_chain_file(ctx, settings->cert) != 1)
			return fail(error, "cert", settings->cert);
		if (SSL_CTX_use_PrivateKey_file(ctx, settings->key, SSL_FILETYPE_PEM) != 1)
			return fail(error, "key", settings->key);
	}
	if (settings->ca[0]) {
		const char *key = end == TRANSPORT_AGENT ? "client_ca" : "ca";

		if (SSL_CTX_load_verify_file(ctx, settings->ca) != 1)
			return fail(error, key, settings->ca);
		verify = SSL_VERIFY_PEER;
	}
	if (end == TRANSPORT_AGENT && settings->require)
		verify |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX_set_verify(ctx, verify, NULL);
	return 0;
}

static int make(enum transport_end end, const struct transport_tls *settings, SSL_CTX **made,
	struct error *error)
{
	bool agent = end == TRANSPORT_AGENT;
	SSL_CTX *ctx = SSL_CTX_new(agent ? TLS_server_method() : TLS_client_method());
	static const unsigned char id[] = "vcuda";
	int ret;

	ERR_clear_error();
	if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) ||
		!SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) ||
		!SSL_CTX_set_ciphersuites(ctx, SUITE) ||
		!SSL_CTX_set_session_id_context(ctx, id, sizeof(id) - 1)) {
		SSL_CTX_free(ctx);
		return error_set(error, ENOMEM, "tls");
	}
	SSL_CTX_clear_options(ctx, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
	SSL_CTX_set_num_tickets(ctx, 1);
	SSL_CTX_set_keylog_callback(ctx, keylog);
	/* The agent's tickets hold all there is: it remembers nobody. */
	SSL_CTX_set_session_cache_mode(
		ctx, agent ? SSL_SESS_CACHE_OFF
			   : SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	if (!agent)
		SSL_CTX_sess_set_new_cb(ctx, ticket_came);
	ret = load(ctx, end, settings, error);
	if (ret < 0)
		SSL_CTX_free(ctx);
	else
		*made = ctx;
	return ret;
}

static int check(
	enum transport_end end, const struct transport_tls *settings, struct error *error)
{
	bool agent = end == TRANSPORT_AGENT;

	if (!settings->cert[0] != !settings->key[0])
		return error_set(error, 0, "tls: cert and key belong together");
	if (agent && !settings->cert[0])
		return error_set(error, 0, "tls: the agent needs cert and key");
	if (agent && settings->require && !settings->ca[0])
		return error_set(error, 0, "tls: require_client_cert needs client_ca");
	if (!agent && !settings->ca[0])
		return error_set(error, 0, "tls: ca is needed, to know the agent by");
	return 0;
}

int tls_context_set(
	enum transport_end end, const struct transport_tls *settings, struct error *error)
{
	struct context *context = &contexts[end];
	struct seen seen[FILES];
	SSL_CTX *ctx = NULL;
	int ret = check(end, settings, error);

	pthread_once(&once, start);
	look_at(settings, seen);
	if (!ret)
		ret = make(end, settings, &ctx, error);
	if (ret < 0)
		return ret;
	pthread_mutex_lock(&context->lock);
	SSL_CTX_free(context->ctx);
	forget_tickets(context);
	context->ctx = ctx;
	context->settings = *settings;
	memcpy(context->seen, seen, sizeof(seen));
	pthread_mutex_unlock(&context->lock);
	return 0;
}

/* Under the lock. A file that is being replaced is looked at again: what was seen is
 * remembered only once it fits. */
static void look_again(struct context *context, enum transport_end end)
{
	uint64_t now = wait_now();
	struct seen seen[FILES];
	struct error error = {0};
	SSL_CTX *ctx;

	if (now - context->looked_at < LOOK_NS)
		return;
	context->looked_at = now;
	look_at(&context->settings, seen);
	if (!memcmp(seen, context->seen, sizeof(seen)))
		return;
	if (make(end, &context->settings, &ctx, &error) < 0) {
		log_warn("tls.files", "text=\"%s; the former ones stay in use\"", error.text);
		return;
	}
	SSL_CTX_free(context->ctx);
	forget_tickets(context);
	context->ctx = ctx;
	memcpy(context->seen, seen, sizeof(seen));
	log_info("tls.files", "text=\"read again\"");
}

/* --- a session ---------------------------------------------------------------------------- */

/* Whom the certificate must name: an address as such, anything else as a DNS name. */
static bool expect(SSL *ssl, const char *name)
{
	unsigned char address[16];

	if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, name) && SSL_set_tlsext_host_name(ssl, name);
}

static bool prepare_client(struct context *context, SSL *ssl, const char *host)
{
	struct ticket *ticket = ticket_of(context, host);
	SSL_SESSION *copy = NULL;
	bool ok = true;

	SSL_set_connect_state(ssl);
	SSL_set_ex_data(ssl, host_index, (void *)host);
	/* A copy: OpenSSL marks one that was used, and stripes are opened side by side. */
	if (ticket->session)
		ok = (copy = SSL_SESSION_dup(ticket->session)) && SSL_set_session(ssl, copy);
	SSL_SESSION_free(copy);
	return ok && expect(ssl, context->settings.name[0] ? context->settings.name : host);
}

SSL *tls_context_session(enum transport_end end, const char *host, struct error *error)
{
	struct context *context = &contexts[end];
	SSL *ssl = NULL;

	pthread_mutex_lock(&context->lock);
	if (context->ctx) {
		look_again(context, end);
		ssl = SSL_new(context->ctx);
	}
	if (ssl && end == TRANSPORT_AGENT)
		SSL_set_accept_state(ssl);
	else if (ssl && !prepare_client(context, ssl, host)) {
		SSL_free(ssl);
		ssl = NULL;
	}
	if (!ssl)
		error_set(error, 0,
			context->ctx
				? "tls: no session can be made"
				: "tls: no CA is configured (tls.ca, $VCUDA_CA; of an agent "
				  "that dials others tls.peer_ca)");
	pthread_mutex_unlock(&context->lock);
	ERR_clear_error();
	return ssl;
}

int64_t tls_context_expires(enum transport_end end)
{
	struct context *context = &contexts[end];
	X509 *own = NULL;
	struct tm at;
	int64_t expires = 0;

	pthread_mutex_lock(&context->lock);
	if (context->ctx) {
		look_again(context, end);
		own = SSL_CTX_get0_certificate(context->ctx);
	}
	if (own && ASN1_TIME_to_tm(X509_get0_notAfter(own), &at) == 1)
		expires = timegm(&at);
	pthread_mutex_unlock(&context->lock);
	return expires;
}

const char *tls_context_ca(enum transport_end end)
{
	return contexts[end].settings.ca;
}
