/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of addresses to which an agent may go where a client names one (`peers:`).  A client's
 * name is compared with names and its address with addresses and networks.  What a client says
 * is never looked up here; a name of the list may be.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "transport/resolve.h"
#include "transport/tcp.h"
#include "transport/transport.h"

#define ENTRY_TEXT 300
#define LIST_TEXT 2048

struct entry {
	char name[256];		/* "": a network */
	unsigned char bits[16]; /* of the network; IPv4 mapped */
	unsigned prefix;	/* how many of them count */
	uint16_t port;		/* 0: any */
};

/* Whether it is an address, IPv4 mapped. */
static bool numeric(const char *text, unsigned char bits[16])
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

	memcpy(bits, mapped, sizeof(mapped));
	return inet_pton(AF_INET, text, bits + sizeof(mapped)) == 1 ||
	       inet_pton(AF_INET6, text, bits) == 1;
}

/* "/BITS" behind an address, cut off. False: no number that it can have. */
static bool entry_prefix(char *text, unsigned whole, unsigned *prefix)
{
	char *slash = strchr(text, '/'), *end;
	unsigned long n = whole;

	if (slash) {
		*slash = 0;
		n = strtoul(slash + 1, &end, 10);
		if (slash[1] < '0' || slash[1] > '9' || *end || n > whole)
			return false;
	}
	*prefix = (unsigned)n + (128 - whole);
	return true;
}

/* ":PORT" or ":*" at the end, cut off. */
static bool entry_port(char *text, uint16_t *port)
{
	char *colon = strrchr(text, ':'), *end;
	unsigned long n;

	*port = SESSION_PORT_RECV;
	/* Two colons without brackets: an IPv6 address. */
	if (!colon || (*text != '[' && strchr(text, ':') != colon) || strchr(colon, ']'))
		return true;
	*colon = 0;
	*port = 0;
	if (!strcmp(colon + 1, "*"))
		return true;
	n = strtoul(colon + 1, &end, 10);
	*port = (uint16_t)n;
	return colon[1] >= '0' && colon[1] <= '9' && !*end && n && n <= 65535;
}

static bool entry_parse(const char *from, struct entry *entry)
{
	char copy[ENTRY_TEXT], *text = copy, *end;
	unsigned char bits[16];

	if (strlen(from) >= sizeof(copy))
		return false;
	strcpy(copy, from);
	if (!entry_port(copy, &entry->port))
		return false;
	end = copy + strlen(copy);
	if (*copy == '[' && end[-1] == ']') {
		end[-1] = 0;
		text++;
	}
	entry->name[0] = 0;
	if (!entry_prefix(text, strchr(text, ':') ? 128 : 32, &entry->prefix))
		return false;
	if (numeric(text, entry->bits))
		return true;
	if (strchr(from, '/') || !*text || strlen(text) >= sizeof(entry->name) ||
		strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			     "-._*") != strlen(text) ||
		strrchr(text, '*') > text || (*text == '*' && text[1] != '.') ||
		numeric(text, bits))
		return false;
	strcpy(entry->name, text);
	return true;
}

static bool network_holds(const struct entry *entry, const unsigned char bits[16])
{
	unsigned whole = entry->prefix / 8, rest = entry->prefix % 8;
	unsigned char mask = (unsigned char)(0xff00u >> rest);

	return !memcmp(entry->bits, bits, whole) &&
	       (!rest || !((entry->bits[whole] ^ bits[whole]) & mask));
}

static bool name_is(const char *wanted, const char *host)
{
	size_t n = strlen(host), tail = strlen(wanted) - (*wanted == '*');

	if (*wanted != '*')
		return !strcasecmp(wanted, host);
	return n > tail && !strcasecmp(wanted + 1, host + n - tail);
}

/* Calls ONE for each entry; its answer where that is not 0. */
static int each_entry(
	const char *list, int (*one)(const char *entry, void *argument), void *argument)
{
	char copy[LIST_TEXT], *rest = copy, *entry;
	int ret = 0;

	if (strlen(list) >= sizeof(copy))
		return -E2BIG;
	strcpy(copy, list);
	while (!ret && (entry = strsep(&rest, ","))) {
		entry += strspn(entry, " ");
		entry[strcspn(entry, " ")] = 0;
		if (*entry)
			ret = one(entry, argument);
	}
	return ret;
}

static int check_one(const char *text, void *argument)
{
	struct error *error = argument;
	struct entry entry;

	if (entry_parse(text, &entry))
		return 0;
	return error_set(error, 0,
		"'%.100s' is not a name, *.NAME, an address or ADDRESS/BITS, with :PORT or :* "
		"behind it where it is not %u",
		text, SESSION_PORT_RECV);
}

int transport_check_allowed(const char *list, struct error *error)
{
	int ret = each_entry(list, check_one, error);

	if (ret == -E2BIG)
		return error_set(error, E2BIG, "a list of agents");
	return ret ? -EINVAL : 0;
}

struct wanted {
	char host[256];
	uint16_t port;
	bool number;
	unsigned char bits[16];
};

static int allow_one(const char *text, void *argument)
{
	const struct wanted *wanted = argument;
	struct entry entry;

	return entry_parse(text, &entry) && (!entry.port || entry.port == wanted->port) &&
	       (entry.name[0] ? !wanted->number && name_is(entry.name, wanted->host)
			      : wanted->number && network_holds(&entry, wanted->bits));
}

static bool wanted_parse(const char *address, struct wanted *wanted)
{
	const char *scheme = strstr(address, "://");
	struct error error;

	if (scheme && strncmp(address, "native://", 9) != 0 &&
		strncmp(address, "tls://", 6) != 0)
		return false;
	if (tcp_parse_host(scheme ? scheme + 3 : address, SESSION_PORT_RECV, wanted->host,
		    &wanted->port, &error))
		return false;
	wanted->number = numeric(wanted->host, wanted->bits);
	return true;
}

bool transport_allowed(const char *list, const char *address)
{
	struct wanted wanted;

	return wanted_parse(address, &wanted) && each_entry(list, allow_one, &wanted) > 0;
}

/* Whether one of the addresses that an entry's name has is the wanted one. */
static int allow_looked_up(const char *text, void *argument)
{
	const struct wanted *wanted = argument;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list, *at;
	struct transport_peer peer;
	struct error error;
	struct entry entry;
	bool found = false;

	if (!entry_parse(text, &entry) || !entry.name[0] || entry.name[0] == '*' ||
		(entry.port && entry.port != wanted->port) ||
		resolve_host(entry.name, NULL, &hints, &list, &error))
		return 0;
	for (at = list; at && !found; at = at->ai_next) {
		struct sockaddr_storage address = {0};

		memcpy(&address, at->ai_addr, at->ai_addrlen);
		tcp_peer(&address, &peer);
		found = !memcmp(peer.key, wanted->bits, sizeof(peer.key));
	}
	freeaddrinfo(list);
	return found;
}

bool transport_allowed_by_name(const char *list, const char *address)
{
	struct wanted wanted;

	return transport_allowed(list, address) ||
	       (wanted_parse(address, &wanted) && wanted.number &&
		       each_entry(list, allow_looked_up, &wanted) > 0);
}
