/* SPDX-License-Identifier: Apache-2.0
 *
 * What this process shows and believes: certificates, keys and the tickets that agents gave.
 * The files are looked at again with the next connection, at most once a second; new ones that
 * do not fit are said in the log, and the old ones stay.
 */
#ifndef VCUDA_TRANSPORT_TLS_TLS_CONTEXT_H
#define VCUDA_TRANSPORT_TLS_TLS_CONTEXT_H

#include <openssl/types.h>

#include "transport/transport.h"

/* For transport.secure. Any thread; the files are read. 0, or -errno with *error naming the
 * file; what was before stays then. */
int tls_context_set(
	enum transport_end end, const struct transport_tls *settings, struct error *error);

/* A session of OpenSSL's at this END, for one handshake; the client's is told who it talks to:
 * HOST, which must live as long, and resumes what it had there. NULL with *error: nothing was
 * set, or no memory. */
SSL *tls_context_session(enum transport_end end, const char *host, struct error *error);

/* When the certificate that this process shows ends, as Unix time; 0: it has none. */
int64_t tls_context_expires(enum transport_end end);

/* The CA file of this process, for texts. */
const char *tls_context_ca(enum transport_end end);

/* What one handshake is to leave behind: the application traffic secrets, as OpenSSL tells
 * them. */
struct tls_secrets {
	unsigned char client[32], server[32];
	unsigned have; /* bit 0: client's, bit 1: server's */
};
/* *SECRETS are filled in by SESSION's handshake, and stay the caller's. */
void tls_context_watch(SSL *session, struct tls_secrets *secrets);

#endif
