/* SPDX-License-Identifier: Apache-2.0
 *
 * How a front takes over what the one before it left: sessions run on in their workers, whose
 * clients notice nothing.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_ADOPT_H
#define VCUDA_GPU_AGENT_FRONT_ADOPT_H

#include "gpu-agent/control.h"

struct front;

/* KEPT and ADOPT of the supervisor; they take FD. */
void adopt_kept(struct front *front, const struct control *control, int fd);
void adopt_worker(struct front *front, const struct control *control, int fd);
/* BEGIN: sessions whose workers are gone are over; from here on the front accepts. */
void adopt_end(struct front *front);

#endif
