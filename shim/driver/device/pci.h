/* SPDX-License-Identifier: Apache-2.0
 *
 * PCI places ("0000:3B:00.0").  GPUs of two agents may have the same one, each in its machine;
 * programs take it for a name.  The domains of an agent's GPUs are moved where one of them
 * would have the place of another agent's: by as much in each process of a pod.
 */
#ifndef VCUDA_SHIM_DRIVER_DEVICE_PCI_H
#define VCUDA_SHIM_DRIVER_DEVICE_PCI_H

#include <stdbool.h>

#include "protocol/wire/open.h"

struct pci_place {
	unsigned domain, bus, device, function;
};

/* False: it is none. */
bool pci_parse(const char *text, struct pci_place *place);
/* A domain as it is shown, BY: what pci_part returned for its agent. Four digits stay four.
 */
unsigned pci_domain(unsigned domain, unsigned by);
/* Moves GPUs [first, count) of ALL, one agent's, where need be: by how much. */
unsigned pci_part(struct open_device *all, unsigned first, unsigned count);

#endif
