/* SPDX-License-Identifier: Apache-2.0
 *
 * A CA of one release and the certificate of its agents: made, and made anew in time.  All keys
 * are on P-256.
 */
#ifndef VCUDA_GPU_AGENT_KEEPER_CERTIFICATE_H
#define VCUDA_GPU_AGENT_KEEPER_CERTIFICATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* A certificate with its key in PEM, each malloc'ed; both NULL: there is none. */
struct certificate_pair {
	char *cert, *key;
};

/* What is kept in the Secret. The clients believe `ca`, `next` and `old`. */
struct certificate_state {
	struct certificate_pair agent; /* what agents show */
	struct certificate_pair ca;    /* who signed it */
	struct certificate_pair next;  /* who signs the next one: clients know it long before */
	char *old;		       /* who signed the one before */
};
void certificate_state_free(struct certificate_state *state);

/* Brings STATE up to NOW (Unix time) for agents called NAME: what is missing, does not fit
 * together or is in its last part of life is made anew.  *changed: there is something to write.
 * 0, or -errno with *error. */
int certificate_renew(struct certificate_state *state, const char *name, int64_t now,
	bool *changed, struct error *error);

/* The certificates that clients are to believe at NOW, in PEM (malloc); NULL without memory. */
char *certificate_bundle(const struct certificate_state *state, int64_t now);

/* When that certificate in PEM ends, as Unix time; 0: it is none. */
int64_t certificate_ends(const char *pem);

#endif
