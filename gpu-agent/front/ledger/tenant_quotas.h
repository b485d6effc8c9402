/* SPDX-License-Identifier: Apache-2.0
 *
 * The quotas of tenants (gpu-agent/quotas.h) as the front knows them: it makes the tally of
 * those who have some (gpu-agent/tally.h), gives both to each session's worker, which keeps
 * them, and tells what is in use and what was refused.  Bytes in flight it gives out itself.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_LEDGER_TENANT_QUOTAS_H
#define VCUDA_GPU_AGENT_FRONT_LEDGER_TENANT_QUOTAS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gpu-agent/handoff.h"

struct front;
struct session;
struct tenant;
struct viewer;

/* Whether one more session can have what it needs and be counted; 0, or a CUresult with text.
 */
uint32_t tenant_quotas_may(
	const struct front *front, const struct tenant *tenant, char text[192]);
/* A session begins, which tenant_quotas_may let in: 0, or -errno where it cannot be counted. It
 * is over, and its worker is reaped. */
int tenant_quotas_enter(const struct front *front, struct session *session);
void tenant_quotas_leave(const struct front *front, struct session *session);
/* The tally to the session's worker, and to the supervisor for the next front. 0 or -errno. */
int tenant_quotas_tell(struct front *front, const struct session *session);
/* That, as the front before had it: for each session that is taken over; takes FD. Once all
 * are, what belongs to none of them is cleared. */
void tenant_quotas_adopt(struct session *session, int fd);
void tenant_quotas_adopted(const struct front *front);
/* Into h, the SESSION to its worker. */
void tenant_quotas_fill(const struct session *session, struct handoff *h);
/* What a worker's STATS say of them. */
void tenant_quotas_count(struct session *session, const struct handoff *h);
/* Whether the session may have one stripe more: it is memory on its way. */
bool tenant_quotas_stripe(const struct front *front, const struct session *session);
/* `quotas` of a session's JSON: in use, and the limit where there is one. */
void tenant_quotas_json(cJSON *object, const struct session *session);
/* Of the tenants that the viewer sees. */
void tenant_quotas_metrics(FILE *out, const struct front *front, const struct viewer *viewer);

#endif
