/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/ledger/ledger.h"

#include <string.h>

#include "common/log.h"

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* *amount -= bytes; false, and zero, where that is not there. */
static bool subtract(struct ledger *ledger, const char *what, uint64_t *amount, uint64_t bytes)
{
	if (bytes <= *amount) {
		*amount -= bytes;
		return true;
	}
	ledger->bugs++;
	log_error("ledger.bug", "what=%s has=%llu takes=%llu", what,
		(unsigned long long)*amount, (unsigned long long)bytes);
	*amount = 0;
	return false;
}

void ledger_devices(struct ledger *ledger, const struct handoff_device *devices, uint32_t count,
	uint64_t reserve)
{
	memset(ledger->devices, 0, sizeof(ledger->devices));
	ledger->device_count = count < HANDOFF_DEVICES ? count : HANDOFF_DEVICES;
	for (uint32_t d = 0; d < ledger->device_count; d++) {
		struct ledger_device *to = &ledger->devices[d];

		memcpy(to->name, devices[d].name, sizeof(to->name));
		to->name[sizeof(to->name) - 1] = 0;
		memcpy(to->uuid, devices[d].uuid, sizeof(to->uuid));
		to->total = devices[d].total_memory;
		to->reserve = less(reserve, to->total);
	}
}

bool ledger_same(
	const struct ledger *ledger, const struct handoff_device *devices, uint32_t count)
{
	if (count != ledger->device_count)
		return false;
	for (uint32_t d = 0; d < count; d++)
		if (memcmp(devices[d].uuid, ledger->devices[d].uuid, sizeof(devices[d].uuid)) ||
			(!devices[d].fell &&
				devices[d].total_memory != ledger->devices[d].total))
			return false;
	return true;
}

uint64_t ledger_free(const struct ledger *ledger, uint32_t device)
{
	const struct ledger_device *d = &ledger->devices[device];
	uint64_t left;

	if (device >= ledger->device_count)
		return 0;
	left = d->total - less(d->total, d->reserve);
	left -= less(left, d->foreign);
	left -= less(left, d->contexts);
	left -= less(left, d->store);
	left -= less(left, d->leased);
	return left;
}

void ledger_context_add(struct ledger *ledger, const uint64_t bytes[HANDOFF_DEVICES])
{
	for (uint32_t d = 0; d < ledger->device_count; d++) {
		uint64_t *contexts = &ledger->devices[d].contexts;

		if (__builtin_add_overflow(*contexts, bytes[d], contexts)) {
			ledger->bugs++;
			*contexts = UINT64_MAX;
		}
	}
}

void ledger_context_remove(struct ledger *ledger, const uint64_t bytes[HANDOFF_DEVICES])
{
	for (uint32_t d = 0; d < ledger->device_count; d++)
		subtract(ledger, "contexts", &ledger->devices[d].contexts, bytes[d]);
}

void ledger_foreign(struct ledger *ledger, uint32_t device, uint64_t used)
{
	struct ledger_device *d = &ledger->devices[device];

	if (device < ledger->device_count)
		d->foreign = used - less(used, d->contexts + d->store);
}

void ledger_store(struct ledger *ledger, uint32_t device, uint64_t bytes)
{
	if (device < ledger->device_count)
		ledger->devices[device].store = bytes;
}

/* What the account could still get. */
static uint64_t room_for(
	const struct ledger *ledger, const struct ledger_account *account, uint32_t device)
{
	uint64_t room = ledger_free(ledger, device);

	if (!(account->devices >> device & 1))
		return 0;
	if (ledger->limit)
		room = less(room, ledger->limit - less(ledger->limit, account->lease[device]));
	for (const struct ledger_budget *b = account->budget; b; b = b->parent)
		if (b->limit)
			room = less(room, b->limit - less(b->limit, b->lease[device]));
	return room;
}

/* bytes: within room_for, so no sum can pass the device's total. */
static void lease_add(
	struct ledger *ledger, struct ledger_account *account, uint32_t device, uint64_t bytes)
{
	account->lease[device] += bytes;
	ledger->devices[device].leased += bytes;
	for (struct ledger_budget *b = account->budget; b; b = b->parent)
		b->lease[device] += bytes;
}

/* What may be given unasked. */
static uint64_t unasked(
	const struct ledger *ledger, const struct ledger_account *account, uint32_t device)
{
	for (const struct ledger_budget *b = account->budget; b; b = b->parent)
		if (b->limit)
			return 0;
	return ledger_free(ledger, device) / LEDGER_UNASKED_SHARE;
}

/* What an account may begin with: nobody needs it yet, so it must be missing to nobody. */
static uint64_t idle_share(
	const struct ledger *ledger, const struct ledger_account *account, uint32_t device)
{
	const struct ledger_device *d = &ledger->devices[device];
	uint64_t most = d->total / LEDGER_IDLE_SHARE;

	if (ledger_free(ledger, device) <= most)
		return 0;
	return less(unasked(ledger, account, device), most - less(most, d->idle));
}

/* It asked: what it holds is in use from here on, as far as anybody knows. */
static void no_longer_idle(
	struct ledger *ledger, struct ledger_account *account, uint32_t device)
{
	subtract(ledger, "idle", &ledger->devices[device].idle, account->idle[device]);
	account->idle[device] = 0;
}

void ledger_open(struct ledger *ledger, struct ledger_account *account, uint32_t devices,
	struct ledger_budget *budget, uint64_t initial)
{
	memset(account, 0, sizeof(*account));
	account->devices = devices;
	account->budget = budget;
	for (uint32_t d = 0; d < ledger->device_count; d++) {
		uint64_t share = idle_share(ledger, account, d);
		uint64_t bytes = less(less(initial, share), room_for(ledger, account, d));

		bytes -= bytes % LEDGER_GRANULE;
		lease_add(ledger, account, d, bytes);
		account->idle[d] = bytes;
		ledger->devices[d].idle += bytes;
	}
}

void ledger_restore(struct ledger *ledger, const struct ledger_device *devices, uint32_t count)
{
	memset(ledger->devices, 0, sizeof(ledger->devices));
	ledger->device_count = count < HANDOFF_DEVICES ? count : HANDOFF_DEVICES;
	for (uint32_t d = 0; d < ledger->device_count; d++) {
		struct ledger_device *to = &ledger->devices[d];

		*to = devices[d];
		to->contexts = to->leased = to->idle = 0;
	}
}

void ledger_adopt(struct ledger *ledger, struct ledger_account *account,
	const struct ledger_account *had, struct ledger_budget *budget)
{
	memset(account, 0, sizeof(*account));
	account->devices = had->devices;
	account->budget = budget;
	account->quarantined = had->quarantined;
	for (uint32_t d = 0; d < ledger->device_count; d++) {
		lease_add(ledger, account, d, had->lease[d]);
		account->idle[d] = less(had->idle[d], had->lease[d]);
		ledger->devices[d].idle += account->idle[d];
	}
}

uint64_t ledger_grow(
	struct ledger *ledger, struct ledger_account *account, uint32_t device, uint64_t wanted)
{
	uint64_t room, more;

	if (device >= ledger->device_count)
		return 0;
	no_longer_idle(ledger, account, device);
	room = room_for(ledger, account, device);
	if (account->quarantined || wanted > room)
		return account->lease[device];
	more = less(account->lease[device], unasked(ledger, account, device));
	more = less(more - more % LEDGER_GRANULE, room);
	lease_add(ledger, account, device, wanted > more ? wanted : more);
	return account->lease[device];
}

void ledger_close(struct ledger *ledger, struct ledger_account *account)
{
	for (uint32_t d = 0; d < ledger->device_count; d++) {
		if (!subtract(ledger, "leased", &ledger->devices[d].leased, account->lease[d]))
			account->quarantined = true;
		for (struct ledger_budget *b = account->budget; b; b = b->parent)
			subtract(ledger, "budget", &b->lease[d], account->lease[d]);
		no_longer_idle(ledger, account, d);
		account->lease[d] = 0;
	}
	account->budget = NULL;
}
