/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/transport.h"

#include <errno.h>
#include <string.h>

#include "transport/fault.h"
#include "transport/loop.h"
#include "transport/native.h"

/* One more transport: a row here. */
static const struct transport *const transports[] = {
	&transport_native,
	&transport_loop,
};

void link_close(struct link *link)
{
	if (link)
		link->ops->close(link);
}

/* The length of "SCHEME://" where there is one, else 0. */
static size_t scheme_length(const char *address)
{
	const char *at = strstr(address, "://");

	return at ? (size_t)(at - address) + 3 : 0;
}

const struct transport *transport_find(const char *address, struct error *error)
{
	size_t n = scheme_length(address);

	if (!n)
		return &transport_native;
	if (!strncmp(address, "fault+", 6))
		return &transport_fault;
	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
		if (strlen(transports[i]->name) + 3 == n &&
			!strncmp(address, transports[i]->name, n - 3))
			return transports[i];
	error_set(error, 0, "'%.80s': no such transport; known: native, loop, fault+native",
		address);
	return NULL;
}

const struct transport *transport_named(const char *name)
{
	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
		if (!strcmp(transports[i]->name, name))
			return transports[i];
	return NULL;
}

int transport_dial(const char *address, const struct session_hello *hello,
	struct session_welcome *welcome, uint64_t deadline, struct link **link,
	struct error *error)
{
	const struct transport *transport = transport_find(address, error);

	*link = NULL;
	if (!transport)
		return -EINVAL;
	address += transport == &transport_fault ? 6 : scheme_length(address);
	return transport->dial(address, hello, welcome, deadline, link, error);
}
