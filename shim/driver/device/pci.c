/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/driver/device/pci.h"

#include <cuda.h>
#include <stdio.h>
#include <string.h>

/* Machines number their domains from 0, and few have more than some: 256 agents have room. */
#define STEP 0x100u
#define DIGITS 0xffffu

bool pci_parse(const char *text, struct pci_place *place)
{
	return sscanf(text, "%x:%x:%x.%x", &place->domain, &place->bus, &place->device,
		       &place->function) == 4;
}

unsigned pci_domain(unsigned domain, unsigned by)
{
	return (domain & ~DIGITS) | ((domain + by) & DIGITS);
}

static bool taken(const struct open_device *all, unsigned first, unsigned count, unsigned by)
{
	struct pci_place one, other;

	for (unsigned i = first; i < count; i++)
		for (unsigned j = 0; j < first; j++) {
			if (!pci_parse(all[i].pci_bus_id, &one) ||
				!pci_parse(all[j].pci_bus_id, &other))
				continue;
			one.domain = pci_domain(one.domain, by);
			if (!memcmp(&one, &other, sizeof(one)))
				return true;
		}
	return false;
}

static void move(struct open_device *device, unsigned by)
{
	const unsigned which = CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID;
	struct pci_place place;

	if (!pci_parse(device->pci_bus_id, &place))
		return;
	snprintf(device->pci_bus_id, sizeof(device->pci_bus_id), "%04X:%02X:%02X.%X",
		pci_domain(place.domain, by), place.bus & 0xff, place.device & 0xff,
		place.function & 0xf);
	if (device->attribute_known[which / 8] >> which % 8 & 1)
		device->attributes[which] =
			(int32_t)pci_domain((unsigned)device->attributes[which], by);
}

unsigned pci_part(struct open_device *all, unsigned first, unsigned count)
{
	unsigned by = 0;

	while (by <= DIGITS && taken(all, first, count, by))
		by += STEP;
	if (!by || by > DIGITS)
		return 0; /* they stay as they are */
	for (unsigned i = first; i < count; i++)
		move(&all[i], by);
	return by;
}
