/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may ask agent-uploads for payloads, and of which namespace: the front makes a lane for
 * each stripe of a session that may, and hands its ends to both.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_UPLOADS_H
#define VCUDA_GPU_AGENT_FRONT_UPLOADS_H

#include <stdint.h>

struct front;
struct session;

/* Another agent-uploads, as the supervisor says; takes FD. */
void uploads_join(struct front *front, int fd);

/* FEATURES, and SESSION_FEATURE_NAMES where a client that ASKED so may have it with them. */
uint64_t uploads_features(const struct front *front, uint64_t features, uint64_t asked);

/* Before stripe NUMBER is handed over. Without one its payloads travel. */
void uploads_lane(struct front *front, const struct session *session, uint32_t number);

#endif
