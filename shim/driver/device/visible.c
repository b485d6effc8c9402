/* SPDX-License-Identifier: Apache-2.0
 *
 * See visible.h.  The rules are what driver 13.0 was seen to do on a machine with two H200
 * (tests/unit/shim/shim_visible.c has the table), more than its documentation says: numbers are
 * what strtol makes of them, a GPU that is named twice is INVALID_DEVICE, and so is an unknown
 * order.  That a part of a GPU (MIG) is named by MIG- and its UUID is what NVIDIA documents.
 */
#include "shim/driver/device/visible.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shim/driver/device/pci.h"

#define GPU_PREFIX "GPU-"
#define MIG_PREFIX "MIG-" /* of a part of a GPU; as long */
#define PREFIX 4
#define UUID_TEXT (4 + 36) /* GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx */

static int64_t attribute(const struct open_device *device, int which)
{
	return device->attribute_known[which / 8] >> which % 8 & 1 ? device->attributes[which]
								   : 0;
}

/* The driver's heuristic is its own; this one tells the same of two GPUs that differ. */
static int64_t speed(const struct open_device *device)
{
	return attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
	       attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
}

static uint64_t place(const struct open_device *device)
{
	struct pci_place at;
	char text[sizeof(device->pci_bus_id) + 1];

	snprintf(text, sizeof(text), "%.*s", (int)sizeof(device->pci_bus_id),
		device->pci_bus_id);
	if (!pci_parse(text, &at))
		return UINT64_MAX;
	return (uint64_t)at.domain << 32 | (uint64_t)(at.bus & 0xffff) << 16 |
	       (at.device & 0xff) << 8 | (at.function & 0xff);
}

static bool before(const struct open_device *a, const struct open_device *b, bool by_place)
{
	return by_place ? place(a) < place(b) : speed(a) > speed(b);
}

/* Equal ones stay as the agent has them. */
static void sort(const struct open_device *all, int count, bool by_place, int *sorted)
{
	for (int i = 0; i < count; i++) {
		int at = i;

		for (; at && before(&all[i], &all[sorted[at - 1]], by_place); at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = i;
	}
}

static bool prefixed(const char *entry, const char *prefix)
{
	return !strncmp(entry, prefix, PREFIX);
}

static void uuid_text(const struct open_device *device, char text[UUID_TEXT + 1])
{
	const uint8_t *u = device->uuid;
	bool part = strstr(device->name, " MIG ") != NULL;

	snprintf(text, UUID_TEXT + 1,
		"%s%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		part ? MIG_PREFIX : GPU_PREFIX, u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7],
		u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

/* The one that ENTRY is the beginning of, in either case; what stands behind a whole UUID does
 * not count. -1: none, or several. */
static int by_uuid(
	const char *entry, const struct open_device *all, int count, const int *sorted)
{
	size_t n = strcspn(entry, ",");
	char text[UUID_TEXT + 1];
	int found = -1;

	if (!prefixed(entry, GPU_PREFIX) && !prefixed(entry, MIG_PREFIX))
		return -1;
	for (int i = 0; i < count; i++) {
		uuid_text(&all[sorted[i]], text);
		if (strncasecmp(entry, text, n < UUID_TEXT ? n : UUID_TEXT) != 0)
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

/* -1: no number, or no such device. */
static int by_number(const char *entry, int count)
{
	char *end;
	int number = (int)strtol(entry, &end, 10);

	return end == entry || number < 0 || number >= count ? -1 : number;
}

int visible_choose(const char *order, const char *list, const struct open_device *all,
	int count, int chosen[OPEN_DEVICES_MOST])
{
	int sorted[OPEN_DEVICES_MOST], n = 0;
	bool by_place = order && !strcmp(order, "PCI_BUS_ID");
	bool uuids;

	if (order && !by_place && strcmp(order, "FASTEST_FIRST") != 0)
		return VISIBLE_INVALID;
	sort(all, count, by_place, sorted);
	if (!list) {
		memcpy(chosen, sorted, (size_t)count * sizeof(*sorted));
		return count;
	}
	uuids = prefixed(list, GPU_PREFIX) || prefixed(list, MIG_PREFIX);
	for (;;) {
		int one = uuids ? by_uuid(list, all, count, sorted) : by_number(list, count);

		if (one < 0)
			return n;
		for (int i = 0; i < n; i++)
			if (chosen[i] == sorted[one])
				return VISIBLE_INVALID;
		chosen[n++] = sorted[one];
		list += strcspn(list, ",");
		if (!*list++)
			return n;
	}
}
