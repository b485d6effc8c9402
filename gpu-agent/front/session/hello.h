/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections that have not said who they are, and how clients are refused.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_HELLO_H
#define VCUDA_GPU_AGENT_FRONT_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "gpu-agent/front/events.h"
#include "protocol/wire/session.h"
#include "transport/transport.h"

struct front;
struct tenant;

/* Pre-authentication limits: one fixed slot each, this many in all and from one address. Who
 * comes when they are taken takes the oldest's place. */
#define HELLO_SLOTS 256
#define HELLO_PER_ADDRESS 16
/* What a refused peer may still send while it reads why. */
#define HELLO_DRAIN_BYTES 16384

enum refusal {
	REFUSAL_MAGIC, /* not our protocol */
	REFUSAL_VERSION,
	REFUSAL_ROLE,
	REFUSAL_TOKEN,
	REFUSAL_SECRET,	   /* a further connection without a session */
	REFUSAL_LATE,	   /* for a session that was there, and is over */
	REFUSAL_OVERTAKEN, /* more sessions than the client had seen */
	REFUSAL_QUOTA,
	REFUSAL_DRAINING,
	REFUSAL_NOT_READY,
	REFUSAL_TIMEOUT, /* no whole HELLO in time */
	REFUSAL_FLOOD,	 /* too many half-open connections */
	REFUSAL_TLS,	 /* no TLS, or none that is accepted */
	REFUSALS
};
const char *refusal_name(enum refusal refusal);

/* A connection that has not said who it is. */
struct hello_slot {
	struct watch watch;
	uint32_t roles; /* TRANSPORT_ROLE: those that are served where it came in */
	bool lingering; /* refused: waiting for its end, so that it can read why */
	uint32_t got;	/* bytes of hello and on; lingering: bytes thrown away */
	uint64_t since, deadline;
	struct transport_peer peer;
	const struct transport *transport;
	struct session_hello hello; /* and, of that version alone, what stands behind it */
	struct session_credential credential_head;
	char credential[SESSION_CREDENTIAL_MAX];
};
_Static_assert(offsetof(struct hello_slot, credential) - offsetof(struct hello_slot, hello) ==
		       sizeof(struct session_hello) + sizeof(struct session_credential),
	"they are read as they come, one behind the other");

/* A whole HELLO, and what is known about who says it. */
struct hello_from {
	const struct session_hello *hello;
	const struct transport_peer *peer;
	struct tenant *tenant;
	const struct transport *transport; /* that brought it */
	uint64_t proven_ns;		   /* from now on; UINT64_MAX: for good */
};

int hello_open(struct front *front, struct error *error);
void hello_close(struct front *front);
uint64_t hello_tick(struct front *front, uint64_t now); /* the next deadline */
/* Sends a WELCOME; false where the connection did not take it. */
bool hello_welcome(
	const struct transport *transport, int fd, const struct session_welcome *welcome);

#endif
