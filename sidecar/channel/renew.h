/* SPDX-License-Identifier: Apache-2.0
 *
 * What proves who we are has an end, and the kubelet or cert-manager writes the next one into
 * its file before: the agent is told, for each session that runs.
 */
#ifndef VCUDA_SIDECAR_CHANNEL_RENEW_H
#define VCUDA_SIDECAR_CHANNEL_RENEW_H

#include <stdint.h>

#include "transport/transport.h"

struct server;

/* Of a channel whose session is open: whom to tell, and about what. */
struct renewal {
	struct transport_place place;
	uint8_t session[16], secret[16];
	uint32_t round; /* of renew.c: the last in which it was told */
};

/* Starts the thread that looks at the files; none where there is nothing that could change.
 * It ends with the process. */
void renew_start(struct server *server);

#endif
