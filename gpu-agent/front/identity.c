/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/identity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/networks.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/identity/jwt.h"

#define LOG_NS (1000 * FRONT_MS)
#define TENANT_NAME sizeof(((struct tenant *)0)->name)

int identity_open(struct front *front, struct error *error)
{
	const char *path = front->config->service_account.keys;

	if (!path[0])
		return 0;
	return key_set_open(&front->keys, path, error)
		       ? error_wrap(error, -EINVAL, "service_account.keys")
		       : 0;
}

void identity_close(struct front *front)
{
	key_set_close(front->keys);
	front->keys = NULL;
}

/* For the log only; once a second. */
static bool nobody(const struct hello_slot *slot, const char *why)
{
	static uint64_t logged_at;
	uint64_t now = wait_now();

	if (now - logged_at >= LOG_NS) {
		logged_at = now;
		log_warn("token.refused", "peer=%s text=\"%s\"", slot->peer.text, why);
	}
	return false;
}

/* What HELLO says of its pod gives way to what was signed; a UID that differs is refused. */
static bool take_pod(struct hello_slot *slot, const struct jwt_subject *subject)
{
	struct session_hello *hello = &slot->hello;

	if (hello->pod_uid[0] &&
		strncmp(hello->pod_uid, subject->pod_uid, sizeof(hello->pod_uid)))
		return nobody(slot, "the token is of another pod");
	memset(hello->pod_uid, 0, sizeof(hello->pod_uid));
	strcpy(hello->pod_uid, subject->pod_uid);
	memset(hello->pod, 0, sizeof(hello->pod));
	snprintf(hello->pod, sizeof(hello->pod), "%s/%.60s", subject->namespace, subject->pod);
	return true;
}

/* NAMESPACE, or NAMESPACE/ACCOUNT where a tenant is that. */
static bool name_tenant(
	const struct front *front, const char *namespace, const char *account, char *name)
{
	bool both = front->config->service_account.by_account;

	return (size_t)snprintf(name, TENANT_NAME, "%s%s%s", namespace, both ? "/" : "",
		       both ? account : "") < TENANT_NAME;
}

/* Who is proven otherwise than by a network's token is none of its people. */
static struct tenant *tenant_named(
	struct front *front, const struct hello_slot *slot, const char *name)
{
	struct tenant *tenant = networks_named(front, name) ? NULL : tenants_named(front, name);

	if (!tenant)
		nobody(slot, networks_named(front, name)
				     ? "it names a tenant that is a network, which has a token"
				     : "there are too many tenants");
	return tenant;
}

/* A token that the cluster signed. */
static bool service_account(
	struct front *front, struct hello_slot *slot, struct hello_from *from)
{
	const struct agent_service_account *config = &front->config->service_account;
	const struct jwt_expected expected = {config->issuer, config->audience};
	struct jwt_subject subject;
	char name[TENANT_NAME];
	const char *why = "";
	int64_t now = time(NULL);

	if (!front->keys)
		return nobody(slot, "a ServiceAccount's token, and no service_account.keys");
	if (transport_is_clear(slot->transport) && !front->config->insecure)
		return nobody(slot, "a ServiceAccount's token in the clear; configure tls");
	if (jwt_verify(front->keys, &expected, slot->credential, slot->credential_head.length,
		    now, &subject, &why))
		return nobody(slot, why);
	if (!take_pod(slot, &subject))
		return false;
	if (!name_tenant(front, subject.namespace, subject.account, name))
		return nobody(slot, "the names of namespace and ServiceAccount are too long");
	from->tenant = tenant_named(front, slot, name);
	if (!from->tenant)
		return false;
	from->proven_ns = (uint64_t)(subject.expires + JWT_SKEW_S - now) * 1000 * FRONT_MS;
	return true;
}

/* spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT; false: it is none. */
static bool name_by_uri(const struct front *front, const char *uri, char *name)
{
	char namespace[64], account[254], rest;

	return sscanf(uri, "spiffe://%*[a-z0-9._-]/ns/%63[a-z0-9-]/sa/%253[a-z0-9.-]%c",
		       namespace, account, &rest) == 2 &&
	       name_tenant(front, namespace, account, name);
}

/* Whom the client's certificate names, "" where that is nobody: a SPIFFE identity, or a tenant
 * of ours by its own name. False: it is not clear. */
static bool by_certificate(struct front *front, const struct hello_slot *slot,
	struct hello_from *from, char name[TENANT_NAME])
{
	struct transport_certificate shown = {0};

	name[0] = 0;
	if (slot->transport->certificate)
		slot->transport->certificate(slot->watch.fd, &shown);
	if (!shown.expires)
		return true;
	from->proven_ns = (uint64_t)(shown.expires - time(NULL)) * 1000 * FRONT_MS;
	if (shown.is_uri && (shown.names > 1 || !name_by_uri(front, shown.name, name)))
		return nobody(slot, "the certificate's URI is not one SPIFFE identity "
				    "(spiffe://DOMAIN/ns/NAMESPACE/sa/NAME)");
	if (!shown.is_uri && shown.names == 1 && tenants_known(front, shown.name))
		snprintf(name, TENANT_NAME, "%.63s", shown.name); /* all of it */
	return true;
}

bool identity_of(struct front *front, struct hello_slot *slot, struct hello_from *from)
{
	char named[TENANT_NAME];
	uint64_t certificate;

	from->proven_ns = UINT64_MAX;
	if (!by_certificate(front, slot, from, named))
		return false;
	certificate = from->proven_ns;
	if (slot->hello.version == SESSION_VERSION_CREDENTIAL) {
		if (!service_account(front, slot, from))
			return false;
	} else if (named[0] && !slot->hello.token[0] && !tenants_have_tokens(front)) {
		from->tenant = tenant_named(front, slot, named);
	} else {
		from->tenant = tenants_find(front, slot->transport, slot->hello.token);
	}
	if (from->proven_ns > certificate)
		from->proven_ns = certificate;
	if (from->tenant && named[0] && strcmp(from->tenant->name, named))
		return nobody(slot, "certificate and token name different tenants");
	return from->tenant != NULL;
}
