/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/transport.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/fault.h"
#include "transport/native.h"
#include "transport/socket_link.h"

/* clang-format off */
/* One more transport: a row here, for its transport_NAME. */
#define TRANSPORTS(ROW) \
	ROW(native) \
	ROW(tls) \
	ROW(light) \
	ROW(unix) \
	ROW(local) \
	ROW(loop)
/* clang-format on */

#define DECLARE(name) extern const struct transport transport_##name;
#define ENTRY(name) &transport_##name,
TRANSPORTS(DECLARE)
static const struct transport *const transports[] = {TRANSPORTS(ENTRY)};

/* Set before other threads start. */
static bool secure;
static bool one_name; /* in the agents' certificates, whatever their hosts are called */
static const struct transport *assumed = &transport_native;

#define FAULT "fault+"

/* The length of "SCHEME://" where there is one, else 0. */
static size_t scheme_length(const char *address)
{
	const char *at = strstr(address, "://");

	return at ? (size_t)(at - address) + 3 : 0;
}

/* What its transport wants to know of an address: `fault` all but its own name. */
static const char *rest_of(const char *address, const struct transport *transport)
{
	return address +
	       (transport == &transport_fault ? strlen(FAULT) : scheme_length(address));
}

static int unknown(const char *address, struct error *error)
{
	char known[120] = "";

	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
		snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s, ",
			transports[i]->name);
	return error_set(error, 0, "'%.80s': no such transport; known: %s" FAULT "native",
		address, known);
}

const struct transport *transport_find(const char *address, struct error *error)
{
	size_t n = scheme_length(address);

	if (!n)
		return secure ? &transport_tls : assumed;
	if (!strncmp(address, FAULT, strlen(FAULT)))
		return &transport_fault;
	if (secure && (!strncmp(address, "native:", 7) || !strncmp(address, "light:", 6))) {
		error_set(error, 0,
			"'%.80s': TLS is configured here, so nothing is sent in the clear: "
			"tls://",
			address);
		return NULL;
	}
	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
		if (strlen(transports[i]->name) + 3 == n &&
			!strncmp(address, transports[i]->name, n - 3))
			return transports[i];
	unknown(address, error);
	return NULL;
}

int transport_assume(const char *name, struct error *error)
{
	if (strcmp(name, "native") && strcmp(name, "light"))
		return error_set(error, 0, "'%.40s' is no network: native, light", name);
	assumed = transport_named(name);
	return 0;
}

int transport_congestion(const char *name, struct error *error)
{
	if (strlen(name) >= STREAM_CONGESTION ||
		name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-")])
		return error_set(error, 0, "'%.40s' is no congestion control like bbr", name);
	stream_congestion(name);
	return 0;
}

int transport_secure(
	enum transport_end end, const struct transport_tls *settings, struct error *error)
{
	int ret = transport_tls.secure ? transport_tls.secure(end, settings, error)
				       : error_set(error, EOPNOTSUPP,
						 "tls: this program was built without it");

	if (!ret)
		secure = true;
	if (!ret && end == TRANSPORT_CLIENT)
		one_name = settings->name[0] != 0;
	return ret;
}

void transport_tls_counts(struct transport_tls_counts *counts)
{
	*counts = (struct transport_tls_counts){0};
	if (transport_tls.counts)
		transport_tls.counts(counts);
}

const struct transport *transport_at(size_t index)
{
	return index < sizeof(transports) / sizeof(transports[0]) ? transports[index] : NULL;
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
	if (!transport->dial)
		return error_set(error, EOPNOTSUPP, "agent %.120s", address);
	return transport->dial(
		rest_of(address, transport), hello, welcome, deadline, link, error);
}

void transport_plain(char *address)
{
	if (strncmp(address, FAULT, strlen(FAULT)) != 0)
		return;
	memmove(address, address + strlen(FAULT), strlen(address) - strlen(FAULT) + 1);
	address[strcspn(address, "?")] = 0;
}

int transport_join(const char *address, const struct session_hello *hello, uint64_t deadline,
	const struct transport **transport, struct error *error)
{
	*transport = transport_find(address, error);
	if (!*transport)
		return -EINVAL;
	if (!(*transport)->join)
		return error_set(error, EOPNOTSUPP, "agents are not joined by %s://",
			(*transport)->name);
	return (*transport)->join(rest_of(address, *transport), hello, deadline, error);
}

int transport_describe(const char *address, uint16_t default_port,
	struct transport_description *description, struct error *error)
{
	const struct transport *transport = transport_find(address, error);

	*description = (struct transport_description){.port = default_port};
	if (!transport)
		return -EINVAL;
	return transport->describe(rest_of(address, transport), description, error);
}

int transport_expand(const char *address, void (*add)(void *argument, const char *address),
	void *argument, struct error *error)
{
	/* A certificate is for a name: the host's, so that must stay, or one for all of them.
	 */
	if (!scheme_length(address) && (!secure || one_name))
		return native_expand(address, add, argument, error);
	add(argument, address);
	return 0;
}

static int listen_one(
	const char *address, struct transport_listening *listening, struct error *error)
{
	const struct transport *transport = transport_find(address, error);

	if (!transport)
		return -EINVAL;
	if (!transport->listen)
		return error_set(error, EOPNOTSUPP, "listen on '%.100s'", address);
	return transport->listen(rest_of(address, transport), listening, error);
}

static int check_one(
	const char *address, struct transport_listening *listening, struct error *error)
{
	const struct transport *transport = transport_find(address, error);
	struct transport_description description = {0};
	int ret = 0;

	(void)listening;
	if (!transport)
		return -EINVAL;
	if (!transport->listen)
		return error_set(error, EOPNOTSUPP, "listen on '%.100s'", address);
	if (*rest_of(address, transport))
		ret = transport->describe(rest_of(address, transport), &description, error);
	if (!ret && description.port)
		return error_set(error, 0,
			"'%.100s': an address to listen on has no port here (keys: ports)",
			address);
	return ret;
}

/* Calls ONE for each of ADDRESSES until one fails. */
static int each_address(const char *addresses,
	int (*one)(const char *address, struct transport_listening *listening,
		struct error *error),
	struct transport_listening *listening, struct error *error)
{
	char copy[512], *rest = copy, *address;
	int ret = 0;

	if (strlen(addresses) >= sizeof(copy))
		return error_set(error, ENAMETOOLONG, "listen");
	strcpy(copy, addresses);
	while (!ret && (address = strsep(&rest, ","))) {
		address += strspn(address, " ");
		address[strcspn(address, " ")] = 0;
		ret = one(address, listening, error);
	}
	return ret;
}

int transport_listen(
	const char *addresses, struct transport_listening *listening, struct error *error)
{
	int ret;

	listening->count = 0;
	ret = each_address(addresses, listen_one, listening, error);
	if (ret < 0)
		transport_unlisten(listening);
	return ret;
}

int transport_check_listen(const char *addresses, struct error *error)
{
	return each_address(addresses, check_one, NULL, error);
}
