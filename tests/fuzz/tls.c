/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: a TLS handshake at the agent's end, up to who the client is. The input is what a
 * client sends; its first byte says how: as it is, in pieces, or as changes to the first flight
 * of a client that behaves. Nobody whose bytes these are has the keys of a handshake, so none
 * is ever done, and nothing is left of one.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "transport/tls/connection.h"
#include "transport/tls/tls_context.h"

#define PIECE 97

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static unsigned char flight[4096]; /* of a client that behaves */
static size_t flight_n;

static void must(bool right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

/* A certificate of its own, in a folder that is gone once it was read. */
static void make_files(char cert[64], char key[64])
{
	char folder[] = "/tmp/fuzz-tls-XXXXXX";
	EVP_PKEY *pair = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	FILE *file;

	must(pair && x && mkdtemp(folder), "a key");
	snprintf(cert, 64, "%s/c", folder);
	snprintf(key, 64, "%s/k", folder);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), 0);
	X509_gmtime_adj(X509_getm_notAfter(x), 86400);
	X509_set_pubkey(x, pair);
	must(X509_sign(x, pair, EVP_sha256()) > 0, "a certificate");
	must((file = fopen(cert, "w")) && PEM_write_X509(file, x) && !fclose(file), "PEM");
	must((file = fopen(key, "w")) &&
			PEM_write_PrivateKey(file, pair, NULL, NULL, 0, NULL, NULL) &&
			!fclose(file),
		"PEM");
	X509_free(x);
	EVP_PKEY_free(pair);
}

static void make_flight(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = SSL_new(ctx);
	BIO *out = BIO_new(BIO_s_mem());

	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
	SSL_set_connect_state(ssl);
	SSL_do_handshake(ssl);
	flight_n = (size_t)BIO_read(out, flight, sizeof(flight));
	must(flight_n > 64 && flight_n <= sizeof(flight), "a first flight");
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	ERR_clear_error();
}

static void start(void)
{
	struct transport_tls settings = {.require = true};
	char cert[64], key[64], *slash;
	struct error error = {0};

	log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
	make_files(cert, key);
	strcpy(settings.cert, cert);
	strcpy(settings.key, key);
	strcpy(settings.ca, cert);
	must(!tls_context_set(TRANSPORT_AGENT, &settings, &error), error.text);
	unlink(cert);
	unlink(key);
	slash = strrchr(cert, '/');
	*slash = 0;
	rmdir(cert);
	make_flight();
}

/* What the agent makes of it, until it has all of it or enough. */
static void hear(int fd)
{
	struct error error;
	int ret = tls_connection_handshake(fd, &error);
	struct tls_state state;
	char hello[64];

	must(ret == -EAGAIN || ret == -EPROTO, "a handshake is done");
	must(tls_connection_state(fd, &state) == -EPROTO, "there are keys");
	must(tls_connection_read(fd, hello, sizeof(hello)) <= 0, "something was said");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static bool started;
	const struct transport_peer peer = {.text = "fuzz"};
	uint8_t changed[sizeof(flight) + 65536];
	struct error error;
	int pair[2];
	uint8_t how;

	if (!started)
		start();
	started = true;
	if (!n || n > 65536)
		return 0;
	how = *bytes++;
	n--;
	if (how & 2) { /* pairs of a place and what it is changed by; the rest comes behind */
		memcpy(changed, flight, flight_n);
		for (size_t i = 0; i + 3 <= n && i < 48; i += 3)
			changed[(size_t)(bytes[i] << 8 | bytes[i + 1]) % flight_n] ^=
				bytes[i + 2];
		memcpy(changed + flight_n, bytes, n);
		bytes = changed;
		n += flight_n;
	}
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
		"socketpair");
	must(!tls_connection_open(pair[0], TRANSPORT_AGENT, NULL, &peer, &error), error.text);
	for (size_t at = 0, most = how & 1 ? PIECE : 4096; at < n; at += most) {
		size_t size = n - at < most ? n - at : most;

		if (send(pair[1], bytes + at, size, MSG_NOSIGNAL) != (ssize_t)size)
			break;
		hear(pair[0]);
	}
	shutdown(pair[1], SHUT_WR);
	hear(pair[0]);
	tls_connection_forget(pair[0]);
	must(tls_connection_read(pair[0], changed, 1) == -EPROTO, "something is left");
	close(pair[0]);
	close(pair[1]);
	return 0;
}
