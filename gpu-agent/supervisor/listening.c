/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/supervisor/listening.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "transport/tcp.h"

/* HTTP listens where sessions come from unless it is told otherwise: on the host of the first
 * of these addresses. */
static int http_host(const char *addresses, char host[256], struct error *error)
{
	struct transport_description description;
	char first[256];
	uint16_t port = 0;
	int ret;

	addresses += strspn(addresses, " ");
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(addresses, ", "), addresses);
	host[0] = 0;
	if (!*first) /* every address */
		return 0;
	if (!strstr(first, "://")) {
		ret = tcp_parse_host(first, 0, host, &port, error);
		return port ? error_set(error, 0, "'%.100s': the port is ports.control", first)
			    : ret;
	}
	if (!strstr(first, "://")[3])
		return 0;
	ret = transport_describe(first, 0, &description, error);
	if (ret < 0)
		return error_wrap(error, ret, "listen");
	memcpy(host, description.host, sizeof(description.host));
	return 0;
}

/* As whom, and to whom, this agent goes where it dials others (`peers:`). */
static int secure_dialing(const struct agent_config *config, struct error *error)
{
	struct transport_tls tls = config->tls;

	if (!config->peer_ca[0])
		return config->peer_name[0]
			       ? error_set(error, 0, "tls: peer_name needs peer_ca")
			       : 0;
	memcpy(tls.ca, config->peer_ca, sizeof(tls.ca));
	memcpy(tls.name, config->peer_name, sizeof(tls.name));
	if (transport_secure(TRANSPORT_CLIENT, &tls, error) < 0)
		return error_wrap(error, -EINVAL, "tls.peer_ca");
	return 0;
}

int listening_secure(const struct agent_config *config, struct error *error)
{
	const struct transport_tls *tls = &config->tls;
	int ret;

	if (!tls->cert[0] && !tls->key[0] && !tls->ca[0] && !tls->require)
		return config->peer_ca[0] || config->peer_name[0]
			       ? error_set(error, 0,
					 "tls: peer_ca and peer_name need cert and key")
			       : 0;
	ret = transport_secure(TRANSPORT_AGENT, tls, error);
	return ret < 0 ? ret : secure_dialing(config, error);
}

int listening_check(const struct agent_config *config, struct error *error)
{
	char host[256];
	int ret = listening_secure(config, error);

	if (ret < 0)
		return ret;
	ret = transport_check_listen(config->address, error);
	if (ret < 0)
		return error_wrap(error, ret, "listen");
	ret = http_host(config->http_address, host, error);
	return ret < 0 ? error_wrap(error, ret, "http.address") : 0;
}

int listening_open(struct agent_config *config, int *http, struct error *error)
{
	char host[256];
	int ret = listening_secure(config, error);

	if (!ret)
		ret = http_host(config->http_address, host, error);
	if (ret < 0)
		return ret;
	config->listening = (struct transport_listening){
		.wanted.replies = config->ports[LISTEN_SEND],
		.wanted.commands = config->ports[LISTEN_RECV],
	};
	ret = transport_listen(config->address, &config->listening, error);
	if (ret < 0)
		return ret;
	config->bound[LISTEN_SEND] = config->listening.taken.replies;
	config->bound[LISTEN_RECV] = config->listening.taken.commands;
	*http = tcp_listen(
		host, config->ports[LISTEN_CONTROL], &config->bound[LISTEN_CONTROL], error);
	if (*http >= 0)
		return 0;
	transport_unlisten(&config->listening);
	return error_wrap(error, *http, "ports.control");
}

void listening_close(struct agent_config *config, int http)
{
	transport_unlisten(&config->listening);
	close(http);
}
