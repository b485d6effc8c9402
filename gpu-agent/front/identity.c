/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/identity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/identity/jwt.h"

#define LOG_NS (1000 * FRONT_MS)

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

/* What HELLO says of its pod gives way to what was signed; a UID that differs is a lie. */
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

static bool take_tenant(struct front *front, const struct hello_slot *slot,
	const struct jwt_subject *subject, struct hello_from *from)
{
	char name[sizeof(from->tenant->name)];
	const char *account = front->config->service_account.by_account ? subject->account : "";

	if ((size_t)snprintf(name, sizeof(name), "%s%s%s", subject->namespace,
		    *account ? "/" : "", account) >= sizeof(name))
		return nobody(slot, "the names of namespace and ServiceAccount are too long");
	from->tenant = tenants_named(front, name);
	return from->tenant || nobody(slot, "there are too many tenants");
}

/* A token that the cluster signed. */
static bool service_account(
	struct front *front, struct hello_slot *slot, struct hello_from *from)
{
	const struct agent_service_account *config = &front->config->service_account;
	const struct jwt_expected expected = {config->issuer, config->audience};
	struct jwt_subject subject;
	const char *why = "";
	int64_t now = time(NULL);

	if (!front->keys)
		return nobody(slot, "a ServiceAccount's token, and no service_account.keys");
	if (transport_is_clear(slot->transport) && !front->config->insecure)
		return nobody(slot, "a ServiceAccount's token in the clear; configure tls");
	if (jwt_verify(front->keys, &expected, slot->credential, slot->credential_head.length,
		    now, &subject, &why))
		return nobody(slot, why);
	if (!take_pod(slot, &subject) || !take_tenant(front, slot, &subject, from))
		return false;
	from->proven_ns = (uint64_t)(subject.expires + JWT_SKEW_S - now) * 1000 * FRONT_MS;
	return true;
}

bool identity_of(struct front *front, struct hello_slot *slot, struct hello_from *from)
{
	from->proven_ns = UINT64_MAX;
	if (slot->hello.version == SESSION_VERSION_CREDENTIAL)
		return service_account(front, slot, from);
	from->tenant = tenants_find(front, slot->transport, slot->hello.token);
	return from->tenant != NULL;
}
