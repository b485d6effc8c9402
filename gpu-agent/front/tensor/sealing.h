/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may still write what is sealed: the store has told each session that had it to be
 * written, and its seal is answered when all of them have followed, or have ended.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_TENSOR_SEALING_H
#define VCUDA_GPU_AGENT_FRONT_TENSOR_SEALING_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/tensor.h"

struct front;

/* WORD, READ_ONLY, is about to be said to its session. */
void sealing_told(struct front *front, const struct tensor_message *word);
/* SESSION writes ID no more. */
void sealing_followed(struct front *front, uint64_t session, const uint8_t id[16]);
/* The session has ended. */
void sealing_over(struct front *front, uint64_t session);
/* Whether somebody has not followed yet. */
bool sealing_waits(const struct front *front, const uint8_t id[16]);
/* Ends the sessions that have not. Not a process of the node, which would keep its mapping: the
 * seal of that is refused. */
void sealing_enforce(struct front *front, const uint8_t id[16]);

#endif
