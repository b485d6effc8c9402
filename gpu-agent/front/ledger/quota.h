/* SPDX-License-Identifier: Apache-2.0
 *
 * Pods that asked for limits: the sessions that say the same (identity and limits), of one
 * tenant and from one address, share one budget of device memory and see the same GPUs.  A pod
 * is there while it has sessions.  Who asks for nothing is no pod here (NULL) and sees every
 * GPU; unless its tenant has some of them only, for then its pod keeps which.
 *
 * All of this is the client's word. It takes from the session that says it and from nobody
 * else: who says other limits, or says them elsewhere, is another pod.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_LEDGER_QUOTA_H
#define VCUDA_GPU_AGENT_FRONT_LEDGER_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/front/front.h"

struct pod {
	char identity[sizeof(((struct session_hello *)0)->pod)];
	struct tenant *tenant;
	struct transport_peer peer;
	uint32_t sessions;  /* 0: the entry is free */
	uint32_t wanted;    /* GPUs; 0 = all */
	uint32_t allowed;   /* bit d: device d is its tenant's; 0 = all */
	uint32_t gpu_count; /* chosen; 0 = not yet */
	uint8_t gpus[HANDOFF_DEVICES];
	struct ledger_budget budget;
};

/* The devices that there are for the tenant: bit d for device d. */
uint32_t quota_gpus(const struct front *front, const struct tenant *tenant);
/* Of these, the devices that have not fallen. */
uint32_t quota_good(const struct front *front, const struct tenant *tenant);
/* Bytes of the device that its sessions can still get. */
uint64_t quota_free(const struct front *front, const struct tenant *tenant, uint32_t device);

/* Whether the GPUs that it wants are there; 0, or a CUresult with text. */
uint32_t quota_may(const struct front *front, const struct hello_from *from, char text[192]);

/* The pod of a session that begins, counted; NULL: it asks for nothing. */
struct pod *quota_enter(struct front *front, const struct hello_from *from);

/* The pod of a session that another front had: `had` is as that one knew it. */
struct pod *quota_adopt(struct front *front, const struct pod *had, struct tenant *tenant);

/* Opens the session's account: on the pod's GPUs, which the first session chooses (those with
 * most left). false where there are not as many. */
bool quota_open_account(struct front *front, struct session *session);

/* Closes it. */
void quota_close_account(struct front *front, struct session *session);

/* The ledger's number of a session's GPU; UINT32_MAX: it has no such. */
uint32_t quota_gpu(const struct front *front, const struct session *session, uint32_t index);
uint32_t quota_gpu_count(const struct front *front, const struct session *session);

/* Bytes of each GPU that the session may have at most: its pod's or its tenant's, 0 = no limit.
 */
uint64_t quota_limit(const struct session *session);

/* What of that limit others hold, for devices[] of a datagram to the worker. */
void quota_fill_others(
	const struct front *front, const struct session *session, struct handoff *h);
/* The session's lease changed: the workers of the pod's and the tenant's others hear of it. */
void quota_tell(struct front *front, const struct session *session);
void quota_tell_one(struct front *front, struct session *session);

#endif
