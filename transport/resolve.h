/* SPDX-License-Identifier: Apache-2.0
 *
 * A host's addresses.  musl, which the client's image is built with, asks for a name that has
 * as many dots as `ndots` only as it stands, and never with the search domains behind it, so
 * the short name of a service (two dots) is not found in a pod with ndots 2.  Here the domains
 * are tried as well, as glibc does; and who is not found is told what was asked, and what to
 * do.
 */
#ifndef VCUDA_TRANSPORT_RESOLVE_H
#define VCUDA_TRANSPORT_RESOLVE_H

#include <netdb.h>

#include "common/error.h"

/* As getaddrinfo: *LIST is for freeaddrinfo. 0, or -errno with *error. */
int resolve_host(const char *host, const char *service, const struct addrinfo *hints,
	struct addrinfo **list, struct error *error);

/* The same with another file than /etc/resolv.conf, for tests. */
int resolve_by(const char *configuration, const char *host, const char *service,
	const struct addrinfo *hints, struct addrinfo **list, struct error *error);

#endif
