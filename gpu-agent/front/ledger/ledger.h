/* SPDX-License-Identifier: Apache-2.0
 *
 * The ledger of device memory: what each device has, what is spoken for, and which account
 * (session) holds how much of it as a lease.  It hands out leases, never memory; the workers
 * stay within them.  For each device
 *
 *     total >= reserve + foreign + contexts + store + leased
 *
 * Arithmetic is checked; what would go below zero is a bug that is counted, and the account is
 * put in quarantine: it gets nothing more, and what it holds stays spoken for until it is
 * closed. Plain memory, no system call, one thread.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_LEDGER_LEDGER_H
#define VCUDA_GPU_AGENT_FRONT_LEDGER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/handoff.h"

/* A reservation that is not used yet must not starve who comes later: what is given unasked is
 * at most this part of what is free. */
#define LEDGER_UNASKED_SHARE 64
/* And sessions that have not asked for anything yet hold at most this part of a device, all of
 * them together, and nothing new while no more than this part of it is free. */
#define LEDGER_IDLE_SHARE 8
#define LEDGER_GRANULE (2u << 20) /* what devices map at least */

struct ledger_device {
	char name[64];
	uint8_t uuid[16];
	uint64_t total;
	uint64_t reserve;  /* never given: configured */
	uint64_t store;	   /* of tensors with names */
	uint64_t foreign;  /* used by others than us when it was last seen */
	uint64_t contexts; /* what our workers' contexts take */
	uint64_t leased;
	uint64_t idle; /* of that, held by accounts that have not asked yet */
};

struct ledger {
	struct ledger_device devices[HANDOFF_DEVICES];
	uint32_t device_count;
	uint64_t limit; /* bytes a account and device; 0 = none but the device */
	uint64_t bugs;	/* arithmetic that did not add up */
};

/* What several accounts may have of each device together. One may be a part of another: what
 * is given counts in both, and both must have it. */
struct ledger_budget {
	uint64_t limit; /* bytes; 0 = none */
	uint64_t lease[HANDOFF_DEVICES];
	struct ledger_budget *parent; /* NULL: none */
};

/* A session's part of it; or, for `contexts`, a worker's. */
struct ledger_account {
	uint64_t lease[HANDOFF_DEVICES];
	uint64_t idle[HANDOFF_DEVICES]; /* of it, what it was given before it asked for any */
	struct ledger_budget *budget;	/* NULL: none; outlives the account's lease */
	uint32_t devices;		/* bit d: it may have of that device */
	bool quarantined;
};

/* The devices as the first ready worker reported them. reserve: bytes of each. */
void ledger_devices(struct ledger *ledger, const struct handoff_device *devices, uint32_t count,
	uint64_t reserve);

/* Whether a later worker sees the same devices. */
bool ledger_same(
	const struct ledger *ledger, const struct handoff_device *devices, uint32_t count);

/* Bytes of a device that can still be reserved. 0 for a device that there is not. */
uint64_t ledger_free(const struct ledger *ledger, uint32_t device);

/* A worker's contexts come and go. */
void ledger_context_add(struct ledger *ledger, const uint64_t bytes[HANDOFF_DEVICES]);
void ledger_context_remove(struct ledger *ledger, const uint64_t bytes[HANDOFF_DEVICES]);

/* `used`: what is in use on the device by whomever; all but our contexts is somebody else's.
 * Only meaningful while no session runs and no worker is starting. */
void ledger_foreign(struct ledger *ledger, uint32_t device, uint64_t used);

/* What the store has of the device. */
void ledger_store(struct ledger *ledger, uint32_t device, uint64_t bytes);

/* Opens the account with `initial` bytes of each of `devices` (bit d: device d), or less, or
 * nothing, where little is left. With a budget that has a limit it starts with nothing, and
 * gets what it asks for and no more: what one account does not use would be missing to the
 * others. */
void ledger_open(struct ledger *ledger, struct ledger_account *account, uint32_t devices,
	struct ledger_budget *budget, uint64_t initial);

/* The devices as another front knew them: without what workers and accounts have. */
void ledger_restore(struct ledger *ledger, const struct ledger_device *devices, uint32_t count);

/* Opens the account with what `had` has, which is held already. */
void ledger_adopt(struct ledger *ledger, struct ledger_account *account,
	const struct ledger_account *had, struct ledger_budget *budget);

/* `wanted` bytes beyond the lease: grants them, or a doubling where that is more and there is
 * plenty; nothing where `wanted` itself is not left or passes the limit.  Returns the lease's
 * new size. */
uint64_t ledger_grow(struct ledger *ledger, struct ledger_account *account, uint32_t device,
	uint64_t wanted);

/* Gives everything back. */
void ledger_close(struct ledger *ledger, struct ledger_account *account);

#endif
