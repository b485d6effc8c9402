/* SPDX-License-Identifier: Apache-2.0
 *
 * The sidecar's state in text: what `vcuda-client status`, `metrics` and `calls` print.
 */
#ifndef VCUDA_SIDECAR_SERVER_STATE_H
#define VCUDA_SIDECAR_SERVER_STATE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "sidecar/server/server.h"

#define STATUS_TRANSPORTS 16 /* at least as many as there are */

/* Of all channels that are and were. Bytes: on the wire. */
struct wire_totals {
	uint64_t channels;     /* that are */
	uint64_t reconnecting; /* … whose connections are cut */
	uint64_t frames_sent, bytes_sent, frames_received, bytes_received;
	unsigned stripes; /* that are open */
	struct stripes_counts pieces;
	uint64_t
		by_transport[STATUS_TRANSPORTS]; /* channels that are, as transport_at counts */
	uint64_t wire_rate; /* bytes/s of the one with the fastest stripes; 0: not measured */
};
/* Under the server's lock. */
void state_totals(const struct server *server, struct wire_totals *totals);
/* A peer's text: only what is printable. */
void state_text(cJSON *object, const char *name, const char *text);

/* Each: to be freed; NULL without memory. */
char *sidecar_status(struct server *server);
/* OPENMETRICS: in that format, with exemplars; else Prometheus' older one. */
char *sidecar_metrics(struct server *server, bool openmetrics);
/* JSON: of each session that lives, each kind of call with its percentiles. */
char *sidecar_calls(struct server *server);

#endif
