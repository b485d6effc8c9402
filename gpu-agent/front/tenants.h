/* SPDX-License-Identifier: Apache-2.0
 *
 * Tenants: who the tokens stand for, and what each may have.  A tenant is the one thing about a
 * client that is proven; pods, programs and limits are what it says, and are believed inside
 * its tenant's budget only.
 *
 * A tenant whose token is gone from the file stays until its last session ends.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_TENANTS_H
#define VCUDA_GPU_AGENT_FRONT_TENANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/front/front.h"
#include "gpu-agent/front/ledger/timeshare.h"

#define TENANTS (2 * AGENT_TOKENS) /* with those that are on their way out */
#define TENANTS_TELL_NS (100 * FRONT_MS)

struct tally;
struct tenant {
	char name[sizeof(((struct agent_tenant *)0)->name)]; /* "" = a free entry */
	bool known;					     /* it has a token */
	bool network;					     /* networks.h */
	uint32_t gpus;		     /* bit d: it may have of device d; 0: of all */
	bool changed;		     /* its sessions are to be told what the others hold */
	uint32_t sessions, most;     /* running, and how many may; 0 = no limit */
	struct ledger_budget budget; /* of all its sessions together */
	struct timeshare timeshare;
	struct session_stats totals; /* of its sessions, those that are over too; not `used` */
	uint64_t quotas[QUOTAS];     /* of its sessions together; 0 = the agent's own */
	struct tally *tally;	     /* what they have; NULL: nothing is to be kept */
	int tally_fd;		     /* where there is one */
	uint64_t quotas_refused[QUOTAS];
};

int tenants_open(struct front *front, struct error *error);
void tenants_close(struct front *front);

/* The tokens and networks of a configuration that was read again; those of before are no longer
 * good. */
void tenants_replace(struct front *front, const struct agent_config *config);

/* Whose the token is; NULL: nobody's. Without tokens (insecure) everybody is one tenant. */
struct tenant *tenants_find(struct front *front, const struct transport *transport,
	const char token[AGENT_TOKEN_MAX + 1]);

/* The tenant of that name, which was proven otherwise or to another front; one that is new has
 * an entry until its last session ends, or at least until this turn of the loop is over. NULL:
 * there are too many.
 */
struct tenant *tenants_named(struct front *front, const char *name);

/* One after another; NULL behind the last. */
const struct tenant *tenants_at(const struct front *front, uint32_t index);

/* Whether the configuration has NAME (token file, `tenants:`), and whether the token file has
 * anybody. */
bool tenants_known(const struct front *front, const char *name);
bool tenants_have_tokens(const struct front *front);

/* Whether there may be more than one: by what is configured, whoever is there now. */
bool tenants_several(const struct front *front);
/* The tenant that a network is; NULL: there is none of that name. */
const struct tenant *tenants_of_network(const struct front *front, const char *name);
/* Whose the token of the token file, or of a network, is; NULL: nobody's. */
const struct tenant *tenants_of_token(
	const struct front *front, const char token[AGENT_TOKEN_MAX + 1]);

/* Whether one more session would be served; 0, or a CUresult with text. */
uint32_t tenants_may(const struct front *front, const struct tenant *tenant, char text[192]);

/* What its sessions hold together changed. They are told soon, all at once: a tenant may have a
 * thousand, and each step of each would be a thousand datagrams. */
void tenants_changed(struct front *front, struct tenant *tenant);
uint64_t tenants_tick(struct front *front, uint64_t now); /* the next time to look */

#endif
