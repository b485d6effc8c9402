/* SPDX-License-Identifier: Apache-2.0
 *
 * Who a client is, by what it brought: a token of the file, or one that the cluster signed.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_IDENTITY_H
#define VCUDA_GPU_AGENT_FRONT_IDENTITY_H

#include "gpu-agent/front/session/hello.h"

/* Reads the keys that the configuration names. 0, or -errno with *error. */
int identity_open(struct front *front, struct error *error);
void identity_close(struct front *front);

/* Of a whole HELLO with its credential. *from gets tenant, and how long that is proven; what a
 * token proves of the pod takes the place of what SLOT's HELLO says. False: nobody, and every
 * reason looks the same to the client. */
bool identity_of(struct front *front, struct hello_slot *slot, struct hello_from *from);

#endif
