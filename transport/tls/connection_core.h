/* SPDX-License-Identifier: Apache-2.0
 *
 * What connection.c, which owns a connection, and handshake.c, which brings it to its keys,
 * share.
 */
#ifndef VCUDA_TRANSPORT_TLS_CONNECTION_CORE_H
#define VCUDA_TRANSPORT_TLS_CONNECTION_CORE_H

#include <openssl/types.h>

#include "transport/tls/connection.h"
#include "transport/tls/tls_context.h"

struct tls_connection {
	struct tls_connection *next;
	int fd;
	enum transport_end end;
	char host[256]; /* client's */
	struct transport_peer peer;
	struct transport_certificate certificate; /* agent's: the client's */
	SSL *ssl; /* handshake, and until the client's first data: a ticket may come */
	BIO *in, *out;
	struct tls_secrets secrets;
	bool done;
	int failed;	  /* -errno, for good, … */
	char why[200];	  /* … and the reason */
	unsigned heard;	  /* bytes of the handshake */
	unsigned tickets; /* records that the agent sent behind the handshake */
	struct record_half send, receive;
	unsigned got; /* of `record` */
	unsigned char record[RECORD_HEADER + RECORD_BODY_MAX];
	unsigned plain_at, plain_n;
	unsigned char plain[RECORD_BODY_MAX];
};

/* connection.c */

/* One whole record and nothing behind it. 0, -EAGAIN, or -errno: the end is -ECONNRESET. */
int tls_connection_record(struct tls_connection *c);

/* handshake.c */

/* 0, or -EPROTO with *error. */
int tls_handshake_begin(struct tls_connection *c, struct error *error);
/* As tls_connection_handshake. */
int tls_handshake(struct tls_connection *c, struct error *error);
/* OpenSSL is not needed any more. */
void tls_handshake_end(struct tls_connection *c);
/* The connection is over, by WHY, which is said and counted; -EPROTO. */
int tls_handshake_fail(struct tls_connection *c, struct error *error, const char *why);

#endif
