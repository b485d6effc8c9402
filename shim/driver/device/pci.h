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

struct place {
	unsigned domain, bus, device, function;
};

/* False: it is none. */
bool place_parse(const char *text, struct place *place);
/* A domain as it is shown, BY: what place_part returned for its agent. Four digits stay four.
 */
unsigned place_domain(unsigned domain, unsigned by);
/* Moves GPUs [first, count) of ALL, one agent's, where need be: by how much. */
unsigned place_part(struct open_device *all, unsigned first, unsigned count);

#endif
