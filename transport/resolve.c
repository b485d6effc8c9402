/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/resolve.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define RESOLVE_DOMAINS 6
#define RESOLVE_SERVERS 3
#define RESOLVE_NAME 256 /* the longest name of a host, and its NUL */

/* What /etc/resolv.conf says. */
struct resolver {
	unsigned servers, domains;
	char server[RESOLVE_SERVERS][64], domain[RESOLVE_DOMAINS][RESOLVE_NAME];
};

static void read_line(struct resolver *resolver, char *line)
{
	char *rest = line, *word = strtok_r(line, " \t\n", &rest), *value;
	bool search = word && (!strcmp(word, "search") || !strcmp(word, "domain"));

	if (search)
		resolver->domains = 0; /* the last one holds */
	if (!word || (!search && strcmp(word, "nameserver") != 0))
		return;
	while ((value = strtok_r(NULL, " \t\n", &rest))) {
		if (search && resolver->domains < RESOLVE_DOMAINS)
			snprintf(resolver->domain[resolver->domains++], RESOLVE_NAME, "%s",
				value);
		else if (!search && resolver->servers < RESOLVE_SERVERS)
			snprintf(resolver->server[resolver->servers++],
				sizeof(resolver->server[0]), "%s", value);
	}
}

static void resolver_read(const char *configuration, struct resolver *resolver)
{
	FILE *file = fopen(configuration, "re");
	char line[2048];

	*resolver = (struct resolver){0};
	while (file && fgets(line, sizeof(line), file))
		read_line(resolver, line);
	if (file)
		fclose(file);
}

/* With a domain behind it; false: too long. */
static bool full_name(const char *host, const char *domain, char name[RESOLVE_NAME])
{
	return snprintf(name, RESOLVE_NAME, "%s.%s", host, domain) < RESOLVE_NAME;
}

/* A name may be tried with domains, an address or one that ends with a dot not. */
static bool is_relative(const char *host)
{
	unsigned char address[16];
	size_t n = strlen(host);

	return n && host[n - 1] != '.' && inet_pton(AF_INET, host, address) != 1 &&
	       inet_pton(AF_INET6, host, address) != 1;
}

static void append(char *text, size_t size, const char *between, const char *more)
{
	size_t n = strlen(text);

	snprintf(text + n, size - n, "%s%s", between, more);
}

/* Nobody knows the name. */
static int not_found(const struct resolver *resolver, const char *host, struct error *error)
{
	char asked[RESOLVE_NAME] = "it", who[RESOLVE_NAME] = "";

	for (unsigned i = 0; i < resolver->servers; i++)
		append(who, sizeof(who), i ? " and " : "", resolver->server[i]);
	for (unsigned i = 0; is_relative(host) && i < resolver->domains; i++)
		append(asked, sizeof(asked), i ? ", ." : " and it with .", resolver->domain[i]);
	return error_set(error, 0,
		"agent %.90s: no such name. In a pod write it in full "
		"(….svc.cluster.local); with dnsPolicy Default or None give its address. "
		"Asked %s for %s",
		host, who[0] ? who : "no nameserver", asked);
}

/* A name that has other records than addresses is as good as none. */
static int ask(const char *host, const char *service, const struct addrinfo *hints,
	struct addrinfo **list)
{
	int ret = getaddrinfo(host, service, hints, list);

#ifdef EAI_NODATA
	if (ret == EAI_NODATA)
		return EAI_NONAME;
#endif
	return ret;
}

int resolve_by(const char *configuration, const char *host, const char *service,
	const struct addrinfo *hints, struct addrinfo **list, struct error *error)
{
	int ret = ask(host, service, hints, list);
	struct resolver resolver;
	char name[RESOLVE_NAME];

	if (!ret)
		return 0;
	resolver_read(configuration, &resolver);
	for (unsigned i = 0; ret == EAI_NONAME && is_relative(host) && i < resolver.domains;
		i++) {
		if (!full_name(host, resolver.domain[i], name))
			continue;
		ret = ask(name, service, hints, list);
		if (!ret)
			return 0;
	}
	if (ret == EAI_NONAME)
		return not_found(&resolver, host, error);
	if (ret == EAI_AGAIN)
		return error_set(error, 0,
			"agent %.90s: the nameserver (%s) does not answer: is it up, and do "
			"network policies let this pod ask it?",
			host, resolver.servers ? resolver.server[0] : "none is named");
	return error_set(
		error, 0, "agent %.90s: cannot find the host: %s", host, gai_strerror(ret));
}

int resolve_host(const char *host, const char *service, const struct addrinfo *hints,
	struct addrinfo **list, struct error *error)
{
	return resolve_by("/etc/resolv.conf", host, service, hints, list, error);
}
