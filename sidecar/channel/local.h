/* SPDX-License-Identifier: Apache-2.0
 *
 * A channel whose worker is on this machine and takes frames from the ring itself
 * (docs/TRANSPORTS.md, "local").  What is left for the sidecar: it gives the worker the memory,
 * looks after both ends, and says when and why it is over.  The channel's thread only.
 */
#ifndef VCUDA_SIDECAR_CHANNEL_LOCAL_H
#define VCUDA_SIDECAR_CHANNEL_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "transport/local.h"

struct channel;

struct local {
	bool is;
	bool ended;	   /* END came */
	bool parting;	   /* GONE is said */
	unsigned unpinned; /* UNPINs that are not answered */
	uint64_t named;	   /* the last of what was said of numbers */
	struct local_hearing hearing;
};

/* The agent has granted it: the worker gets segment 0 and the doorbell, and has mapped it when
 * this returns. 0, or -errno with *error. */
int local_attach(struct channel *channel, uint64_t deadline, struct error *error);

/* The session is resumed over the channel's new link: the worker hears which memory there is.
 * 0, or -errno with *error. */
int local_resume(struct channel *channel, struct error *error);

/* The worker gets segment NUMBER before the program knows of it. 0, or -errno with *error. */
int local_pin(struct channel *channel, uint32_t number, struct error *error);
/* NUMBER, which is on `closing`, goes once the worker has let go of it. */
void local_unpin(struct channel *channel, uint32_t number);

/* Instead of channel_turn. */
void local_turn(struct channel *channel);

#endif
