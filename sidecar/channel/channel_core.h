/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of a channel are to one another, beside channel.h: channel_life.c makes and
 * frees it, channel.c carries frames while it is open, channel_loss.c has what follows a broken
 * link. All of it on the channel's thread.
 */
#ifndef VCUDA_SIDECAR_CHANNEL_CHANNEL_CORE_H
#define VCUDA_SIDECAR_CHANNEL_CHANNEL_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "sidecar/channel/channel.h"

/* channel.c: until the program is gone or the sidecar is stopped. It frees nothing. */
void channel_serve(struct channel *channel);

/* channel_life.c: what `status` calls its transport, once it has a link. */
void channel_name(struct channel *channel);

/* channel_loss.c */

/* The program made a file of shared memory shorter: another connection is of no use. */
bool channel_robbed(const struct channel *channel);

/* The app broke a rule of the channel: it is lost. _robbed: by what channel_robbed says. */
void channel_poison(struct channel *channel, const struct error *error);
void channel_poison_robbed(struct channel *channel);

/* The agent has taken us back, or nobody will: the link of the resumption is ours, or the
 * channel is lost. */
void channel_resumed(struct channel *channel, uint64_t now);

#endif
