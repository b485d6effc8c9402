/* SPDX-License-Identifier: Apache-2.0
 *
 * The row of tls://HOST:PORT.
 */
#include "transport/tcp.h"
#include "transport/tls/tls.h"

static int tls_describe(
	const char *address, struct transport_description *description, struct error *error)
{
	return tcp_parse_host(
		address, description->port, description->host, &description->port, error);
}

const struct transport transport_tls = {
	.name = "tls",
	.connections = 2,
	.secure = tls_secure,
	.listen = tls_listen,
	.accept = tls_accept,
	.dial = tls_dial,
	.link = tls_link,
	.handoff = tls_handoff,
	.open_stripe = tls_open_stripe,
	.join = tls_join,
	.describe = tls_describe,
	.read = tls_read,
	.write = tls_write,
	.why = tls_why,
	.forget = tls_forget,
	.certificate = tls_certificate,
	.counts = tls_counts,
};
