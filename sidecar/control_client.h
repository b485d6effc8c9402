/* SPDX-License-Identifier: Apache-2.0
 *
 * Asking a running sidecar, from another process: `vcuda-client status|drain`, `vcuda status`,
 * `vcuda doctor`, `vcuda run`.
 */
#ifndef VCUDA_SIDECAR_CONTROL_CLIENT_H
#define VCUDA_SIDECAR_CONTROL_CLIENT_H

#include "common/error.h"
#include "sidecar/agents/agents.h"
#include "sidecar/options/options.h"

/* The sidecar's state as text, OP of enum channel_op in the FORMAT that it has there; free()
 * it. 0, or -errno with *error. */
int control_text(
	const char *socket, uint32_t op, uint32_t format, char **text, struct error *error);

/* No more processes; it ends after the last one. */
int control_drain(const char *socket, struct error *error);

/* Prints that JSON for people: one line for the sidecar, one for each process. 0 or -EINVAL. */
int control_print(const char *json);

/* Which agents a process would get now, as spread_choose. */
int control_spread(const struct options *options, struct spread *spread, struct error *error);

/* Asks the agents of a part of the list whether one would grant a session. 0, or -errno with
 * *error; `agents` says which, *welcome what it answered (zeros: nothing); *took: ns. */
int control_probe(const struct options *options, const struct spread_part *part,
	struct agents *agents, struct session_welcome *welcome, uint64_t *took,
	struct error *error);

#endif
