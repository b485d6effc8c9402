/* SPDX-License-Identifier: Apache-2.0
 *
 * What hello_accept.c, which fills slots, has of hello.c, which hears what comes in them.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_HELLO_CORE_H
#define VCUDA_GPU_AGENT_FRONT_HELLO_CORE_H

#include <stdint.h>

#include "gpu-agent/front/events.h"
#include "gpu-agent/front/session/hello.h"

/* Attempts are counted; one a second is logged. */
void hello_refused(
	struct front *front, enum refusal refusal, const struct transport_peer *peer);
/* The slot is free again, and its connection closed. */
void hello_drop(struct front *front, struct hello_slot *slot);
/* Of a slot's watch: something has come. */
void hello_ready(struct watch *watch, uint32_t mask);

#endif
