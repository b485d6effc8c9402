/* SPDX-License-Identifier: Apache-2.0
 *
 * The quotas of tenants (gpu-agent/quotas.h) as the front knows them: it gives them to each
 * session's worker, which keeps them, and tells what is in use and what was refused.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_TENANT_QUOTAS_H
#define VCUDA_GPU_AGENT_FRONT_TENANT_QUOTAS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gpu-agent/handoff.h"

struct front;
struct session;
struct viewer;

/* Into h, the SESSION to its worker. */
void tenant_quotas_fill(const struct session *session, struct handoff *h);
/* What a worker's STATS say of them. */
void tenant_quotas_count(struct session *session, const struct handoff *h);
/* Whether the session may have STRIPES stripes: they are memory on its way. */
bool tenant_quotas_stripes(const struct session *session, uint32_t stripes);
/* `quotas` of a session's JSON: in use, and the limit where there is one. */
void tenant_quotas_json(cJSON *object, const struct session *session);
/* Of the tenants that the viewer sees. */
void tenant_quotas_metrics(FILE *out, const struct front *front, const struct viewer *viewer);

#endif
